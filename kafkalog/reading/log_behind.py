"""How much of a log lies behind an offset, in bytes and in time, by a bounded read: some entries of
an offset index, the batch headers of an index interval, and the batch that has the offset. Where a
segment's index is no help its headers are walked over from the start.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from kafkalog.format.constants import MAX_INT64, NO_TIMESTAMP
from kafkalog.log.index_lookup import start_position, walk_headers
from kafkalog.log.inventory import PartitionInventory, SegmentInfo
from kafkalog.reading.lookups import records_of


@dataclass(frozen=True, slots=True)
class LogBehind:
    """size_in_bytes: from the batch that has the offset, or the first one behind it, to the end of
    the last batch. first_timestamp_ms: of the first record at or behind the offset, None where it
    has no timestamp or there is no record.
    """

    size_in_bytes: int
    first_timestamp_ms: int | None


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The last batch of a log: the segment it is in, the position behind it there, and its largest
    timestamp in ms, None where it has none.
    """

    base_offset: int
    position: int
    timestamp_ms: int | None


def log_end(partition: PartitionInventory) -> LogEnd | None:
    """None of a log without batches. KafkaLogError where one cannot be walked over."""
    for segment in reversed(partition.segments):
        last: np.void | None = None
        if segment.size_in_bytes:
            for rows in walk_headers(segment, start_position(segment, MAX_INT64) or 0):
                last = rows[-1]
        if last is not None:
            end = int(last["position"]) + int(last["size_in_bytes"])
            return LogEnd(segment.base_offset, end, _time(int(last["max_timestamp"])))
    return None


def log_behind(partition: PartitionInventory, offset: int, end: LogEnd) -> LogBehind:
    """What lies from `offset` on to the log's end. KafkaLogError where a batch cannot be walked
    over, or the one that has the offset not be read."""
    segments = [s for s in partition.segments if s.base_offset <= end.base_offset]
    size, first = 0, None
    below = sum(segment.base_offset <= offset for segment in segments)
    wanted = segments[max(below - 1, 0) :]
    for segment, following in zip_longest(wanted, wanted[1:]):
        # From the first batch that reaches the offset on all bytes count, so only one segment is
        # searched; of those behind it the sizes do.
        stop = segment.size_in_bytes if following is not None else end.position
        start = 0
        if first is None:
            next_base = None if following is None else following.base_offset
            start, first = _first_behind(segment, offset, next_base, stop)
        size += stop - start
    return LogBehind(size, None if first is None else _time(first))


def _first_behind(
    segment: SegmentInfo, offset: int, next_base: int | None, end: int
) -> tuple[int, int | None]:
    """(position of the first batch that reaches the offset, timestamp of the first record from the
    offset on); the segment's end and None where there is none."""
    start: int | None = None
    for row in _reaching(segment, offset, next_base):
        if start is None:
            start = int(row["position"])
        records = records_of(segment, row)
        found = np.flatnonzero(records.offsets >= offset)
        if found.size:
            return start, int(records.timestamps[found[0]])
    return (end if start is None else start), None


def _reaching(segment: SegmentInfo, offset: int, next_base: int | None) -> Iterator[np.void]:
    """Headers of the batches whose last offset is at or above `offset`."""
    for rows in walk_headers(segment, start_position(segment, offset) or 0, next_base):
        yield from rows[rows["last_offset"] >= offset]


def _time(timestamp: int) -> int | None:
    return None if timestamp == NO_TIMESTAMP else timestamp
