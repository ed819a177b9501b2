"""When each segment of a sound log goes (`sound_facts`), if time alone deletes from it.

What `planning.retention_forecast` says of it: nothing is below the log start or above a size, all
of it is replicated, and the empty active segment is the only one that never goes.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkalog.auditing.request import AuditTask
from kafkalog.auditing.retention_findings import ENTRY_BYTES
from kafkalog.auditing.sound_facts import SoundLog
from kafkalog.auditing.thresholds import is_in_seconds
from kafkalog.contents.segment_statistics import SegmentStatistics
from kafkalog.format.constants import MAX_INT64
from kafkalog.log.inventory import PartitionInventory
from kafkalog.planning.loaded_segments import LoadedSegment
from kafkalog.planning.retention import RetentionLimits, RetentionRule, why_kept
from kafkalog.planning.retention_forecast import (
    NEVER,
    RetentionForecast,
    SegmentForecast,
    why_due,
)

_BY_TIME = str(RetentionRule.RETENTION_MS)
_EMPTY = str(RetentionRule.EMPTY_ACTIVE)
_NO_LIMIT = str(RetentionRule.NO_LIMIT)


def are_times_plausible(
    segments: Sequence[SegmentStatistics], task: AuditTask, first_repaired: int
) -> bool:
    """Whether the rules of `timestamp_findings`, and those of `retention_findings` about time
    indexes and the active segment, find nothing.
    """
    for segment in segments:
        if is_in_seconds(segment.largest_timestamp_ms):
            return False
        is_short = (
            not segment.is_active and segment.indexed_timestamp_ms < segment.largest_timestamp_ms
        )
        is_padded = segment.padded_time_index_bytes >= ENTRY_BYTES
        if (is_short or is_padded) and segment.base_offset < first_repaired:
            return False
    active, retention_ms = segments[-1], task.resolved.in_force.retention_ms
    is_old = task.alive_ms - active.smallest_timestamp_ms > retention_ms
    is_kept = task.alive_ms - active.effective_timestamp_ms <= retention_ms
    return active.smallest_timestamp_ms < 0 or retention_ms < 0 or not (is_old and is_kept)


def _loaded(
    partition: PartitionInventory, known: SoundLog, first_repaired: int
) -> list[LoadedSegment]:
    """As `planning.loaded_segments` has them."""
    loaded = []
    end_offset = known.log.log_end_offset
    ends = [*(numbers.base_offset for numbers in known.segments[1:]), end_offset]
    for numbers, info, end in zip(known.segments, partition.segments, ends, strict=True):
        base = numbers.base_offset
        size, timestamp_ms = numbers.size_in_bytes, numbers.indexed_timestamp_ms
        if base >= first_repaired:
            size, timestamp_ms = numbers.valid_bytes, numbers.max_timestamp_ms
        loaded.append(
            LoadedSegment(
                base,
                end,
                0 if info.is_active and end == base else size,
                info.modification_time_ms if timestamp_ms < 0 else timestamp_ms,
                info.modification_time_ms,
                timestamp_ms < 0,
                info.is_active,
            )
        )
    return loaded


def sound_forecast(
    task: AuditTask, known: SoundLog, first_repaired: int
) -> RetentionForecast | None:
    """As `planning.retention_forecast` has it, but that no segment has the text of its rule; None
    where a time lies ahead, or a segment is held back.
    """
    config, now_ms = task.resolved.in_force, task.now_ms
    loaded = _loaded(task.partition, known, first_repaired)
    retention_ms, latest = config.retention_ms, NEVER
    kept_rule = _BY_TIME if retention_ms >= 0 else _NO_LIMIT
    forecasts = []
    for segment in loaded:
        due_ms, rule = NEVER, kept_rule
        if segment.is_empty_active:
            rule = _EMPTY
        elif segment.timestamp_ms > now_ms:
            return None
        elif retention_ms >= 0:
            # Strictly older than the limit, and never before those in front of it.
            latest = max(latest, segment.timestamp_ms + retention_ms + 1, 0)
            is_held_back = latest > now_ms and now_ms - segment.timestamp_ms > retention_ms
            if is_held_back or latest > MAX_INT64:
                return None
            due_ms = latest
        forecasts.append(
            SegmentForecast(
                segment.base_offset,
                segment.size_in_bytes,
                segment.timestamp_ms,
                segment.is_file_time,
                due_ms,
                rule,
                "",
                "",
            )
        )
    return _summed_up(loaded, forecasts, task)


def _summed_up(
    loaded: Sequence[LoadedSegment],
    forecasts: Sequence[SegmentForecast],
    task: AuditTask,
) -> RetentionForecast:
    """With the reason of the first that goes, now or later."""
    partition, config = task.partition, task.resolved.in_force
    limits = RetentionLimits(
        config, task.now_ms, partition.log_end_offset, partition.log_start_offset
    )
    first = forecasts[0]
    if NEVER < first.due_ms <= task.now_ms:
        status, text = "due", why_due(loaded[0], limits, first.due_ms, first.rule)
    else:
        # A segment never goes before one in front of it.
        status = "later" if first.due_ms != NEVER else "never"
        text = why_kept(loaded[0], (), loaded[0], limits)[1]
    reason = f"segment {first.base_offset}: {text}"
    return RetentionForecast(task.now_ms, status, reason, tuple(forecasts))
