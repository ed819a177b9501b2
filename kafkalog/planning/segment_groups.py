"""Which segments a range of offsets touches, and which consecutive ones become one output segment.

Source: Kafka LogSegments.values, LocalLog.nonActiveLogSegmentsFrom, Cleaner.groupSegmentsBySize;
KAFKA-5413 (worst-case last offset), KAFKA-12889 (empty segments merge).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kafkalog.format.constants import MAX_INT32
from kafkalog.log.inventory import SegmentInfo
from kafkalog.planning.compaction_plan import SegmentGroup
from kafkalog.planning.log_config import LogConfig


def segments_between(
    segments: Sequence[SegmentInfo], start_offset: int, end_offset: int
) -> tuple[SegmentInfo, ...]:
    """The segments of [start, end): from the one containing `start_offset` (or the first), up to
    the
    first base at or past `end_offset`. Empty if both offsets are equal."""
    if start_offset >= end_offset:
        return ()
    first = max((s.base_offset for s in segments if s.base_offset <= start_offset), default=-1)
    return tuple(s for s in segments if first <= s.base_offset < end_offset)


def inactive_segments_from(
    segments: Sequence[SegmentInfo], start_offset: int
) -> tuple[SegmentInfo, ...]:
    """The segments from the one containing `start_offset` on, without the active one."""
    return segments_between(segments, start_offset, segments[-1].base_offset) if segments else ()


def group_segments(
    segments: Sequence[SegmentInfo], end_offset: int, config: LogConfig
) -> tuple[SegmentGroup, ...]:
    """Merge consecutive segments while all limits hold; a first one is taken whatever its size.

    `end_offset` is the round's end. Sizes are those before cleaning and a segment's last offset is
    the highest it could have (the next base - 1): bounds that hold whatever the segments contain,
    so that a relative offset of the output always fits its 31 bits.
    """
    groups: list[_OpenGroup] = []
    # A segment's highest possible offset lies below the base of the next one, whatever is in it.
    next_bases = [*(segment.base_offset for segment in segments), end_offset][1:]
    for segment, next_base in zip(segments, next_bases, strict=True):
        if not groups or not groups[-1].takes(segment, next_base - 1, config):
            groups.append(_OpenGroup())
        groups[-1].append(segment)
    return tuple(
        SegmentGroup(group.sources[0].base_offset, tuple(group.sources)) for group in groups
    )


def group_again(
    done: Sequence[tuple[SegmentGroup, tuple[int, int, int]]],
    rest: Sequence[SegmentInfo],
    end_offset: int,
    config: LogConfig,
) -> tuple[SegmentGroup, ...]:
    """The groups of a round begun anew: Kafka's cleaner has swapped in the groups that were `done`
    (with the bytes of what they became, its offset and its time index), and groups the small new
    segments with the `rest`. Here they were not swapped in, so their sources count as one.
    """
    # Each group that is done stands for the one segment it became, with its new sizes; grouped
    # again, the stand-in is exchanged for the sources behind it.
    stand_ins = [
        replace(
            group.sources[0],
            size_in_bytes=log_bytes,
            offset_index_bytes=index_bytes,
            time_index_bytes=time_index_bytes,
        )
        for group, (log_bytes, index_bytes, time_index_bytes) in done
    ]
    sources = {group.base_offset: group.sources for group, _ in done}
    return tuple(
        SegmentGroup(
            group.base_offset,
            tuple(
                source
                for segment in group.sources
                for source in sources.get(segment.base_offset, (segment,))
            ),
        )
        for group in group_segments([*stand_ins, *rest], end_offset, config)
    )


class _OpenGroup:
    """A group under construction and the sums its limits are about."""

    def __init__(self) -> None:
        self.sources: list[SegmentInfo] = []
        self.log_bytes = 0
        self.offset_index_bytes = 0
        self.time_index_bytes = 0

    def takes(self, segment: SegmentInfo, last_offset: int, config: LogConfig) -> bool:
        if self.log_bytes + segment.size_in_bytes > config.segment_bytes:
            return False
        if self.offset_index_bytes + segment.offset_index_bytes > config.segment_index_bytes:
            return False
        if self.time_index_bytes + segment.time_index_bytes > config.segment_index_bytes:
            return False
        # An empty segment brings no offset, so a long run of empty ones may span any range.
        span = last_offset - self.sources[0].base_offset
        return segment.size_in_bytes == 0 or span <= MAX_INT32

    def append(self, segment: SegmentInfo) -> None:
        self.sources.append(segment)
        self.log_bytes += segment.size_in_bytes
        self.offset_index_bytes += segment.offset_index_bytes
        self.time_index_bytes += segment.time_index_bytes
