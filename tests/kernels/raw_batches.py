"""Records and batches as no Kafka client writes them, but as Kafka reads them."""

from __future__ import annotations

from collections.abc import Sequence

from kafkalog.format.record import Record
from kafkalog.format.record_batch import RecordBatchHeader, pack_header, with_crc
from kafkalog.format.varint import pack_varint, pack_varlong


def padded(varint: bytes) -> bytes:
    """The same value in one byte more."""
    return varint[:-1] + bytes([varint[-1] | 0x80, 0])


def raw_record(
    record: Record,
    *,
    base_offset: int = 5,
    base_timestamp: int = 0,
    attributes: int = 0,
    pad: str = "",
    null_length: int = -1,
) -> bytes:
    """A record whose varint `pad` is longer than needed, whose nulls have this length."""

    def number(name: str, varint: bytes) -> bytes:
        return padded(varint) if name == pad else varint

    def field(name: str, data: bytes | None) -> bytes:
        length = null_length if data is None else len(data)
        return number(name, pack_varint(length)) + (data or b"")

    body = bytes([attributes])
    body += number("timestamp", pack_varlong(record.timestamp - base_timestamp))
    body += number("offset", pack_varint(record.offset - base_offset))
    body += field("key", record.key) + field("value", record.value)
    body += number("headers", pack_varint(len(record.headers)))
    for key, value in record.headers:
        body += field("header key", key) + field("header value", value)
    return number("length", pack_varint(len(body))) + body


def raw_batch(
    records: Sequence[bytes],
    *,
    base_offset: int,
    last_offset: int | None = None,
    attributes: int = 0,
    base_timestamp: int = 0,
    max_timestamp: int = 7,
) -> bytes:
    """An uncompressed batch around encoded records, with a valid CRC."""
    body = b"".join(records)
    last = base_offset + 100 if last_offset is None else last_offset
    header = RecordBatchHeader(
        base_offset=base_offset,
        batch_length=49 + len(body),
        partition_leader_epoch=0,
        magic=2,
        crc=0,
        attributes=attributes,
        last_offset_delta=last - base_offset,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        records_count=len(records),
    )
    return with_crc(pack_header(header) + body)
