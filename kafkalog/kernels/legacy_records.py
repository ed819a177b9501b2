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

from typing import Any, NamedTuple

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
    inlined,
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


class Content(NamedTuple):
    """The whole entries of a wrapper's value, or a plain entry: how many, their first and last
    offset, and where the walk ended.
    """

    status: int
    entries: int
    first_offset: int
    last_offset: int
    end: int


class Message(NamedTuple):
    """What a record of magic 2 keeps of an entry; lengths are -1 for null."""

    status: int
    timestamp: int
    key: int
    key_length: int
    value: int
    value_length: int


@helper
def _walk(buf: U8Array, pos: int, end: int) -> Content:
    at: Any = I64(pos)
    count = I64(0)
    first: Any = I64(0)
    last: Any = I64(0)
    while end - at >= _OVERHEAD:
        size = read_i32(buf, at + _LENGTH_AT)
        if size < _MIN_LENGTH:
            return Content(I64(status.CORRUPT_LENGTH), count, first, last, at)
        # A partial last entry is left out without an error, as DataLogInputStream does.
        if size > end - at - _OVERHEAD:
            break
        last = read_i64(buf, at)
        if count == 0:
            first = last
        count += 1
        at += _OVERHEAD + size
    return Content(I64(status.OK if count else status.EMPTY_WRAPPER), count, first, last, at)


@helper
def _field(buf: U8Array, pos: int, end: int) -> tuple[int, int]:
    """The nullable bytes at `pos`: (length, where they start), the start -1 if they do not fit."""
    if end - pos < 4:
        return I64(0), I64(-1)
    length = read_i32(buf, pos)
    if length > end - pos - 4:
        return I64(0), I64(-1)
    return I64(max(length, -1)), I64(pos + 4)


@inlined
def _no_message(code: int) -> Message:
    return Message(I64(code), I64(0), I64(0), I64(0), I64(0), I64(0))


@inlined
def _read_message(buf: U8Array, at: int, end: int, row: Any) -> Message:
    """The entry buf[at:end] of the wrapper or plain entry `row`."""
    is_wrapper = (row["attributes"] & _CODEC_MASK) != 0
    if is_wrapper and (buf[at + _ATTRIBUTES_AT] & _CODEC_MASK) != 0:
        return _no_message(status.NESTED_COMPRESSION)
    timestamp: Any = I64(_NO_TIMESTAMP)
    field: Any = I64(at + _FIELDS_AT)
    if buf[at + _MAGIC_AT] != _MAGIC_V0:
        if end - at - _OVERHEAD < _MIN_LENGTH_V1:
            return _no_message(status.RECORD_TRUNCATED)
        timestamp = read_i64(buf, field)
        # A wrapper with log-append time gives its own to all messages that have one.
        append_time = (row["attributes"] & _TIMESTAMP_TYPE_MASK) != 0
        if is_wrapper and row["magic"] == _MAGIC_V1 and append_time:
            timestamp = row["max_timestamp"]
        field += 8
    key_length, key = _field(buf, field, end)
    if key < 0:
        return _no_message(status.RECORD_TRUNCATED)
    value_length, value = _field(buf, key + max(key_length, 0), end)
    if value < 0:
        return _no_message(status.RECORD_TRUNCATED)
    return Message(I64(status.OK), timestamp, key, key_length, value, value_length)


@inlined
def _write_bytes(out: U8Array, w: int, buf: U8Array, start: int, length: int) -> int:
    w = write_varint(out, w, length)
    if length > 0:
        copy_bytes(out, w, buf, start, length)
        w += length
    return w


@inlined
def _write_record(
    out: U8Array, w: int, buf: U8Array, message: Message, timestamp_delta: int, offset_delta: int
) -> int:
    """The message as a record of magic 2 at out[w:]; returns the position behind it."""
    body = (
        2  # attributes, header count
        + varint_size(timestamp_delta)
        + varint_size(offset_delta)
        + varint_size(message.key_length)
        + max(message.key_length, 0)
        + varint_size(message.value_length)
        + max(message.value_length, 0)
    )
    # The length is in front of what it measures, so the sizes are summed first and the bytes
    # written once.
    w = write_varint(out, w, body)
    out[w] = U8(0)
    w = write_varint(out, w + 1, timestamp_delta)
    w = write_varint(out, w, offset_delta)
    w = _write_bytes(out, w, buf, message.key, message.key_length)
    w = _write_bytes(out, w, buf, message.value, message.value_length)
    out[w] = U8(0)
    return w + 1


@helper
def _convert_entries(
    buf: U8Array, pos: int, content: Content, row: Any, out: U8Array, w: int
) -> tuple[int, int, int, int]:
    """The entries of `content`, from `pos` on, to out[w:]: (status, position of the entry that
    failed, position behind the records, base timestamp).
    """
    at: Any = I64(pos)
    base_timestamp: Any = I64(_NO_TIMESTAMP)
    for i in range(content.entries):
        end = at + _OVERHEAD + read_i32(buf, at + _LENGTH_AT)
        message = _read_message(buf, at, end, row)
        if message.status != status.OK:
            return message.status, at, w, base_timestamp
        # A batch of magic 2 has 32 bits for the distance from its base offset.
        offset_delta = read_i64(buf, at) - content.first_offset
        if offset_delta > _MAX_INT32 or offset_delta < -_MAX_INT32:
            return I64(status.OFFSET_ORDER), at, w, base_timestamp
        if i == 0:
            base_timestamp = message.timestamp
        timestamp_delta = message.timestamp - base_timestamp
        w = _write_record(out, w, buf, message, timestamp_delta, offset_delta)
        at = end
    return I64(status.OK), at, w, base_timestamp


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
        row = rows[b]
        content = _walk(buf, starts[b], ends[b])
        if content.status != status.OK:
            return b, content.status, content.end
        # Under magic 1 the last inner offset stands for the wrapper's, whatever the first one is;
        # under a wrapper of offset 0 inner offsets are taken as they are (old librdkafka).
        is_relative = (row["attributes"] & _CODEC_MASK) != 0 and row["magic"] == _MAGIC_V1
        shift: Any = I64(0)
        if is_relative and row["last_offset"] != 0:
            if row["last_offset"] < content.last_offset:
                return b, status.WRAPPER_OFFSET, content.end
            shift = row["last_offset"] - content.last_offset
        code, at, w, base_timestamp = _convert_entries(buf, starts[b], content, row, out, w)
        if code != status.OK:
            return b, code, at
        rows_out[b] = row
        rows_out[b]["records_count"] = content.entries
        rows_out[b]["base_offset"] = content.first_offset + shift
        # With offset 0 the wrapper says nothing of its end: the last message in it does.
        if is_relative and row["last_offset"] == 0:
            rows_out[b]["last_offset"] = content.last_offset
        rows_out[b]["base_timestamp"] = base_timestamp
        ends_out[b] = w
    return rows.size, status.OK, I64(0)
