from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from kafkalog.batches.arena import Arena
from kafkalog.batches.record_areas import iterate_record_areas, open_record_areas
from kafkalog.errors import (
    CorruptRecordError,
    KafkaLogError,
    RecordTooLargeError,
    UnsupportedCompressionTypeError,
)
from kafkalog.format.record import Record, pack_records
from kafkalog.format.record_batch import field_position, pack_batch
from tests.batches.logs import BATCHES, EMPTY_BATCH, LOG, RECORDS, UNCOMPRESSED, rows_of

PAYLOAD = pack_records(RECORDS, 100, 1000)
AREAS = [PAYLOAD, b"", PAYLOAD, PAYLOAD, PAYLOAD, PAYLOAD, BATCHES[-1][61:]]


def test_uncompressed_areas_are_the_files_own_bytes() -> None:
    buf, arena = np.frombuffer(UNCOMPRESSED, np.uint8), Arena()
    areas = open_record_areas(buf, 0, rows_of(UNCOMPRESSED), arena)
    assert areas.buf is buf
    assert arena.data.size == 0
    assert [bytes(buf[s:e]) for s, e in zip(areas.starts, areas.ends, strict=True)] == [
        AREAS[0],
        b"",
        AREAS[-1],
    ]


def test_areas_of_every_codec_are_in_one_buffer() -> None:
    areas = open_record_areas(np.frombuffer(LOG, np.uint8), 0, rows_of(LOG), Arena())
    found = [bytes(areas.buf[s:e]) for s, e in zip(areas.starts, areas.ends, strict=True)]
    assert found == AREAS


def test_positions_count_from_the_files_start() -> None:
    for data in (LOG, UNCOMPRESSED):
        rows = rows_of(data, 5_000_000)
        areas = open_record_areas(np.frombuffer(data, np.uint8), 5_000_000, rows, Arena())
        assert bytes(areas.buf[areas.starts[0] : areas.ends[0]]) == PAYLOAD


def test_a_choice_of_batches_is_enough() -> None:
    rows = rows_of(LOG)[[5, 1, 2]]
    areas = open_record_areas(np.frombuffer(LOG, np.uint8), 0, rows, Arena())
    assert (areas.ends - areas.starts).tolist() == [len(PAYLOAD), 0, len(PAYLOAD)]


def test_an_arena_is_used_again() -> None:
    arena, buf, rows = Arena(), np.frombuffer(LOG, np.uint8), rows_of(LOG)
    first = open_record_areas(buf, 0, rows, arena)
    assert np.shares_memory(open_record_areas(buf, 0, rows, arena).buf, first.buf)


@pytest.mark.parametrize("others", [b"", BATCHES[4]])
def test_an_empty_batch_has_an_empty_area_whatever_its_bytes(others: bytes) -> None:
    empty = bytearray(BATCHES[0])
    at = field_position("records_count")
    empty[at : at + 4] = bytes(4)
    data = bytes(empty) + others
    areas = open_record_areas(np.frombuffer(data, np.uint8), 0, rows_of(data), Arena())
    assert areas.starts[0] == areas.ends[0]


def test_no_batches_have_no_areas() -> None:
    areas = open_record_areas(np.empty(0, np.uint8), 0, rows_of(b""), Arena())
    assert areas.starts.size == areas.ends.size == 0


@pytest.mark.parametrize("arena_bytes", [1, len(PAYLOAD), 2 * len(PAYLOAD) + 1, 10**6])
def test_parts_bound_the_arena_and_leave_no_batch_out(arena_bytes: int) -> None:
    arena, found, parts = Arena(), [], 0
    for part, areas in iterate_record_areas(
        np.frombuffer(LOG, np.uint8), 0, rows_of(LOG), arena, arena_bytes=arena_bytes
    ):
        assert part.start == len(found)
        assert areas.buf.size < arena_bytes + len(PAYLOAD)
        found += [bytes(areas.buf[s:e]) for s, e in zip(areas.starts, areas.ends, strict=True)]
        parts += 1
    assert found == AREAS
    assert (parts == 1) == (arena_bytes > sum(map(len, AREAS)))


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize("count", [13, 5000, 2**31 - 1])
def test_a_forged_records_count_allocates_nothing(codec: int, count: int) -> None:
    at = len(EMPTY_BATCH) + field_position("records_count")
    record = Record(5, 0, None, b"x" * 80)
    data = bytearray(EMPTY_BATCH + pack_batch([record], codec=codec))
    data[at : at + 4] = count.to_bytes(4, "big")
    tracemalloc.start()
    with pytest.raises(CorruptRecordError, match=rf"records count {count}, but") as error:
        open_record_areas(
            np.frombuffer(bytes(data), np.uint8), 0, rows_of(bytes(data)), Arena(), path="0.log"
        )
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()
    assert (error.value.path, error.value.position, error.value.offset) == ("0.log", 61, 5)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_batch_past_the_cap_is_refused_by_name(codec: int) -> None:
    data = EMPTY_BATCH + pack_batch([Record(5, 0, None, bytes(3_000_000))], codec=codec)
    buf, rows = np.frombuffer(data, np.uint8), rows_of(data)
    with pytest.raises(RecordTooLargeError) as error:
        open_record_areas(buf, 0, rows, Arena(), path="0.log", max_bytes=100_000)
    assert (error.value.path, error.value.position, error.value.offset) == ("0.log", 61, 5)
    areas = open_record_areas(buf, 0, rows, Arena())
    assert int(areas.ends[-1]) > 3_000_000


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unassigned_codec_is_refused_by_its_number(codec: int) -> None:
    data = bytearray(EMPTY_BATCH + BATCHES[0])
    data[61 + field_position("attributes") + 1] |= codec
    with pytest.raises(UnsupportedCompressionTypeError, match=str(codec)) as error:
        open_record_areas(np.frombuffer(bytes(data), np.uint8), 0, rows_of(bytes(data)), Arena())
    assert error.value.position == 61


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_damaged_streams_give_the_named_errors_only(codec: int) -> None:
    batch = pack_batch(RECORDS, codec=codec)
    for position in range(61, len(batch)):
        data = bytearray(batch)
        data[position] ^= 0xFF
        error = error_of(bytes(data))
        if error is not None:
            assert isinstance(error, CorruptRecordError | RecordTooLargeError)
            assert (error.path, error.position, error.offset) == ("0.log", 0, 100)


def error_of(data: bytes) -> KafkaLogError | None:
    buf = np.frombuffer(data, np.uint8)
    try:
        open_record_areas(buf, 0, rows_of(data), Arena(), path="0.log", max_bytes=10**6)
    except KafkaLogError as error:
        return error
    return None
