"""Why segments are still here that should be gone, and which go too early."""

from __future__ import annotations

from collections.abc import Iterator
from sys import intern
from typing import NamedTuple

from kafkalog.auditing.advice import Advice, advise_retention
from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.auditing.finding_context import FindingContext
from kafkalog.auditing.thresholds import GRACE_MS
from kafkalog.auditing.timestamp_findings import find_future, find_seconds
from kafkalog.checking.finding import Finding
from kafkalog.format.meta_properties import META_PROPERTIES_FILE
from kafkalog.log.log_dir_files import is_clean_stop
from kafkalog.log.small_files import is_there
from kafkalog.planning.local_retention import local_config
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.retention_forecast import (
    AWAITS_HIGH_WATERMARK,
    AWAITS_UPLOAD,
    BEHIND_YOUNGER,
    NEVER,
    SegmentForecast,
)
from kafkalog.planning.retention_plan import RetentionRule
from kafkalog.texts import (
    format_bytes,
    format_count,
    format_setting_bytes,
    format_setting_ms,
    format_timestamp,
)

ENTRY_BYTES = 12


def find_retention(context: FindingContext) -> Iterator[Finding]:
    """The findings about retention of a live log."""
    wrong_unit = list(find_seconds(context))
    yield from wrong_unit
    yield from find_future(context)
    yield from _below_log_start(context)
    if not wrong_unit:  # what they make of ages is none of retention's doing
        yield from _held_back(context)
        yield from find_due(context)
        yield from _active(context)
    yield from _time_indexes(context)


def _held_back(context: FindingContext) -> Iterator[Finding]:
    """Segments that wait for the high watermark, or behind a younger one."""
    audited = context.audited
    for cause in (AWAITS_HIGH_WATERMARK, AWAITS_UPLOAD, BEHIND_YOUNGER):
        held = [
            s for s in audited.retention.segments
            if s.blocked_by == cause and _was_due(context, s)
        ]  # fmt: skip
        if not held:
            continue
        first = held[0]
        what = (
            f"{audited.topic}: {format_count(len(held), 'segment')} from {first.base_offset} on, "
            f"{format_bytes(sum(s.size_in_bytes for s in held))}, are due by their own"
        )
        if cause == AWAITS_HIGH_WATERMARK:
            why = (
                f"the high watermark is {audited.high_watermark}, the log ends at "
                f"{audited.log_end_offset}"
            )
        elif cause == AWAITS_UPLOAD:
            uploaded = context.task.uploaded_offset
            why = (
                "no __remote_log_metadata is there, so what is uploaded is not known"
                if uploaded is None
                else f"remote storage has offsets up to {uploaded}"
                if uploaded >= 0
                else "nothing of it is in remote storage"
            )
        else:
            oldest = next(s for s in audited.retention.segments if s.due_ms > context.now_ms)
            why = (
                f"segment {oldest.base_offset} in front of them has records of "
                f"{format_timestamp(oldest.timestamp_ms)} and goes after "
                f"{format_timestamp(oldest.due_ms)}"
            )
        yield context.say(cause, f"{what}; {why}", segment=first.base_offset)


def _was_due(context: FindingContext, segment: SegmentForecast) -> bool:
    """Whether it was due while a broker lived: of one that is stopped nothing is held back."""
    config = local_config(context.audited.config)
    is_by_time_alone = config.retention_bytes < 0 and segment.timestamp_ms <= context.now_ms
    return not is_by_time_alone or context.alive_ms - segment.timestamp_ms > config.retention_ms


def _due_now(context: FindingContext, *, is_below_start: bool) -> list[SegmentForecast]:
    """What the next pass deletes, whatever it is by: below the log start, or by the policy."""
    rule = str(RetentionRule.LOG_START)
    due = (s for s in context.audited.retention.segments if NEVER < s.due_ms <= context.now_ms)
    return [s for s in due if (s.rule == rule) == is_below_start]


