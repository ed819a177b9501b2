"""Ranges of offsets that one copy lacks and no cleaner can have taken, put together while aligned
rows go by.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.comparing.alignment import Aligned
from kafkalog.kernels.record_facts import CONTROL
from kafkalog.resources.spilled_array import SpilledArray

_FIELDS = 6
_KEPT_BYTES = 1024 * 1024
_BLOCK = 4096 * _FIELDS


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


@dataclass(frozen=True, slots=True)
class Edges:
    """Whether any row was added, and whether the first and the last one of all are in a run."""

    has_rows: bool = False
    begins: bool = False
    ends: bool = False


class MissingRuns:
    """Of one copy. `add` rows in order, then read the `runs`."""

    def __init__(self, number: int) -> None:
        self._bit = np.uint16(1 << number)
        self._done = SpilledArray(np.int64, _KEPT_BYTES)
        self._open: NDArray[np.int64] | None = None
        self._has_rows = self._begins = False

    @property
    def edges(self) -> Edges:
        """Of the rows added so far."""
        return Edges(self._has_rows, self._begins, self._open is not None)

    def blocks(self) -> Iterator[NDArray[np.int64]]:
        """The runs, int64[6 * n] some at a time; no row may be added behind that."""
        self._end()
        for start in range(0, self._done.size, _BLOCK):
            yield self._done.read(start, min(start + _BLOCK, self._done.size))

    def extend(self, blocks: Iterable[NDArray[np.int64]], edges: Edges) -> None:
        """Add the runs of rows that follow those added, by `blocks` and `edges` of theirs."""
        if not edges.has_rows:
            return
        is_joined = edges.begins
        for block in blocks:
            runs = block.reshape(-1, _FIELDS).copy()
            self._append(runs, is_joined=is_joined, is_open=True)
            is_joined = False
        if not edges.ends:
            self._end()

    def add(self, part: Aligned, lacks: NDArray[np.bool_]) -> None:
        """`lacks` bool[r]: rows that this copy should have and has not."""
        if not lacks.size:
            return
        if not self._has_rows:
            self._has_rows, self._begins = True, bool(lacks[0])
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
        self._append(runs, is_joined=bool(lacks[0]), is_open=bool(lacks[-1]))

    def _append(self, runs: NDArray[np.int64], *, is_joined: bool, is_open: bool) -> None:
        """Runs [n, 6] behind the others, the first one as a part of one that is open, the last one
        left open."""
        if self._open is not None and is_joined:
            runs[0, 0] = self._open[0]
            runs[0, 2:5] += self._open[2:5]
            runs[0, 5] |= self._open[5]
            self._open = None
        self._end()
        self._done.append((runs[:-1] if is_open else runs).ravel().copy())
        self._open = runs[-1].copy() if is_open else None

    def runs(self, from_offset: int) -> Iterator[MissingRun]:
        """Those at or behind an offset, in order."""
        for block in self.blocks():
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
