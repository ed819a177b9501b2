"""Messages of magic 0 and 1: against the spec's bytes, kafka-python, and each rule of wrappers."""

from __future__ import annotations

import struct

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kafkalog.errors import (
    CorruptRecordError,
    RecordTooLargeError,
    UnsupportedMagicError,
)
from kafkalog.format.compression import compress, decompress
from kafkalog.format.compression_framing import XERIAL_HEADER
from kafkalog.format.constants import CompressionType, TimestampType
from kafkalog.format.legacy_record import (
    pack_legacy_message,
    parse_legacy_entry,
    parse_legacy_message,
)
from kafkalog.format.record import Record
from tests.format import vectors
from tests.format.strategies import fields, timestamps
from tests.support import kafka_python
from tests.support.packing import pack_legacy_entries

GZIP, SNAPPY, LZ4 = CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4
codecs = st.sampled_from([CompressionType.NONE, GZIP, SNAPPY, LZ4])
magics = st.sampled_from([0, 1])


@st.composite
def legacy_records(draw: st.DrawFn, magic: int) -> list[Record]:
    offset = draw(st.integers(1, 2**40))
    records = []
    for _ in range(draw(st.integers(1, 8))):
        time = -1 if magic == 0 else draw(timestamps)
        records.append(Record(offset, time, draw(fields), draw(fields)))
        offset += draw(st.integers(1, 50))
    return records


def wrapped(inner: bytes, offset: int, magic: int, codec: int = GZIP, timestamp: int = 5) -> bytes:
    value = compress(codec, inner, magic=magic)
    return pack_legacy_message(Record(offset, timestamp, None, value), magic, codec=codec)


def read_all(data: bytes) -> list[Record]:
    records, at = [], 0
    while at < len(data):
        message, found = parse_legacy_entry(data, at, verify_inner_checksums=True)
        records += found
        at += message.size_in_bytes
    return records


def read_by_kafka_python(data: bytes) -> list[Record]:
    records = []
    for batch in kafka_python.MemoryRecords(data):
        assert batch.validate_crc()
        records += [
            Record(x.offset, -1 if x.timestamp is None else x.timestamp, x.key, x.value)
            for x in batch
        ]
    return records


@pytest.mark.parametrize(
    ("magic", "timestamp", "entry"),
    [(0, -1, vectors.SPEC_LEGACY_V0), (1, 1000, vectors.SPEC_LEGACY_V1)],
)
def test_the_spec_vectors_are_read_and_written(magic: int, timestamp: int, entry: bytes) -> None:
    record = Record(100, timestamp, b"a", b"1")
    message, records = parse_legacy_entry(entry)
    assert (message.magic, message.size_in_bytes, records) == (magic, len(entry), [record])
    assert pack_legacy_entries([record], magic) == entry


def test_magic_0_has_no_timestamp_type() -> None:
    assert parse_legacy_message(vectors.SPEC_LEGACY_V0).timestamp_type == -1
    assert parse_legacy_message(vectors.SPEC_LEGACY_V1).timestamp_type == TimestampType.CREATE_TIME


@settings(max_examples=150)
@given(data=st.data(), magic=magics, codec=codecs)
def test_kafka_python_reads_what_we_write(data: st.DataObject, magic: int, codec: int) -> None:
    assume((magic, codec) != (0, LZ4))  # kafka-python needs another library for that checksum
    records = data.draw(legacy_records(magic))
    packed = pack_legacy_entries(records, magic, codec=codec)
    assert read_all(packed) == records
    assert read_by_kafka_python(packed) == records


@settings(max_examples=150)
@given(data=st.data(), magic=magics, codec=codecs)
def test_we_read_what_kafka_python_writes(data: st.DataObject, magic: int, codec: int) -> None:
    """Its wrappers have offset 0, and their inner offsets are taken as they are."""
    assume((magic, codec) != (0, LZ4))
    records = data.draw(legacy_records(magic))
    builder = kafka_python.LegacyRecordBatchBuilder(magic, codec, 1 << 20)
    for record in records:
        time = None if magic == 0 else record.timestamp
        builder.append(record.offset, timestamp=time, key=record.key, value=record.value)
    assert read_all(bytes(builder.build())) == records


def test_inner_offsets_of_magic_1_count_from_the_last_one_and_may_have_gaps() -> None:
    inner = b"".join(pack_legacy_message(Record(o, 1, b"k", b"v"), 1) for o in (0, 3, 7))
    _, records = parse_legacy_entry(wrapped(inner, 107, 1))
    assert [record.offset for record in records] == [100, 103, 107]
    _, records = parse_legacy_entry(wrapped(inner, 0, 1))
    assert [record.offset for record in records] == [0, 3, 7], "offset 0: as they are"
    with pytest.raises(CorruptRecordError, match="below its last relative"):
        parse_legacy_entry(wrapped(inner, 6, 1))


