"""The offset map: which records a later one supersedes.

Only dirty records (without LOOKUP_BIT) enter the map, as in Kafka; a record of either kind is
superseded if a later dirty record has its key. The map is `held`, the latest entry of each key, and
a table of open addressing over it. Entries may come in any order and in several calls, so they need
not be in memory all at once: only their distinct keys, and where these are too many, those of a
bucket, or of a part of the hashes, at a time.

Source: Kafka Cleaner.buildOffsetMap, shouldRetainRecord.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kafkalog.kernels.hash_keys import ENTRY_WORDS, LOOKUP_BIT
from kafkalog.kernels.jit import (
    I64,
    I64_OUT,
    U8_OUT,
    U32_OUT,
    U64_IN,
    U64_OUT,
    I64Array,
    U8Array,
    U32Array,
    U64Array,
    inlined,
    kernel,
)
from kafkalog.kernels.prefetch import prefetch

# What to do with entries: first all dirty ones enter the map, then the others are looked up.
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
_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_TWO = np.uint64(2)
_SEVEN = np.uint64(7)
_THREE = np.uint64(3)
_WORDS = np.uint64(ENTRY_WORDS)
_EMPTY = np.uint32(EMPTY)
_LOOKUP_BIT = np.uint64(LOOKUP_BIT)
# The bits of the second hash word that choose a part: the first word's choose bucket and place.
_PART_SHIFT = np.uint64(40)
# Of the first word its low bits choose the place: the high ones choose the bucket, and are equal
# within it.
_HALF = np.uint64(32)
_LOW_HALF = np.uint64(0xFFFFFFFF)
# So many entries ahead the places of the table are fetched, and half as many ahead what they name.
_AHEAD = 16


class Entry(NamedTuple):
    """Two words of a key's hash, and the index of the record that has the key."""

    first: np.uint64
    second: np.uint64
    record: np.uint64


@inlined
def _first_place(table: U32Array, first: Any) -> Any:
    """Where the search for a key begins: its hash, scaled to the size of the table."""
    return ((first & _LOW_HALF) * np.uint64(table.size)) >> _HALF


