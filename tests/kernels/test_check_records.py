from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.format.record import Record, pack_records
from kafkalog.format.record_batch import BATCH_ROW
from kafkalog.kernels import status
from kafkalog.kernels.check_records import check_records
from tests.format.strategies import record_lists
from tests.kernels.arrays import batch_row, decode, read_only
from tests.kernels.raw_batches import raw_record
from tests.kernels.test_record_spans import RECORDS


def check(
    payload: bytes, rows: np.ndarray, edges: list[int] | None = None
) -> tuple[tuple[int, int, int, int], list[int]]:
    """The kernel's answer, and the largest timestamps of the batches that it came to."""
    edges = edges or [0, len(payload)]
    largest = np.full(rows.size, -77, np.int64)
    with np.errstate(over="ignore"):  # timestamps wrap around as Java's do
        answer = check_records(
            read_only(payload),
            rows,
            np.array(edges[:-1], np.int64),
            np.array(edges[1:], np.int64),
            largest,
            np.empty(rows.size, np.int64),
        )
    return answer, largest[: answer[0]].tolist()


def row_of(records: list[Record], base_timestamp: int = 0, last_offset: int | None = None):  # type: ignore[no-untyped-def]
    row = batch_row(len(records), records[0].offset, base_timestamp)
    row["last_offset"] = records[-1].offset if last_offset is None else last_offset
    return row


@given(record_lists(), st.integers(-(2**40), 2**40))
def test_what_the_plain_codec_wrote_is_sound(records: list[Record], base_timestamp: int) -> None:
    payload = pack_records(records, records[0].offset, base_timestamp)
    (done, code, _, _), largest = check(payload, row_of(records, base_timestamp))
    offsets = [record.offset for record in records]
    rises = all(a < b for a, b in pairwise(offsets))
    assert (done, code) == ((1, status.OK) if rises else (0, status.OFFSET_ORDER))
    if rises:
        assert largest == [max(record.timestamp for record in records)]


def test_it_judges_a_damaged_payload_as_the_spans_do() -> None:
    """Every byte of a payload changed, cut at every length, and counts that are not its own."""
    payload = pack_records(RECORDS, 5, 0)
    randomly = random.Random(5)
    damaged = [(payload[:end], len(RECORDS)) for end in range(len(payload))]
    damaged += [(payload, count) for count in (0, 3, 5)]
    for at in range(len(payload)):
        for value in (0, 1, 0x7F, 0x80, 0xFF, randomly.randrange(256)):
            damaged.append((payload[:at] + bytes([value]) + payload[at + 1 :], len(RECORDS)))
    seen = set()
    for data, count in damaged:
        row = batch_row(count, 5)
        row["last_offset"] = 2**62
        (done, code, position, record), _ = check(data, row)
        _, expected = decode(data, count, 5)
        if code == status.OFFSET_ORDER:  # the spans do not look at the order
            seen.add(code)
            continue
        assert code == expected
        assert done == int(code == status.OK)
        assert 0 <= position <= len(data)
        assert 0 <= record <= count
        seen.add(code)
    assert seen >= {
        *(status.OK, status.OFFSET_ORDER, status.LENGTH_MISMATCH, status.RECORD_TRUNCATED),
        *(status.TRAILING_BYTES, status.HEADER_COUNT, status.NEGATIVE_LENGTH),
    }


@pytest.mark.parametrize(
    ("offsets", "last_offset", "failing"),
    [([5, 5], 9, 1), ([6, 5], 9, 1), ([5, 9, 10], 9, 2), ([4, 5], 9, 0)],
)
def test_offsets_must_rise_within_their_batch(
    offsets: list[int], last_offset: int, failing: int
) -> None:
    payload = b"".join(raw_record(Record(o, 0, b"k", b"v"), base_offset=5) for o in offsets)
    row = batch_row(len(offsets), 5)
    row["last_offset"] = last_offset
    (done, code, _, record), _ = check(payload, row)
    assert (done, code, record) == (0, status.OFFSET_ORDER, failing)


def test_it_stops_at_the_first_batch_that_is_not_sound_and_goes_on_when_asked() -> None:
    sound = pack_records(RECORDS, 5, 0)
    payload = sound + bytes([sound[0] + 2]) + sound[1:] + sound
    rows = np.concatenate([row_of(RECORDS)] * 3)
    edges = [0, len(sound), 2 * len(sound), 3 * len(sound)]
    (done, code, position, record), largest = check(payload, rows, edges)
    assert (done, code, record) == (1, status.LENGTH_MISMATCH, 0)
    assert len(sound) <= position < 2 * len(sound)
    assert largest == [2**40]
    assert check(payload, rows[2:], edges[2:])[0][:2] == (1, status.OK)


def test_the_largest_timestamp_is_the_headers_where_records_have_none_of_their_own() -> None:
    payload = pack_records(RECORDS, 5, 0)
    append_time = batch_row(len(RECORDS), 5, log_append_timestamp=123)
    append_time["last_offset"] = 2**30
    assert check(payload, append_time)[1] == [123]
    empty = batch_row(0, 5)
    empty["max_timestamp"] = 77
    assert check(b"", empty)[1] == [77]
    below = [Record(5, -5, None, None), Record(6, -1, None, None)]
    assert check(pack_records(below, 5, -1), row_of(below, -1))[1] == [-1]


@pytest.mark.parametrize(("start", "end"), [(-1, 3), (2, 1), (0, 4)])
def test_an_area_outside_of_its_buffer_is_refused(start: int, end: int) -> None:
    assert check(b"abc", batch_row(1), [start, end])[0][:2] == (0, status.SPAN_OUT_OF_RANGE)


def test_no_batches_are_sound() -> None:
    assert check(b"", np.zeros(0, BATCH_ROW), [0])[0][:2] == (0, status.OK)
