from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.batches.record_areas import RecordAreas
from kafkalog.batches.spans import WantedKeys, decode_spans
from kafkalog.errors import CorruptRecordError
from kafkalog.format.record import Record, pack_record, pack_records, parse_records
from kafkalog.format.varint import pack_varint, pack_varlong
from kafkalog.kernels import status
from tests.format.strategies import record_lists
from tests.kernels.arrays import Columns, batch_row, decode, read_only, to_records
from tests.support.kafka_python import DefaultRecordBatchBuilder

RECORDS = [
    Record(5, 1000, b"key", b"value"),
    Record(6, 1001, None, b"v" * 200),
    Record(9, 900, b"k" * 70, None, ((b"h", b"1"), (b"", None), (b"h" * 64, b"x" * 130))),
    Record(1_000_009, 2**40, b"", b"", ((b"a", b""),)),
]


def expected(payload: bytes, count: int, **batch: int) -> list[Record] | None:
    """What the plain codec says; None if it refuses."""
    try:
        return parse_records(
            payload, count, batch.get("base_offset", 0), batch.get("base_timestamp", 0)
        )
    except CorruptRecordError:
        return None


def assert_agrees(payload: bytes, count: int) -> None:
    records, found = decode(payload, count)
    reference = expected(payload, count)
    if reference is None:
        assert status.is_corrupt(found)
    else:
        assert found == status.OK
        assert records == reference


@given(record_lists(), st.integers(-(2**40), 2**40))
def test_spans_are_what_the_plain_codec_parses(records: list[Record], base_timestamp: int) -> None:
    base_offset = records[0].offset
    payload = pack_records(records, base_offset, base_timestamp)
    assert decode(payload, len(records), base_offset, base_timestamp) == (records, status.OK)


def test_spans_are_what_kafka_python_wrote() -> None:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=99999,
    )
    records = [Record(r.offset - 5, r.timestamp, r.key, r.value, r.headers) for r in RECORDS]
    for record in records:
        builder.append(
            record.offset,
            record.timestamp,
            record.key,
            record.value,
            [(key.decode(), value) for key, value in record.headers],
        )
    payload = bytes(builder.build())[61:]
    assert decode(payload, len(records), 0, records[0].timestamp) == (records, status.OK)


def test_log_append_time_gives_every_record_the_time_of_the_batch() -> None:
    payload = pack_records(RECORDS, 5, 1000)
    records, _ = decode(payload, len(RECORDS), 5, 1000, log_append_timestamp=77)
    assert [record.timestamp for record in records] == [77] * len(RECORDS)


def test_timestamp_deltas_use_64_bits_and_wrap_as_in_java() -> None:
    delta = 2**63 - 1
    body = b"\x00" + pack_varlong(delta) + b"\x00\x01\x01\x00"
    records, found = decode(pack_varint(len(body)) + body, 1, 0, 5)
    assert found == status.OK
    assert records[0].timestamp == (delta + 5) - 2**64


def test_records_of_many_batches_come_in_one_call() -> None:
    payloads = [pack_records(RECORDS[:i], 5, 1000) for i in range(len(RECORDS) + 1)]
    rows = np.concatenate([batch_row(i, 5, 1000) for i in range(len(payloads))])
    edges = np.cumsum([0] + [len(payload) for payload in payloads])
    columns = Columns(10)
    buf = read_only(b"".join(payloads))
    assert columns.run(buf, rows, edges[:-1].copy(), edges[1:].copy()) == (10, status.OK, 0, 0)
    assert to_records(buf, columns) == [r for i in range(len(payloads)) for r in RECORDS[:i]]
    assert columns.batch_indexes.tolist() == [1, 2, 2, 3, 3, 3, 4, 4, 4, 4]


def keyed(
    payload: bytes, count: int, keys: set[bytes], base_offset: int = 5
) -> tuple[Columns, tuple[int, ...]]:
    """What the kernel writes of the records with one of the keys, and what it returns."""
    columns = Columns(count)
    bounds = np.array([0], np.int64), np.array([len(payload)], np.int64)
    buf = read_only(payload)
    row = batch_row(count, base_offset, 1000)
    return columns, columns.run(buf, row, *bounds, WantedKeys(keys))


@given(record_lists(), st.data())
def test_records_of_wanted_keys_are_those_that_a_set_has(
    records: list[Record], data: st.DataObject
) -> None:
    theirs = sorted({record.key for record in records if record.key is not None})
    near = [key[:-1] for key in theirs if key] + [b"\0" + key for key in theirs]
    known = st.sampled_from([*theirs, *near]) if theirs else st.nothing()
    keys = data.draw(st.sets(known | st.binary(max_size=3), max_size=20))
    payload = pack_records(records, records[0].offset, 1000)
    columns, (written, found, *_) = keyed(payload, len(records), keys, records[0].offset)
    wanted = [record for record in records if record.key in keys]
    assert (written, found) == (len(wanted), status.OK)
    assert to_records(read_only(payload), columns.first(written)) == wanted


def test_a_record_that_nobody_wants_is_checked_as_well() -> None:
    good = pack_records(RECORDS, 5, 1000)
    payload = good + b"\x7f"
    _, answer = keyed(payload, len(RECORDS) + 1, {b"absent"})
    assert answer == (0, status.NEGATIVE_LENGTH, len(good), 0)
    areas = RecordAreas(
        read_only(payload),
        np.array([0], np.int64),
        np.array([len(payload)], np.int64),
        batch_row(len(RECORDS) + 1, 5, 1000),
    )
    with pytest.raises(CorruptRecordError, match=f"record {len(RECORDS)} of"):
        decode_spans(areas, areas.rows, keys=WantedKeys({b"absent"}))


