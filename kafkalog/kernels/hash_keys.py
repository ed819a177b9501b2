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

Source: SipHash, https://131002.net/siphash (reference vectors in the tests); Kafka SkimpyOffsetMap
for what it replaces.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kafkalog.kernels import status
from kafkalog.kernels.jit import (
    I32,
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
from kafkalog.kernels.varints import failure_status, read_varint, read_varlong

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

_KEYLESS = np.uint8(KEYLESS)
_TOMBSTONE = np.uint8(TOMBSTONE)
_FOREIGN = np.uint8(FOREIGN)
_PAST_MAP = np.uint8(PAST_MAP)
_MARKER, _ONLY_LOOKED_UP = MARKER, ONLY_LOOKED_UP
_LOOKUP_BIT = np.uint64(LOOKUP_BIT)
_BLOCK_ENTRIES = BLOCK_ENTRIES
_ENTRY_WORDS = ENTRY_WORDS

_OK = status.OK
_LENGTH_MISMATCH = status.LENGTH_MISMATCH
_HEADER_COUNT = status.HEADER_COUNT
_NEGATIVE_LENGTH = status.NEGATIVE_LENGTH
_RECORD_TRUNCATED = status.RECORD_TRUNCATED
_TRAILING_BYTES = status.TRAILING_BYTES
_OFFSET_ORDER = status.OFFSET_ORDER
_OUTPUT_FULL = status.OUTPUT_FULL


@inlined
def _rotate(x: np.uint64, bits: int) -> np.uint64:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


@inlined
def _round(
    v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    v0 = v0 + v1
    v1 = _rotate(v1, 13) ^ v0
    v0 = _rotate(v0, 32)
    v2 = v2 + v3
    v3 = _rotate(v3, 16) ^ v2
    v0 = v0 + v3
    v3 = _rotate(v3, 21) ^ v0
    v2 = v2 + v1
    v1 = _rotate(v1, 17) ^ v2
    v2 = _rotate(v2, 32)
    return v0, v1, v2, v3


@inlined
def _read_u64_little_endian(buf: U8Array, pos: int) -> np.uint64:
    return (
        np.uint64(buf[pos])
        | (np.uint64(buf[pos + 1]) << np.uint64(8))
        | (np.uint64(buf[pos + 2]) << np.uint64(16))
        | (np.uint64(buf[pos + 3]) << np.uint64(24))
        | (np.uint64(buf[pos + 4]) << np.uint64(32))
        | (np.uint64(buf[pos + 5]) << np.uint64(40))
        | (np.uint64(buf[pos + 6]) << np.uint64(48))
        | (np.uint64(buf[pos + 7]) << np.uint64(56))
    )


@helper
def siphash_128(
    buf: U8Array, pos: int, length: int, k0: np.uint64, k1: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """SipHash-2-4-128 of buf[pos:pos + length]; the caller has checked the range."""
    v0 = k0 ^ np.uint64(0x736F6D6570736575)
    v1 = k1 ^ np.uint64(0x646F72616E646F6D) ^ np.uint64(0xEE)
    v2 = k0 ^ np.uint64(0x6C7967656E657261)
    v3 = k1 ^ np.uint64(0x7465646279746573)
    whole = pos + (length & ~7)
    while pos < whole:
        word = _read_u64_little_endian(buf, pos)
        v3 ^= word
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0 ^= word
        pos += 8
    word = np.uint64(length & 0xFF) << np.uint64(56)
    for i in range(length & 7):
        word |= np.uint64(buf[pos + i]) << np.uint64(8 * i)
    v3 ^= word
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0 ^= word
    v2 ^= np.uint64(0xEE)
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    first = v0 ^ v1 ^ v2 ^ v3
    v1 ^= np.uint64(0xDD)
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return first, v0 ^ v1 ^ v2 ^ v3


@inlined
def _put(
    pool: U64Array,
    block_bucket: I32Array,
    tails: I64Array,
    free_block: int,
    bucket: int,
    first: np.uint64,
    second: np.uint64,
    index: np.uint64,
) -> int:
    """Append an entry to a bucket; returns the next free block. The caller has seen that there is
    one.
    """
    entry = tails[bucket]
    if entry % _BLOCK_ENTRIES == 0:
        block_bucket[free_block] = bucket
        entry = free_block * np.int64(_BLOCK_ENTRIES)
        free_block += 1
    at = entry * _ENTRY_WORDS
    pool[at] = first
    pool[at + 1] = second
    pool[at + 2] = index
    tails[bucket] = entry + 1
    return free_block


@inlined
def _is_shortest(buf: U8Array, pos: int, next_pos: int) -> bool:
    """Whether the varint in buf[pos:next_pos] is what Kafka would have written for its value.

    A last group of zero is padding; a last byte above what the width leaves room for holds bits
    that readers drop.
    """
    size = next_pos - pos
    last = buf[next_pos - 1]
    return size == 1 or (last != 0 and (size != 5 or last <= 0x0F) and (size != 10 or last <= 0x01))


@inlined
def _is_ascii(buf: U8Array, pos: int, end: int) -> bool:
    for p in range(pos, end):
        if buf[p] >= 0x80:
            return False
    return True


@helper
def _walk_headers(buf: U8Array, pos: int, end: int, count: int) -> tuple[int, bool]:
    """Walk a record's headers: (position behind them or a negated status, whether all are as Kafka
    writes them).
    """
    plain = True
    if count < 0 or count > end - pos:
        return -_HEADER_COUNT, plain
    for _ in range(count):
        length, key = read_varint(buf, pos, end)
        if key < 0:
            return -failure_status(key), plain
        if length < 0:
            return -_NEGATIVE_LENGTH, plain
        if length > end - key:
            return -_RECORD_TRUNCATED, plain
        plain = plain and _is_shortest(buf, pos, key) and _is_ascii(buf, key, key + length)
        value_at = key + length
        length, pos = read_varint(buf, value_at, end)
        if pos < 0:
            return -failure_status(pos), plain
        if length > end - pos:
            return -_RECORD_TRUNCATED, plain
        plain = plain and length >= -1 and _is_shortest(buf, value_at, pos)
        pos += max(length, 0)
    return pos, plain


@kernel(
    (
        U8_IN,
        ROW_IN,
        I64_IN,
        I64_IN,
        U8_IN,
        U64,
        U64,
        I32,
        I64,
        I64,
        I64,
        I64,
        I64,
        U64_OUT,
        I32_OUT,
        I64_OUT,
        I64,
        U8_OUT,
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
    shift: int,
    first_index: int,
    first_dirty_offset: int,
    latest_offset: int,
    previous_offset: int,
    records_before: int,
    pool: U64Array,
    block_bucket: I32Array,
    tails: I64Array,
    free_block: int,
    flags_out: U8Array,
) -> tuple[int, int, int, int, int, int]:
    """Put every keyed record of some batches into its bucket, and note KEYLESS, TOMBSTONE, FOREIGN
    and PAST_MAP of each.

    in   buf uint8[n] read-only: the uncompressed records of batch b are buf[starts[b]:ends[b]]
         rows BATCH_ROW[b]; roles uint8[b]: MARKER, DATA or ONLY_LOOKED_UP; of a marker's records
         FOREIGN alone is noted
         shift = 64 - bits of the bucket number; latest_offset: where the map ends, records past it
         are not put into it
         first_index: partition-wide index of the first record; previous_offset: the offset before
         it; records_before: of the first batch, done already, starts[0] is behind them
    out  flags_out uint8[r], r >= sum of records_count; the bucket arrays grow in place
    returns (records done, status, position of the first byte not understood or not done, its batch,
             next free block, offset of the last record done); the status is OUTPUT_FULL when a
             record may need a block and the pool has none
    """
    r = 0
    for b in range(rows.size):
        pos = starts[b]
        end = ends[b]
        base_offset = rows[b]["base_offset"]
        last_offset = rows[b]["last_offset"]
        before = records_before if b == 0 else 0
        if before == 0 and (base_offset <= previous_offset or last_offset < base_offset):
            return r, _OFFSET_ORDER, pos, b, free_block, previous_offset
        for _ in range(before, rows[b]["records_count"]):
            if free_block == block_bucket.size:
                return r, _OUTPUT_FULL, pos, b, free_block, previous_offset
            length, body = read_varint(buf, pos, end)
            if body < 0:
                return r, failure_status(body), pos, b, free_block, previous_offset
            if length < 0 or length > end - body:
                return r, _RECORD_TRUNCATED, pos, b, free_block, previous_offset
            record_end = body + length
            _, delta_at = read_varlong(buf, body + 1, record_end)
            if delta_at < 0:
                return r, failure_status(delta_at), pos, b, free_block, previous_offset
            offset_delta, key_at = read_varint(buf, delta_at, record_end)
            if key_at < 0:
                return r, failure_status(key_at), pos, b, free_block, previous_offset
            offset = base_offset + offset_delta
            if offset <= previous_offset or offset > last_offset:
                return r, _OFFSET_ORDER, pos, b, free_block, previous_offset
            key_length, key = read_varint(buf, key_at, record_end)
            if key < 0:
                return r, failure_status(key), pos, b, free_block, previous_offset
            if key_length > record_end - key:
                return r, _RECORD_TRUNCATED, pos, b, free_block, previous_offset
            value_at = key + max(key_length, 0)
            value_length, value = read_varint(buf, value_at, record_end)
            if value < 0:
                return r, failure_status(value), pos, b, free_block, previous_offset
            if value_length > record_end - value:
                return r, _RECORD_TRUNCATED, pos, b, free_block, previous_offset
            headers_at = value + max(value_length, 0)
            headers_count, at = read_varint(buf, headers_at, record_end)
            if at < 0:
                return r, failure_status(at), pos, b, free_block, previous_offset
            flags = np.uint8(0)
            if (
                buf[body] != 0
                or key_length < -1
                or value_length < -1
                or not _is_shortest(buf, pos, body)
                or not _is_shortest(buf, body + 1, delta_at)
                or not _is_shortest(buf, delta_at, key_at)
                or not _is_shortest(buf, key_at, key)
                or not _is_shortest(buf, value_at, value)
                or not _is_shortest(buf, headers_at, at)
            ):
                flags |= _FOREIGN
            if headers_count != 0:
                at, plain = _walk_headers(buf, at, record_end, headers_count)
                if at < 0:
                    return r, -at, pos, b, free_block, previous_offset
                if not plain:
                    flags |= _FOREIGN
            if at != record_end:
                return r, _LENGTH_MISMATCH, pos, b, free_block, previous_offset
            previous_offset = offset
            if roles[b] == _MARKER:
                flags_out[r] = flags
                r += 1
                pos = record_end
                continue
            if value_length < 0:
                flags |= _TOMBSTONE
            if key_length < 0:
                flags |= _KEYLESS
            if offset > latest_offset:
                flags |= _PAST_MAP
            elif key_length >= 0:
                first, second = siphash_128(buf, key, key_length, k0, k1)
                bucket: Any = np.int64(first >> np.uint64(shift))
                index = np.uint64(first_index + r)
                if offset < first_dirty_offset or roles[b] == _ONLY_LOOKED_UP:
                    index |= _LOOKUP_BIT
                free_block = _put(
                    pool,
                    block_bucket,
                    tails,
                    free_block,
                    bucket,
                    first,
                    second,
                    index,
                )
            flags_out[r] = flags
            r += 1
            pos = record_end
        if pos != end:
            return r, _TRAILING_BYTES, pos, b, free_block, previous_offset
        previous_offset = last_offset
    return r, _OK, 0, rows.size, free_block, previous_offset
