"""Time index: from which offset on a segment has timestamps above a given one.

 timestamp i64 | relative_offset i32     12 bytes an entry, no header, no checksum

Entry (T, O): T is the largest batch timestamp so far in the segment, O an offset where it was
reached, so every record with a timestamp above T lies after O. Timestamps rise strictly, offsets
never fall. An entry is tried whenever the offset index gets one, and once more when the segment is
closed: the last one holds the segment's largest timestamp. A segment without timestamps has none.

Since Kafka 3.8 O is the last offset of the earliest batch with T; before, it could be the exact
record's.

Preallocated zeros stay after a crash. An all-zero entry after the first is padding. A first one is
genuine (a record of 1970) if it is alone or a real entry follows, else it is padding too.

Source: Kafka TimeIndex; KIP-33.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.errors import CorruptIndexError
from kafkalog.format.buffers import BytesLike
from kafkalog.format.constants import MAX_INT32, NO_TIMESTAMP

TIME_INDEX_ENTRY = np.dtype([("timestamp", ">i8"), ("relative_offset", ">i4")])
TIME_INDEX_ENTRY_BYTES = TIME_INDEX_ENTRY.itemsize
_ENTRY = struct.Struct(">qi")


@dataclass(frozen=True, slots=True, eq=False)
class TimeIndex:
    """The entries of one file: timestamps i64[n] (ms, rising) and absolute offsets i64[n]."""

    base_offset: int
    timestamps: NDArray[np.int64]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.timestamps)

    @property
    def valid_bytes(self) -> int:
        """Length of the file without preallocation."""
        return len(self) * TIME_INDEX_ENTRY_BYTES

    @property
    def last_timestamp(self) -> int:
        """Timestamp of the last entry in ms, -1 without one."""
        return int(self.timestamps[-1]) if len(self) else NO_TIMESTAMP

    @property
    def last_offset(self) -> int:
        """Offset of the last entry, the base offset without one."""
        return int(self.offsets[-1]) if len(self) else self.base_offset

    def lookup(self, target_timestamp: int) -> tuple[int, int]:
        """(timestamp, offset) of the last entry at or below `target_timestamp`.

        Below the first entry it is (-1, base offset).
        """
        # What is later than the entry's timestamp lies behind its offset, and what is as late in
        # the batch of that offset, or behind it: a search that begins there misses none.
        index = int(np.searchsorted(self.timestamps, target_timestamp, side="right")) - 1
        if index < 0:
            return NO_TIMESTAMP, self.base_offset
        return int(self.timestamps[index]), int(self.offsets[index])


def parse_time_index(data: BytesLike, base_offset: int, path: str | None = None) -> TimeIndex:
    """The entries in front of the preallocated zeros; a partial entry at the end is ignored.

    Raises CorruptIndexError, with the byte position, if timestamps do not rise or offsets fall.
    """
    count = len(data) // TIME_INDEX_ENTRY_BYTES
    if count <= 1:
        return _of_one_entry(data, count, base_offset, path)
    entries = np.frombuffer(data, TIME_INDEX_ENTRY, count)
    timestamps = entries["timestamp"].astype(np.int64)
    relative = entries["relative_offset"].astype(np.int64)
    # Time 0 at the base offset may be a record of 1970: alone it counts, among other zeros it does
    # not.
    is_zero = (timestamps == 0) & (relative == 0)
    padding = np.flatnonzero(is_zero[1:])
    valid = int(padding[0]) + 1 if len(padding) else count
    if valid == 1 and count > 1 and is_zero[0]:
        valid = 0
    timestamps, relative = timestamps[:valid], relative[:valid]
    # Brokers write no entry without a timestamp (-1).
    wrong = np.flatnonzero((timestamps < 0) | (relative < 0))
    if not len(wrong):
        wrong = np.flatnonzero((np.diff(timestamps) <= 0) | (np.diff(relative) < 0)) + 1
    if len(wrong):
        index = int(wrong[0])
        offset = base_offset + int(relative[index])
        raise _not_above(index, int(timestamps[index]), offset, path)
    return TimeIndex(base_offset, timestamps, relative + base_offset)


def _of_one_entry(data: BytesLike, count: int, base_offset: int, path: str | None) -> TimeIndex:
    """The same of a file's last entry, as each segment is asked for it: 2 us in place of 50."""
    if not count:
        return TimeIndex(base_offset, np.empty(0, np.int64), np.empty(0, np.int64))
    timestamp, relative = np.frombuffer(data, TIME_INDEX_ENTRY, 1).tolist()[0]
    if timestamp < 0 or relative < 0:
        raise _not_above(0, timestamp, base_offset + relative, path)
    offset = np.array([base_offset + relative], np.int64)
    return TimeIndex(base_offset, np.array([timestamp], np.int64), offset)


def _not_above(entry: int, timestamp: int, offset: int, path: str | None) -> CorruptIndexError:
    return CorruptIndexError(
        f"entry {entry} is (timestamp {timestamp}, offset {offset}), not above the one before it",
        path=path,
        position=entry * TIME_INDEX_ENTRY_BYTES,
    )


def entry_timestamp(entry: bytes) -> int:
    """The timestamp of one entry in ms; -1 without one, and of one that no broker writes."""
    if not entry:
        return NO_TIMESTAMP
    timestamp, relative_offset = _ENTRY.unpack(entry)
    return NO_TIMESTAMP if timestamp < 0 or relative_offset < 0 else int(timestamp)


def pack_time_index(
    timestamps: Sequence[int] | NDArray[np.int64],
    offsets: Sequence[int] | NDArray[np.int64],
    base_offset: int,
) -> bytes:
    """The file's bytes for `timestamps` in ms and absolute `offsets`."""
    relative = np.asarray(offsets, np.int64) - base_offset
    if len(relative) and (relative.min() < 0 or relative.max() > MAX_INT32):
        raise ValueError("a relative offset leaves 31 bits")
    entries = np.empty(len(relative), TIME_INDEX_ENTRY)
    entries["timestamp"], entries["relative_offset"] = timestamps, relative
    return entries.tobytes()
