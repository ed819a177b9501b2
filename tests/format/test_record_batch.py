from __future__ import annotations

import contextlib
import struct
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.errors import (
    CorruptRecordError,
    KafkaLogError,
    RecordTooLargeError,
    UnsupportedCompressionTypeError,
    UnsupportedMagicError,
)
from kafkalog.format.constants import CompressionType, TimestampType
from kafkalog.format.record import Record
from kafkalog.format.record_batch import (
    HEADER,
    RecordBatchHeader,
    field_position,
    pack_batch,
    pack_header,
    parse_batch,
    parse_header,
    sequence_at,
    with_crc,
)
from tests.format import vectors
from tests.format.strategies import codecs, record_lists
from tests.support.reference.batches import parse_batches

RECORDS = [Record(7, 1000, b"k", b"a longer value"), Record(9, 2000, None, b"")]


def patched(batch: bytes, field: str, value: int, *, fix_crc: bool = True) -> bytes:
    """`batch` with one header field forged, the CRC right for it unless asked not to."""
    codes = {1: ">b", 2: ">h", 4: ">i", 8: ">q"}
    data = bytearray(batch)
    width = HEADER[field].itemsize
    struct.pack_into(codes[width] if field != "crc" else ">I", data, field_position(field), value)
    return with_crc(data) if fix_crc and field != "crc" else bytes(data)


# -- bytes that others wrote ---------------------------------------------------------------------


def test_batch_of_the_specification_parses_and_packs() -> None:
    header, records = parse_batch(vectors.SPEC_BATCH)
    assert records == vectors.SPEC_BATCH_RECORDS
    assert (header.base_offset, header.last_offset, header.next_offset) == (100, 102, 103)
    assert (header.size_in_bytes, header.partition_leader_epoch) == (81, 5)
    assert not header.has_producer_id
    assert pack_batch(records, partition_leader_epoch=5) == vectors.SPEC_BATCH
    assert pack_header(header) == vectors.SPEC_BATCH[:61]


def test_delete_horizon_is_the_base_of_the_deltas() -> None:
    header, records = parse_batch(vectors.SPEC_BATCH_WITH_HORIZON)
    assert (header.has_delete_horizon, header.delete_horizon_ms) == (True, 9000)
    assert records == vectors.SPEC_BATCH_RECORDS[1:]
    packed = pack_batch(records, base_offset=100, delete_horizon_ms=9000, partition_leader_epoch=5)
    assert packed == vectors.SPEC_BATCH_WITH_HORIZON


def test_empty_batch_keeps_offsets_sequence_and_max_timestamp() -> None:
    header, records = parse_batch(vectors.SPEC_EMPTY_BATCH)
    assert records == []
    assert (header.base_offset, header.last_offset, header.last_sequence) == (200, 203, 43)
    assert (header.base_timestamp, header.max_timestamp) == (-1, 5000)
    packed = pack_batch(
        [],
        base_offset=200,
        last_offset=203,
        max_timestamp=5000,
        partition_leader_epoch=5,
        producer_id=7,
        producer_epoch=3,
        base_sequence=40,
        is_transactional=True,
    )
    assert packed == vectors.SPEC_EMPTY_BATCH


@pytest.mark.parametrize("codec", sorted(vectors.BROKER_BATCHES))
def test_batch_of_a_broker_is_read_for_each_java_codec(codec: str) -> None:
    batch, expected = vectors.BROKER_BATCHES[codec]
    header, records = parse_batch(batch)
    assert records == expected
    assert header.codec == CompressionType[codec.upper()]
    # Offsets that compaction took away still count.
    assert header.last_offset > records[-1].offset


SAMPLE_LOGS = sorted((Path(__file__).parents[2] / "data" / "samples").rglob("*.log"))


def test_every_sample_segment_is_read_to_its_last_byte() -> None:
    assert SAMPLE_LOGS
    codecs_seen = set()
    for path in SAMPLE_LOGS:
        data = path.read_bytes()
        end = 0
        for position, header, records in parse_batches(data, path=str(path)):
            assert position == end
            assert len(records) == header.records_count
            assert all(header.base_offset <= r.offset <= header.last_offset for r in records)
            codecs_seen.add(header.codec)
            end += header.size_in_bytes
        assert end == len(data), path
    assert codecs_seen == set(CompressionType)


# -- round trips ---------------------------------------------------------------------------------


@given(record_lists(), codecs, st.booleans(), st.integers(0, 5))
def test_batch_round_trip(
    records: list[Record], codec: int, is_transactional: bool, spare_offsets: int
) -> None:
    batch = pack_batch(
        records,
        last_offset=records[-1].offset + spare_offsets,
        codec=codec,
        producer_id=11,
        producer_epoch=2,
        base_sequence=5,
        is_transactional=is_transactional,
    )
    header, parsed = parse_batch(b"--" + batch + b"--", 2)
    assert parsed == records
    assert header.size_in_bytes == len(batch)
    assert header.last_offset == records[-1].offset + spare_offsets
    assert header.codec == codec
    assert header.is_transactional == is_transactional
    assert header.max_timestamp == max(record.timestamp for record in records)


def test_log_append_time_gives_every_record_the_max_timestamp() -> None:
    batch = pack_batch(RECORDS, timestamp_type=TimestampType.LOG_APPEND_TIME, max_timestamp=9)
    header, records = parse_batch(batch)
    assert header.timestamp_type == TimestampType.LOG_APPEND_TIME
    assert [record.timestamp for record in records] == [9, 9]


