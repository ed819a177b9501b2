"""Record, magic 2: what a batch's payload is made of after decompression.

 length varint | attributes i8 | timestamp_delta varlong | offset_delta varint
 key_length varint, key | value_length varint, value
 header_count varint, then per header: key_length varint, key | value_length varint, value

`length` counts everything after itself and must be used up exactly. The attributes byte is unused:
one byte, not a varint. A negative key or value length is null, and null is not empty: a null value
is a tombstone. A header's key is never null, its value may be. Header keys are kept as raw bytes:
Kafka reads malformed UTF-8 too.

Deltas count from the batch's base_offset and base_timestamp; they may be negative, and offsets may
have gaps. With LOG_APPEND_TIME the timestamp deltas mean nothing and every record has the batch's
max_timestamp.

This plain codec is the reference that the kernels are held to.

Source: Kafka DefaultRecord, DefaultRecordBatch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kafkalog.errors import CorruptRecordError
from kafkalog.format.buffers import BytesLike, as_view
from kafkalog.format.constants import MIN_RECORD_SIZE
from kafkalog.format.varint import pack_varint, pack_varlong, parse_varint, parse_varlong

Header = tuple[bytes, bytes | None]


@dataclass(frozen=True, slots=True)
class Record:
    """One record with absolute offset and timestamp (ms, -1 = none)."""

    offset: int
    timestamp: int
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[Header, ...] = ()


def pack_record(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    """One record with its length in front, as Kafka writes it (minimal varints, attributes 0)."""
    headers = b"".join(
        pack_varint(len(key)) + key + _pack_nullable(value) for key, value in record.headers
    )
    # The length in front counts the body alone, so the body is made first.
    body = b"".join(
        (
            b"\x00",
            pack_varlong(record.timestamp - base_timestamp),
            pack_varint(record.offset - base_offset),
            _pack_nullable(record.key),
            _pack_nullable(record.value),
            pack_varint(len(record.headers)),
            headers,
        )
    )
    return pack_varint(len(body)) + body


def pack_records(records: Iterable[Record], base_offset: int, base_timestamp: int) -> bytes:
    """The uncompressed payload of a batch."""
    return b"".join(pack_record(record, base_offset, base_timestamp) for record in records)


def parse_records(
    payload: BytesLike,
    count: int,
    base_offset: int,
    base_timestamp: int,
    *,
    log_append_timestamp: int | None = None,
    path: str | None = None,
    position: int | None = None,
) -> list[Record]:
    """The `count` records of an uncompressed payload, which they must fill exactly.

    `log_append_timestamp` is the batch's max_timestamp if its type is LOG_APPEND_TIME; every record
    then has it. A payload of an empty batch is not looked at, as in Kafka. `path`, `position` and
    `base_offset` name the batch in a CorruptRecordError; the reason says where in the payload.
    """
    if count == 0:
        return []
    data = as_view(payload)

    def corrupt(reason: str) -> CorruptRecordError:
        return CorruptRecordError(reason, path=path, position=position, offset=base_offset)

    if count < 0:
        raise corrupt(f"record count is {count}")
    # A count is a claim: compared with the bytes before anything is made for it.
    if count * MIN_RECORD_SIZE > len(data):
        raise corrupt(f"{count} records cannot fit in {len(data)} bytes")
    records: list[Record] = []
    at = 0
    try:
        for _ in range(count):
            record, at = _parse_record(data, at, base_offset, base_timestamp, log_append_timestamp)
            records.append(record)
    except CorruptRecordError as error:
        where = at if error.position is None else error.position
        raise corrupt(
            f"record {len(records)} of {count}, byte {where} of the payload: {error.reason}"
        ) from None
    if at != len(data):
        raise corrupt(f"{len(data) - at} bytes are left after the last of {count} records")
    return records


def _parse_record(
    data: memoryview,
    at: int,
    base_offset: int,
    base_timestamp: int,
    log_append_timestamp: int | None,
) -> tuple[Record, int]:
    start = at
    length, at = parse_varint(data, at)
    end = at + length
    if length < 0 or end > len(data):
        raise CorruptRecordError(
            f"record length {length}, but {len(data) - at} bytes are left", position=start
        )
    body = at
    if length == 0:
        raise CorruptRecordError("record length is 0", position=start)
    # One byte further: the attributes, which no record uses.
    timestamp_delta, at = parse_varlong(data, at + 1, end)
    offset_delta, at = parse_varint(data, at, end)
    key, at = _parse_nullable(data, at, end)
    value, at = _parse_nullable(data, at, end)
    headers, at = _parse_headers(data, at, end)
    # The length must be used up exactly: bytes behind the last header belong to nothing.
    if at != end:
        raise CorruptRecordError(
            f"record length {length}, but {at - body} bytes were used", position=start
        )
    timestamp = (
        wrap_64(base_timestamp + timestamp_delta)
        if log_append_timestamp is None
        else log_append_timestamp
    )
    return Record(wrap_64(base_offset + offset_delta), timestamp, key, value, headers), end


def _parse_headers(data: memoryview, at: int, end: int) -> tuple[tuple[Header, ...], int]:
    start = at
    count, at = parse_varint(data, at, end)
    # Each header takes a byte at least, the length of its key: more of them than there are bytes is
    # a claim that no list is made for.
    if not 0 <= count <= end - at:
        raise CorruptRecordError(
            f"header count {count}, but {end - at} bytes are left", position=start
        )
    headers: list[Header] = []
    for _ in range(count):
        start = at
        key, at = _parse_nullable(data, at, end)
        if key is None:
            raise CorruptRecordError("header key is null", position=start)
        value, at = _parse_nullable(data, at, end)
        headers.append((key, value))
    return tuple(headers), at


def _parse_nullable(data: memoryview, at: int, end: int) -> tuple[bytes | None, int]:
    start = at
    length, at = parse_varint(data, at, end)
    if length < 0:
        return None, at
    if length > end - at:
        raise CorruptRecordError(
            f"field length {length}, but {end - at} bytes are left", position=start
        )
    return bytes(data[at : at + length]), at + length


def _pack_nullable(field: bytes | None) -> bytes:
    # Null is length -1, which zigzag folds to 1.
    return b"\x01" if field is None else pack_varint(len(field)) + field


def wrap_64(value: int) -> int:
    """Java's long addition: what leaves 64 bits comes back at the other end."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
