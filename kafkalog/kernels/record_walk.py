"""The walk over one magic 2 record, which all kernels share that look into records.

 length varint | attributes i8 | timestamp delta varlong | offset delta varint
 key length varint, key | value length varint, value
 header count varint | per header: key length varint, key, value length varint, value

No length is taken on trust: each part has to lie within the one around it, header in record, record
in the batch's record area. What is found is positions and lengths; nothing is copied. Everything
here becomes part of the kernel that calls it, so what that kernel does not use costs nothing.

Source: Kafka DefaultRecord.readFrom, readHeaders.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kafkalog.format.constants import MAGIC_VALUE_V2, TIMESTAMP_TYPE_MASK
from kafkalog.kernels import status
from kafkalog.kernels.jit import I64, I64Array, RowArray, U8Array, helper, inlined
from kafkalog.kernels.varints import failure_status, read_varint, read_varlong


class RecordParts(NamedTuple):
    """Where the parts of a record are: positions in the buffer, `*_at` of a length in front of its
    bytes. Lengths are as stored, below zero for null. With another status than OK all else means
    nothing.
    """

    status: int
    end: int
    body: int  # of the attributes byte, behind the record's length
    timestamp_delta: int
    offset_at: int
    offset_delta: int
    key_at: int
    key: int
    key_length: int
    value_at: int
    value: int
    value_length: int
    headers_at: int
    headers: int
    header_count: int


class HeaderParts(NamedTuple):
    """The same of one record header."""

    status: int
    end: int
    key: int
    key_length: int
    value_at: int
    value: int
    value_length: int


@inlined
def _no_record(code: int) -> RecordParts:
    zero = I64(0)
    return RecordParts(
        code, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero
    )


@inlined
def _no_header(code: int) -> HeaderParts:
    zero = I64(0)
    return HeaderParts(code, zero, zero, zero, zero, zero, zero)


@inlined
def read_bounds(buf: U8Array, pos: int, end: int) -> tuple[int, int, int]:
    """(status, attributes byte, end) of the record at `pos`."""
    length, body = read_varint(buf, pos, end)
    if body < 0:
        return failure_status(body), I64(0), I64(0)
    if length < 0:
        return status.NEGATIVE_LENGTH, I64(0), I64(0)
    # Compared with what is left before it is added to a position: a sum could overflow, a
    # difference cannot.
    if length > end - body:
        return status.RECORD_TRUNCATED, I64(0), I64(0)
    return status.OK, body, body + length


@inlined
def read_deltas(buf: U8Array, body: int, end: int) -> tuple[int, int, int, int, int]:
    """(status, timestamp delta, where the offset delta is, offset delta, where the key's length is)
    of the record in buf[body:end]. The attributes byte is not used by any version.
    """
    timestamp_delta, offset_at = read_varlong(buf, body + 1, end)
    if offset_at < 0:
        return failure_status(offset_at), I64(0), I64(0), I64(0), I64(0)
    offset_delta, key_at = read_varint(buf, offset_at, end)
    if key_at < 0:
        return failure_status(key_at), I64(0), I64(0), I64(0), I64(0)
    return status.OK, timestamp_delta, offset_at, offset_delta, key_at


@inlined
def read_span(buf: U8Array, at: int, end: int) -> tuple[int, int, int]:
    """(status, start, length) of the key or value whose length is at `at`; below zero is null."""
    # A length below zero passes the check as it is: null has no bytes, and -2 is null to Kafka as
    # well as -1.
    length, start = read_varint(buf, at, end)
    if start < 0:
        return failure_status(start), I64(0), I64(0)
    if length > end - start:
        return status.RECORD_TRUNCATED, I64(0), I64(0)
    return status.OK, start, length


@inlined
def read_record(buf: U8Array, pos: int, area_end: int) -> RecordParts:
    """The record at `pos` of a record area that ends at `area_end`, up to its headers."""
    code, body, end = read_bounds(buf, pos, area_end)
    if code != status.OK:
        return _no_record(code)
    code, timestamp_delta, offset_at, offset_delta, key_at = read_deltas(buf, body, end)
    if code != status.OK:
        return _no_record(code)
    code, key, key_length = read_span(buf, key_at, end)
    if code != status.OK:
        return _no_record(code)
    # A null (length below zero) takes no bytes.
    value_at: Any = key + max(key_length, 0)
    code, value, value_length = read_span(buf, value_at, end)
    if code != status.OK:
        return _no_record(code)
    headers_at: Any = value + max(value_length, 0)
    header_count, headers = read_varint(buf, headers_at, end)
    if headers < 0:
        return _no_record(failure_status(headers))
    # A header has two bytes at least; one is asked for, as Kafka does.
    if header_count < 0 or header_count > end - headers:
        return _no_record(status.HEADER_COUNT)
    return RecordParts(
        status.OK, end, body, timestamp_delta, offset_at, offset_delta, key_at, key, key_length,
        value_at, value, value_length, headers_at, headers, header_count,
    )  # fmt: skip


@inlined
def read_header(buf: U8Array, pos: int, end: int) -> HeaderParts:
    """The record header at `pos`; its key is never null."""
    key_length, key = read_varint(buf, pos, end)
    if key < 0:
        return _no_header(failure_status(key))
    if key_length < 0:
        return _no_header(status.NEGATIVE_LENGTH)
    if key_length > end - key:
        return _no_header(status.RECORD_TRUNCATED)
    value_at = key + key_length
    code, value, value_length = read_span(buf, value_at, end)
    if code != status.OK:
        return _no_header(code)
    header_end = value + max(value_length, 0)
    return HeaderParts(status.OK, header_end, key, key_length, value_at, value, value_length)


@helper
def _skip_headers(buf: U8Array, pos: int, end: int, count: int) -> tuple[int, int]:
    """Walk over `count` record headers in buf[pos:end]: (status, position behind them)."""
    at: Any = I64(pos)
    for _ in range(count):
        header = read_header(buf, at, end)
        if header.status != status.OK:
            return header.status, at
        at = header.end
    return status.OK, at


@inlined
def check_headers(buf: U8Array, record: RecordParts) -> int:
    """The status of what is behind the header count: whole headers, and nothing else."""
    # A record that is longer than its fields is refused, as in Kafka: bytes that nobody reads would
    # be lost when it is written anew.
    code: Any = I64(status.OK)
    at: Any = record.headers
    if record.header_count > 0:
        code, at = _skip_headers(buf, at, record.end, record.header_count)
    if code == status.OK and at != record.end:
        code = status.LENGTH_MISMATCH
    return int(code)


@inlined
def check_area(
    buf: U8Array, rows: RowArray, b: int, area_starts: I64Array, area_ends: I64Array
) -> tuple[int, int, int, int]:
    """(status, start, end, number of records) of a batch's record area."""
    start, end, count = I64(area_starts[b]), I64(area_ends[b]), I64(rows[b]["records_count"])
    # The areas are the caller's word: held against the buffer once a batch, so that no record need
    # be.
    if start < 0 or end < start or end > buf.size:
        return status.SPAN_OUT_OF_RANGE, start, end, count
    return status.NEGATIVE_COUNT if count < 0 else status.OK, start, end, count


@inlined
def has_append_time(row: Any) -> bool:
    """Whether all records of a batch have its maximum timestamp. Records of legacy entries come
    with the timestamps they have (kernels.legacy_records).
    """
    is_appended = (row["attributes"] & TIMESTAMP_TYPE_MASK) != 0
    return bool(is_appended and row["magic"] == MAGIC_VALUE_V2)
