"""Where in a segment an offset or a timestamp is, by its indexes where they are right, by its batch
headers where not.

An index is searched in its file, by bisection: a segment of a GiB may have a MiB of index, and one
question needs twenty entries of it. No entry is believed unchecked, since an index may be missing,
cut, stale or another log's: what it leads to must be a batch with a right checksum whose offsets
fit. A wrong index costs time, never rows.

Source: Kafka LogSegment.translateOffset, OffsetIndex.lookup, TimeIndex.lookup.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.batch_table import is_legacy_wrapper
from kafkalog.errors import KafkaLogError
from kafkalog.format.constants import (
    LOG_OVERHEAD,
    MAX_INT64,
    NO_TIMESTAMP,
    RECORD_BATCH_OVERHEAD,
)
from kafkalog.kernels.status import ZERO_TAIL
from kafkalog.log.index_file import IndexFile
from kafkalog.log.inventory import SegmentInfo
from kafkalog.log.segment_headers import scan_headers
from kafkalog.log.segment_tail import SegmentEnds, Tail, tail_error
from kafkalog.log.single_batch import sound_batch_at
from kafkalog.log.storage import open_file
from kafkalog.remote.paths import ManifestPath

# Entries tried one after the other before an index is given up.
_TRIES = 3
# A search mostly ends within the batches of one index interval (4 KiB).
_FIRST_STEP_BYTES = 4 * 1024
_LAST_STEP_BYTES = 4 * 1024 * 1024

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")


@dataclass(frozen=True, slots=True)
class IndexEntries:
    """The genuine entries of an index file, read one at a time: (offset or timestamp, position or
    offset), offsets absolute."""

    path: str
    base_offset: int
    count: int
    is_time_index: bool

    @classmethod
    def of_offsets(cls, segment: SegmentInfo) -> IndexEntries:
        path = segment.beside(".index")
        count = segment.offset_index_bytes // _OFFSET_ENTRY.size
        return cls(path, segment.base_offset, count, is_time_index=False)

    @classmethod
    def of_times(cls, segment: SegmentInfo) -> IndexEntries:
        path = segment.beside(".timeindex")
        count = segment.time_index_bytes // _TIME_ENTRY.size
        return cls(path, segment.base_offset, count, is_time_index=True)

    def around(self, target: int, tries: int = _TRIES) -> tuple[_Pairs, _Pairs]:
        """(the last entries at or below `target`, nearest first; the first ones above it).

        Both are empty where the file cannot be read.
        """
        layout = _TIME_ENTRY if self.is_time_index else _OFFSET_ENTRY
        try:
            with IndexFile(self.path, layout.size) as index:
                return self._around(index, target, tries)
        except (OSError, struct.error):
            return [], []

    def _around(self, index: IndexFile, target: int, tries: int) -> tuple[_Pairs, _Pairs]:
        # A binary search in the file itself: some 20 reads of 8 or 12 bytes, where the whole index
        # may be 10 MiB.
        low, high = 0, self.count  # entries below `low` are at or below the target
        while low < high:
            middle = (low + high) // 2
            if self._entry(index, middle)[0] <= target:
                low = middle + 1
            else:
                high = middle
        # Several on each side: the caller tries them in turn, for an entry may be of another file.
        below = range(low - 1, max(low - 1 - tries, -1), -1)
        above = range(low, min(low + tries, self.count))
        return [self._entry(index, i) for i in below], [self._entry(index, i) for i in above]

    def _entry(self, index: IndexFile, number: int) -> tuple[int, int]:
        layout = _TIME_ENTRY if self.is_time_index else _OFFSET_ENTRY
        first, second = layout.unpack(index.entry(number))
        if self.is_time_index:
            return first, self.base_offset + second
        return self.base_offset + first, second


_Pairs = list[tuple[int, int]]


def start_position(segment: SegmentInfo, offset: int) -> int | None:
    """A batch start such that no offset at or above `offset` lies before it; 0 may be one. None if
    the index is no help."""
    if offset <= segment.base_offset:
        return 0
    entries = IndexEntries.of_offsets(segment)
    below, above = entries.around(offset)
    # An entry is a hint: it is believed if a sound batch begins at its position whose offsets fit.
    # If it does not, the one before it is tried; a wrong answer here would skip records without a
    # word.
    for found, position in below:
        header = sound_header(segment, position)
        if header is not None and segment.base_offset <= header["base_offset"] <= min(
            found, offset
        ):
            return position
    # Below the first entry of an index that is right for the entries behind it.
    if not below and above and _fits(segment, *above[0]):
        return 0
    return None


def end_position(segment: SegmentInfo, end_offset: int) -> int | None:
    """A batch start at or behind which no offset is below `end_offset`; None if the index does not
    name one."""
    _, above = IndexEntries.of_offsets(segment).around(end_offset - 1)
    for found, position in above:
        header = sound_header(segment, position)
        if header is None or not segment.base_offset <= header["base_offset"] <= found:
            return None
        # Of a legacy wrapper the header has the last offset only: it may begin below the end.
        if header["base_offset"] >= end_offset and not is_legacy_wrapper(np.array([header]))[0]:
            return position
    return None


def first_reaching(segment: SegmentInfo, timestamp: int) -> tuple[int, int] | None:
    """(an offset of the segment before which no record has a timestamp at or above `timestamp`, a
    batch start at or before that offset); None if the time index is no help.

    An entry is believed if the batch it names has the entry's timestamp for its largest one.
    """
    below, _ = IndexEntries.of_times(segment).around(timestamp - 1, tries=1)
    if not below:
        return None
    entry_timestamp, offset = below[0]
    try:
        row = batch_at(segment, offset)
    except KafkaLogError:
        return None
    if row is None or int(row["max_timestamp"]) != entry_timestamp:
        return None
    return offset + 1, int(row["position"])


def largest_timestamp(segment: SegmentInfo) -> int | None:
    """The largest timestamp of a closed segment, by the last entry of its time index; None if that
    is not to be trusted: there is no entry, or a walk from the last entry of the offset index does
    not end at the end of the file, or meets something larger.
    """
    if segment.largest_timestamp_ms < 0 or segment.is_active:
        return None
    if isinstance(segment.path, ManifestPath):
        # As a broker, which goes by what it wrote when the segment was copied
        # (RemoteLogManager.findOffsetByTimestamp).
        return segment.largest_timestamp_ms
    below, _ = IndexEntries.of_offsets(segment).around(MAX_INT64, tries=1)
    start = below[0][1] if below else 0
    end, tail = start, NO_TIMESTAMP
    if not below and segment.size_in_bytes > _LAST_STEP_BYTES:
        return None
    try:
        for rows in walk_headers(segment, start):
            tail = max(tail, int(rows["max_timestamp"].max()))
            end = int(rows["position"][-1] + rows["size_in_bytes"][-1])
    except KafkaLogError:
        return None
    # Entries of the time index cover what lies in front of the last entry of the offset index;
    # behind it the batches themselves are asked.
    is_right = end == segment.size_in_bytes and tail <= segment.largest_timestamp_ms
    return segment.largest_timestamp_ms if is_right else None


def batch_at(segment: SegmentInfo, offset: int) -> np.void | None:
    """The header of the first batch whose last offset is at or above `offset`; None behind the
    last one. KafkaLogError where a batch cannot be walked over."""
    start = start_position(segment, offset)
    for rows in walk_headers(segment, start or 0):
        reaching = np.flatnonzero(rows["last_offset"] >= offset)
        if reaching.size:
            row: np.void = rows[reaching[0]]
            return row
    return None


def walk_headers(
    segment: SegmentInfo, start: int, end_offset: int | None = None
) -> Iterator[NDArray[np.void]]:
    """The headers from `start` on, first a few, then more at a time, so that a search can stop
    early; `end_offset` is the next segment's base. The end of the log ends the walk; KafkaLogError
    for what breaks the format, and for a tail that is not how a log ends (`segment_tail`)."""
    path, last_offset = segment.path, segment.base_offset - 1
    step, position = _FIRST_STEP_BYTES, start
    while True:
        stop = position + step
        scan = scan_headers(path, position, stop)
        if not scan.rows.size and stop < scan.file_size:
            # a batch larger than the step: its header alone
            stop = position + _batch_bytes(path, position)
            scan = scan_headers(path, position, stop, window_bytes=RECORD_BATCH_OVERHEAD)
        if scan.rows.size:
            yield scan.rows
            position, step = scan.valid_bytes, min(2 * step, _LAST_STEP_BYTES)
            last_offset = int(scan.rows["last_offset"][-1])
            continue
        if scan.status == ZERO_TAIL and stop < scan.file_size:
            scan = scan_headers(path, position)  # zeros to the end, or bytes behind them
        scan.raise_if_corrupt()
        tail = Tail(position, scan.file_size, scan.status, last_offset)
        error = tail_error(path, tail, SegmentEnds.of(segment, end_offset))
        if error is not None:
            raise error
        return


def _batch_bytes(path: str, position: int) -> int:
    with open_file(path) as file:
        head = file.read_bytes(position, LOG_OVERHEAD)
    length = int.from_bytes(head[-4:], "big", signed=True)
    return LOG_OVERHEAD + max(length, RECORD_BATCH_OVERHEAD - LOG_OVERHEAD)


def sound_header(segment: SegmentInfo, position: int) -> np.void | None:
    """The header of a whole batch with a right checksum at `position`, or None."""
    if not 0 <= position < segment.size_in_bytes:
        return None
    try:
        with open_file(segment.path) as file:
            return sound_batch_at(file, position, segment.size_in_bytes)
    except KafkaLogError:
        return None


def _fits(segment: SegmentInfo, offset: int, position: int) -> bool:
    """Whether a batch that an entry of the offset index can mean starts at its position."""
    header = sound_header(segment, position)
    return header is not None and bool(segment.base_offset <= header["base_offset"] <= offset)
