"""Legacy messages to magic 2 records, for many entries in one call.

 offset i64 | size i32 | crc u32 | magic i8 | attributes i8 | [timestamp i64, magic 1]
 key length i32, key | value length i32, value

What reads and cleans records knows one layout only, so legacy messages are laid out anew first,
under the base offset and base timestamp of their first one. A plain entry is one message; a wrapper
is the entries of its decompressed value, a partial last one left out. Inner offsets are absolute in
a wrapper of magic 0 and relative to the wrapper's own offset in magic 1, unless that is 0; a
wrapper with log-append time gives its timestamp to all messages of magic 1 in it.

Source: Kafka LegacyRecord, AbstractLegacyRecordBatch.DeepRecordsIterator, DataLogInputStream.
"""

from __future__ import annotations

from typing import Any

from kafkalog.format import constants
from kafkalog.kernels import status
from kafkalog.kernels.big_endian import read_i32, read_i64
from kafkalog.kernels.copying import copy_bytes
from kafkalog.kernels.jit import (
    I64,
    I64_IN,
    I64_OUT,
    ROW_IN,
    ROW_OUT,
    U8,
    U8_IN,
    U8_OUT,
    I64Array,
    RowArray,
    U8Array,
    helper,
    kernel,
)
from kafkalog.kernels.varints import varint_size, write_varint

# An entry has 26 bytes or more beside key and value, a record of magic 2 at most 32.
ENTRY_GROWTH_BYTES = 6
MIN_ENTRY_BYTES = constants.LOG_OVERHEAD + constants.LEGACY_RECORD_OVERHEAD_V0

_OVERHEAD = constants.LOG_OVERHEAD
_MIN_LENGTH = constants.LEGACY_RECORD_OVERHEAD_V0
_MIN_LENGTH_V1 = constants.LEGACY_RECORD_OVERHEAD_V1
_LENGTH_AT = 8
_MAGIC_AT = constants.HEADER_SIZE_UP_TO_MAGIC - 1
_ATTRIBUTES_AT = constants.HEADER_SIZE_UP_TO_MAGIC
_FIELDS_AT = constants.HEADER_SIZE_UP_TO_MAGIC + 1
_CODEC_MASK = constants.COMPRESSION_CODEC_MASK
_TIMESTAMP_TYPE_MASK = constants.TIMESTAMP_TYPE_MASK
_MAGIC_V0 = constants.MAGIC_VALUE_V0
_MAGIC_V1 = constants.MAGIC_VALUE_V1
_NO_TIMESTAMP = constants.NO_TIMESTAMP
_MAX_INT32 = constants.MAX_INT32

_OK = status.OK
_CORRUPT_LENGTH = status.CORRUPT_LENGTH
_RECORD_TRUNCATED = status.RECORD_TRUNCATED
_OFFSET_ORDER = status.OFFSET_ORDER
_EMPTY_WRAPPER = status.EMPTY_WRAPPER
_NESTED_COMPRESSION = status.NESTED_COMPRESSION
_WRAPPER_OFFSET = status.WRAPPER_OFFSET


@helper
def _walk(buf: U8Array, pos: int, end: int) -> tuple[int, int, int, int, int]:
    """The whole entries in buf[pos:end]: (count, first offset, last offset, position, status)."""
    at: Any = I64(pos)
    count = 0
    first: Any = I64(0)
    last: Any = I64(0)
    while end - at >= _OVERHEAD:
        size = read_i32(buf, at + _LENGTH_AT)
        if size < _MIN_LENGTH:
            return count, first, last, at, _CORRUPT_LENGTH
        if size > end - at - _OVERHEAD:
            break
        last = read_i64(buf, at)
        if count == 0:
            first = last
        count += 1
        at += _OVERHEAD + size
    return count, first, last, at, _OK


@helper
def _field(buf: U8Array, pos: int, end: int) -> tuple[int, int]:
    """The nullable bytes at `pos`: (length, where they start), the start -1 if they do not fit."""
    if end - pos < 4:
        return I64(0), I64(-1)
    length = read_i32(buf, pos)
    if length > end - pos - 4:
        return I64(0), I64(-1)
    return I64(max(length, -1)), I64(pos + 4)


