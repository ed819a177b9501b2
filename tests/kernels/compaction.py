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
    BLOCK_ENTRIES,
    ENTRY_WORDS,
    FREE_BLOCK,
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
    pool: NDArray[np.uint64]
    block_bucket: NDArray[np.int32]
    tails: NDArray[np.int64]
    free_block: int


def map_log(
    data: bytes,
    *,
    first_dirty_offset: int = 0,
    latest_offset: int = MAX_INT64,
    roles: Sequence[bool] | None = None,
    bucket_bits: int = 2,
    pieces: int = 1,
) -> Mapped:
    """Map an uncompressed log, in several calls of whole batches. `roles`: which batches meet the
    map, all without it.
    """
    rows = rows_of(data)
    meets = np.ones(rows.size, np.uint8) if roles is None else np.array(roles, np.uint8)
    buf = np.frombuffer(data, np.uint8)
    starts = rows["position"] + 61
    ends = rows["position"] + rows["size_in_bytes"]
    count = int(rows["records_count"].sum())
    buckets = 1 << bucket_bits
    blocks = count // BLOCK_ENTRIES + buckets + 1
    pool = np.zeros(blocks * BLOCK_ENTRIES * ENTRY_WORDS, np.uint64)
    block_bucket, tails = np.full(blocks, -77, np.int32), np.zeros(buckets, np.int64)
    flags = np.full(count, NO_FLAGS, np.uint8)
    state = np.zeros(MAP_STATE_SIZE, np.int64)
    state[PREVIOUS_OFFSET] = -1

    def mapped(status: int, batch: int) -> Mapped:
        done, free_block = int(state[NEXT_INDEX]), int(state[FREE_BLOCK])
        return Mapped(done, status, batch, flags, pool, block_bucket, tails, free_block)

    for part in np.array_split(np.arange(rows.size), pieces):
        with np.errstate(over="ignore"):
            _, status, _, b = map_records(
                buf, rows[part], starts[part], ends[part], meets[part],
                np.uint64(1), np.uint64(2), first_dirty_offset, latest_offset,
                pool, block_bucket, tails, state, flags[state[NEXT_INDEX] :],
            )  # fmt: skip
        if status:
            assert status != OUTPUT_FULL
            return mapped(status, b)
    return mapped(0, rows.size)


def superseded(mapped: Mapped, *, table_slots: int | None = None, parts: int = 1) -> int:
    """Mark in `mapped.flags`; how many distinct keys, or -1 if the table is too small."""
    entries = mapped.block_bucket.size * BLOCK_ENTRIES
    slots = 1 << (2 * entries).bit_length() if table_slots is None else table_slots
    held = np.empty(slots // 2 * ENTRY_WORDS, np.uint64)
    marks = np.zeros(mapped.flags.size // 8 + 1, np.uint8)
    distinct = 0
    for bucket in range(mapped.tails.size):
        blocks = np.flatnonzero(mapped.block_bucket[: mapped.free_block] == bucket)
        if not blocks.size:
            continue
        count = (blocks.size - 1) * BLOCK_ENTRIES
        count += int(mapped.tails[bucket]) - int(blocks[-1]) * BLOCK_ENTRIES
        for part in range(parts):
            table, state = np.full(slots, EMPTY, np.uint32), np.zeros(STATE_SIZE, np.int64)
            for step in (ENTER, LOOK_UP) if mapped.free_block else ():
                status = merge_entries(
                    mapped.pool,
                    blocks.astype(np.int32),
                    count,
                    step,
                    part,
                    parts,
                    table,
                    held,
                    0,
                    marks,
                    state,
                )
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
