"""Ranges of offsets that one copy lacks and no cleaner can have taken, put together while aligned
rows go by.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.comparing.alignment import Aligned
from kafkalog.kernels.record_facts import CONTROL
from kafkalog.resources.spilled_array import SpilledArray

_FIELDS = 6
_KEPT_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class MissingRun:
    """Offsets first to last, of which other copies have so many records and bytes (markers counted
    in `markers`); `holders`: a mask of those copies.
    """

    first_offset: int
    last_offset: int
    records: int
    size_in_bytes: int
    markers: int
    holders: int


class MissingRuns:
    """Of one copy. `add` rows in order, then read the `runs`."""

    def __init__(self, number: int) -> None:
        self._bit = np.uint16(1 << number)
        self._done = SpilledArray(np.int64, _KEPT_BYTES)
        self._open: NDArray[np.int64] | None = None

    def add(self, part: Aligned, lacks: NDArray[np.bool_]) -> None:
        """`lacks` bool[r]: rows that this copy should have and has not."""
        if not lacks.size:
            return
        if not lacks.any():
            self._end()
            return
        edges = np.flatnonzero(np.diff(np.concatenate([[False], lacks, [False]])))
        firsts, ends = edges[::2], edges[1::2]
        rows = part.rows
        is_marker = (rows["flags"] & np.uint32(CONTROL)) != 0
        runs = np.empty((firsts.size, _FIELDS), np.int64)
        runs[:, 0], runs[:, 1] = rows["offset"][firsts], rows["offset"][ends - 1]
        sums = (~is_marker, np.where(is_marker, 0, rows["size"].astype(np.int64)), is_marker)
        for column, values in enumerate(sums, 2):
            total = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
            runs[:, column] = total[ends] - total[firsts]
        # From each first row to behind the last one; what lies between runs is every second value.
        padded = np.append(part.present, np.uint16(0))
        runs[:, 5] = np.bitwise_or.reduceat(padded, np.stack([firsts, ends]).T.ravel())[::2]
        if self._open is not None and firsts[0] == 0:
            runs[0, 0] = self._open[0]
            runs[0, 2:5] += self._open[2:5]
            runs[0, 5] |= self._open[5]
            self._open = None
        self._end()
        closed = runs if ends[-1] < lacks.size else runs[:-1]
        self._done.append(closed.ravel().copy())
        self._open = runs[-1].copy() if ends[-1] == lacks.size else None

    def runs(self, from_offset: int) -> Iterator[MissingRun]:
        """Those at or behind an offset, in order."""
        self._end()
        for start in range(0, self._done.size, 4096 * _FIELDS):
            block = self._done.read(start, min(start + 4096 * _FIELDS, self._done.size))
            for run in block.reshape(-1, _FIELDS):
                if run[0] >= from_offset:
                    yield MissingRun(*run.tolist())

    def totals(self, from_offset: int) -> tuple[int, int]:
        """(records, bytes) of those at or behind an offset."""
        runs = [(run.records, run.size_in_bytes) for run in self.runs(from_offset)]
        return sum(records for records, _ in runs), sum(size for _, size in runs)

    def _end(self) -> None:
        if self._open is not None:
            self._done.append(self._open)
            self._open = None
