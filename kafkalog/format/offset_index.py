"""Offset index: where in a segment an offset is.

 relative_offset i32 | position i32      8 bytes an entry, no header, no checksum

An entry says: the batch at byte `position` of the segment ends at or before this offset (who wrote
it decides, see below), and everything before `position` is below it. Both rise from entry to entry.
The first batch of a segment never has one, so position 0 does not occur.

Since Kafka 2.0 the offset is a *last* offset: of the batch at the position, or, up to 4.0, of the
whole appended set. Up to 1.1 it was the first one. So it is a hint where to start reading, never
proof of what is there.

While a segment is active its index is preallocated to segment.index.bytes with zeros; after a crash
the zeros stay. Kafka trusts the file's length, we do not: entries stop where the zeros begin.

Source: Kafka OffsetIndex, AbstractIndex.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.errors import CorruptIndexError
from kafkalog.format.buffers import BytesLike
from kafkalog.format.constants import MAX_INT32

OFFSET_INDEX_ENTRY = np.dtype([("relative_offset", ">i4"), ("position", ">i4")])
OFFSET_INDEX_ENTRY_BYTES = OFFSET_INDEX_ENTRY.itemsize


@dataclass(frozen=True, slots=True, eq=False)
class OffsetIndex:
    """The entries of one file: absolute offsets i64[n] and byte positions i64[n], both rising."""

    base_offset: int
    offsets: NDArray[np.int64]
    positions: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def valid_bytes(self) -> int:
        """Length of the file without preallocation."""
        return len(self) * OFFSET_INDEX_ENTRY_BYTES

    @property
    def last_offset(self) -> int:
        """Offset of the last entry, the base offset without one."""
        return int(self.offsets[-1]) if len(self) else self.base_offset

    def lookup(self, target_offset: int) -> tuple[int, int]:
        """(offset, position) of the last entry at or below `target_offset`: start reading there.

        Below the first entry it is (base offset, 0).
        """
        # The last entry at or below: a batch with the offset lies there or behind it.
        index = int(np.searchsorted(self.offsets, target_offset, side="right")) - 1
        if index < 0:
            return self.base_offset, 0
        return int(self.offsets[index]), int(self.positions[index])


def parse_offset_index(data: BytesLike, base_offset: int, path: str | None = None) -> OffsetIndex:
    """The entries in front of the preallocated zeros; a partial entry at the end is ignored.

    Raises CorruptIndexError, with the byte position, if offsets or positions do not rise.
    """
    count = len(data) // OFFSET_INDEX_ENTRY_BYTES
    if count <= 1:
        return _of_one_entry(data, count, base_offset, path)
    entries = np.frombuffer(data, OFFSET_INDEX_ENTRY, count)
    relative = entries["relative_offset"].astype(np.int64)
    positions = entries["position"].astype(np.int64)
    # Offsets rise strictly, so a relative offset of 0 behind the first entry is preallocation. An
    # entry at position 0 is, too: the first batch never has one.
    padding = np.flatnonzero(relative[1:] == 0)
    valid = int(padding[0]) + 1 if len(padding) else count
    while valid > 0 and positions[valid - 1] == 0:
        valid -= 1
    relative, positions = relative[:valid], positions[:valid]
    # What is left rises strictly in both columns, or the file is damaged: a lookup by bisection in
    # one that does not rise would find any place.
    wrong = np.flatnonzero((relative < 0) | (positions <= 0))
    if not len(wrong):
        wrong = np.flatnonzero((np.diff(relative) <= 0) | (np.diff(positions) <= 0)) + 1
    if len(wrong):
        index = int(wrong[0])
        offset = base_offset + int(relative[index])
        raise _not_above(index, offset, int(positions[index]), path)
    return OffsetIndex(base_offset, relative + base_offset, positions)


def _of_one_entry(data: BytesLike, count: int, base_offset: int, path: str | None) -> OffsetIndex:
    """The same of a file's last entry, as each segment is asked for it: 2 us in place of 50."""
    entries = np.frombuffer(data, OFFSET_INDEX_ENTRY, count).tolist()
    relative, position = entries[0] if entries else (0, 0)
    if position == 0:
        return OffsetIndex(base_offset, np.empty(0, np.int64), np.empty(0, np.int64))
    if relative < 0 or position < 0:
        raise _not_above(0, base_offset + relative, position, path)
    offset = np.array([base_offset + relative], np.int64)
    return OffsetIndex(base_offset, offset, np.array([position], np.int64))


def _not_above(entry: int, offset: int, position: int, path: str | None) -> CorruptIndexError:
    return CorruptIndexError(
        f"entry {entry} is (offset {offset}, position {position}), not above the one before it",
        path=path,
        position=entry * OFFSET_INDEX_ENTRY_BYTES,
    )


def pack_offset_index(
    offsets: Sequence[int] | NDArray[np.int64],
    positions: Sequence[int] | NDArray[np.int64],
    base_offset: int,
) -> bytes:
    """The file's bytes for absolute `offsets` and byte `positions`."""
    # Four bytes are enough: a broker rolls a segment before an offset is 2^31 above its base
    # (LogSegment.canConvertToRelativeOffset), and a segment is no larger than 2 GiB.
    relative = np.asarray(offsets, np.int64) - base_offset
    positions = np.asarray(positions, np.int64)
    for values in (relative, positions):
        if len(values) and (values.min() < 0 or values.max() > MAX_INT32):
            raise ValueError("a relative offset or position leaves 31 bits")
    entries = np.empty(len(relative), OFFSET_INDEX_ENTRY)
    entries["relative_offset"], entries["position"] = relative, positions
    return entries.tobytes()