def _below_log_start(context: FindingContext) -> Iterator[Finding]:
    below = _due_now(context, is_below_start=True)
    if below:
        size = sum(s.size_in_bytes for s in below)
        yield context.say(
            "below-log-start",
            f"{_counted(context.audited.topic, len(below), below[0].base_offset, size)} lie below "
            "the log start offset "
            f"{context.audited.log_start_offset}",
            segment=below[0].base_offset,
            fix=_advice(context, below).text("nothing, the broker deletes them when it runs"),
        )


def _advice(context: FindingContext, due: list[SegmentForecast]) -> Advice:
    return advise_retention(
        context.task, context.repaired, context.files, [s.base_offset for s in due]
    )


class DueSegments(NamedTuple):
    """The first segments of a log, which go now, or are overdue: all their bytes, since when the
    first one is due, by which rules.
    """

    segments: int
    first_base_offset: int
    size_in_bytes: int
    since_ms: int
    rules: str


def find_due(context: FindingContext) -> Iterator[Finding]:
    """Segments that the next pass deletes by the policy, or should have gone long ago."""
    others = _due_now(context, is_below_start=False)
    if not others:
        return
    # Of size retention at the latest since the last append: the log was as large then.
    is_by_size = any(s.rule == str(RetentionRule.RETENTION_BYTES) for s in others)
    segments = context.audited.segments if is_by_size else ()
    appended_ms = max((s.modification_time_ms for s in segments), default=None)
    overdue = [s for s in others if _due_since(s, appended_ms) < context.alive_ms - GRACE_MS]
    told = overdue or others
    due = DueSegments(
        len(told),
        told[0].base_offset,
        sum(s.size_in_bytes for s in told),
        _due_since(told[0], appended_ms),
        " and ".join(dict.fromkeys(s.rule for s in told)),
    )
    alive_ms = context.alive_ms if overdue else None
    yield due_finding(context.audited, due, alive_ms, _advice(context, others))


def due_finding(
    audited: AuditedPartition, due: DueSegments, alive_ms: int | None, advice: Advice
) -> Finding:
    """`alive_ms`: the broker's last sign of life, later than these were due; None where it is not.
    `advice`: of `kafkalog retain`.
    """
    held = _counted(audited.topic, due.segments, due.first_base_offset, due.size_in_bytes)
    text = f"{held} are due by {due.rules} since {format_timestamp(due.since_ms)}"
    if alive_ms is None:
        kind, otherwise = "retention-due", "nothing, the broker deletes them when it runs"
    else:
        text += f"; the broker was alive until {format_timestamp(alive_ms)}, at least"
        kind = "retention-overdue"
        otherwise = "look for errors of the broker's scheduler and log dir, restart it"
    fix = advice.text(otherwise)
    # Of what stands against the command thousands of findings say the same.
    fix = fix if advice.command else intern(fix)
    return audited.finding(kind, text, segment=due.first_base_offset, fix=fix)


def _due_since(segment: SegmentForecast, appended_ms: int | None) -> int:
    is_by_size = segment.rule == str(RetentionRule.RETENTION_BYTES)
    return appended_ms if is_by_size and appended_ms is not None else segment.due_ms


def _counted(topic: str, count: int, first_base_offset: int, size_in_bytes: int) -> str:
    held = format_count(count, "segment")
    return f"{topic}: {held} from {first_base_offset} on, {format_bytes(size_in_bytes)},"


