"""A selection and a partition → the offsets to read of it, with what the log itself has to tell.

Timestamps become offsets as a broker's ListOffsets makes them, read_committed ends at the last
stable offset. A number that the log does not have (yet, or any more) is data loss, as in Spark's
Kafka source.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkalog.errors import InvalidConfigError, OffsetOutOfRangeError
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.reading.lookups import (
    TimestampAndOffset,
    last_stable_offset,
    offset_for_timestamp,
)
from kafkalog.reading.selection import (
    EARLIEST_OFFSET,
    HIGH_WATERMARK,
    LATEST,
    LATEST_OFFSET,
    PartitionSelection,
)

# None: from the first byte or to the last one on the disk.
OffsetRange = tuple[int | None, int | None]


def offset_range(selection: PartitionSelection, partition: PartitionInventory) -> OffsetRange:
    """First offset and end offset to read.

    InvalidConfigError where a mapping leaves the partition out, OffsetOutOfRangeError for a number
    that is not on the disk (unless `fail_on_data_loss` is off), and what a lookup in the log
    raises.
    """
    start, end = _start(selection, partition), _end(selection, partition)
    if selection.read_committed:
        stable = last_stable_offset(partition, bears_damage=not selection.refuses_loss)
        end = stable if end is None else min(end, stable)
    return start, end


def _start(selection: PartitionSelection, partition: PartitionInventory) -> int | None:
    if selection.starting_timestamp is not None:
        found = _at(selection, partition, selection.starting_timestamp)
        return partition.log_end_offset if found is None else found.offset
    if selection.starting_offsets == LATEST:
        raise _no_end_to_start_at()
    if isinstance(selection.starting_offsets, str):
        return partition.log_start_offset
    offset = _named(selection.starting_offsets, partition, "startingOffsets")
    if offset == EARLIEST_OFFSET:
        return partition.log_start_offset
    if offset == LATEST_OFFSET:
        raise _no_end_to_start_at()
    if selection.fail_on_data_loss:
        _refuse_lost(partition, offset)
    return offset


def _no_end_to_start_at() -> InvalidConfigError:
    """As Spark's Kafka source says it of a batch query."""
    return InvalidConfigError(
        "startingOffsets latest (-1) is for streams: a read that starts at the end has no records"
    )


def _end(selection: PartitionSelection, partition: PartitionInventory) -> int | None:
    if selection.ending_timestamp is not None:
        found = _at(selection, partition, selection.ending_timestamp)
        return None if found is None else found.offset
    if selection.ending_offsets == HIGH_WATERMARK:
        # No checkpoint entry: the log's end, as for a log that was never replicated.
        return partition.checkpoints.high_watermark
    if isinstance(selection.ending_offsets, str):
        return None
    offset = _named(selection.ending_offsets, partition, "endingOffsets")
    return None if offset == LATEST_OFFSET else offset


def _at(
    selection: PartitionSelection, partition: PartitionInventory, timestamp: int
) -> TimestampAndOffset | None:
    """A read that bears losses goes on behind them, and tells them when it comes there."""
    bears_zeros = not selection.refuses_loss
    return offset_for_timestamp(partition, timestamp, bears_zeros=bears_zeros)


def _refuse_lost(partition: PartitionInventory, offset: int) -> None:
    """Offsets below the first segment are gone, those above the end have never been written."""
    first = partition.segments[0].base_offset if partition.segments else partition.log_end_offset
    if not first <= offset <= partition.log_end_offset:
        raise OffsetOutOfRangeError(
            f"the log has offsets {first} to {partition.log_end_offset}; failOnDataLoss=false reads"
            " what is there",
            path=partition.path,
            offset=offset,
        )


def _named(
    offsets: Mapping[TopicPartition, int], partition: PartitionInventory, option: str
) -> int:
    offset = offsets.get(partition.topic_partition)
    if offset is None:
        raise InvalidConfigError(
            f"{option} must name every partition that is read (-2 is its earliest offset, -1 its "
            f"latest); {partition.topic_partition} is missing"
        )
    return offset
