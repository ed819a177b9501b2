"""Which records of a bucket a later one supersedes: the offset map, one bucket at a time.

Only dirty records (without LOOKUP_BIT) enter the map, as in Kafka; a record of either kind is
superseded if a later dirty record has its key. The map is `held`, the latest entry of each key, and
a table of open addressing over it. Entries may come in any order and in several calls, so a bucket
need not be in memory as a whole: only its distinct keys, and where these are too many, those of a
part of the hashes at a time.

Source: Kafka Cleaner.buildOffsetMap, shouldRetainRecord.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kafkalog.kernels.hash_keys import BLOCK_ENTRIES, ENTRY_WORDS, LOOKUP_BIT
from kafkalog.kernels.jit import (
    I32_IN,
    I64,
    I64_OUT,
    U8_OUT,
    U32_OUT,
    U64_IN,
    U64_OUT,
    I32Array,
    I64Array,
    U8Array,
    U32Array,
    U64Array,
    inlined,
    kernel,
)

# What to do with a bucket's entries: first all dirty ones enter the map, then the others are looked
# up.
ENTER = 0
LOOK_UP = 1

OK = 0
MAP_FULL = 1

# An empty place of the table; a table is filled with it by the caller.
EMPTY = 0xFFFFFFFF

# `state`, carried from call to call.
HELD = 0
LOOKUPS = 1
STATE_SIZE = 2

# Indexes are unsigned here: numba then need not ask whether one counts from the array's end, which
# made these loops four times slower.
_ONE = np.uint64(1)
_TWO = np.uint64(2)
_SEVEN = np.uint64(7)
_THREE = np.uint64(3)
_WORDS = np.uint64(ENTRY_WORDS)
_BLOCK = np.uint64(BLOCK_ENTRIES)
_EMPTY = np.uint32(EMPTY)
_LOOKUP_BIT = np.uint64(LOOKUP_BIT)
# The bits of the second hash word that choose a part: the first word's choose bucket and place.
_PART_SHIFT = np.uint64(40)


class Entry(NamedTuple):
    """Two words of a key's hash, and the index of the record that has the key."""

    first: np.uint64
    second: np.uint64
    record: np.uint64


@inlined
def _place(held: U64Array, table: U32Array, mask: Any, first: Any, second: Any) -> Any:
    """The place of a key in the table: the one that names it, else the empty one where it
    belongs.
    """
    # The low bits: the high ones chose the bucket and are equal within it.
    place = first & mask
    while table[place] != _EMPTY:
        at = np.uint64(table[place]) * _WORDS
        if held[at] == first and held[at + _ONE] == second:
            break
        place = (place + _ONE) & mask
    return place


@inlined
def _mark(marks: U8Array, first_index: Any, index: Any) -> None:
    """Set the bit of a record, if it is one of those asked for."""
    # Unsigned: an index below the first one becomes a huge number, which no byte of `marks` has.
    bit = index - first_index
    byte = bit >> _THREE
    if byte < np.uint64(marks.size):
        marks[byte] |= np.uint8(_ONE << (bit & _SEVEN))


@inlined
def _enter(
    held: U64Array, table: U32Array, mask: Any, entry: Entry, held_count: int, base: Any,
    marks: U8Array,
) -> int:  # fmt: skip
    """Enter a dirty record: its key's latest entry stays in the map, the other one is marked.
    Returns how many keys are held then, or -1 where another one finds no room.
    """
    place = _place(held, table, mask, entry.first, entry.second)
    if table[place] == _EMPTY:
        # At most half of the table is taken: a probe for a key that is not there ends after few
        # steps.
        if held_count >= min(held.size // 3, table.size // 2):
            return -1
        to = np.uint64(held_count) * _WORDS
        held[to] = entry.first
        held[to + _ONE] = entry.second
        held[to + _TWO] = entry.record
        table[place] = np.uint32(held_count)
        return held_count + 1
    # Of equal indexes, the same record met twice, none is marked: no record supersedes itself.
    at = np.uint64(table[place]) * _WORDS + _TWO
    # Pieces of a bucket may come in any order.
    if held[at] < entry.record:
        _mark(marks, base, held[at])
        held[at] = entry.record
    elif held[at] > entry.record:
        _mark(marks, base, entry.record)
    return held_count


@inlined
def _look_up(
    held: U64Array, table: U32Array, mask: Any, entry: Entry, base: Any, marks: U8Array
) -> None:
    """Mark a record that is only looked up if a later dirty one has its key."""
    # Later means above it: a dirty record is never below a clean one in an ordinary round, but
    # where a record is looked up whatever its offset it may be.
    index = entry.record & ~_LOOKUP_BIT
    place = _place(held, table, mask, entry.first, entry.second)
    if table[place] != _EMPTY and held[np.uint64(table[place]) * _WORDS + _TWO] > index:
        _mark(marks, base, index)


@kernel((U64_IN, I32_IN, I64, I64, I64, I64, U32_OUT, U64_OUT, I64, U8_OUT, I64_OUT))
def merge_entries(
    entries: U64Array,
    blocks: I32Array,
    count: int,
    step: int,
    part: int,
    parts: int,
    table: U32Array,
    held: U64Array,
    first_index: int,
    marks: U8Array,
    state: I64Array,
) -> int:
    """Set the bit of every record among these entries, or held, that a later dirty one replaces.

    in   entries uint64[]: the first `count` in `blocks` int32[m] of BLOCK_ENTRIES each
         step: ENTER, or LOOK_UP when all of the bucket have entered
         part, parts: only the hashes of this part; parts is a power of two
    i/o  table uint32[2^k], EMPTY at first; held uint64[3 * h], h < 2^32 - 1: the latest entry of
         each key; state int64[STATE_SIZE]: how many are held, entries to look up that were met
         while entering
    out  marks uint8[]: bit i is the record of index first_index + i; others are left out
    returns OK, or MAP_FULL when half of the table or all of `held` is taken: what is marked by then
            is right, and the rest is not
    """
    # A bucket that does not fit is merged in parts, each of which reads all entries and takes the
    # keys of its part: equal keys have equal hashes, so no two parts share a key.
    mask, base = np.uint64(table.size - 1), np.uint64(first_index)
    wanted, part_mask = np.uint64(part), np.uint64(parts - 1)
    held_count, lookups = state[HELD], state[LOOKUPS]
    left = count
    for m in range(blocks.size):
        # Only the last block of a bucket may be filled in part.
        number = np.uint64(blocks[m]) * _BLOCK
        end = number + np.uint64(min(left, BLOCK_ENTRIES))
        left -= BLOCK_ENTRIES
        while number < end:
            at = number * _WORDS
            entry = Entry(entries[at], entries[at + _ONE], entries[at + _TWO])
            number += _ONE
            if ((entry.second >> _PART_SHIFT) & part_mask) != wanted:
                continue
            # A clean record can be judged only when every dirty one has entered, whatever the order
            # of the blocks: it is counted now, and looked up in the second step.
            if entry.record >= _LOOKUP_BIT:
                if step == ENTER:
                    lookups += 1
                else:
                    _look_up(held, table, mask, entry, base, marks)
            elif step == ENTER:
                held_count = _enter(held, table, mask, entry, held_count, base, marks)
                if held_count < 0:
                    return MAP_FULL
    state[HELD], state[LOOKUPS] = held_count, lookups
    return OK