def test_inner_offsets_of_magic_0_are_absolute_whatever_the_inner_magic() -> None:
    inner = pack_legacy_message(Record(103, 44, b"k", b"v"), 1)
    _, records = parse_legacy_entry(wrapped(inner, 107, 0))
    assert records == [Record(103, 44, b"k", b"v")]


def test_log_append_time_of_a_wrapper_is_that_of_all_messages_of_magic_1_in_it() -> None:
    inner = pack_legacy_message(Record(0, 44, b"k", b"v"), 1)
    inner += pack_legacy_message(Record(1, -1, b"k", b"v"), 0)
    value = compress(GZIP, inner)
    entry = pack_legacy_message(
        Record(9, 77, None, value), 1, codec=GZIP, timestamp_type=TimestampType.LOG_APPEND_TIME
    )
    assert [x.timestamp for x in parse_legacy_entry(entry)[1]] == [77, -1]


@pytest.mark.parametrize("cut", [1, 11, 13, 27])
def test_a_partial_last_inner_message_is_left_out(cut: int) -> None:
    inner = pack_legacy_message(Record(4, -1, b"k", b"v"), 0)
    _, records = parse_legacy_entry(wrapped(inner + inner[:cut], 4, 0))
    assert len(records) == 1


def _patched(entry: bytes, codec: int, value: bytes | None) -> bytes:
    del entry
    return pack_legacy_message(Record(4, 5, None, value), 1, codec=codec)


INNER = pack_legacy_message(Record(0, 5, b"k", b"v"), 1)
BROKEN = {
    "null value": (_patched(INNER, GZIP, None), "null value"),
    "zstd": (_patched(INNER, CompressionType.ZSTD, compress(4, INNER)), "zstd"),
    "no message inside": (wrapped(b"", 4, 1), "without a message inside"),
    "only a partial one": (wrapped(INNER[:20], 4, 1), "without a message inside"),
    "nested": (wrapped(wrapped(INNER, 0, 1), 4, 1), "inside a compressed message"),
    "inner size": (wrapped(struct.pack(">qi", 0, 13) + bytes(13), 4, 1), "message size 13"),
    "inner key": (
        wrapped(INNER[:26] + struct.pack(">i", 99) + INNER[30:], 4, 1),
        "field length 99",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_wrapper_is_named(name: str) -> None:
    entry, text = BROKEN[name]
    with pytest.raises(CorruptRecordError, match=text) as caught:
        parse_legacy_entry(b"x" * 3 + entry, 3, path="0.log")
    assert (caught.value.path, caught.value.position, caught.value.offset) == ("0.log", 3, 4)


def test_every_damaged_byte_behind_the_crc_is_noticed() -> None:
    for at in range(12, len(vectors.SPEC_LEGACY_V1)):
        entry = bytearray(vectors.SPEC_LEGACY_V1)
        entry[at] ^= 0x10
        with pytest.raises(CorruptRecordError):
            parse_legacy_entry(bytes(entry))


def test_a_later_magic_is_no_legacy_message() -> None:
    entry = pack_legacy_message(Record(4, 5, b"k", b"v"), 2)
    with pytest.raises(UnsupportedMagicError):
        parse_legacy_entry(entry)


def test_what_a_wrapper_may_grow_to_is_capped() -> None:
    inner = pack_legacy_message(Record(0, 5, b"k", bytes(100_000)), 1)
    with pytest.raises(RecordTooLargeError):
        parse_legacy_entry(wrapped(inner, 4, 1), max_bytes=50_000)


def test_lz4_of_magic_0_has_the_wrong_header_checksum_and_needs_none() -> None:
    frame = compress(LZ4, b"abc" * 50, magic=0)
    assert frame[:7] == vectors.SPEC_LZ4_HEADER[:6] + b"\x1a"
    assert compress(LZ4, b"abc" * 50, magic=1)[:7] == vectors.SPEC_LZ4_HEADER
    assert bytes(decompress(LZ4, frame, max_bytes=1000, magic=0)) == b"abc" * 50
    assert bytes(decompress(LZ4, compress(LZ4, b"a"), max_bytes=9, magic=0)) == b"a"
    for magic in (1, 2):
        with pytest.raises(CorruptRecordError, match="header checksum"):
            decompress(LZ4, frame, max_bytes=1000, magic=magic)


def test_snappy_blocks_of_1_kib_as_old_producers_wrote_them() -> None:
    inner = pack_legacy_message(Record(0, 5, b"k", bytes(range(256)) * 20), 1)
    value = XERIAL_HEADER
    for start in range(0, len(inner), 1024):
        block = compress(SNAPPY, inner[start : start + 1024])[len(XERIAL_HEADER) :]
        value += block
    entry = pack_legacy_message(Record(9, 5, None, value), 1, codec=SNAPPY)
    assert parse_legacy_entry(entry)[1] == [Record(9, 5, b"k", bytes(range(256)) * 20)]
