"""When each segment of a log goes, and by which rule, if nothing is appended meanwhile.

What `plan_retention` decides for one moment holds from some moment on: log start and size do not
depend on time, and a segment that time retention takes at one moment it takes at any later one. So
each segment has one time from which `deleteOldSegments` takes it: the latest of its own and of
those in front of it. (The active segment of a tiered log whose records are all deleted takes two
passes, one that rolls it and one that deletes it.) A segment that would be due by its own, and
stays, is blocked: by what, says a word that is also the id of the audit's finding.

Source: Kafka UnifiedLog.deleteOldSegments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from kafkalog.format.constants import MAX_INT64
from kafkalog.log.header_facts import PartitionFacts
from kafkalog.log.inventory import JsonFacts, PartitionInventory
from kafkalog.planning.loaded_segments import LoadedSegment, loaded_segments
from kafkalog.planning.local_retention import is_tiered, local_config
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.retention import (
    RetentionLimits,
    excess_bases,
    why_kept,
)
from kafkalog.planning.retention_plan import RetentionRule
from kafkalog.texts import format_setting_ms, format_timestamp

NEVER = -1

FUTURE_TIMESTAMP = "future-timestamp"
WRONG_UNIT = "microsecond-timestamps"
SECONDS = "second-timestamps"
AWAITS_HIGH_WATERMARK = "awaits-high-watermark"
AWAITS_UPLOAD = "awaits-upload"
BEHIND_YOUNGER = "behind-younger-segment"

# 2001 in microseconds; as ms the year 33658. A clock that is off by a factor, not by an hour.
_WRONG_UNIT_MS = 10**15


@dataclass(frozen=True, slots=True)
class SegmentForecast(JsonFacts):
    """`due_ms`: from when on retention takes it, -1 for never; `rule`: by which, or which keeps it
    now; `blocked_by`: what holds it back though it is due by its own, else empty; `text`: the rule
    in words, where that was asked for.
    """

    base_offset: int
    size_in_bytes: int
    timestamp_ms: int
    is_file_time: bool
    due_ms: int
    rule: str
    blocked_by: str
    text: str


@dataclass(frozen=True, slots=True)
class RetentionForecast(JsonFacts):
    """Of every live segment in offset order. status: `due` (some go now), `later`, `never`."""

    now_ms: int
    status: str
    reason: str
    segments: tuple[SegmentForecast, ...]

    @property
    def due_bytes(self) -> int:
        """Bytes that the next pass deletes."""
        return sum(s.size_in_bytes for s in self.segments if NEVER < s.due_ms <= self.now_ms)

    @property
    def blocked_bytes(self) -> int:
        """Bytes that are due by their own and held back."""
        return sum(s.size_in_bytes for s in self.segments if s.blocked_by)

    @property
    def next_due_ms(self) -> int:
        """When the next segment that is not due yet goes, -1 for never."""
        later = [s.due_ms for s in self.segments if s.due_ms > self.now_ms]
        return min(later, default=NEVER)


def is_wrong_unit(timestamp_ms: int) -> bool:
    """Whether a timestamp is one of micro- or nanoseconds, not of ms."""
    return timestamp_ms >= _WRONG_UNIT_MS


def forecast_retention(
    partition: PartitionInventory,
    config: LogConfig,
    facts: PartitionFacts,
    *,
    now_ms: int,
    high_watermark: int,
    uploaded_offset: int = NEVER,
    with_texts: bool = True,
) -> RetentionForecast:
    """The forecast of a log that stays as it is. `facts` as for `plan_retention`;
    `uploaded_offset`: of a tiered topic the last one in remote storage, -1 for nothing. Without
    `with_texts` the reason alone has one, of the segment that decides.
    """
    segments = loaded_segments(partition, facts)
    limits = RetentionLimits(
        local_config(config),
        now_ms,
        high_watermark,
        partition.log_start_offset,
        uploaded_offset if is_tiered(config) else None,
    )
    due = due_times(segments, limits)
    due += [(NEVER, "")] * (len(segments) - len(due))
    # What goes now is a prefix, and so is what goes at any later time: a segment never goes before
    # one in front of it.
    going = sum(NEVER < due_ms <= now_ms for due_ms, _ in due)
    excess = excess_bases(segments, limits)
    # Of all that stay the first one alone is asked what holds it: the same holds all behind it.
    blocker = _blocker(segments[going], limits) if going < len(segments) else ""
    texts = [why_due(s, limits, *due[number]) for number, s in enumerate(segments[:going])]
    kept = []
    for number, segment in enumerate(segments[going:], going):
        rule, text = why_kept(segment, islice(segments, number + 1, None), segments[going], limits)
        is_held_back = _is_due_by_its_own(segment, limits, excess)
        kept.append((due[number][0], str(rule), blocker if is_held_back else ""))
        texts.append(text)
    told = [*((due_ms, rule, "") for due_ms, rule in due[:going]), *kept]
    forecasts = tuple(
        SegmentForecast(*_facts_of(segment), *own, text if with_texts else "")
        for segment, own, text in zip(segments, told, texts, strict=True)
    )
    return _summed_up(forecasts, texts, now_ms)


def due_times(segments: Sequence[LoadedSegment], limits: RetentionLimits) -> list[tuple[int, str]]:
    """(when, rule) of the first segments, up to the first that never goes. A pass at a time takes
    those whose `when` is not later.
    """
    config = limits.config
    # Three walks as those of a pass. The first two do not depend on the time, so that what they
    # take goes now or not at all; the third takes each segment from a moment of its own on.
    count = 0
    while (
        count < len(segments)
        and limits.may_go(segments[count])
        and limits.is_below_start(segments[count])
    ):
        count += 1
    due = [(limits.now_ms, str(RetentionRule.LOG_START))] * count
    excess = excess_bases(segments[count:], limits)
    for segment in segments[count:]:
        if not limits.may_go(segment) or segment.base_offset not in excess:
            break
        due.append((limits.now_ms, str(RetentionRule.RETENTION_BYTES)))
    latest = NEVER
    for segment in segments[len(due) :]:
        if not limits.deletes or config.retention_ms < 0 or not limits.may_go(segment):
            break
        # Strictly older than the limit, so a millisecond later; and never before those in front of
        # it.
        latest = max(latest, segment.timestamp_ms + config.retention_ms + 1, 0)
        if latest > MAX_INT64:
            break
        due.append((latest, str(RetentionRule.RETENTION_MS)))
    return due


def _is_due_by_its_own(
    segment: LoadedSegment, limits: RetentionLimits, excess: frozenset[int]
) -> bool:
    if segment.is_empty_active:
        return False
    is_limited = limits.deletes and limits.config.retention_ms >= 0
    # Whatever a clock claims that is years ahead, its file was written when it says.
    is_old_file = (
        is_limited
        and segment.timestamp_ms > limits.now_ms
        and (limits.now_ms - segment.modification_time_ms > limits.config.retention_ms)
    )
    return (
        limits.is_below_start(segment)
        or limits.is_expired(segment)
        or segment.base_offset in excess
        or is_old_file
    )


def _blocker(segment: LoadedSegment, limits: RetentionLimits) -> str:
    """What keeps the first segment that stays, and so all behind it."""
    if segment.is_empty_active:
        return ""
    if limits.high_watermark < segment.end_offset:
        return AWAITS_HIGH_WATERMARK
    if segment.timestamp_ms > limits.now_ms:
        return WRONG_UNIT if is_wrong_unit(segment.timestamp_ms) else FUTURE_TIMESTAMP
    return BEHIND_YOUNGER if limits.may_go(segment) else AWAITS_UPLOAD


def why_due(segment: LoadedSegment, limits: RetentionLimits, due_ms: int, rule: str) -> str:
    """The rule that takes a segment now, in words."""
    config = limits.config
    local = "" if limits.uploaded_offset is None else "local."
    if rule == RetentionRule.LOG_START:
        text = f"below the log start offset {limits.log_start_offset}"
    elif rule == RetentionRule.RETENTION_BYTES:
        text = f"without it at least {local}retention.bytes {config.retention_bytes} remain"
    else:
        retention = format_setting_ms(config.retention_ms)
        text = f"due since {format_timestamp(due_ms)} by {local}retention.ms {retention}"
    if limits.is_rolled_first(segment):
        text += "; all its records are deleted: a pass rolls it, the next one deletes it"
    return text


def _facts_of(segment: LoadedSegment) -> tuple[int, int, int, bool]:
    return (
        segment.base_offset,
        segment.size_in_bytes,
        segment.timestamp_ms,
        segment.is_file_time,
    )


def _summed_up(
    forecasts: tuple[SegmentForecast, ...], texts: Sequence[str], now_ms: int
) -> RetentionForecast:
    due = [n for n, f in enumerate(forecasts) if NEVER < f.due_ms <= now_ms]
    later = [n for n, f in enumerate(forecasts) if f.due_ms > now_ms]
    status = "due" if due else "later" if later else "never"
    first = due or later or list(range(len(forecasts)))
    reason = (
        f"segment {forecasts[first[0]].base_offset}: {texts[first[0]]}" if first else "no segments"
    )
    return RetentionForecast(now_ms, status, reason, forecasts)
