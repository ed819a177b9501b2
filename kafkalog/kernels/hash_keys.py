"""Hash the key of every record, and note what the cleaner must know of the record.

The hash is SipHash-2-4 with 128 bits of output, keyed with a secret drawn for each job: a hash
match deletes a record, so nobody may be able to craft two keys that match. Kafka uses MD5 here,
which is 128 bits without a secret.

Each record that meets the map gives an entry of three words (hash, hash, record index), in record
order. Keys are hashed batch by batch, while they are in the processor's nearest cache, eight side
by side; what a batch leaves over goes with the next one's. When there is no room for another entry
the kernel stops, within a batch if it must, and is called again when those there are have been
taken.

Source: Kafka SkimpyOffsetMap for what it replaces.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kafkalog.kernels import status
from kafkalog.kernels.jit import (
    I64,
    I64_IN,
    I64_OUT,
    ROW_IN,
    U8_IN,
    U8_OUT,
    U64,
    U64_OUT,
    I64Array,
    RowArray,
    U8Array,
    U64Array,
    helper,
    inlined,
    kernel,
)
from kafkalog.kernels.prefetch import prefetch_record
from kafkalog.kernels.record_walk import RecordParts, read_header, read_record
from kafkalog.kernels.siphash import siphash_128
from kafkalog.kernels.siphash_lanes import LANE_KEY_WORDS, LANES, hash_lanes

# What is noted of a record, one byte: no key; null value; replaced by a later record (set by
# buckets.mark_superseded); not encoded as Kafka would encode it, so that a rewritten batch must
# encode it again (longer varints than needed, a length below -1 for null, bits in the attributes
# byte, a header key that is not ASCII and may be malformed UTF-8).
KEYLESS = 1
TOMBSTONE = 2
SUPERSEDED = 4
FOREIGN = 8
# past the offset where a bounded map was full: it stays, whatever its key
PAST_MAP = 16

# What a batch is to the map: its records meet nothing; they go into it if they are dirty; they are
# looked up and not put into it, whatever their offset.
MARKER = 0
DATA = 1
ONLY_LOOKED_UP = 2
# Set in an entry's record index where the entry is only looked up: a clean record's, too.
LOOKUP_BIT = 1 << 63

ENTRY_WORDS = 3

# `state` of map_records, carried from call to call: the partition-wide index of the next record;
# the offset before it; how many records of the first batch are done already; and how many entries
# the last call made.
NEXT_INDEX = 0
PREVIOUS_OFFSET = 1
DONE_OF_BATCH = 2
ENTRIES = 3
MAP_STATE_SIZE = 4

_LOOKUP_BIT = np.uint64(LOOKUP_BIT)
# Unsigned indexes: see kernels.buckets.
_ONE = np.uint64(1)
_TWO = np.uint64(2)
_WORDS = np.uint64(ENTRY_WORDS)


class Window(NamedTuple):
    """Which records go into the map."""

    first_dirty_offset: int
    latest_offset: int


class Secret(NamedTuple):
    """That of the hash."""

    k0: np.uint64
    k1: np.uint64


class Progress(NamedTuple):
    """Where the walk is: records and entries done in this call, offset of the last record."""

    records: int
    entries: int
    previous_offset: int


@inlined
def _is_shortest(buf: U8Array, pos: int, next_pos: int) -> bool:
    """Whether the varint in buf[pos:next_pos] is what Kafka would have written for its value.

    A last group of zero is padding; a last byte above what the width leaves room for holds bits
    that readers drop.
    """
    # Five groups of seven bits are 35, and only 32 count: of the fifth byte the low four bits are
    # left. Ten are 70 for 64: of the tenth byte one bit.
    size = next_pos - pos
    last = buf[next_pos - 1]
    return size == 1 or (last != 0 and (size != 5 or last <= 0x0F) and (size != 10 or last <= 0x01))


@inlined
def _is_ascii(buf: U8Array, pos: int, end: int) -> bool:
    for p in range(pos, end):
        # Kafka reads header keys into Java's strings and writes them back: malformed UTF-8 comes
        # out as other bytes, ASCII never.
        if buf[p] >= 0x80:
            return False
    return True


@helper
def _walk_headers(buf: U8Array, pos: int, end: int, count: int) -> tuple[int, int, bool]:
    """Walk a record's headers: (status, position behind them, whether all are as Kafka writes
    them).
    """
    plain = True
    at: Any = I64(pos)
    for _ in range(count):
        header = read_header(buf, at, end)
        if header.status != status.OK:
            return header.status, at, plain
        plain = (
            plain
            and header.value_length >= -1
            and _is_shortest(buf, at, header.key)
            and _is_shortest(buf, header.value_at, header.value)
            and _is_ascii(buf, header.key, header.value_at)
        )
        at = header.end
    return status.OK, at, plain


@inlined
def _check_encoding(buf: U8Array, pos: int, record: RecordParts) -> tuple[int, int]:
    """(status of the rest of the record at `pos`, FOREIGN or 0)."""
    plain = (
        buf[record.body] == 0
        and record.key_length >= -1
        and record.value_length >= -1
        and _is_shortest(buf, pos, record.body)
        and _is_shortest(buf, record.body + 1, record.offset_at)
        and _is_shortest(buf, record.offset_at, record.key_at)
        and _is_shortest(buf, record.key_at, record.key)
        and _is_shortest(buf, record.value_at, record.value)
        and _is_shortest(buf, record.headers_at, record.headers)
    )
    at: Any = record.headers
    if record.header_count > 0:
        code, at, headers_plain = _walk_headers(buf, at, record.end, record.header_count)
        if code != status.OK:
            return code, 0
        plain = plain and headers_plain
    if at != record.end:
        return status.LENGTH_MISMATCH, 0
    return status.OK, 0 if plain else FOREIGN


@inlined
def _enter(
    record: RecordParts, offset: int, role: int, index: int, window: Window, entries: U64Array,
    count: int,
) -> tuple[int, int]:  # fmt: skip
    """Make an entry of a record, where it has a key and the map goes so far: (how many there are
    then, what to note of it). Where its key lies stands in for the hash until the batch is done.
    """
    # PAST_MAP is noted before the key is hashed: such a record needs no entry, since nothing is
    # known of what follows it, and it stays.
    noted = TOMBSTONE if record.value_length < 0 else 0
    if record.key_length < 0:
        noted |= KEYLESS
    if offset > window.latest_offset:
        noted |= PAST_MAP
    elif record.key_length >= 0:
        at = np.uint64(count) * _WORDS
        entries[at] = np.uint64(record.key)
        entries[at + _ONE] = np.uint64(record.key_length)
        entries[at + _TWO] = np.uint64(index)
        # A clean record is only looked up: what it would say is known to have been said before.
        if offset < window.first_dirty_offset or role == ONLY_LOOKED_UP:
            entries[at + _TWO] |= _LOOKUP_BIT
        count += 1
    return count, noted


@inlined
def _words_of_lanes(buf: U8Array, entries: U64Array, first: int) -> int:
    """How many words the longest key has of those that are hashed side by side from entry `first`
    on; 0 where they cannot be.
    """
    longest: Any = I64(0)
    last: Any = I64(0)
    for number in range(first, first + LANES):
        at = np.uint64(number) * _WORDS
        longest = max(longest, I64(entries[at + _ONE]))
        last = max(last, I64(entries[at]))
    words = (longest >> 3) + 1
    # As many words are loaded of each key as of the longest one, whatever they belong to.
    if words > LANE_KEY_WORDS or last + 8 * words > buf.size:
        return 0
    return int(words)


@helper
def _hash_one_by_one(buf: U8Array, entries: U64Array, first: int, end: int, secret: Secret) -> None:
    """Put hashes into entries [first, end) in place of where their keys lie."""
    for number in range(first, end):
        at = np.uint64(number) * _WORDS
        entries[at], entries[at + _ONE] = siphash_128(
            buf, I64(entries[at]), I64(entries[at + _ONE]), secret.k0, secret.k1
        )


@helper
def _hash_entries(buf: U8Array, entries: U64Array, first: int, end: int, secret: Secret) -> int:
    """The same of as many entries as are hashed side by side; the first that is left of the
    others.
    """
    while end - first >= LANES:
        words = _words_of_lanes(buf, entries, first)
        if words > 0:
            hash_lanes(buf, entries, first, words, secret.k0, secret.k1)
        else:
            _hash_one_by_one(buf, entries, first, first + LANES, secret)
        first += LANES
    return first


@helper
def _map_batch(
    buf: U8Array, pos: int, end: int, left: int, row: Any, role: int, window: Window,
    first_index: int, progress: Progress, entries: U64Array, flags_out: U8Array,
) -> tuple[int, int, Progress]:  # fmt: skip
    """Map the `left` records of a batch from `pos` on: (status, position of the first byte not
    understood or not done, progress).
    """
    base_offset, last_offset = row["base_offset"], row["last_offset"]
    r, count, previous = progress.records, progress.entries, progress.previous_offset
    room = entries.size // ENTRY_WORDS
    for _ in range(left):
        # Before a record that may need an entry, so that what is done is done in full.
        if count == room:
            return status.OUTPUT_FULL, pos, Progress(r, count, previous)
        record = read_record(buf, pos, end)
        if record.status != status.OK:
            return record.status, pos, Progress(r, count, previous)
        prefetch_record(buf, pos, record.end)
        # Offsets rise within a partition. If one did not, "later" would have no meaning, and an
        # older value could replace a newer one.
        offset: Any = base_offset + record.offset_delta
        if offset <= previous or offset > last_offset:
            return status.OFFSET_ORDER, pos, Progress(r, count, previous)
        # All fields of a record are walked here: what does not decode is found before anything is
        # written.
        code, noted = _check_encoding(buf, pos, record)
        if code != status.OK:
            return code, pos, Progress(r, count, previous)
        if role != MARKER:
            count, more = _enter(record, offset, role, first_index + r, window, entries, count)
            noted |= more
        flags_out[r] = noted
        r += 1
        previous = offset
        pos = record.end
    if pos != end:
        return status.TRAILING_BYTES, pos, Progress(r, count, previous)
    return status.OK, pos, Progress(r, count, last_offset)


@kernel(
    (
        *(U8_IN, ROW_IN, I64_IN, I64_IN, U8_IN, U64, U64, I64, I64),
        *(I64_OUT, U64_OUT, U8_OUT),
    )
)
def map_records(
    buf: U8Array,
    rows: RowArray,
    starts: I64Array,
    ends: I64Array,
    roles: U8Array,
    k0: np.uint64,
    k1: np.uint64,
    first_dirty_offset: int,
    latest_offset: int,
    state: I64Array,
    entries_out: U64Array,
    flags_out: U8Array,
) -> tuple[int, int, int, int]:
    """Make an entry of every keyed record of some batches, and note KEYLESS, TOMBSTONE, FOREIGN and
    PAST_MAP of each.

    in   buf uint8[n] read-only: the uncompressed records of batch b are buf[starts[b]:ends[b]], of
         the first one those behind DONE_OF_BATCH
         rows BATCH_ROW[b]; roles uint8[b]: MARKER, DATA or ONLY_LOOKED_UP; of a marker's records
         FOREIGN alone is noted; latest_offset: where the map ends, later records are not put there
    i/o  state int64[MAP_STATE_SIZE]
    out  entries_out uint64[3 * e], ENTRIES of them; flags_out uint8[r], r >= sum of records_count
    returns (records done, status, position of the first byte not understood or not done, its
            batch); OUTPUT_FULL when a record may need an entry and there is no room
    """
    window, secret = Window(first_dirty_offset, latest_offset), Secret(k0, k1)
    # What is carried over from the call before: offsets go on rising from chunk to chunk.
    progress = Progress(I64(0), I64(0), state[PREVIOUS_OFFSET])
    code, pos, b, hashed = I64(status.OK), I64(0), I64(0), I64(0)
    while b < rows.size and code == status.OK:
        # Where there was no room within a batch, the caller hands over the rest of it: its offsets
        # begin in the middle, so they are not compared with the batch's header again.
        done = state[DONE_OF_BATCH] if b == 0 else I64(0)
        pos = starts[b]
        base_offset, last_offset = rows[b]["base_offset"], rows[b]["last_offset"]
        if done == 0 and (base_offset <= progress.previous_offset or last_offset < base_offset):
            code = I64(status.OFFSET_ORDER)
            break
        left = rows[b]["records_count"] - done
        code, pos, progress = _map_batch(
            buf, pos, ends[b], left, rows[b], roles[b], window, state[NEXT_INDEX], progress,
            entries_out, flags_out,
        )  # fmt: skip
        hashed = _hash_entries(buf, entries_out, hashed, progress.entries, secret)
        b += code == status.OK
    _hash_one_by_one(buf, entries_out, hashed, progress.entries, secret)
    # Written at every end, so that a call which stopped within a batch is gone on with where it
    # stopped.
    state[NEXT_INDEX] += progress.records
    state[PREVIOUS_OFFSET], state[ENTRIES] = progress.previous_offset, progress.entries
    return progress.records, code, pos, b