@kernel((U8_IN, ROW_IN, I64_IN, I64_IN, U8_OUT, ROW_OUT, I64_OUT))
def convert_legacy(
    buf: U8Array,
    rows: RowArray,
    starts: I64Array,
    ends: I64Array,
    out: U8Array,
    rows_out: RowArray,
    ends_out: I64Array,
) -> tuple[int, int, int]:
    """Lay the messages of legacy entries out as magic 2 records.

    in   rows BATCH_ROW[b] of magic 0 and 1 as `scan_batches` gives them; buf[starts[b]:ends[b]] is
         a plain entry in full, or the decompressed value of a wrapper
    out  out uint8[n], n >= all those bytes and ENTRY_GROWTH_BYTES for every MIN_ENTRY_BYTES of them
         rows_out BATCH_ROW[b]: with records_count, base_offset and base_timestamp of the content;
         ends_out int64[b]: the records of entry b end there in out, and begin where the last ended
    returns (entry that failed or b, status, position of the message in buf)
    """
    w: Any = I64(0)
    for b in range(rows.size):
        end = ends[b]
        is_wrapper = (rows[b]["attributes"] & _CODEC_MASK) != 0
        outer_magic = rows[b]["magic"]
        outer_offset = rows[b]["last_offset"]
        count, first, last, at, code = _walk(buf, starts[b], end)
        if code != _OK:
            return b, code, at
        if count == 0:
            return b, _EMPTY_WRAPPER, at
        shift: Any = I64(0)
        if is_wrapper and outer_magic == _MAGIC_V1 and outer_offset != 0:
            if outer_offset < last:
                return b, _WRAPPER_OFFSET, at
            shift = outer_offset - last
        takes_outer_timestamp = (
            is_wrapper
            and outer_magic == _MAGIC_V1
            and (rows[b]["attributes"] & _TIMESTAMP_TYPE_MASK) != 0
        )
        rows_out[b] = rows[b]
        rows_out[b]["records_count"] = count
        rows_out[b]["base_offset"] = first + shift
        if is_wrapper and outer_magic == _MAGIC_V1 and outer_offset == 0:
            rows_out[b]["last_offset"] = last
        base_timestamp: Any = I64(_NO_TIMESTAMP)
        at = I64(starts[b])
        for i in range(count):
            size = read_i32(buf, at + _LENGTH_AT)
            entry_end = at + _OVERHEAD + size
            if is_wrapper and (buf[at + _ATTRIBUTES_AT] & _CODEC_MASK) != 0:
                return b, _NESTED_COMPRESSION, at
            timestamp: Any = I64(_NO_TIMESTAMP)
            field: Any = I64(at + _FIELDS_AT)
            if buf[at + _MAGIC_AT] != _MAGIC_V0:
                if size < _MIN_LENGTH_V1:
                    return b, _RECORD_TRUNCATED, at
                timestamp = read_i64(buf, field)
                if takes_outer_timestamp:
                    timestamp = rows[b]["max_timestamp"]
                field += 8
            key_length, key = _field(buf, field, entry_end)
            if key < 0:
                return b, _RECORD_TRUNCATED, at
            value_length, value = _field(buf, key + max(key_length, 0), entry_end)
            if value < 0:
                return b, _RECORD_TRUNCATED, at
            delta = read_i64(buf, at) - first
            if delta > _MAX_INT32 or delta < -_MAX_INT32:
                return b, _OFFSET_ORDER, at
            if i == 0:
                base_timestamp = timestamp
            timestamp_delta = timestamp - base_timestamp
            body = (
                2  # attributes, header count
                + varint_size(timestamp_delta)
                + varint_size(delta)
                + varint_size(key_length)
                + max(key_length, 0)
                + varint_size(value_length)
                + max(value_length, 0)
            )
            w = write_varint(out, w, body)
            out[w] = U8(0)
            w = write_varint(out, w + 1, timestamp_delta)
            w = write_varint(out, w, delta)
            w = write_varint(out, w, key_length)
            if key_length > 0:
                copy_bytes(out, w, buf, key, key_length)
                w += key_length
            w = write_varint(out, w, value_length)
            if value_length > 0:
                copy_bytes(out, w, buf, value, value_length)
                w += value_length
            out[w] = U8(0)
            w += 1
            at = entry_end
        rows_out[b]["base_timestamp"] = base_timestamp
        ends_out[b] = w
    return rows.size, _OK, I64(0)
