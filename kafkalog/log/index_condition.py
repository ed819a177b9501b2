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


@dataclass(frozen=True, slots=True)
class IndexState:
    """An index file: its condition, its genuine entries, and how long the file is."""

    condition: IndexCondition
    entries_count: int
    file_bytes: int
    entry_bytes: int


def offset_index_state(
    path: str | Path, base_offset: int, batch_positions: NDArray[np.int64], log_bytes: int
) -> IndexState:
    """The state of an offset index beside a log of `log_bytes` whose batches start at
    `batch_positions` (rising, as far as the log can be walked).
    """
    state, tail = _by_length(path, OFFSET_INDEX_ENTRY_BYTES)
    if not state.entries_count:
        return state
    try:
        index = parse_offset_index(tail.last_entry, base_offset)
    except CorruptIndexError:
        return _with(state, IndexCondition.CORRUPT)
    position = int(index.positions[-1]) if len(index) else 0
    reachable = int(batch_positions[-1]) if batch_positions.size else -1
    # Entries name batches that are there, or the index is of another log: the last one is where two
    # logs of the same base differ most likely.
    is_start = position <= reachable and bool(
        batch_positions[np.searchsorted(batch_positions, position)] == position
    )
    if position >= log_bytes or (position <= reachable and not is_start):
        return _with(state, IndexCondition.STALE)
    return state


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
