"""Batches that kafka-python builds are read, and it reads ours."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from kafkalog.format.constants import CompressionType, TimestampType
from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch, parse_batch
from tests.format.strategies import codecs, record_lists
from tests.support import kafka_python
from tests.support.packing import pack_marker_batch
from tests.support.reference.batches import parse_batches


def built_by_kafka_python(records: list[Record], codec: int, **options: object) -> bytes:
    """A produce-request batch: offsets from 0."""
    builder = kafka_python.DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=options.get("is_transactional", False),
        producer_id=options.get("producer_id", -1),
        producer_epoch=options.get("producer_epoch", -1),
        base_sequence=options.get("base_sequence", -1),
        batch_size=1 << 20,
    )
    for record in records:
        headers = [(key.decode(), value) for key, value in record.headers]
        assert builder.append(record.offset, record.timestamp, record.key, record.value, headers)
    return bytes(builder.build())


def read_by_kafka_python(batch: bytes) -> list[Record]:
    (parsed,) = list(kafka_python.MemoryRecords(batch))
    assert parsed.validate_crc()
    return [
        Record(
            record.offset,
            record.timestamp,
            record.key,
            record.value,
            tuple((key.encode(), value) for key, value in record.headers),
        )
        for record in parsed
    ]


RECORDS = [
    Record(0, 1_700_000_000_000, b"k1", b"v" * 200, ((b"h", b"1"), (b"h", None))),
    Record(1, 1_600_000_000_000, None, b""),
    Record(2, 1_700_000_000_005, b"", None),
    *(Record(i, 1_700_000_000_000 + i, b"key %d" % i, b"value " * i) for i in range(3, 60)),
]


@pytest.mark.parametrize("codec", CompressionType)
def test_batch_of_kafka_python_is_read(codec: int) -> None:
    batch = built_by_kafka_python(
        RECORDS,
        codec,
        producer_id=4000,
        producer_epoch=3,
        base_sequence=2**31 - 10,
        is_transactional=True,
    )
    header, records = parse_batch(batch)
    assert records == RECORDS
    assert (header.producer_id, header.producer_epoch, header.codec) == (4000, 3, codec)
    assert header.last_sequence == 49
    assert header.is_transactional
    assert not header.is_control
    if codec == CompressionType.NONE:
        same = pack_batch(
            records,
            producer_id=4000,
            producer_epoch=3,
            base_sequence=2**31 - 10,
            is_transactional=True,
            partition_leader_epoch=header.partition_leader_epoch,
        )
        assert same == batch


@given(record_lists(), codecs)
@settings(max_examples=50)
def test_kafka_python_reads_our_batches(records: list[Record], codec: int) -> None:
    # It decodes header keys as UTF-8 and asks for more than the format does; the bytes are ours.
    readable = [
        Record(
            r.offset,
            r.timestamp,
            r.key,
            r.value,
            tuple((k.hex().encode(), v) for k, v in r.headers),
        )
        for r in records
    ]
    assert read_by_kafka_python(pack_batch(readable, codec=codec)) == readable


def test_kafka_python_sees_our_delete_horizon_log_append_time_and_marker() -> None:
    records = [Record(5, 1000, b"k", None), Record(9, 900, b"l", b"v")]
    assert read_by_kafka_python(pack_batch(records, delete_horizon_ms=99_000)) == records

    appended = pack_batch(records, timestamp_type=TimestampType.LOG_APPEND_TIME, max_timestamp=77)
    assert [record.timestamp for record in read_by_kafka_python(appended)] == [77, 77]

    marker = pack_marker_batch(
        ControlRecordType.ABORT, 12, 3000, producer_id=7, producer_epoch=1, coordinator_epoch=2
    )
    (batch,) = list(kafka_python.MemoryRecords(marker))
    assert batch.is_control_batch
    assert batch.producer_id == 7
    (record,) = list(batch)
    assert (record.abort, record.commit, record.offset) == (True, False, 12)


def test_kafka_python_walks_our_batches_as_we_do() -> None:
    log = pack_batch(RECORDS) + pack_batch(RECORDS, codec=CompressionType.LZ4)
    ours = [(header.base_offset, header.crc) for _, header, _ in parse_batches(log)]
    assert [(batch.base_offset, batch.crc) for batch in kafka_python.MemoryRecords(log)] == ours
