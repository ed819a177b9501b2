"""A column of lists of numbers, each had by its place without the others.

By buffers, as in `row_tables`: pyarrow makes arrays of numpy by way of pandas.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


class NumberLists:
    """Of a column of `large_list(int64)` without nulls. counts int64[n]: how long each list is."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        # A table that was put together has one chunk; of more the numbers are copied.
        chunks = [_numbers_and_ends(chunk) for chunk in column.chunks if len(chunk)]
        self._numbers = _joined([numbers for numbers, _ in chunks])
        counts = _joined([np.diff(ends) for _, ends in chunks])
        self.counts = counts
        self._ends: list[int] = [0, *np.cumsum(counts).tolist()]

    def __getitem__(self, place: int) -> list[int]:
        found: list[int] = self._numbers[self._ends[place] : self._ends[place + 1]].tolist()
        return found

    def rows(self, place: int, width: int) -> list[list[int]]:
        """The same in rows of so many numbers; none of what is not whole rows."""
        numbers = self._numbers[self._ends[place] : self._ends[place + 1]]
        if numbers.size % width:
            return []
        found: list[list[int]] = numbers.reshape(-1, width).tolist()
        return found

    def some(self, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The numbers of the lists at these places, one list behind the other, and their counts."""
        counts = self.counts[places]
        firsts = np.array(self._ends, np.int64)[places] - (np.cumsum(counts) - counts)
        return self._numbers[np.repeat(firsts, counts) + np.arange(counts.sum())], counts


def _numbers_and_ends(lists: pa.LargeListArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    ends = _int64s(lists.buffers()[1], lists.offset, len(lists) + 1)
    first, last = int(ends[0]), int(ends[-1])
    values = lists.values
    return _int64s(values.buffers()[1], values.offset + first, last - first), ends


def _int64s(buffer: pa.Buffer | None, first: int, count: int) -> NDArray[np.int64]:
    if buffer is None or not count:
        return np.empty(0, np.int64)
    return np.frombuffer(buffer, np.int64, count, first * 8)


def _joined(arrays: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    if len(arrays) == 1:
        return arrays[0]
    return np.concatenate(arrays) if arrays else np.empty(0, np.int64)
