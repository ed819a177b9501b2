"""Rows as bytes hold what they hold as rows."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kafkalog.format.batch_rows import are_equal_rows, copy_rows, join_rows, put_rows
from kafkalog.format.record_batch import BATCH_ROW

_NAMES = BATCH_ROW.names or ()


@st.composite
def _rows(draw: st.DrawFn) -> NDArray[np.void]:
    """Some rows whose bytes are any, those behind the last field too."""
    count = draw(st.integers(0, 5))
    size = count * BATCH_ROW.itemsize
    return np.frombuffer(bytearray(draw(st.binary(min_size=size, max_size=size))), BATCH_ROW)


@given(_rows())
def test_a_copy_is_the_same_and_its_own(rows: NDArray[np.void]) -> None:
    copied = copy_rows(rows)
    assert copied.dtype == BATCH_ROW
    assert copied.tolist() == rows.tolist()
    copied["crc"] += 1
    assert not rows.size or copied.tolist() != rows.tolist()


@given(st.lists(_rows()))
def test_joined_parts_are_one_behind_the_other(parts: list[NDArray[np.void]]) -> None:
    joined = join_rows(parts)
    assert joined.dtype == BATCH_ROW
    assert joined.tolist() == [row for part in parts for row in part.tolist()]


@given(_rows(), st.integers(0, 3))
def test_rows_are_put_where_they_should_be(rows: NDArray[np.void], first: int) -> None:
    target = np.zeros(first + rows.size + 1, BATCH_ROW)
    put_rows(target[first : first + rows.size], rows)
    empty = np.zeros(1, BATCH_ROW).tolist()
    assert target.tolist() == [*empty * first, *rows.tolist(), *empty]


@given(_rows(), st.sampled_from(_NAMES), st.data())
def test_rows_differ_in_any_field_and_not_in_what_lies_behind_them(
    rows: NDArray[np.void], name: str, data: st.DataObject
) -> None:
    fields = np.array(rows.tolist(), BATCH_ROW)  # zeros behind the last field
    assert are_equal_rows(rows, fields)
    assert are_equal_rows(fields, rows)
    if rows.size:
        at = data.draw(st.integers(0, rows.size - 1))
        fields[name][at] ^= 1
        assert not are_equal_rows(rows, fields)
        assert not are_equal_rows(rows, rows[:-1])
