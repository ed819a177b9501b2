"""The segments of a log as a broker has them once it has loaded it."""

from __future__ import annotations

from dataclasses import dataclass

from kafkalog.log.header_facts import PartitionFacts
from kafkalog.log.inventory import PartitionInventory


@dataclass(frozen=True, slots=True)
class LoadedSegment:
    """A segment as a broker has it after loading; `end_offset` is the next one's base, or the log's
    end.
    """

    base_offset: int
    end_offset: int
    size_in_bytes: int
    timestamp_ms: int
    modification_time_ms: int
    is_file_time: bool
    is_active: bool

    @property
    def is_empty_active(self) -> bool:
        """Never deleted."""
        return self.is_active and self.size_in_bytes == 0


def loaded_segments(partition: PartitionInventory, facts: PartitionFacts) -> list[LoadedSegment]:
    """The live segments as a broker has them after loading."""
    repaired = {segment.base_offset: segment for segment in facts.segments}
    loaded = []
    ends = [segment.base_offset for segment in partition.segments[1:]]
    ends.append(partition.log_end_offset)
    for segment, end in zip(partition.segments, ends, strict=False):  # none without a segment
        size, timestamp_ms = segment.size_in_bytes, segment.largest_timestamp_ms
        known = repaired.get(segment.base_offset)
        if known is not None:
            size, timestamp_ms = known.valid_bytes, known.max_timestamp_ms
        if segment.is_active and end == segment.base_offset:
            size = 0  # no whole batch: what is there a broker cuts off
        # Without a timestamp in its records Kafka goes by the time of the file.
        is_file_time = timestamp_ms < 0
        loaded.append(
            LoadedSegment(
                base_offset=segment.base_offset,
                end_offset=end,
                size_in_bytes=size,
                timestamp_ms=segment.modification_time_ms if is_file_time else timestamp_ms,
                modification_time_ms=segment.modification_time_ms,
                is_file_time=is_file_time,
                is_active=segment.is_active,
            )
        )
    return loaded
