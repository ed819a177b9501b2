from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.errors import CorruptRecordError
from kafkalog.format.record import Record, pack_record, pack_records, parse_records
from kafkalog.format.varint import pack_varint
from tests.format.strategies import record_lists
from tests.format.vectors import SPEC_BATCH, SPEC_BATCH_RECORDS

PLAIN = pack_record(Record(10, 0, b"k", b"v", ((b"h", b"1"),)), 10, 0)


def record(body: bytes) -> bytes:
    return pack_varint(len(body)) + body


def test_records_of_the_specification_parse_and_pack() -> None:
    payload = SPEC_BATCH[61:]
    assert parse_records(payload, 2, 100, 1000) == SPEC_BATCH_RECORDS
    assert pack_records(SPEC_BATCH_RECORDS, 100, 1000) == payload


@given(record_lists(), st.integers(-(2**40), 2**40))
def test_records_round_trip_against_any_base(records: list[Record], base_timestamp: int) -> None:
    base_offset = records[0].offset
    payload = pack_records(records, base_offset, base_timestamp)
    assert parse_records(payload, len(records), base_offset, base_timestamp) == records


def test_null_and_empty_stay_apart() -> None:
    records = [
        Record(0, 0, None, b""),
        Record(1, 0, b"", None),
        Record(2, 0, b"", b"", ((b"", None), (b"", b""))),
    ]
    assert parse_records(pack_records(records, 0, 0), 3, 0, 0) == records


@pytest.mark.parametrize("length", ["01", "03", "ffffffff0f"])
def test_any_negative_length_is_null(length: str) -> None:
    body = b"\x00\x00\x00" + bytes.fromhex(length) + bytes.fromhex(length) + b"\x00"
    assert parse_records(record(body), 1, 5, 0) == [Record(5, 0, None, None)]


def test_record_attributes_are_one_byte_and_ignored() -> None:
    body = b"\xff" + PLAIN[2:]
    assert parse_records(record(body), 1, 10, 0) == parse_records(PLAIN, 1, 10, 0)


def test_duplicate_headers_keep_their_order_and_malformed_utf8_its_bytes() -> None:
    headers = ((b"h", b"1"), (b"\xff\xfe", b"2"), (b"h", b"3"), (b"h", b"1"))
    original = Record(0, 0, b"k", b"v", headers)
    assert parse_records(pack_record(original, 0, 0), 1, 0, 0) == [original]


def test_log_append_time_overrides_every_delta() -> None:
    payload = pack_records([Record(0, 5), Record(1, 900)], 0, 0)
    parsed = parse_records(payload, 2, 0, 0, log_append_timestamp=77)
    assert [entry.timestamp for entry in parsed] == [77, 77]


def test_timestamp_deltas_have_64_bits() -> None:
    original = Record(0, -(2**62), b"k", None)
    assert parse_records(pack_record(original, 0, 2**61), 1, 0, 2**61) == [original]


def test_sums_wrap_as_javas_do() -> None:
    payload = pack_record(Record(3, 4), 0, 0)
    (parsed,) = parse_records(payload, 1, 2**63 - 1, 2**63 - 1)
    assert (parsed.offset, parsed.timestamp) == (-(2**63) + 2, -(2**63) + 3)


def test_payload_of_an_empty_batch_is_not_looked_at() -> None:
    assert parse_records(b"garbage", 0, 0, 0) == []


@pytest.mark.parametrize(
    ("payload", "count", "reason"),
    [
        (PLAIN, -1, "record count is -1"),
        (PLAIN, 2_000_000_000, "2000000000 records cannot fit"),
        (PLAIN + PLAIN[:-1], 2, "record 1 of 2.*record length"),
        (PLAIN + b"\x00", 1, "1 bytes are left after the last of 1"),
        (PLAIN + PLAIN, 1, "bytes are left after the last"),
        (b"\x00" * 7, 1, "record length is 0"),
        (b"\x01" + bytes(8), 1, "record length -1"),
        (record(b"\x00\x00\x00\x01\x01\x00\x00"), 1, "record length 7, but 6 bytes were used"),
        (record(b"\x00\x00\x00\x64\x01\x00"), 1, "field length 50, but 2 bytes are left"),
        (record(b"\x00\x00\x00\x01\x64\x00"), 1, "field length 50, but 1 bytes are left"),
        (record(b"\x00\x00\x00\x01\x01\x01"), 1, "header count -1"),
        (record(b"\x00\x00\x00\x01\x01\x04\x00"), 1, "header count 2, but 1 bytes are left"),
        (record(b"\x00\x00\x00\x01\x01\x02\x01\x01"), 1, "header key is null"),
        (record(b"\x00\x00\x00\x01\x01\x02\x00"), 1, "cut off"),
        (record(b"\x00" + b"\x80" * 10 + b"\x00"), 1, "longer than 10 bytes"),
        (record(b"\x00\x00" + b"\x80" * 5 + b"\x00"), 1, "longer than 5 bytes"),
    ],
)
def test_malformed_payload_is_corrupt(payload: bytes, count: int, reason: str) -> None:
    with pytest.raises(CorruptRecordError, match=reason) as caught:
        parse_records(payload, count, 42, 0, path="p/0.log", position=1000)
    assert (caught.value.path, caught.value.position, caught.value.offset) == ("p/0.log", 1000, 42)


@given(record_lists(max_size=3), st.data())
def test_damaged_payload_is_parsed_or_corrupt_and_nothing_else(
    records: list[Record], data: st.DataObject
) -> None:
    payload = bytearray(pack_records(records, records[0].offset, 0))
    for _ in range(data.draw(st.integers(1, 3))):
        index = data.draw(st.integers(0, len(payload) - 1))
        payload[index] = data.draw(st.integers(0, 255))
    del payload[data.draw(st.integers(0, len(payload))) :]
    try:
        parsed = parse_records(payload, len(records), records[0].offset, 0)
    except CorruptRecordError:
        return
    assert len(parsed) == len(records)
