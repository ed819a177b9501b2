"""Write what stays of a batch: copied batches, bare headers, and rebuilt batches without
compression.

A rebuilt batch keeps base offset, last offset, producer fields, sequences, leader epoch, codec and
type of its source (brokers rebuild producer state from them). New are its length, count, CRC (left
zero here), horizon bit, and base timestamp: the horizon if there is one, else the timestamp of the
first record that stays. Record timestamps are deltas against it, so when it moves each record's
delta and length are written anew; when it does not, whole runs of records are copied. Offset
deltas, keys, values and headers are never touched.

Source: Kafka MemoryRecords.filterTo, MemoryRecordsBuilder, DefaultRecordBatch.writeEmptyHeader.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kafkalog.format.constants import (
    COMPRESSION_CODEC_MASK,
    DELETE_HORIZON_FLAG_MASK,
    MAX_BATCH_BYTES,
    RECORD_BATCH_OVERHEAD,
    TIMESTAMP_TYPE_MASK,
)
from kafkalog.format.record_batch import field_position
from kafkalog.kernels import status
from kafkalog.kernels.big_endian import write_i32, write_i64
from kafkalog.kernels.copying import copy_bytes
from kafkalog.kernels.decide_batches import COPY, DROP, EMPTY, NO_HORIZON, REENCODE
from kafkalog.kernels.fold import mix_record
from kafkalog.kernels.hash_keys import SUPERSEDED
from kafkalog.kernels.jit import (
    I64,
    I64_IN,
    I64_OUT,
    ROW_IN,
    ROW_OUT,
    U8_IN,
    U8_OUT,
    I64Array,
    RowArray,
    U8Array,
    helper,
    inlined,
    kernel,
)
from kafkalog.kernels.varints import (
    failure_status,
    read_varint,
    read_varlong,
    varint_size,
    write_varint,
)

# A record grows by at most this when its timestamp delta is written anew: 9 bytes of delta, 4 of
# length.
RECORD_GROWTH_BYTES = 13

# What encode_records tells of a batch.
FACTS = 3

_GROWTH = RECORD_GROWTH_BYTES
_FACTS = FACTS
_HEADER_BYTES = RECORD_BATCH_OVERHEAD
_MAX_BATCH_BYTES = MAX_BATCH_BYTES
_SUPERSEDED = np.uint8(SUPERSEDED)
_CODEC_MASK = COMPRESSION_CODEC_MASK
_TIMESTAMP_TYPE_MASK = TIMESTAMP_TYPE_MASK
_HORIZON_BIT = DELETE_HORIZON_FLAG_MASK
_NO_HORIZON = np.int64(NO_HORIZON)
_DROP, _COPY, _EMPTY, _REENCODE = DROP, COPY, EMPTY, REENCODE

_OK = status.OK
_OUTPUT_FULL = status.OUTPUT_FULL
_RECORD_TRUNCATED = status.RECORD_TRUNCATED
_TRAILING_BYTES = status.TRAILING_BYTES

_BATCH_LENGTH = field_position("batch_length")
_CRC = field_position("crc")
_ATTRIBUTES = field_position("attributes")
_BASE_TIMESTAMP = field_position("base_timestamp")
_MAX_TIMESTAMP = field_position("max_timestamp")
_RECORDS_COUNT = field_position("records_count")

# What assemble_batches stops at.
ALL_DONE = 0
OUT_OF_SPACE = 1
NEEDS_ENCODER = 2  # a large compressed batch, or one of records that are encoded again
BAD_RECORD = 3

_ALL_DONE, _OUT_OF_SPACE, _NEEDS_ENCODER, _BAD_RECORD = (
    ALL_DONE,
    OUT_OF_SPACE,
    NEEDS_ENCODER,
    BAD_RECORD,
)


@inlined
def _copy(out: U8Array, to: int, buf: U8Array, start: int, end: int) -> int:
    """Copy buf[start:end] to out[to:]; returns the position behind it."""
    copy_bytes(out, to, buf, start, end - start)
    return to + end - start


@helper
def _encode(
    buf: U8Array,
    pos: int,
    end: int,
    row: Any,
    flags: U8Array,
    f: int,
    horizon: int,
    out: U8Array,
    w: int,
) -> tuple[int, int, int, int, np.uint64]:
    """The records that stay, to out[w:]: (status, position behind them, base timestamp, max
    timestamp, fold).
    """
    source_base: Any = row["base_timestamp"]
    append_time = (row["attributes"] & _TIMESTAMP_TYPE_MASK) != 0
    max_timestamp: Any = row["max_timestamp"] if append_time else np.int64(-1)
    base: Any = np.int64(horizon)
    base_known = horizon != _NO_HORIZON
    fold = np.uint64(0)
    run_start = pos
    run_end = pos
    for r in range(f, f + row["records_count"]):
        length, body = read_varint(buf, pos, end)
        if body < 0 or length < 1 or length > end - body:
            return _RECORD_TRUNCATED, w, base, max_timestamp, fold
        record_end = body + length
        if flags[r] & _SUPERSEDED:
            pos = record_end
            continue
        delta, at = read_varlong(buf, body + 1, record_end)
        if at < 0:
            return failure_status(at), w, base, max_timestamp, fold
        offset_delta, after = read_varint(buf, at, record_end)
        if after < 0:
            return failure_status(after), w, base, max_timestamp, fold
        timestamp: Any = max_timestamp
        if not append_time:
            timestamp = source_base + delta
            max_timestamp = max(max_timestamp, timestamp)
        if not base_known:
            base = timestamp
            base_known = True
        fold = mix_record(fold, row["base_offset"] + offset_delta, timestamp)
        new_delta = timestamp - base
        if new_delta == delta:
            if run_end != pos:
                w = _copy(out, w, buf, run_start, run_end)
                run_start = pos
            run_end = record_end
        else:
            w = _copy(out, w, buf, run_start, run_end)
            w = write_varint(out, w, length - (at - body - 1) + varint_size(new_delta))
            out[w] = buf[body]
            w = write_varint(out, w + 1, new_delta)
            w = _copy(out, w, buf, at, record_end)
            run_start = record_end
            run_end = record_end
        pos = record_end
    w = _copy(out, w, buf, run_start, run_end)
    if pos != end:
        return _TRAILING_BYTES, w, base, max_timestamp, fold
    return _OK, w, base, max_timestamp, fold


@kernel((U8_IN, I64_IN, I64_IN, ROW_IN, U8_IN, I64_IN, I64_IN, U8_OUT, I64_OUT, I64_OUT))
def encode_records(
    buf: U8Array,
    starts: I64Array,
    ends: I64Array,
    rows: RowArray,
    flags: U8Array,
    first_records: I64Array,
    horizons: I64Array,
    out: U8Array,
    ends_out: I64Array,
    facts_out: I64Array,
) -> tuple[int, int]:
    """The records that stay of b batches, whose uncompressed records are buf[starts[i]:ends[i]], to
    out, one batch behind the other.

    in   out uint8[n], n >= sum(ends - starts) + sum(records_count) * RECORD_GROWTH_BYTES
         flags uint8[r], first_records int64[b] where those of a batch begin; horizons int64[b],
         NO_HORIZON for none
    out  ends_out int64[b]: where they end in out; facts_out int64[b * FACTS]: base timestamp, max
         timestamp, fold of offsets and timestamps (bits of a uint64)
    returns (batches done, status)
    """
    w: Any = np.int64(0)
    for b in range(rows.size):
        horizon = horizons[b]
        code, w, base, max_timestamp, fold = _encode(
            buf, starts[b], ends[b], rows[b], flags, first_records[b], horizon, out, w
        )
        if code != _OK:
            return b, code
        ends_out[b] = w
        facts_out[b * _FACTS] = base
        facts_out[b * _FACTS + 1] = max_timestamp
        facts_out[b * _FACTS + 2] = np.int64(fold)
    return rows.size, _OK


@kernel((I64_IN, I64_IN, I64_IN, I64_OUT))
def fold_records(
    offsets: I64Array, timestamps: I64Array, ends: I64Array, folds_out: I64Array
) -> None:
    """The fold of each of b batches from its decoded records.

    in   offsets, timestamps int64[r]; ends int64[b]: batch b's records end before this index, <= r
    out  folds_out int64[b], bits of a uint64
    """
    r = 0
    for b in range(ends.size):
        fold = np.uint64(0)
        while r < ends[b]:
            fold = mix_record(fold, offsets[r], timestamps[r])
            r += 1
        folds_out[b] = np.int64(fold)


@helper
def _set_header(
    out: U8Array, start: int, end: int, attributes: int, base: int, max_timestamp: int, count: int
) -> None:
    """Overwrite the fields of the copied header at out[start:] that a rebuilt batch changes; the
    CRC becomes zero.
    """
    write_i32(out, start + _BATCH_LENGTH, end - start - 12)
    write_i32(out, start + _CRC, 0)
    out[start + _ATTRIBUTES] = np.uint8(0)  # Kafka knows the low byte only and loses the other
    out[start + _ATTRIBUTES + 1] = np.uint8(attributes)
    write_i64(out, start + _BASE_TIMESTAMP, base)
    write_i64(out, start + _MAX_TIMESTAMP, max_timestamp)
    write_i32(out, start + _RECORDS_COUNT, count)


@kernel(
    (
        U8_IN,
        I64,
        ROW_IN,
        I64,
        U8_IN,
        I64_IN,
        U8_IN,
        I64_IN,
        I64_IN,
        U8_OUT,
        I64,
        I64,
        ROW_OUT,
        I64,
        I64_OUT,
        U8_IN,
        I64_IN,
        I64_IN,
    )
)
def assemble_batches(
    buf: U8Array,
    buf_position: int,
    rows: RowArray,
    b: int,
    actions: U8Array,
    horizons: I64Array,
    flags: U8Array,
    first_records: I64Array,
    retained: I64Array,
    out: U8Array,
    w: int,
    out_position: int,
    rows_out: RowArray,
    done: int,
    folds_out: I64Array,
    bodies: U8Array,
    body_ends: I64Array,
    facts: I64Array,
) -> tuple[int, int, int, int, int]:
    """Write what stays of batches b, b + 1, … to out[w:], until one of them needs the caller.

    in   buf uint8[n], buf[0] at byte buf_position of the source file, holds every batch of rows
    whole
         actions, horizons, retained, first_records [rows.size]: as decided; flags uint8[r] of the
         partition out_position: where out[0] goes in the new file
         bodies uint8[m]: compressed records of rebuilt batches; body_ends int64[rows.size * 2]:
         where those of each batch begin and end there, twice the same where it has none; facts
         int64[rows.size * FACTS]: see encode_records
    out  rows_out BATCH_ROW[], rows_out[done:] are the written batches, positions in the new file,
    crc -1 where the caller
         must compute it; folds_out int64[]: the fold of each rebuilt batch's records
    returns (why it stopped, next batch, position in out, batches written, status)
    """
    while b < rows.size:
        action = actions[b]
        if action == _DROP:
            b += 1
            continue
        size = rows[b]["size_in_bytes"]
        is_compressed = (rows[b]["attributes"] & _CODEC_MASK) != 0
        body_start, body_end = body_ends[2 * b], body_ends[2 * b + 1]
        if action == _REENCODE or (
            action != _COPY and action != _EMPTY and is_compressed and body_start == body_end
        ):
            return _NEEDS_ENCODER, b, w, done, _OK
        room = size + rows[b]["records_count"] * np.int64(_GROWTH) + body_end - body_start
        if room > out.size - w or done == rows_out.size:
            return _OUT_OF_SPACE, b, w, done, _OK
        start = rows[b]["position"] - buf_position
        batch_start = w
        rows_out[done] = rows[b]
        rows_out[done]["position"] = out_position + batch_start
        if action == _COPY:
            w = _copy(out, w, buf, start, start + size)
        else:
            w = _copy(out, w, buf, start, start + _HEADER_BYTES)
            attributes = rows[b]["attributes"] & 0xFF & ~_HORIZON_BIT
            base: Any = np.int64(-1)
            max_timestamp = rows[b]["max_timestamp"]
            count = 0
            horizon = horizons[b]
            if action == _EMPTY:
                attributes &= ~_CODEC_MASK
            elif is_compressed:
                w = _copy(out, w, bodies, body_start, body_end)
                base = facts[b * _FACTS]
                max_timestamp = facts[b * _FACTS + 1]
                folds_out[done] = facts[b * _FACTS + 2]
                count = retained[b]
            else:
                code, w, base, max_timestamp, fold = _encode(
                    buf,
                    start + _HEADER_BYTES,
                    start + size,
                    rows[b],
                    flags,
                    first_records[b],
                    horizon,
                    out,
                    w,
                )
                if code != _OK:
                    return _BAD_RECORD, b, batch_start, done, code
                folds_out[done] = np.int64(fold)
                count = retained[b]
            if action != _EMPTY and horizon != _NO_HORIZON:
                attributes |= _HORIZON_BIT
            _set_header(out, batch_start, w, attributes, base, max_timestamp, count)
            rows_out[done]["crc"] = -1
            rows_out[done]["attributes"] = attributes
            rows_out[done]["base_timestamp"] = base
            rows_out[done]["max_timestamp"] = max_timestamp
            rows_out[done]["records_count"] = count
            rows_out[done]["size_in_bytes"] = w - batch_start
        done += 1
        b += 1
    return _ALL_DONE, b, w, done, _OK
