"""Which records of a bucket a later one supersedes: the offset map, one bucket at a time.

Only dirty records (index >= first_dirty_index, without LOOKUP_BIT) enter the map, as in Kafka; a
record of either kind is superseded if a later dirty record has its key. The table is open
addressing over entry numbers, small enough to stay in a processor's cache.

Source: Kafka Cleaner.buildOffsetMap, shouldRetainRecord.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kafkalog.kernels.hash_keys import BLOCK_ENTRIES, ENTRY_WORDS, LOOKUP_BIT, SUPERSEDED
from kafkalog.kernels.jit import (
    I32_IN,
    I64,
    I64_IN,
    U8_OUT,
    U32_OUT,
    U64_IN,
    I32Array,
    I64Array,
    U8Array,
    U32Array,
    U64Array,
    inlined,
    kernel,
)

_SUPERSEDED = np.uint8(SUPERSEDED)
_BLOCK_ENTRIES = BLOCK_ENTRIES

# Indexes are unsigned here: numba then need not ask whether one counts from the array's end, which
# made these loops four times slower.
_ONE = np.uint64(1)
_TWO = np.uint64(2)
_WORDS = np.uint64(ENTRY_WORDS)
_BLOCK = np.uint64(BLOCK_ENTRIES)
_EMPTY = np.uint32(0xFFFFFFFF)
_LOOKUP_BIT = np.uint64(LOOKUP_BIT)

OK = 0
TABLE_TOO_SMALL = 1


@inlined
def _block_end(block: Any, next_block: Any, tail: Any) -> Any:
    """One past the last entry of a block: full unless it is the chain's last."""
    return np.uint64(tail) if next_block < 0 else (np.uint64(block) + _ONE) * _BLOCK


@inlined
def _slot(pool: U64Array, table: U32Array, mask: Any, at: Any) -> Any:
    """The slot of a key: the one that holds it, else the empty one where it belongs."""
    first = pool[at]
    second = pool[at + _ONE]
    # The low bits: the high ones chose the bucket and are equal within it.
    slot = first & mask
    while table[slot] != _EMPTY:
        held = np.uint64(table[slot]) * _WORDS
        if pool[held] == first and pool[held + _ONE] == second:
            break
        slot = (slot + _ONE) & mask
    return slot


@kernel((U64_IN, I32_IN, I32_IN, I64_IN, I64, U32_OUT, U8_OUT))
def mark_superseded(
    pool: U64Array,
    block_next: I32Array,
    heads: I32Array,
    tails: I64Array,
    first_dirty_index: int,
    table: U32Array,
    flags: U8Array,
) -> tuple[int, int]:
    """Set SUPERSEDED on every record that a later dirty record of the same key replaces.

    in   pool, block_next, heads, tails: as hash_keys.map_records left them, less than 2^32 - 1
         entries
    out  flags uint8[r], indexed by the entries' record index
    tmp  table uint32[2^k]: at least twice the entries of the largest bucket
    returns (status, distinct keys of the dirty records)
    """
    distinct = 0
    first_dirty = np.uint64(first_dirty_index)
    for bucket in range(heads.size):
        entries = 0
        block = heads[bucket]
        while block >= 0:
            entries += _BLOCK_ENTRIES
            block = block_next[block]
        size = 1
        while size < 2 * entries:
            size *= 2
        if size > table.size:
            return TABLE_TOO_SMALL, distinct
        mask = np.uint64(size - 1)
        for slot in range(size):
            table[slot] = _EMPTY
        has_lookups = False
        block = heads[bucket]
        while block >= 0:
            entry = np.uint64(block) * _BLOCK
            end = _block_end(block, block_next[block], tails[bucket])
            while entry < end:
                at = entry * _WORDS
                index = pool[at + _TWO]
                if index < first_dirty or index >= _LOOKUP_BIT:
                    has_lookups = True
                else:
                    place = _slot(pool, table, mask, at)
                    if table[place] != _EMPTY:
                        flags[pool[np.uint64(table[place]) * _WORDS + _TWO]] |= _SUPERSEDED
                    else:
                        distinct += 1
                    table[place] = np.uint32(entry)
                entry += _ONE
            block = block_next[block]
        # The others are looked up when all are in.
        block = heads[bucket] if has_lookups else np.int32(-1)
        while block >= 0:
            entry = np.uint64(block) * _BLOCK
            end = _block_end(block, block_next[block], tails[bucket])
            while entry < end:
                at = entry * _WORDS
                index = pool[at + _TWO]
                if index < first_dirty or index >= _LOOKUP_BIT:
                    index &= ~_LOOKUP_BIT
                    place = _slot(pool, table, mask, at)
                    if (
                        table[place] != _EMPTY
                        and pool[np.uint64(table[place]) * _WORDS + _TWO] > index
                    ):
                        flags[index] |= _SUPERSEDED
                entry += _ONE
            block = block_next[block]
    return OK, distinct
