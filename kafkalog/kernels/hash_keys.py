"""Hash the key of every record, note what the cleaner must know of the record, and sort the hashes
into buckets.

The hash is SipHash-2-4 with 128 bits of output, keyed with a secret drawn for each job: a hash
match deletes a record, so nobody may be able to craft two keys that match. Kafka uses MD5 here,
which is 128 bits without a secret.

Entries of three words (hash, hash, record index) go to the bucket of the hash's top bits. A bucket
is several blocks in one pool, so a single pass over the records is enough and no count is needed
first:

    pool          uint64[blocks * BLOCK_ENTRIES * 3]
    block_bucket  int32[blocks]       whose a block is; a bucket's blocks are filled in their order
    tails         int64[buckets]      pool entry to write next; a block's first entry means that
                                      there is none, or that the last block is full

When the pool is full the kernel stops, within a batch if it must, and is called again with an empty
one.

Source: Kafka SkimpyOffsetMap for what it replaces.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kafkalog.kernels import status
from kafkalog.kernels.jit import (
    I32_OUT,
    I64,
    I64_IN,
    I64_OUT,
    ROW_IN,
    U8_IN,
    U8_OUT,
    U64,
    U64_OUT,
    I32Array,
    I64Array,
    RowArray,
    U8Array,
    U64Array,
    helper,
    inlined,
    kernel,
)
from kafkalog.kernels.record_walk import RecordParts, read_header, read_record
from kafkalog.kernels.siphash import siphash_128

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

BLOCK_ENTRIES = 512
ENTRY_WORDS = 3

# `state` of map_records, carried from call to call: the partition-wide index of the next record;
# the offset before it; the next free block; how many records of the first batch are done already.
NEXT_INDEX = 0
PREVIOUS_OFFSET = 1
FREE_BLOCK = 2
DONE_OF_BATCH = 3
MAP_STATE_SIZE = 4

_LOOKUP_BIT = np.uint64(LOOKUP_BIT)


class Window(NamedTuple):
    """Which records go into the map, and the secret of the hash."""

    first_dirty_offset: int
    latest_offset: int
    k0: np.uint64
    k1: np.uint64


class Pool(NamedTuple):
    """The buckets; a hash shifted right by `shift` is the number of its bucket."""

    entries: U64Array
    block_bucket: I32Array
    tails: I64Array
    shift: np.uint64


class Progress(NamedTuple):
    """Where the walk is: records done in this call, next free block, offset of the last record."""

    records: int
    free_block: int
    previous_offset: int


@inlined
def _put(pool: Pool, free_block: int, first: np.uint64, second: np.uint64, index: np.uint64) -> int:
    """Append an entry to its bucket; returns the next free block. The caller has seen that there is
    one.
    """
    # Whatever the shift is, the bucket is one of those there are.
    bucket: Any = I64(first >> pool.shift) & (pool.tails.size - 1)
    entry = pool.tails[bucket]
    # The bucket has no block yet, or its last one is full: take the pool's next free one.
    if entry % BLOCK_ENTRIES == 0:
        pool.block_bucket[free_block] = bucket
        entry = free_block * I64(BLOCK_ENTRIES)
        free_block += 1
    at = entry * ENTRY_WORDS
    pool.entries[at] = first
    pool.entries[at + 1] = second
    pool.entries[at + 2] = index
    pool.tails[bucket] = entry + 1
    return free_block


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
    buf: U8Array, record: RecordParts, offset: int, role: int, index: int, window: Window,
    pool: Pool, free_block: int,
) -> tuple[int, int]:  # fmt: skip
    """Put a record into the bucket of its key, where it has one and the map goes so far: (next
    free block, what to note of it).
    """
    # PAST_MAP is noted before the key is hashed: such a record needs no entry, since nothing is
    # known of what follows it, and it stays.
    noted = TOMBSTONE if record.value_length < 0 else 0
    if record.key_length < 0:
        noted |= KEYLESS
    if offset > window.latest_offset:
        noted |= PAST_MAP
    elif record.key_length >= 0:
        first, second = siphash_128(buf, record.key, record.key_length, window.k0, window.k1)
        entry = np.uint64(index)
        # A clean record is only looked up: what it would say is known to have been said before.
        if offset < window.first_dirty_offset or role == ONLY_LOOKED_UP:
            entry |= _LOOKUP_BIT
        free_block = _put(pool, free_block, first, second, entry)
    return free_block, noted


@helper
def _map_batch(
    buf: U8Array, pos: int, end: int, left: int, row: Any, role: int, window: Window, pool: Pool,
    first_index: int, progress: Progress, flags_out: U8Array,
) -> tuple[int, int, Progress]:  # fmt: skip
    """Map the `left` records of a batch from `pos` on: (status, position of the first byte not
    understood or not done, progress).
    """
    base_offset, last_offset = row["base_offset"], row["last_offset"]
    r, free_block, previous = progress.records, progress.free_block, progress.previous_offset
    # One block is enough for any record: it makes one entry at most.
    for _ in range(left):
        # Before a record that may need a block, so that what is done is done in full.
        if free_block == pool.block_bucket.size:
            return status.OUTPUT_FULL, pos, Progress(r, free_block, previous)
        record = read_record(buf, pos, end)
        if record.status != status.OK:
            return record.status, pos, Progress(r, free_block, previous)
        # Offsets rise within a partition. If one did not, "later" would have no meaning, and an
        # older value could replace a newer one.
        offset: Any = base_offset + record.offset_delta
        if offset <= previous or offset > last_offset:
            return status.OFFSET_ORDER, pos, Progress(r, free_block, previous)
        # All fields of a record are walked here: what does not decode is found before anything is
        # written.
        code, noted = _check_encoding(buf, pos, record)
        if code != status.OK:
            return code, pos, Progress(r, free_block, previous)
        if role != MARKER:
            free_block, more = _enter(
                buf, record, offset, role, first_index + r, window, pool, free_block
            )
            noted |= more
        flags_out[r] = noted
        r += 1
        previous = offset
        pos = record.end
    if pos != end:
        return status.TRAILING_BYTES, pos, Progress(r, free_block, previous)
    return status.OK, pos, Progress(r, free_block, last_offset)


@kernel(
    (
        *(U8_IN, ROW_IN, I64_IN, I64_IN, U8_IN, U64, U64, I64, I64),
        *(U64_OUT, I32_OUT, I64_OUT, I64_OUT, U8_OUT),
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
    entries: U64Array,
    block_bucket: I32Array,
    tails: I64Array,
    state: I64Array,
    flags_out: U8Array,
) -> tuple[int, int, int, int]:
    """Put every keyed record of some batches into its bucket, and note KEYLESS, TOMBSTONE, FOREIGN
    and PAST_MAP of each.

    in   buf uint8[n] read-only: the uncompressed records of batch b are buf[starts[b]:ends[b]], of
         the first one those behind DONE_OF_BATCH
         rows BATCH_ROW[b]; roles uint8[b]: MARKER, DATA or ONLY_LOOKED_UP; of a marker's records
         FOREIGN alone is noted; latest_offset: where the map ends, later records are not put there
    i/o  entries, block_bucket, tails: the buckets, a power of two; state int64[MAP_STATE_SIZE]
    out  flags_out uint8[r], r >= sum of records_count
    returns (records done, status, position of the first byte not understood or not done, its
            batch); OUTPUT_FULL when a record may need a block and the pool has none
    """
    window = Window(first_dirty_offset, latest_offset, k0, k1)
    # The bucket is the hash's top log2(buckets) bits. A shift of 64 has no defined result, so with
    # one bucket the shift stays 63 and `_put` masks the bit away.
    shift = np.uint64(63)
    while np.uint64(tails.size) >> (np.uint64(64) - shift) > np.uint64(1):
        shift -= np.uint64(1)
    pool = Pool(entries, block_bucket, tails, shift)
    # What is carried over from the call before: blocks in use stay in use until the caller empties
    # the pool, and offsets go on rising from chunk to chunk.
    progress = Progress(I64(0), state[FREE_BLOCK], state[PREVIOUS_OFFSET])
    code, pos, b = I64(status.OK), I64(0), I64(0)
    while b < rows.size and code == status.OK:
        # Where the pool was full within a batch, the caller hands over the rest of it: its offsets
        # begin in the middle, so they are not compared with the batch's header again.
        done = state[DONE_OF_BATCH] if b == 0 else I64(0)
        pos = starts[b]
        base_offset, last_offset = rows[b]["base_offset"], rows[b]["last_offset"]
        if done == 0 and (base_offset <= progress.previous_offset or last_offset < base_offset):
            code = I64(status.OFFSET_ORDER)
            break
        left = rows[b]["records_count"] - done
        code, pos, progress = _map_batch(
            buf, pos, ends[b], left, rows[b], roles[b], window, pool, state[NEXT_INDEX], progress,
            flags_out,
        )  # fmt: skip
        b += code == status.OK
    # Written at every end, so that a call which stopped within a batch is gone on with where it
    # stopped.
    state[NEXT_INDEX] += progress.records
    state[FREE_BLOCK], state[PREVIOUS_OFFSET] = progress.free_block, progress.previous_offset
    return progress.records, code, pos, b
