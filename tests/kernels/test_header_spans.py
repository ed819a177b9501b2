from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kafkalog.format.record import Record, pack_records
from kafkalog.kernels import status
from kafkalog.kernels.header_spans import header_spans
from tests.format.strategies import record_lists
from tests.kernels.arrays import Columns, batch_row, header_lists, read_only


@given(record_lists(), st.randoms())
def test_headers_of_any_choice_of_records_are_listed(records: list[Record], random: object) -> None:
    payload = pack_records(records, records[0].offset, 0)
    columns = Columns(len(records))
    bounds = np.array([0], np.int64), np.array([len(payload)], np.int64)
    columns.run(read_only(payload), batch_row(len(records), records[0].offset), *bounds)
    chosen = [r for r in range(len(records)) if random.random() < 0.6]  # type: ignore[attr-defined]
    starts, counts = columns.header_starts[chosen], columns.header_counts[chosen]
    found = header_lists(read_only(payload), starts, counts)
    assert found == [records[r].headers for r in chosen]


def run(data: bytes, start: int, count: int, room: int = 5) -> tuple[int, int, int, int]:
    wide, narrow = np.zeros(room, np.int64), np.zeros(room, np.int32)
    offsets = np.zeros(2, np.int32)
    starts, counts = np.array([start], np.int64), np.array([count], np.int32)
    return header_spans(
        read_only(data), starts, counts, offsets, wide, narrow, wide.copy(), narrow.copy()
    )


@pytest.mark.parametrize(
    ("data", "count", "found"),
    [
        (b"", 1, status.RECORD_TRUNCATED),
        (b"\x02", 1, status.RECORD_TRUNCATED),
        (b"\x02h", 1, status.RECORD_TRUNCATED),
        (b"\x02h\x04x", 1, status.RECORD_TRUNCATED),
        (b"\x02h\x02x", 2, status.RECORD_TRUNCATED),
        (b"\x01", 1, status.NEGATIVE_LENGTH),
        (b"\x80" * 6, 1, status.VARINT_TOO_LONG),
        (b"\x02h\x02x", -1, status.HEADER_COUNT),
        (b"\x02h\x02x" * 6, 6, status.OUTPUT_FULL),
    ],
)
def test_headers_that_are_none_are_refused(data: bytes, count: int, found: int) -> None:
    assert run(data, 0, count)[1] == found


@pytest.mark.parametrize("start", [-1, 5, 2**40])
def test_a_start_outside_the_buffer_is_refused(start: int) -> None:
    assert run(b"\x02h\x02x", start, 1)[1] == status.SPAN_OUT_OF_RANGE


def test_lists_need_an_offset_more_than_records() -> None:
    narrow: NDArray[np.int32] = np.zeros(1, np.int32)
    wide: NDArray[np.int64] = np.zeros(1, np.int64)
    answer = header_spans(read_only(b""), wide, narrow, narrow, wide, narrow, wide, narrow)
    assert answer[1] == status.OUTPUT_FULL
