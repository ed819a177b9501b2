"""What the key map says of each record, for the rewrite: one byte a record, in record order.

Bytes lie in memory or on disk as they were noted while mapping. Records that only a record of
another run supersedes are in bitmaps, a window of records at a time, made when the rewrite comes to
it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kafkalog.kernels.hash_keys import SUPERSEDED
from kafkalog.resources.spilled_array import SpilledArray

# The marks of a window of records, uint8[], bit i that of record first + i.
LoadMarks = Callable[[int], NDArray[np.uint8]]


class RecordFlags:
    """`take` them in order. flags: uint8[r] of kernels.hash_keys; distinct_keys: of the
    dirty records; keyless: records without a key.
    """

    def __init__(
        self,
        flags: SpilledArray,
        *,
        distinct_keys: int,
        keyless: int,
        load_marks: LoadMarks | None = None,
        window_records: int = 8,
        marks: NDArray[np.uint8] | None = None,
    ) -> None:
        """`load_marks` for each window but the first one, whose are `marks`."""
        self.distinct_keys = distinct_keys
        self.keyless = keyless
        self._flags = flags
        self._load_marks = load_marks
        self._window_records = window_records
        self._window_first = 0
        self._marks = marks
        self._marked_end = flags.size
        self._next = 0

    def append(self, flags: NDArray[np.uint8]) -> None:
        """Flags of records behind the others, uint8[n], of which all is known: there are no marks
        of them. They must not change.
        """
        self._flags.append(flags)

    def rewind(self) -> None:
        """Begin anew with the first record."""
        self._next = 0
        if self._window_first:
            assert self._load_marks is not None, "it was asked for before"  # noqa: S101
            self._window_first, self._marks = 0, self._load_marks(0)

    @property
    def left(self) -> int:
        """How many were not taken yet."""
        return self._flags.size - self._next

    def take(self, count: int) -> NDArray[np.uint8]:
        """The flags of the next records, uint8[count], a copy."""
        # A copy, for a decision sets SUPERSEDED in it: what was noted stays as it is for another
        # walk over the same records (`rewind`).
        first, end = self._next, self._next + count
        flags: NDArray[np.uint8] = self._flags.read(first, end)
        self._next = end
        # Two sources are joined: what a record's own run has marked is in the byte, what other runs
        # have marked is in the window's bits. A chunk may reach over the end of a window.
        end = min(end, self._marked_end)
        while self._marks is not None and first < end:
            if first >= self._window_first + self._window_records:
                assert self._load_marks is not None, "one window only"  # noqa: S101
                self._window_first += self._window_records
                self._marks = self._load_marks(self._window_first)
            stop = min(end, self._window_first + self._window_records)
            bits = _bits(self._marks, first - self._window_first, stop - self._window_first)
            flags[first - self._next + count : stop - self._next + count] |= bits * np.uint8(
                SUPERSEDED
            )
            first = stop
        return flags


def _bits(marks: NDArray[np.uint8], start: int, stop: int) -> NDArray[np.uint8]:
    """Bits [start, stop) as bytes of 0 and 1."""
    unpacked = np.unpackbits(marks[start // 8 : (stop + 7) // 8], bitorder="little")
    return unpacked[start % 8 : start % 8 + stop - start]