def test_header_dtype_and_dataclass_name_the_same_fields() -> None:
    (row,) = np.frombuffer(vectors.SPEC_BATCH[:61], HEADER)
    header = asdict(parse_header(vectors.SPEC_BATCH))
    assert list(header) == list(HEADER.names or ())
    assert header == {name: row[name] for name in header}


def test_sequence_goes_on_with_zero_after_the_largest() -> None:
    assert sequence_at(-1, 5) == -1
    assert sequence_at(2**31 - 2, 1) == 2**31 - 1
    assert sequence_at(2**31 - 1, 1) == 0
    assert sequence_at(2**31 - 1, 4) == 3


def test_leader_epoch_is_outside_the_crc() -> None:
    other = patched(pack_batch(RECORDS), "partition_leader_epoch", 99, fix_crc=False)
    assert parse_batch(other)[0].partition_leader_epoch == 99


def test_unknown_attribute_bits_are_ignored() -> None:
    header, records = parse_batch(patched(pack_batch(RECORDS), "attributes", 0x7F80 - 0x80))
    assert records == RECORDS
    assert header.codec == 0


# -- bytes that are wrong ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("batch_length", -1, "batch length -1 is below 14"),
        ("batch_length", 13, "batch length 13 is below 14"),
        ("batch_length", 48, "a header has 61 bytes"),
        ("batch_length", 2**31 - 1, "batch of 2147483659 bytes"),
        ("records_count", -1, "record count is -1"),
        ("records_count", 2**31 - 1, "cannot fit"),
        ("records_count", 1, "are left after the last"),
        ("records_count", 3, "record 2 of 3"),
        ("crc", 1, "CRC 00000001, computed"),
    ],
)
def test_forged_header_field_is_corrupt(field: str, value: int, reason: str) -> None:
    batch = patched(pack_batch(RECORDS), field, value)
    with pytest.raises(CorruptRecordError, match=reason) as caught:
        parse_batch(batch, path="t-0/0.log", file_position=500)
    error = caught.value
    assert (error.path, error.position, error.offset) == ("t-0/0.log", 500, 7)


@pytest.mark.parametrize("magic", [-1, 0, 1, 3, 127])
def test_other_magic_is_named(magic: int) -> None:
    batch = patched(pack_batch(RECORDS), "magic", magic)
    with pytest.raises(UnsupportedMagicError, match=f"magic {magic} ") as caught:
        parse_batch(batch, file_position=3)
    assert (caught.value.position, caught.value.offset) == (3, 7)


@pytest.mark.parametrize("entry", [vectors.SPEC_LEGACY_V0, vectors.SPEC_LEGACY_V1])
def test_legacy_entry_is_an_unsupported_magic_not_corruption(entry: bytes) -> None:
    with pytest.raises(UnsupportedMagicError):
        parse_header(entry)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codec_is_named(codec: int) -> None:
    batch = patched(pack_batch(RECORDS), "attributes", codec)
    with pytest.raises(UnsupportedCompressionTypeError, match=f"codec {codec} ") as caught:
        parse_batch(batch, file_position=4)
    assert (caught.value.position, caught.value.offset) == (4, 7)


def test_payload_above_the_cap_is_too_large() -> None:
    batch = pack_batch([Record(0, 0, b"k", bytes(10_000))], codec=CompressionType.ZSTD)
    assert parse_batch(batch, max_bytes=20_000)[1]
    with pytest.raises(RecordTooLargeError):
        parse_batch(batch, max_bytes=9_999)


@pytest.mark.parametrize("cut", [0, 1, 16, 17, 60, 61, 70])
def test_cut_batch_is_corrupt_for_the_one_who_wants_it_whole(cut: int) -> None:
    with pytest.raises(CorruptRecordError):
        parse_batch(pack_batch(RECORDS)[:cut])


def test_torn_tail_ends_the_batches_without_an_error() -> None:
    first, second = pack_batch(RECORDS), pack_batch([Record(20, 0, b"k", b"v")])
    for cut in range(len(second)):
        positions = [position for position, _, _ in parse_batches(first + second[:cut])]
        assert positions == [0], cut
    assert len(list(parse_batches(first + second))) == 2


def test_zero_tail_is_corrupt_for_the_plain_reader() -> None:
    batches = parse_batches(pack_batch(RECORDS) + bytes(100))
    next(batches)
    with pytest.raises(CorruptRecordError, match="batch length 0"):
        next(batches)


@given(record_lists(max_size=3), codecs, st.data())
def test_damaged_batch_yields_a_named_error_or_the_records(
    records: list[Record], codec: int, data: st.DataObject
) -> None:
    batch = bytearray(pack_batch(records, codec=codec))
    for _ in range(data.draw(st.integers(1, 4))):
        batch[data.draw(st.integers(12, len(batch) - 1))] = data.draw(st.integers(0, 255))
    # With a right CRC the damage reaches the decoders.
    with contextlib.suppress(KafkaLogError):
        header, parsed = parse_batch(with_crc(batch), max_bytes=1 << 20)
        assert len(parsed) == header.records_count


def test_header_value_is_immutable_and_replaceable() -> None:
    header = parse_header(pack_batch(RECORDS))
    changed = replace(header, partition_leader_epoch=3)
    assert isinstance(changed, RecordBatchHeader)
    assert parse_header(pack_header(changed)) == changed
