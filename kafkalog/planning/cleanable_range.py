"""Which offsets of a log may be cleaned now, and what stops the range where it ends.

    first dirty        where the last round ended (the cleaner checkpoint, if it lies in the log)
    first uncleanable  the lowest of: high watermark, last stable offset, active segment, first
                       segment too young for min.compaction.lag.ms; never below first dirty
    end                the base of the segment that holds it: segments are cleaned whole or not

A first dirty offset in mid segment counts that segment's bytes as clean and as dirty, as Kafka
does.

Source: Kafka LogCleanerManager.cleanableOffsets, LogCleanerManager.calculateCleanableBytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafkalog.log.inventory import PartitionInventory, SegmentInfo
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.segment_groups import inactive_segments_from, segments_between
from kafkalog.texts import format_timestamp


@dataclass(frozen=True, slots=True)
class CleanableRange:
    """The range and its bytes; `dirty_segments` are the inactive ones from first dirty on."""

    first_dirty_offset: int
    checkpoint_reset: int | None
    first_uncleanable_offset: int
    uncleanable_reason: str
    end_offset: int
    clean_bytes: int
    cleanable_bytes: int
    dirty_segments: tuple[SegmentInfo, ...]

    @property
    def ratio(self) -> float:
        """Cleanable share of the bytes considered; 0 for none at all."""
        total_bytes = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total_bytes if total_bytes else 0.0


def find_cleanable_range(
    partition: PartitionInventory,
    config: LogConfig,
    *,
    now_ms: int,
    high_watermark: int | None,
    first_unstable_offset: int | None = None,
) -> CleanableRange:
    """The range of one round. An unknown high watermark bounds nothing: the plan refuses it."""
    segments = partition.segments
    first_dirty, checkpoint_reset = first_dirty_offset(partition)
    dirty_segments = inactive_segments_from(segments, first_dirty)
    active_base = segments[-1].base_offset if segments else partition.log_start_offset
    # The first of several bounds: the active segment, the high watermark (what other replicas may
    # not have yet), the last stable offset (open transactions), and the first segment that is
    # younger than min.compaction.lag.ms. Kafka takes the minimum
    # (LogCleanerManager.cleanableOffsets).
    bound, reason = active_base, "active segment"
    if high_watermark is not None and high_watermark < bound:
        bound, reason = high_watermark, f"high watermark {high_watermark}"
    if first_unstable_offset is not None:
        # The last stable offset is the high watermark where nothing is open below it: only an open
        # transaction in front of all other bounds is a bound of its own.
        last_stable = max(first_unstable_offset, partition.log_start_offset)
        if last_stable < min(bound, bound if high_watermark is None else high_watermark):
            bound, reason = last_stable, f"transaction open since offset {first_unstable_offset}"
    young = _first_young_segment(dirty_segments, config, now_ms)
    if young is not None and young.base_offset < bound:
        bound, reason = young.base_offset, _lag_reason(young)
    first_uncleanable = max(first_dirty, bound)
    # Whole segments are cleaned: the one that holds the bound is not.
    past = inactive_segments_from(segments, first_uncleanable)
    end_offset = past[0].base_offset if past else active_base
    cleanable = segments_between(segments, min(first_dirty, end_offset), end_offset)
    return CleanableRange(
        first_dirty_offset=first_dirty,
        checkpoint_reset=checkpoint_reset,
        first_uncleanable_offset=first_uncleanable,
        uncleanable_reason=reason,
        end_offset=end_offset,
        clean_bytes=sum(s.size_in_bytes for s in segments if s.base_offset < first_dirty),
        cleanable_bytes=sum(s.size_in_bytes for s in cleanable),
        dirty_segments=dirty_segments,
    )


def first_dirty_offset(partition: PartitionInventory) -> tuple[int, int | None]:
    """First dirty offset, and the same again if the checkpoint on disk must be corrected to it."""
    checkpoint, log_start = partition.checkpoints.cleaner, partition.log_start_offset
    if checkpoint is None:
        return log_start, None
    # Past the end means the log was truncated or replaced: nothing is known to be clean
    # (KAFKA-1641).
    if checkpoint < log_start or checkpoint > partition.log_end_offset:
        return log_start, log_start
    return checkpoint, None


def _first_young_segment(
    dirty_segments: tuple[SegmentInfo, ...], config: LogConfig, now_ms: int
) -> SegmentInfo | None:
    lag_ms = config.min_compaction_lag_ms
    if lag_ms <= 0:
        return None
    young = (s for s in dirty_segments if s.effective_timestamp_ms > now_ms - lag_ms)
    return next(young, None)


def _lag_reason(segment: SegmentInfo) -> str:
    what = (
        "holds a record" if segment.largest_timestamp_ms >= 0 else "has no timestamps, its file is"
    )
    when = format_timestamp(segment.effective_timestamp_ms)
    return f"min.compaction.lag.ms: segment {segment.base_offset} {what} of {when}"
