"""Arrays → Arrow, compared with what pyarrow makes of plain Python lists."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.columns.arrow_arrays import (
    binary_array,
    bool_array,
    constant_array,
    number_array,
    number_values,
    text_array,
    timestamp_array,
    valid_rows,
)
from kafkalog.columns.column import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS

texts = st.lists(st.none() | st.binary(max_size=40), max_size=70)


def spans(parts: list[bytes | None]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Parts written one behind the other with a byte between them."""
    buf, starts, lengths = bytearray(b"!"), [], []
    for part in parts:
        starts.append(len(buf))
        lengths.append(-1 if part is None else len(part))
        buf += (part or b"") + b"|"
    return (
        np.frombuffer(bytes(buf), np.uint8),
        np.array(starts, np.int64),
        np.array(lengths, np.int32),
    )


@given(texts)
def test_binary_array_keeps_null_and_empty_apart(parts: list[bytes | None]) -> None:
    array = binary_array(*spans(parts))
    array.validate(full=True)
    assert array.to_pylist() == parts
    assert array.null_count == parts.count(None)


@given(texts, st.integers(0, 70), st.integers(0, 70))
def test_nulls_of_a_part_of_an_array_are_those_that_arrow_says(
    parts: list[bytes | None], start: int, length: int
) -> None:
    part = binary_array(*spans(parts)).slice(start, length)
    assert valid_rows(part).tolist() == part.is_valid().to_pylist()


@given(
    st.lists(st.integers(-(2**31), 2**31 - 1), max_size=70),
    st.sampled_from(["i4", "i8"]),
    st.integers(0, 70),
    st.integers(0, 70),
)
def test_numbers_of_a_part_of_an_array_come_back(
    numbers: list[int], dtype: str, start: int, length: int
) -> None:
    part = number_array(np.array(numbers, dtype)).slice(start, length)
    assert number_values(part).dtype == dtype
    assert number_values(part).tolist() == part.to_pylist()


def test_text_array_replaces_malformed_bytes_as_java_does() -> None:
    array = text_array(*spans(["hé".encode(), b"\xff\x41", b"", None]))
    array.validate(full=True)
    assert array.to_pylist() == ["hé", "�A", "", None]


@pytest.mark.parametrize(
    ("ms", "expected"),
    [
        (0, dt.datetime(1970, 1, 1, tzinfo=dt.UTC)),
        (-1, None),
        (-2, dt.datetime(1969, 12, 31, 23, 59, 59, 998_000, tzinfo=dt.UTC)),
        (MAX_TIMESTAMP_MS, dt.datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=dt.UTC)),
        (MAX_TIMESTAMP_MS + 1, None),
        (MIN_TIMESTAMP_MS, dt.datetime(1, 1, 1, tzinfo=dt.UTC)),
        (MIN_TIMESTAMP_MS - 1, None),
        # microseconds in a field of milliseconds
        (1_750_000_000_000_000, None),
        (2**63 - 1, None),
        (-(2**63), None),
    ],
)
def test_timestamp_is_null_where_no_calendar_holds_it(
    ms: int, expected: dt.datetime | None
) -> None:
    array = timestamp_array(np.array([ms, 5, ms], np.int64))
    array.validate(full=True)
    assert array.to_pylist() == [expected, dt.datetime(1970, 1, 1, 0, 0, 0, 5000, dt.UTC), expected]


def test_arrays_own_their_memory() -> None:
    numbers = np.arange(3, dtype=np.int64)
    buf, starts, lengths = spans([b"abc"])
    buf = buf.copy()
    made = number_array(numbers), timestamp_array(numbers), binary_array(buf, starts, lengths)
    before = [array.to_pylist() for array in made]
    numbers[:] = 99
    buf[:] = 0
    assert [array.to_pylist() for array in made] == before


@given(st.lists(st.booleans(), max_size=40))
def test_bool_and_number_arrays_equal_plain_ones(flags: list[bool]) -> None:
    mask = np.array(flags, np.bool_)
    assert bool_array(mask).to_pylist() == flags
    numbers = np.arange(len(flags), dtype=np.int16)
    expected = pa.array([i if valid else None for i, valid in enumerate(flags)], pa.int16())
    assert number_array(numbers, mask).equals(expected)


@pytest.mark.parametrize("n", [0, 1, 1024, 1025])
@pytest.mark.parametrize("value", ["orders", None])
def test_constant_array_repeats(n: int, value: str | None) -> None:
    assert constant_array(value, pa.string(), n).to_pylist() == [value] * n


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        ("", pa.string()),
        ("zażółć", pa.string()),
        (-1, pa.int8()),
        (1 << 30, pa.int32()),
        (-(1 << 63), pa.int64()),
        (True, pa.bool_()),
        (b"\xff", pa.binary()),
        (5, pa.uint32()),
    ],
)
def test_constant_array_is_what_arrow_makes_of_a_list(value: object, type_: pa.DataType) -> None:
    array = constant_array(value, type_, 3)
    array.validate(full=True)
    assert array.equals(pa.array([value] * 3, type_))


def test_constant_array_refuses_a_number_that_the_type_cannot_hold() -> None:
    with pytest.raises(OverflowError):
        constant_array(1 << 31, pa.int32(), 1)
