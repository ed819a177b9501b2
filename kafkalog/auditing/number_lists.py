"""A column of lists of numbers, each had by its place without the others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


class NumberLists:
    """Of a column of `large_list(int64)` without nulls."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        chunks = [chunk for chunk in column.chunks if len(chunk)]
        # A table that was put together has one; of more than one the values are copied.
        values = [np.asarray(chunk.flatten()) for chunk in chunks]
        counts = [np.diff(np.asarray(chunk.offsets)) for chunk in chunks]
        self._values = np.concatenate(values) if values else np.empty(0, np.int64)
        sizes = np.concatenate(counts) if counts else np.empty(0, np.int64)
        self._ends: list[int] = [0, *np.cumsum(sizes).tolist()]

    def __getitem__(self, place: int) -> list[int]:
        found: list[int] = self._values[self._ends[place] : self._ends[place + 1]].tolist()
        return found
