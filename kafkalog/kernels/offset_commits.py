"""Offset commits of `__consumer_offsets`, and the latest of each key.

Two keys are the same if the 128-bit hashes of what follows the type are: SipHash with a secret, as
in `hash_keys`. For the words of a record see `commit_fields`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kafkalog.kernels.commit_fields import (
    BROKEN,
    FIELDS,
    GROUP_START,
    KEPT,
    KIND,
    METADATA_LENGTH,
    METADATA_START,
    OTHER,
    RECORD_BYTES,
    RECORD_OFFSET,
    STATE,
    UNREADABLE,
    WIDTH,
    Spans,
    read_record_fields,
)
from kafkalog.kernels.jit import (
    I64,
    I64_IN,
    I64_OUT,
    U8_IN,
    U64,
    U64_IN,
    U64_OUT,
    I64Array,
    U8Array,
    U64Array,
    inlined,
    kernel,
)
from kafkalog.kernels.siphash import siphash_128

# Records are decoded, then looked up, so many at a time.
BLOCK = 256


class Latest(NamedTuple):
    """What is kept of each key, and where its number is found: see `read_offset_commits`."""

    table: I64Array
    known: U64Array
    rows: I64Array
    new: I64Array
    texts: I64Array


class Counts(NamedTuple):
    """Keys; those first seen in this call; records with metadata."""

    keys: int
    new: int
    texts: int


@inlined
def _decode_block(
    spans: Spans, start: int, end: int, states: I64Array, k0: np.uint64, k1: np.uint64,
    keeps: bool, fields: I64Array, at: int, hashes: U64Array,
) -> tuple[int, int]:  # fmt: skip
    """Decode records [start, end) to fields[at:], and hash the keys of those that are kept:
    (unreadable records, records of other kinds).
    """
    unreadable, others = 0, 0
    for r in range(start, end):
        read_record_fields(spans, r, fields, at)
        kind = fields[at + KIND]
        unreadable += kind == UNREADABLE or kind == BROKEN
        others += kind == OTHER
        if keeps and kind != UNREADABLE and kind != OTHER and states[r] >= 0:
            key, length = spans.key_starts[r] + 2, spans.key_lengths[r] - 2
            first, second = siphash_128(spans.keys, key, length, k0, k1)
            hashes[2 * (r - start)], hashes[2 * (r - start) + 1] = first, second
        at += FIELDS
    return unreadable, others


@inlined
def _number_of(latest: Latest, first: np.uint64, second: np.uint64) -> tuple[int, int]:
    """(number of a key, -1 for a new one; the slot of the table where it is, or will be)."""
    # The table is at least twice as large as the keys it may have to hold, so there is an empty
    # slot in every chain, and the search ends.
    mask = latest.table.size - 1
    slot = I64(first & U64(0x7FFF_FFFF_FFFF_FFFF)) & mask
    number = latest.table[slot]
    while number >= 0 and (
        latest.known[2 * number] != first or latest.known[2 * number + 1] != second
    ):
        slot = (slot + 1) & mask
        number = latest.table[slot]
    return number, slot


@inlined
def _keep_block(
    spans: Spans, start: int, end: int, states: I64Array, record_offsets: I64Array,
    fields: I64Array, at: int, hashes: U64Array, latest: Latest, counts: Counts,
) -> Counts:  # fmt: skip
    """Keep what the decoded records [start, end) say of their keys; a later one replaces an
    earlier one.

    The table is larger than a processor's nearer caches: a short loop has many of its lookups
    under way at once, so this is not done where a record is decoded.
    """
    count, new, texts = counts.keys, counts.new, counts.texts
    for r in range(start, end):
        kind = fields[at + KIND]
        if states[r] >= 0 and kind != OTHER and kind != UNREADABLE:
            first, second = hashes[2 * (r - start)], hashes[2 * (r - start) + 1]
            # A record that a later one of the same key follows is overwritten in place: rows are by
            # number, and numbers are given in the order in which keys come up.
            number, slot = _number_of(latest, first, second)
            if number < 0:
                number = count
                latest.table[slot] = number
                latest.known[2 * number], latest.known[2 * number + 1] = first, second
                for word in range(4):
                    latest.new[4 * new + word] = fields[at + GROUP_START + word]
                new += 1
                count += 1
            row = number * WIDTH
            for word in range(KEPT):
                latest.rows[row + word] = fields[at + word]
            latest.rows[row + RECORD_OFFSET] = record_offsets[r]
            latest.rows[row + RECORD_BYTES] = spans.key_lengths[r] + max(spans.value_lengths[r], 0)
            latest.rows[row + STATE] = states[r]
            # Texts are noted by place alone; the caller copies those of each key's last record.
            if fields[at + METADATA_LENGTH] > 0:
                latest.texts[3 * texts] = number
                latest.texts[3 * texts + 1] = fields[at + METADATA_START]
                latest.texts[3 * texts + 2] = fields[at + METADATA_LENGTH]
                texts += 1
        at += FIELDS
    return Counts(count, new, texts)


@kernel(
    (
        *(U8_IN, U8_IN, I64_IN, I64_IN, I64_IN, I64_IN, I64_IN, I64_IN, U64, U64),
        *(I64_OUT, U64_OUT, I64, I64_OUT, I64_OUT, I64_OUT, I64_OUT, U64_OUT),
    )
)
def read_offset_commits(
    keys: U8Array,
    values: U8Array,
    key_starts: I64Array,
    key_lengths: I64Array,
    value_starts: I64Array,
    value_lengths: I64Array,
    record_offsets: I64Array,
    states: I64Array,
    k0: np.uint64,
    k1: np.uint64,
    table: I64Array,
    known: U64Array,
    count: int,
    latest_out: I64Array,
    new_out: I64Array,
    texts_out: I64Array,
    fields_out: I64Array,
    hashes_out: U64Array,
) -> tuple[int, int, int, int]:
    """Decode records; with a table keep what the last one of each key says. A key gets a number
    when it is first seen.

    in   keys, values uint8: what the spans int64[n] point into; a length of -1 is null
         record_offsets int64[n]
         states int64[n]: kept with the record; one below zero says that it does not count
         k0, k1: the secret of the hash
         table int64[a power of two, at least twice (count + n)]: -1 empty, else a key's number;
         int64[0]: nothing is kept
         known uint64[>= (count + n) * 2]: the hashes of the numbers below `count`
    out  latest_out int64[>= (count + n) * WIDTH]; table and known grow
         new_out int64[n * 4]: of keys first seen, in order: start and length of group and topic
         texts_out int64[n * 3]: of records with metadata, in order: number, start, length
         fields_out int64[n * FIELDS], -1 where a field is not there, the topic id 0; of another
         size, at least BLOCK * FIELDS, it is scratch, as is hashes_out uint64[BLOCK * 2]
    returns (keys, records with metadata, UNREADABLE and BROKEN records, OTHER records)
    """
    spans = Spans(keys, values, key_starts, key_lengths, value_starts, value_lengths)
    latest = Latest(table, known, latest_out, new_out, texts_out)
    # Without a table the fields of every record stay where they are for the caller; with one a
    # block's fields are scratch, and only the latest of each key is kept.
    keeps = table.size > 0
    in_place = fields_out.size == key_starts.size * FIELDS
    counts = Counts(I64(count), I64(0), I64(0))
    unreadable, others = 0, 0
    for start in range(0, key_starts.size, BLOCK):
        end = min(start + BLOCK, key_starts.size)
        at = start * FIELDS if in_place else 0
        bad, other = _decode_block(
            spans, start, end, states, k0, k1, keeps, fields_out, at, hashes_out
        )
        unreadable, others = unreadable + bad, others + other
        if keeps:
            counts = _keep_block(
                spans, start, end, states, record_offsets, fields_out, at, hashes_out, latest,
                counts,
            )  # fmt: skip
    return counts.keys, counts.texts, unreadable, others


@kernel((U64_IN, I64, I64_OUT))
def fill_table(known: U64Array, count: int, table_out: I64Array) -> None:
    """Enter the numbers below `count` in an empty table, by their hashes uint64[count * 2]."""
    # Linear probing, as in `_number_of`: the low bits of the hash name the first slot, and the next
    # empty one is taken.
    mask = table_out.size - 1
    for number in range(count):
        at = I64(known[2 * number] & U64(0x7FFF_FFFF_FFFF_FFFF)) & mask
        while table_out[at] >= 0:
            at = (at + 1) & mask
        table_out[at] = number