def test_an_empty_batch_is_empty_whatever_its_bytes() -> None:
    assert decode(b"\xff" * 20, 0) == ([], status.OK)


def test_a_failure_names_record_position_and_batch() -> None:
    good = pack_records(RECORDS, 5, 1000)
    bad = good[: len(pack_record(RECORDS[0], 5, 1000))] + b"\x7f" + good
    buf = read_only(good + bad)
    rows = np.concatenate([batch_row(4, 5, 1000), batch_row(4, 5, 1000)])
    starts = np.array([0, len(good)])
    ends = np.array([len(good), len(good) + len(bad)])
    position = len(good) + len(pack_record(RECORDS[0], 5, 1000))
    answer = Columns(8).run(buf, rows, starts, ends)
    assert answer == (5, status.NEGATIVE_LENGTH, position, 1)


def test_output_arrays_are_never_overrun() -> None:
    payload = pack_records(RECORDS, 5, 1000)
    columns = Columns(3)
    bounds = np.array([0], np.int64), np.array([len(payload)], np.int64)
    answer = columns.run(read_only(payload), batch_row(4, 5, 1000), *bounds)
    assert answer == (0, status.OUTPUT_FULL, 0, 0)


@pytest.mark.parametrize(("start", "end"), [(-1, 5), (0, 6), (4, 3), (9, 9)])
def test_an_area_outside_the_buffer_is_refused(start: int, end: int) -> None:
    bounds = np.array([start], np.int64), np.array([end], np.int64)
    answer = Columns(1).run(read_only(b"\x00" * 5), batch_row(1), *bounds)
    assert answer[:2] == (0, status.SPAN_OUT_OF_RANGE)


def body_of(**fields: bytes) -> bytes:
    """A record whose fields are good ones but for those given."""
    good = {
        "attributes": b"\x00",
        "timestamp_delta": b"\x02",
        "offset_delta": b"\x02",
        "key_length": b"\x02",
        "key": b"k",
        "value_length": b"\x04",
        "value": b"vv",
        "header_count": b"\x02",
        "header_key_length": b"\x02",
        "header_key": b"h",
        "header_value_length": b"\x02",
        "header_value": b"x",
    }
    body = b"".join((good | fields).values())
    return fields.get("length", pack_varint(len(body))) + body


VARINTS = [
    "timestamp_delta",
    "offset_delta",
    "key_length",
    "value_length",
    "header_count",
    "header_key_length",
    "header_value_length",
]
FORGED = (
    [pack_varint(v) for v in (-(2**31), -2, -1, 0, 1, 2, 3, 50, 2**15, 2**31 - 1)]
    + [b"\x80" * n for n in (1, 4, 5, 10, 11)]
    + [b"\xff" * 4 + b"\x7f", b"\x80\x80\x00"]
)


@pytest.mark.parametrize("name", ["length", *VARINTS])
def test_a_forged_varint_is_refused_exactly_where_the_plain_codec_refuses(name: str) -> None:
    for forged in FORGED:
        payload = forged + body_of()[1:] if name == "length" else body_of(**{name: forged})
        assert_agrees(payload, 1)
        assert_agrees(payload + body_of(), 2)


@pytest.mark.parametrize(
    ("payload", "count", "found"),
    [
        (b"", 1, status.RECORD_TRUNCATED),
        (b"\x00", 1, status.RECORD_TRUNCATED),
        (b"\x01" + body_of(), 1, status.NEGATIVE_LENGTH),
        (b"\x80" * 6, 1, status.VARINT_TOO_LONG),
        (body_of(timestamp_delta=b"\x80" * 11), 1, status.VARINT_TOO_LONG),
        (body_of(key_length=b"\x7e"), 1, status.RECORD_TRUNCATED),
        (body_of(header_key_length=b"\x01"), 1, status.NEGATIVE_LENGTH),
        (body_of(header_count=b"\x01"), 1, status.HEADER_COUNT),
        (body_of(header_count=b"\x7e"), 1, status.HEADER_COUNT),
        (body_of(header_value=b"xx"), 1, status.LENGTH_MISMATCH),
        (body_of() + b"\x00", 1, status.TRAILING_BYTES),
        (body_of(), 2, status.RECORD_TRUNCATED),
    ],
)
def test_each_way_to_break_a_record_has_its_status(payload: bytes, count: int, found: int) -> None:
    assert decode(payload, count) == ([], found)


def test_every_truncation_is_refused() -> None:
    payload = pack_records(RECORDS, 5, 1000)
    for size in range(len(payload)):
        assert status.is_corrupt(decode(payload[:size], len(RECORDS))[1])


def test_every_flipped_bit_is_judged_as_by_the_plain_codec() -> None:
    payload = bytearray(pack_records([RECORDS[0], RECORDS[2]], 5, 1000))
    for bit in range(len(payload) * 8):
        payload[bit // 8] ^= 1 << bit % 8
        assert_agrees(bytes(payload), 2)
        payload[bit // 8] ^= 1 << bit % 8


@given(st.binary(max_size=80), st.integers(1, 4))
def test_any_garbage_is_judged_as_by_the_plain_codec(payload: bytes, count: int) -> None:
    assert_agrees(payload, count)


def test_mutated_records_are_judged_as_by_the_plain_codec() -> None:
    rng = random.Random(7)
    payload = pack_records(RECORDS, 5, 1000)
    for _ in range(1500):
        mutated = bytearray(payload)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(mutated))
            kind = rng.randrange(3)
            if kind == 0:
                mutated[at] = rng.choice((0, 1, 2, 0x7F, 0x80, 0xFF, rng.randrange(256)))
            elif kind == 1:
                del mutated[at : at + rng.randint(1, 4)]
            else:
                mutated[at:at] = rng.randbytes(rng.randint(1, 4))
        assert_agrees(bytes(mutated), len(RECORDS))
