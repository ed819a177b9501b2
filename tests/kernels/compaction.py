"""The compaction kernels on whole batches, with the arrays they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.format.constants import MAX_INT64
from kafkalog.kernels.buckets import mark_superseded
from kafkalog.kernels.hash_keys import BLOCK_ENTRIES, ENTRY_WORDS, map_records
from tests.batches.logs import rows_of

NO_FLAGS = 0xAA


@dataclass
class Mapped:
    """What `map_records` answers, and what it wrote."""

    records: int
    status: int
    batch: int
    flags: NDArray[np.uint8]
    clean_records: int
    pool: NDArray[np.uint64]
    block_next: NDArray[np.int32]
    heads: NDArray[np.int32]
    tails: NDArray[np.int64]


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
    block_next = np.full(blocks, -77, np.int32)
    heads, tails = np.full(buckets, -1, np.int32), np.zeros(buckets, np.int64)
    flags = np.full(count, NO_FLAGS, np.uint8)
    done, free_block, clean, previous = 0, 0, 0, -1
    for part in np.array_split(np.arange(rows.size), pieces):
        with np.errstate(over="ignore"):
            found, status, _, b, free_block, below = map_records(
                buf,
                rows[part],
                starts[part],
                ends[part],
                meets[part],
                np.uint64(1),
                np.uint64(2),
                64 - bucket_bits,
                done,
                first_dirty_offset,
                latest_offset,
                previous,
                pool,
                block_next,
                heads,
                tails,
                free_block,
                flags[done:],
            )
        done += found
        clean += below
        if status:
            return Mapped(done, status, b, flags, clean, pool, block_next, heads, tails)
        if part.size:
            previous = int(rows["last_offset"][part[-1]])
    return Mapped(done, 0, rows.size, flags, clean, pool, block_next, heads, tails)


def superseded(mapped: Mapped, *, table_slots: int | None = None) -> tuple[int, int]:
    """Mark in `mapped.flags`; (status, distinct keys)."""
    entries = mapped.block_next.size * BLOCK_ENTRIES
    slots = 1 << (2 * entries).bit_length() if table_slots is None else table_slots
    status, distinct = mark_superseded(
        mapped.pool,
        mapped.block_next,
        mapped.heads,
        mapped.tails,
        mapped.clean_records,
        np.empty(slots, np.uint32),
        mapped.flags,
    )
    return int(status), int(distinct)


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