@inlined
def _numbers(held: U64Array) -> Any:
    """The bits of a place in the table that say which of `held` it names; those above them are of
    the key's hash.
    """
    # All of them set is no number of `held`, so no place that names one looks empty.
    most = np.uint64(held.size // ENTRY_WORDS)
    bits = _ZERO
    while bits < most:
        bits = bits << _ONE | _ONE
    return np.uint32(bits)


@inlined
def _named(held: U64Array, slot: Any, numbers: Any) -> Any:
    """Where the entry begins that a place of the table names."""
    return np.uint64(slot & numbers) * _WORDS


@inlined
def _place(held: U64Array, table: U32Array, first: Any, second: Any, numbers: Any) -> Any:
    """The place of a key in the table: the one that names it, else the empty one where it
    belongs.
    """
    place = _first_place(table, first)
    last = np.uint64(table.size) - _ONE
    tag = np.uint32(second & _LOW_HALF) & ~numbers
    while table[place] != _EMPTY:
        # Other keys on the way are told by what the table has of their hash: what they name lies
        # anywhere, and nobody has had it fetched.
        if table[place] & ~numbers == tag:
            at = _named(held, table[place], numbers)
            if held[at] == first and held[at + _ONE] == second:
                break
        place = place + _ONE if place < last else _ZERO
    return place


@inlined
def _fetch(
    entries: U64Array, number: Any, count: Any, held: U64Array, table: U32Array, numbers: Any
) -> None:
    """Have those places fetched which entries some way ahead of this one will need."""
    ahead, near = number + np.uint64(_AHEAD), number + np.uint64(_AHEAD // 2)
    if ahead < count:
        prefetch(table, _first_place(table, entries[ahead * _WORDS]))
    if near < count:
        at = near * _WORDS
        place = _first_place(table, entries[at])
        tag = np.uint32(entries[at + _ONE] & _LOW_HALF) & ~numbers
        # Most keys are at their first place or the next one. A guess costs nothing.
        if table[place] & ~numbers != tag and place + _ONE < np.uint64(table.size):
            place += _ONE
        named = _named(held, table[place], numbers)
        # Of its three words a quarter of all entries have one in the next line of the cache.
        prefetch(held, named)
        prefetch(held, named + _TWO)


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
    held: U64Array, table: U32Array, entry: Entry, held_count: int, base: Any, marks: U8Array,
    numbers: Any,
) -> int:  # fmt: skip
    """Enter a dirty record: its key's latest entry stays in the map, the other one is marked.
    Returns how many keys are held then, or -1 where another one finds no room.
    """
    place = _place(held, table, entry.first, entry.second, numbers)
    if table[place] == _EMPTY:
        # At most half of the table is taken: a probe for a key that is not there ends after few
        # steps.
        if held_count >= min(held.size // 3, table.size // 2):
            return -1
        to = np.uint64(held_count) * _WORDS
        held[to] = entry.first
        held[to + _ONE] = entry.second
        held[to + _TWO] = entry.record
        tag = np.uint32(entry.second & _LOW_HALF) & ~numbers
        table[place] = tag | np.uint32(held_count)
        return held_count + 1
    # Of equal indexes, the same record met twice, none is marked: no record supersedes itself.
    at = _named(held, table[place], numbers) + _TWO
    # Entries may come in any order.
    if held[at] < entry.record:
        _mark(marks, base, held[at])
        held[at] = entry.record
    elif held[at] > entry.record:
        _mark(marks, base, entry.record)
    return held_count


@inlined
def _look_up(
    held: U64Array, table: U32Array, entry: Entry, base: Any, marks: U8Array, numbers: Any
) -> None:
    """Mark a record that is only looked up if a later dirty one has its key."""
    # Later means above it: a dirty record is never below a clean one in an ordinary round, but
    # where a record is looked up whatever its offset it may be.
    index = entry.record & ~_LOOKUP_BIT
    place = _place(held, table, entry.first, entry.second, numbers)
    if table[place] != _EMPTY and held[_named(held, table[place], numbers) + _TWO] > index:
        _mark(marks, base, index)


@kernel((U64_IN, I64, I64, I64, U32_OUT, U64_OUT, I64, U8_OUT, I64_OUT))
def merge_entries(
    entries: U64Array,
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

    in   entries uint64[3 * n]
         step: ENTER, or LOOK_UP when all have entered
         part, parts: only the hashes of this part; parts is a power of two
    i/o  table uint32[t], EMPTY at first, t < 2^32; held uint64[3 * h], h < 2^32 - 1: the latest
         entry of each key; state int64[STATE_SIZE]: how many are held, entries to look up that were
         met while entering
    out  marks uint8[]: bit i is the record of index first_index + i; others are left out
    returns OK, or MAP_FULL when half of the table or all of `held` is taken: what is marked by then
            is right, and the rest is not
    """
    # What does not fit is merged in parts, each of which reads all entries and takes the keys of
    # its part: equal keys have equal hashes, so no two parts share a key.
    base = np.uint64(first_index)
    numbers = _numbers(held)
    wanted, part_mask = np.uint64(part), np.uint64(parts - 1)
    held_count, lookups = state[HELD], state[LOOKUPS]
    count, number = np.uint64(entries.size // ENTRY_WORDS), _ZERO
    while number < count:
        _fetch(entries, number, count, held, table, numbers)
        at = number * _WORDS
        entry = Entry(entries[at], entries[at + _ONE], entries[at + _TWO])
        number += _ONE
        if ((entry.second >> _PART_SHIFT) & part_mask) != wanted:
            continue
        # A clean record can be judged only when every dirty one has entered, whatever the order
        # of the entries: it is counted now, and looked up in the second step.
        if entry.record >= _LOOKUP_BIT:
            if step == ENTER:
                lookups += 1
            else:
                _look_up(held, table, entry, base, marks, numbers)
        elif step == ENTER:
            held_count = _enter(held, table, entry, held_count, base, marks, numbers)
            if held_count < 0:
                return MAP_FULL
    state[HELD], state[LOOKUPS] = held_count, lookups
    return OK


@kernel((U64_OUT, U64_OUT, U64_OUT))
def sort_by_bucket(entries: U64Array, starts: U64Array, next_out: U64Array) -> None:
    """Put entries in the order of their buckets, in place; within a bucket in any order.

    i/o  entries uint64[3 * n]
    out  starts uint64[buckets + 1]: where each bucket's begin, buckets being a power of two above
         1; next_out uint64[buckets]: scratch
    """
    # Counted first, so each bucket's range is known; then whatever lies in a range and belongs to
    # another is swapped to the next place there, until what comes back is the range's own.
    buckets, count = np.uint64(next_out.size), np.uint64(entries.size // ENTRY_WORDS)
    shift = np.uint64(64)
    while buckets >> (np.uint64(64) - shift) > _ONE:
        shift -= _ONE
    starts[:] = 0
    for number in range(count):
        starts[(entries[np.uint64(number) * _WORDS] >> shift) + _ONE] += _ONE
    for bucket in range(next_out.size):
        next_out[bucket] = starts[bucket]
        starts[bucket + 1] += starts[bucket]
    for bucket in range(next_out.size):
        at = next_out[bucket]
        end = starts[bucket + 1]
        while at < end:
            at_word = at * _WORDS
            first, second = entries[at_word], entries[at_word + _ONE]
            record = entries[at_word + _TWO]
            owner: Any = first >> shift
            # Carried from place to place, until one comes that belongs where the first one lay.
            while owner != np.uint64(bucket):
                to = next_out[owner] * _WORDS
                next_out[owner] += _ONE
                entries[to], first = first, entries[to]
                entries[to + _ONE], second = second, entries[to + _ONE]
                entries[to + _TWO], record = record, entries[to + _TWO]
                owner = first >> shift
            entries[at_word] = first
            entries[at_word + _ONE] = second
            entries[at_word + _TWO] = record
            at += _ONE
        next_out[bucket] = at
