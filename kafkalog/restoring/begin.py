"""Where a restored log begins, where that is later than its source does: as if all in front had
been deleted by `kafka-delete-records`. Segments that lie in front as a whole are left out; of one
that does not the log start offset hides what is earlier.

By a time a log begins at the first batch that has a record of then or later, by its largest
timestamp; of what comes behind that nothing is left out, whatever its time.

Source: Kafka UnifiedLog.maybeIncrementLogStartOffset, deleteLogStartOffsetBreachedSegments.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from kafkalog.errors import InvalidConfigError
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.segment_headers import iterate_headers


@dataclass(frozen=True, slots=True)
class Since:
    """Nothing in front of an offset, or of the first batch of a time; None for neither."""

    offset: int | None = None
    timestamp_ms: int | None = None


def begun_later(partition: PartitionInventory, since: Since) -> PartitionInventory:
    """The log from there on; as it is where nothing is asked for.

    InvalidConfigError for an offset behind the log's end; CorruptRecordError for a batch that
    cannot be walked over, OSError as from reading.
    """
    start = since.offset
    if since.timestamp_ms is not None:
        start = _first_of(partition, since.timestamp_ms)
    elif start is not None and start > partition.log_end_offset:
        raise InvalidConfigError(
            f"is to begin at offset {start}, and ends at {partition.log_end_offset}",
            path=partition.path,
        )
    return partition if start is None else beginning_at(partition, start)


def beginning_at(partition: PartitionInventory, start_offset: int) -> PartitionInventory:
    """The log with this start, where its own is not later."""
    if start_offset <= partition.log_start_offset:
        return partition
    segments = partition.segments
    in_front = sum(
        following.base_offset <= start_offset for _, following in pairwise(segments)
    )  # fmt: skip
    return replace(partition, segments=segments[in_front:], log_start_offset=start_offset)


def _first_of(partition: PartitionInventory, timestamp_ms: int) -> int:
    """The offset of the first batch that has something of this time or later; the log's end without
    one."""
    for segment in partition.segments:
        for scan in iterate_headers(segment.path):
            scan.raise_if_corrupt()
            is_late = scan.rows["max_timestamp"] >= timestamp_ms
            if is_late.any():
                return int(scan.rows["base_offset"][int(np.argmax(is_late))])
    return partition.log_end_offset