def _active(context: FindingContext) -> Iterator[Finding]:
    """Records older than the policy that share a segment with younger ones."""
    config, segments = context.audited.config, context.audited.segments
    if not segments or not segments[-1].is_active or segments[-1].smallest_timestamp_ms < 0:
        return
    # As long as a broker lived: nobody rolls the segments of one that is stopped.
    active, now_ms = segments[-1], context.alive_ms
    oldest = format_timestamp(active.smallest_timestamp_ms)
    until = format_timestamp(active.smallest_timestamp_ms + config.retention_ms)
    is_old = now_ms - active.smallest_timestamp_ms > config.retention_ms
    is_kept = now_ms - active.effective_timestamp_ms <= config.retention_ms
    if "delete" in config.cleanup_policy and config.retention_ms >= 0 and is_old and is_kept:
        yield context.say(
            "active-never-rolls",
            f"{context.audited.topic}: the active segment {active.base_offset} has records since "
            f"{oldest}, retention.ms {format_setting_ms(config.retention_ms)} is past for them "
            "since "
            f"{until}; segment.ms is {format_setting_ms(config.segment_ms)}, segment.bytes "
            f"{format_setting_bytes(config.segment_bytes)}, the segment has "
            f"{format_bytes(active.size_in_bytes)}",
            segment=active.base_offset,
            offset=active.base_offset,
            fix=_what_rolls(config),
        )
    if config.is_compacted and now_ms - active.smallest_timestamp_ms > config.segment_ms:
        yield context.say(
            "active-never-rolls",
            f"{context.audited.topic}: the active segment {active.base_offset} has records since "
            f"{oldest}, older than segment.ms {format_setting_ms(config.segment_ms)}: without an "
            "append it does not "
            "roll, and its records, tombstones too, are never cleaned",
            segment=active.base_offset,
            offset=active.base_offset,
            fix="append a record: the segment rolls in front of it",
        )


def _what_rolls(config: LogConfig) -> str:
    """Where segment.ms is small enough already, only an append is missing."""
    wanted_ms = max(config.retention_ms // 2, 1)
    if config.segment_ms <= wanted_ms:
        return "append a record: the segment rolls in front of it"
    return (
        f"set segment.ms to at most {format_setting_ms(wanted_ms)}: records then go at most so "
        "long after their time; "
        "a segment rolls at the next append"
    )


def _is_clean_stop(context: FindingContext) -> bool:
    """Else a start makes the active segment's indexes anew. What is no broker's log dir is judged
    as after one.
    """
    log_dir = context.audited.log_dir
    is_brokers = is_there(f"{log_dir}/{META_PROPERTIES_FILE}")
    return not is_brokers or is_clean_stop(log_dir)


def _time_indexes(context: FindingContext) -> Iterator[Finding]:
    """Time indexes a broker would trust, and that tell another age than the records."""
    for segment in context.audited.segments:
        if segment.base_offset in context.repaired_bases:
            continue
        is_padded = segment.padded_time_index_bytes >= ENTRY_BYTES
        if is_padded and (not segment.is_active or _is_clean_stop(context)):
            yield context.say(
                "time-index-padded",
                f"{context.audited.topic}: {format_bytes(segment.padded_time_index_bytes)} of "
                "zeros behind "
                f"the entries of segment {segment.base_offset}: a broker takes its records for "
                "ones of 1970 and deletes it, or fails when it rolls; their largest timestamp is "
                f"{format_timestamp(segment.largest_timestamp_ms)}",
                segment=segment.base_offset,
                path=segment.path.removesuffix("log") + "timeindex",
            )
        elif not segment.is_active and segment.indexed_timestamp_ms < segment.largest_timestamp_ms:
            by = "the file's time" if segment.indexed_timestamp_ms < 0 else "its time index"
            known = max(segment.indexed_timestamp_ms, NEVER)
            age = segment.modification_time_ms if known < 0 else known
            if age < segment.largest_timestamp_ms:
                yield context.say(
                    "time-index-short",
                    f"{context.audited.topic}: retention goes by {by}, "
                    f"{format_timestamp(age)}, the records of segment {segment.base_offset} reach "
                    f"to {format_timestamp(segment.largest_timestamp_ms)}: it goes too early",
                    segment=segment.base_offset,
                    path=segment.path.removesuffix("log") + "timeindex",
                )
