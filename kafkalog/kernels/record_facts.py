"""What tells one record from another, without what a copy of the log may change: one row a record.

Two replicas hold the same record in other batches, under another codec, in another layout. What a
consumer gets of it is the same: key, value, headers, timestamp. So these are hashed, piece by
piece as the record is walked, never its bytes as they are encoded:

    key      SipHash-2-4-128 of the key, under the secret: the row's two key words
    record   SipHash-1-3 of the value under the key's words, then of each header under what came
             before; the timestamp and which parts are null are mixed into the words that a part is
             hashed under

Equal hashes at the same offset are taken for equal records (64 bits, under a secret). A key's 128
bits are compared with all other keys of the partition.

Source: Kafka DefaultRecord.equals.
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
    U32_IN,
    U64,
    I64Array,
    RowArray,
    U8Array,
    U32Array,
    helper,
    inlined,
    kernel,
    records_out,
)
from kafkalog.kernels.record_walk import (
    RecordParts,
    check_area,
    has_append_time,
    read_header,
    read_record,
)
from kafkalog.kernels.siphash import siphash_1_3, siphash_128

# offset; two words of the key's hash; the record's hash; the batch's producer, -1 without; bytes of
# the record as magic 2 writes it; flags below.
RECORD_FACT = np.dtype(
    [
        ("offset", np.int64),
        ("key_first", np.uint64),
        ("key_second", np.uint64),
        ("record", np.uint64),
        ("producer_id", np.int64),
        ("size", np.uint32),
        ("flags", np.uint32),
    ]
)

# A record's flags: no key; null value. The others are its batch's, which the caller knows.
KEYLESS = 1
TOMBSTONE = 2
TRANSACTIONAL = 4
CONTROL = 8
COMMIT = 16  # of a control record: an end marker, which kind
ABORT = 32
HIDDEN = 64  # the transaction index lists it: a read_committed consumer leaves it out

# Mixed into a word where a piece is null, so that null and empty differ.
_NULL = np.uint64(0x9E3779B97F4A7C15)
_HEADER = np.uint64(0xC2B2AE3D27D4EB4F)


class Secret(NamedTuple):
    """What keys are hashed under."""

    k0: np.uint64
    k1: np.uint64


@helper
def _hash_headers(
    buf: U8Array, record: RecordParts, first: np.uint64, second: np.uint64
) -> tuple[int, np.uint64, int]:
    """(status, the hash with all headers, position behind them)."""
    at: Any = I64(record.headers)
    for _ in range(record.header_count):
        header = read_header(buf, at, record.end)
        if header.status != status.OK:
            return header.status, first, at
        first = siphash_1_3(buf, header.key, header.key_length, first ^ _HEADER, second)
        null = _NULL if header.value_length < 0 else np.uint64(0)
        length = max(header.value_length, 0)
        first = siphash_1_3(buf, header.value, length, first ^ null, second)
        at = header.end
    return status.OK, first, at


@inlined
def _hash_record(
    buf: U8Array, record: RecordParts, timestamp: Any, first: np.uint64, second: np.uint64
) -> tuple[int, np.uint64, int]:
    """(status, hash of all but the key, whose hash is given, position behind the record)."""
    first ^= np.uint64(timestamp)
    if record.value_length < 0:
        second ^= _NULL
    first = siphash_1_3(buf, record.value, max(record.value_length, 0), first, second)
    code: Any = I64(status.OK)
    at: Any = record.headers
    if record.header_count > 0:
        code, first, at = _hash_headers(buf, record, first, second)
    return code, first, at


@inlined
def _write_fact(
    buf: U8Array, record: RecordParts, row: Any, base_timestamp: Any, secret: Secret, flags: Any,
    fact: Any,
) -> tuple[int, int]:  # fmt: skip
    """Fill `fact` but for its size: (status, position behind the record)."""
    first, second = np.uint64(0), np.uint64(0)
    # Without a key the secret stands in for its hash.
    under_first, under_second = secret.k0, secret.k1
    if record.key_length < 0:
        flags |= np.uint32(KEYLESS)
    else:
        first, second = siphash_128(buf, record.key, record.key_length, secret.k0, secret.k1)
        under_first, under_second = first, second
    if record.value_length < 0:
        flags |= np.uint32(TOMBSTONE)
    timestamp = base_timestamp + (0 if has_append_time(row) else record.timestamp_delta)
    code, whole, at = _hash_record(buf, record, timestamp, under_first, under_second)
    fact["offset"] = row["base_offset"] + record.offset_delta
    fact["key_first"] = first
    fact["key_second"] = second
    fact["record"] = whole
    fact["producer_id"] = row["producer_id"]
    fact["flags"] = flags
    return code, at


@helper
def _batch_facts(
    buf: U8Array, pos: int, end: int, row: Any, flags: Any, secret: Secret, facts_out: RowArray,
    first: int,
) -> tuple[int, int, int]:  # fmt: skip
    """The facts of a batch from facts_out[first] on: (status, position of what failed, records)."""
    before: Any = I64(row["base_offset"] - 1)
    at: Any = I64(pos)
    count: Any = I64(row["records_count"])
    base_timestamp = row["max_timestamp"] if has_append_time(row) else row["base_timestamp"]
    for i in range(count):
        record = read_record(buf, at, end)
        if record.status != status.OK:
            return record.status, at, i
        offset: Any = row["base_offset"] + record.offset_delta
        if offset <= before or offset > row["last_offset"]:
            return I64(status.OFFSET_ORDER), at, i
        fact = facts_out[first + i]
        code, behind = _write_fact(buf, record, row, base_timestamp, secret, flags, fact)
        if code == status.OK and behind != record.end:
            code = I64(status.LENGTH_MISMATCH)
        if code != status.OK:
            return code, at, i
        fact["size"] = np.uint32(record.end - at)
        before = offset
        at = record.end
    # An empty batch is empty whatever its bytes say: Kafka does not look at them.
    if count > 0 and at != end:
        return I64(status.TRAILING_BYTES), at, count
    return I64(status.OK), at, count


@kernel((U8_IN, ROW_IN, I64_IN, I64_IN, U32_IN, U64, U64, I64_OUT, records_out(RECORD_FACT)))
def record_facts(
    buf: U8Array,
    rows: RowArray,
    area_starts: I64Array,
    area_ends: I64Array,
    batch_flags: U32Array,
    k0: np.uint64,
    k1: np.uint64,
    previous: I64Array,
    facts_out: RowArray,
) -> tuple[int, int, int, int]:
    """The facts of all records of the batches `rows`.

    in   buf uint8[n] read-only: the uncompressed records of batch b are
         buf[area_starts[b]:area_ends[b]]; rows BATCH_ROW[b]
         batch_flags uint32[b]: what all records of a batch have; k0, k1: the secret
    i/o  previous int64[1]: the last offset of the batch before, all offsets have to be above it
    out  facts_out RECORD_FACT[r], r >= sum of records_count
    returns (records of the whole batches that are done, status, position of what failed, index of
            its batch)
    """
    r: Any = I64(0)
    for b in range(rows.size):
        code, pos, end, count = check_area(buf, rows, b, area_starts, area_ends)
        base_offset, last_offset = rows[b]["base_offset"], rows[b]["last_offset"]
        if code == status.OK and (base_offset <= previous[0] or last_offset < base_offset):
            code = I64(status.OFFSET_ORDER)
        if code == status.OK and count > facts_out.size - r:
            code = I64(status.OUTPUT_FULL)
        done = I64(0)
        if code == status.OK:
            code, pos, done = _batch_facts(
                buf, pos, end, rows[b], batch_flags[b], Secret(k0, k1), facts_out, r
            )
        if code != status.OK:
            return r, code, pos, I64(b)
        r += done
        previous[0] = last_offset
    return r, I64(status.OK), I64(0), I64(rows.size)
