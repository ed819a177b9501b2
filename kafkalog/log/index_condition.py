"""What an index file is, whatever its length says.

 missing        no file. Without `.index` a broker rebuilds both indexes; without `.timeindex` alone
                it goes on with an empty one
 empty          no bytes: a closed segment with little in it
 whole          entries and nothing else
 partial-entry  fewer bytes than an entry behind the last one; a broker ignores them
 never-written  preallocated, all zeros. A broker takes the first entry, or all, for genuine
 zero-tail      entries, then zeros: the broker died, or still runs. A broker that opens it counts
                the zeros as entries, so a time index looks full and its segment is rolled
 stale          the last entry leads past the log's end or between batches: the index of another,
                longer log. A broker uses it as it is, and reads skip records
 corrupt        the last entry cannot be one

Only the file's end is read, and no more of the log than what is handed in.

Source: Kafka AbstractIndex, OffsetIndex, TimeIndex, LogSegment, LazyIndex.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kafkalog.errors import CorruptIndexError
from kafkalog.format.offset_index import OFFSET_INDEX_ENTRY_BYTES, parse_offset_index
from kafkalog.format.time_index import TIME_INDEX_ENTRY_BYTES, parse_time_index
from kafkalog.log.index_tail import IndexTail, read_index_tail


class IndexCondition(StrEnum):
    """See the head of the module."""

    MISSING = "missing"
    EMPTY = "empty"
    WHOLE = "whole"
    PARTIAL_ENTRY = "partial-entry"
    NEVER_WRITTEN = "never-written"
    ZERO_TAIL = "zero-tail"
    STALE = "stale"
    CORRUPT = "corrupt"


INDEX_CONDITIONS = tuple(IndexCondition)


@dataclass(frozen=True, slots=True)
class IndexState:
    """An index file: its condition, its genuine entries, and how long the file is."""

    condition: IndexCondition
    entries_count: int
    file_bytes: int
    entry_bytes: int


class OffsetIndexEnd:
    """The end of an offset index, and what a walk over its log shows of it, piece by piece."""

    def __init__(self, path: str | Path, base_offset: int) -> None:
        """OSError if there is a file that cannot be read."""
        self._state, tail = _by_length(path, OFFSET_INDEX_ENTRY_BYTES)
        self._reached = -1
        self._position: int | None = None  # where its last entry leads
        self._is_start = False
        if not self._state.entries_count:
            return
        try:
            index = parse_offset_index(tail.last_entry, base_offset)
        except CorruptIndexError:
            self._state = _with(self._state, IndexCondition.CORRUPT)
            return
        self._position = int(index.positions[-1]) if len(index) else 0

    def see(self, batch_positions: NDArray[np.int64]) -> None:
        """Where batches start that come next in the log, rising."""
        if self._position is None or not batch_positions.size:
            return
        self._reached = int(batch_positions[-1])
        if not self._is_start and self._position <= self._reached:
            place = np.searchsorted(batch_positions, self._position)
            self._is_start = bool(batch_positions[place] == self._position)

    def state(self, log_bytes: int) -> IndexState:
        """The state beside a log of so many bytes, all that can be walked over of it seen."""
        if self._position is None:
            return self._state
        # Entries name batches that are there, or the index is of another log: the last one is where
        # two logs of the same base differ most likely.
        is_between = self._position <= self._reached and not self._is_start
        if self._position >= log_bytes or is_between:
            return _with(self._state, IndexCondition.STALE)
        return self._state


def offset_index_state(
    path: str | Path, base_offset: int, batch_positions: NDArray[np.int64], log_bytes: int
) -> IndexState:
    """The state of an offset index beside a log of `log_bytes` whose batches start at
    `batch_positions` (rising, as far as the log can be walked).
    """
    end = OffsetIndexEnd(path, base_offset)
    end.see(batch_positions)
    return end.state(log_bytes)


def time_index_state(path: str | Path, base_offset: int, next_offset: int) -> IndexState:
    """The state of a time index beside a log that ends at `next_offset`."""
    state, tail = _by_length(path, TIME_INDEX_ENTRY_BYTES)
    if not state.entries_count:
        return state
    try:
        index = parse_time_index(tail.last_entry, base_offset)
    except CorruptIndexError:
        return _with(state, IndexCondition.CORRUPT)
    # An entry of a lone zero at the base of an empty log is preallocation as well as genuine.
    if index.last_offset >= next_offset and any(tail.last_entry):
        return _with(state, IndexCondition.STALE)
    return state


def _by_length(path: str | Path, entry_bytes: int) -> tuple[IndexState, IndexTail]:
    tail = read_index_tail(path, entry_bytes)
    file_bytes = tail.file_bytes
    if file_bytes is None:
        return IndexState(IndexCondition.MISSING, 0, 0, entry_bytes), tail
    behind = file_bytes - tail.valid_bytes
    if file_bytes == 0:
        condition = IndexCondition.EMPTY
    elif behind >= entry_bytes:
        is_empty = tail.valid_bytes == 0
        condition = IndexCondition.NEVER_WRITTEN if is_empty else IndexCondition.ZERO_TAIL
    else:
        condition = IndexCondition.PARTIAL_ENTRY if behind else IndexCondition.WHOLE
    return IndexState(condition, tail.valid_bytes // entry_bytes, file_bytes, entry_bytes), tail


def _with(state: IndexState, condition: IndexCondition) -> IndexState:
    return IndexState(condition, state.entries_count, state.file_bytes, state.entry_bytes)
