"""What a log is expected to hold later, on top of what is there now: what arrives until then, and
less what compaction gives back. An estimate, unlike the curves of `what_if`, which are what Kafka
does with the segments that are there.

A partition goes on at the pace at which the records of its newest seven days came, by their
timestamps. What arrives rolls at segment.bytes or segment.ms, and goes by the same limits as what
is there: by time it is kept for retention.ms and the time one segment takes to fill, and
retention.bytes leaves less than one segment above it. What is left of a compacted log tells no
pace: such a topic grows as the history of audits says.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kafkalog.contents.header_contents import TimeSlice
from kafkalog.planning.log_config import LogConfig

_HOUR_MS = 3_600_000
WINDOW_MS = 7 * 24 * _HOUR_MS

PACE = (
    "expectedBytes: partitions go on at the pace of their newest 7 days by the records' "
    "timestamps; what arrives rolls at segment.bytes or segment.ms and goes by the same limits"
)
TREND = "topics that are only compacted grow as the history of audits says"
NO_TREND = "topics that are only compacted do not grow: no earlier audit shows how"
GAIN = "a round of compaction gives back what --estimate says, when it is first due"
NO_GAIN = "what compaction gives back is not taken off: --estimate computes it"
TIERED = "what arrives in tiered topics is uploaded as soon as it is due"


@dataclass(frozen=True, slots=True)
class Outlook:
    """Of one partition: bytes that arrive in a ms; what a round of compaction gives back, None if
    it is not estimated, and when the first one begins, -1 for never.
    """

    bytes_per_ms: float = 0.0
    gain_bytes: int | None = None
    cleanable_at_ms: int = -1


def arrival_pace(slices: Iterable[TimeSlice], now_ms: int) -> float:
    """Bytes a ms over the newest seven days, or over all there is if that is less (an hour at
    least); what has no time, or one in the future, does not count.
    """
    known = [part for part in slices if 0 <= part.from_ms and part.to_ms <= now_ms]
    since_ms = now_ms - WINDOW_MS
    arrived = 0.0
    for part in known:
        if part.to_ms > since_ms:
            width = part.to_ms - part.from_ms
            # A slice that lies across the beginning of the window counts by its part in it.
            share = 1.0 if part.from_ms >= since_ms else (part.to_ms - since_ms) / width
            arrived += share * (part.closed_bytes + part.active_bytes)
    oldest_ms = min((part.from_ms for part in known), default=now_ms)
    return arrived / max(min(now_ms - oldest_ms, WINDOW_MS), _HOUR_MS)


def expected_bytes(
    outlook: Outlook,
    config: LogConfig,
    *,
    kept_bytes: int,
    bytes_now: int,
    largest_segment_bytes: int,
    elapsed_ms: int,
    was_compacted: bool,
    now_ms: int,
) -> int:
    """What a partition is expected to hold after `elapsed_ms` under these settings, the local ones
    of a tiered topic. `kept_bytes`: of what is there now; `was_compacted`: by its own settings.
    """
    deletes = "delete" in config.cleanup_policy
    total = kept_bytes - _given_back(
        outlook, config, kept_bytes, bytes_now, now_ms + elapsed_ms, now_ms, was_compacted
    )
    pace = outlook.bytes_per_ms if deletes else 0.0
    kept_ms: float = elapsed_ms
    if pace and config.retention_ms >= 0:
        # Retention counts from a segment's newest record: its oldest one waits besides until the
        # segment is closed, which is when it is full or segment.ms old.
        filling_ms = min(config.segment_ms, config.segment_bytes / pace)
        kept_ms = min(kept_ms, config.retention_ms + filling_ms)
    total += round(pace * kept_ms)
    if deletes and config.retention_bytes >= 0:
        room = config.retention_bytes + max(config.segment_bytes, largest_segment_bytes)
        total = min(total, max(room, kept_bytes))
    return total


def _given_back(
    outlook: Outlook,
    config: LogConfig,
    kept_bytes: int,
    bytes_now: int,
    at_ms: int,
    now_ms: int,
    was_compacted: bool,
) -> int:
    """Of what is left then the share that a round takes out of what is there now."""
    if not config.is_compacted or not outlook.gain_bytes or not bytes_now:
        return 0
    first_ms = outlook.cleanable_at_ms if was_compacted else now_ms + config.min_compaction_lag_ms
    if first_ms < 0 or at_ms < first_ms or at_ms == now_ms:
        return 0
    # What retention has taken by then compaction cannot give back: the share of what is left.
    return round(outlook.gain_bytes * kept_bytes / bytes_now)
