"""The compaction kernels on whole batches, with the arrays they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.format.constants import MAX_INT64
from kafkalog.kernels.buckets import (
    EMPTY,
    ENTER,
    HELD,
    LOOK_UP,
    LOOKUPS,
    OK,
    STATE_SIZE,
    merge_entries,
)
from kafkalog.kernels.hash_keys import (
    DONE_OF_BATCH,
    ENTRIES,
    ENTRY_WORDS,
    MAP_STATE_SIZE,
    NEXT_INDEX,
    PREVIOUS_OFFSET,
    SUPERSEDED,
    map_records,
)
from kafkalog.kernels.status import OUTPUT_FULL
from tests.batches.logs import rows_of

NO_FLAGS = 0xAA


@dataclass
class Mapped:
    """What `map_records` answers, and what it wrote."""

    records: int
    status: int
    batch: int
    flags: NDArray[np.uint8]
    entries: NDArray[np.uint64]


def map_log(
    data: bytes,
    *,
    first_dirty_offset: int = 0,
    latest_offset: int = MAX_INT64,
    roles: Sequence[bool] | None = None,
    pieces: int = 1,
    room: int = 1000,
) -> Mapped:
    """Map an uncompressed log, in several calls of whole batches, each of which makes up to `room`
    entries. `roles`: which batches meet the map, all without it.
    """
    rows = rows_of(data)
    meets = np.ones(rows.size, np.uint8) if roles is None else np.array(roles, np.uint8)
    buf = np.frombuffer(data, np.uint8)
    starts = rows["position"] + 61
    ends = rows["position"] + rows["size_in_bytes"]
    count = int(rows["records_count"].sum())
    flags = np.full(count, NO_FLAGS, np.uint8)
    state = np.zeros(MAP_STATE_SIZE, np.int64)
    state[PREVIOUS_OFFSET] = -1
    made, entries = [np.empty(0, np.uint64)], np.empty(room * ENTRY_WORDS, np.uint64)
    for part in np.array_split(np.arange(rows.size), pieces):
        first, status = 0, OUTPUT_FULL
        while status == OUTPUT_FULL:
            which, done = part[first:], int(state[NEXT_INDEX])
            with np.errstate(over="ignore"):
                _, status, position, b = map_records(
                    buf, rows[which], starts[which], ends[which], meets[which],
                    np.uint64(1), np.uint64(2), first_dirty_offset, latest_offset,
                    state, entries, flags[done:],
                )  # fmt: skip
            made.append(entries[: state[ENTRIES] * ENTRY_WORDS].copy())
            first += b
            in_front = rows["records_count"][: part[first]].sum() if status else 0
            state[DONE_OF_BATCH] = state[NEXT_INDEX] - in_front if status else 0
            if status == OUTPUT_FULL:
                starts[part[first]] = position
        if status:
            return Mapped(int(state[NEXT_INDEX]), status, b, flags, np.concatenate(made))
    return Mapped(int(state[NEXT_INDEX]), 0, rows.size, flags, np.concatenate(made))


def superseded(mapped: Mapped, *, table_slots: int | None = None, parts: int = 1) -> int:
    """Mark in `mapped.flags`; how many distinct keys, or -1 if the table is too small."""
    count = mapped.entries.size // ENTRY_WORDS
    slots = 2 * count + 2 if table_slots is None else table_slots
    held = np.empty(slots // 2 * ENTRY_WORDS, np.uint64)
    marks = np.zeros(mapped.flags.size // 8 + 1, np.uint8)
    distinct = 0
    for part in range(parts):
        table, state = np.full(slots, EMPTY, np.uint32), np.zeros(STATE_SIZE, np.int64)
        for step in (ENTER, LOOK_UP):
            status = merge_entries(mapped.entries, step, part, parts, table, held, 0, marks, state)
            if status != OK:
                return -1
        assert state[LOOKUPS] <= count
        distinct += int(state[HELD])
    bits = np.unpackbits(marks, bitorder="little", count=mapped.flags.size)
    mapped.flags |= bits * np.uint8(SUPERSEDED)
    return distinct


def expected_superseded(
    keys: Sequence[bytes | None],
    offsets: Sequence[int],
    first_dirty_offset: int,
    latest_offset: int = MAX_INT64,
) -> tuple[list[bool], int]:
    """What a dict says: which records a later dirty one replaces, and how many dirty keys."""
    pairs = zip(keys, offsets, strict=True)
    last = {
        key: offset
        for key, offset in pairs
        if key is not None and first_dirty_offset <= offset <= latest_offset
    }
    gone = [
        key is not None and last.get(key, -1) > offset
        for key, offset in zip(keys, offsets, strict=True)
    ]
    return gone, len(last)
