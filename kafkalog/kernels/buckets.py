"""Which records of a bucket a later one supersedes: the offset map, one bucket at a time.

Only dirty records (index >= first_dirty_index) enter the map, as in Kafka; a record of either kind
is superseded if a later dirty record has its key. The table is open addressing over entry numbers,
small enough to stay in a processor's cache.

Source: Kafka Cleaner.buildOffsetMap, shouldRetainRecord; spec/compaction.md 2.3, 3.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kafkalog.kernels.hash_keys import BLOCK_ENTRIES, ENTRY_WORDS, SUPERSEDED
from kafkalog.kernels.jit import (
    I32_IN,
    I32_OUT,
    I64,
    I64_IN,
    U8_OUT,
    U64_IN,
    I32Array,
    I64Array,
    U8Array,
    U64Array,
    inlined,
    kernel,
)

_SUPERSEDED = np.uint8(SUPERSEDED)
_BLOCK_ENTRIES = BLOCK_ENTRIES
_ENTRY_WORDS = ENTRY_WORDS

OK = 0
TABLE_TOO_SMALL = 1


@inlined
def _block_end(block: Any, next_block: Any, tail: int) -> Any:
    """One past the last entry of a block: full unless it is the chain's last."""
    return tail if next_block < 0 else (block + 1) * np.int64(_BLOCK_ENTRIES)


@inlined
def _slot(pool: U64Array, table: I32Array, mask: Any, at: int) -> Any:
    """The slot of a key: the one that holds it, else the empty one where it belongs."""
    # The low bits: the high ones chose the bucket and are equal within it.
    slot = np.int64(pool[at]) & mask
    while table[slot] >= 0:
        held = np.int64(table[slot]) * _ENTRY_WORDS
        if pool[held] == pool[at] and pool[held + 1] == pool[at + 1]:
            break
        slot = (slot + 1) & mask
    return slot


@inlined
def _mark(flags: U8Array, index: np.uint64) -> None:
    flags[np.int64(index)] |= _SUPERSEDED


@kernel((U64_IN, I32_IN, I32_IN, I64_IN, I64, I32_OUT, U8_OUT))
def mark_superseded(
    pool: U64Array,
    block_next: I32Array,
    heads: I32Array,
    tails: I64Array,
    first_dirty_index: int,
    table: I32Array,
    flags: U8Array,
) -> tuple[int, int]:
    """Set SUPERSEDED on every record that a later dirty record of the same key replaces.

    in   pool, block_next, heads, tails: as hash_keys.map_records left them, less than 2^31 entries
    out  flags uint8[r], indexed by the entries' record index
    tmp  table int32[2^k]: at least twice the entries of the largest bucket
    returns (status, distinct keys of the dirty records)
    """
    distinct = 0
    for bucket in range(heads.size):
        entries = 0
        block = heads[bucket]
        while block >= 0:
            entries += _BLOCK_ENTRIES
            block = block_next[block]
        size = np.int64(1)
        while size < 2 * entries:
            size *= 2
        if size > table.size:
            return TABLE_TOO_SMALL, distinct
        mask = size - 1
        table[:size] = -1
        has_clean = False
        block = heads[bucket]
        while block >= 0:
            end = _block_end(block, block_next[block], tails[bucket])
            for entry in range(block * np.int64(_BLOCK_ENTRIES), end):
                at = entry * _ENTRY_WORDS
                if np.int64(pool[at + 2]) < first_dirty_index:
                    has_clean = True
                    continue
                slot = _slot(pool, table, mask, at)
                if table[slot] >= 0:
                    _mark(flags, pool[np.int64(table[slot]) * _ENTRY_WORDS + 2])
                else:
                    distinct += 1
                table[slot] = np.int32(entry)
            block = block_next[block]
        # Clean records come first in a chain, but are looked up only when all dirty ones are in.
        block = heads[bucket] if has_clean else np.int32(-1)
        while block >= 0:
            end = _block_end(block, block_next[block], tails[bucket])
            for entry in range(block * np.int64(_BLOCK_ENTRIES), end):
                at = entry * _ENTRY_WORDS
                if np.int64(pool[at + 2]) >= first_dirty_index:
                    break
                if table[_slot(pool, table, mask, at)] >= 0:
                    _mark(flags, pool[at + 2])
            block = block_next[block]
    return OK, distinct
