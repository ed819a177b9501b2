from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.kernels import status
from kafkalog.kernels.gather import gather, measure
from tests.kernels.arrays import read_only

# Around the sizes of one wide copy, of the switch to memcpy, and of nothing.
SIZES = st.sampled_from([0, 1, 7, 15, 16, 17, 31, 32, 33, 127, 128, 129, 300])


def columns(values: list[bytes | None]) -> tuple[bytes, list[int], list[int]]:
    starts, lengths, data = [], [], b""
    for value in values:
        starts.append(len(data))
        lengths.append(-1 if value is None else len(value))
        data += value or b""
    return data, starts, lengths


def gathered(
    data: bytes, starts: list[int], lengths: list[int], spare: int = 0
) -> list[bytes | None]:
    """Through the kernel and Arrow, with guard bytes behind each output."""
    spans = np.array(starts, np.int64), np.array(lengths, np.int32)
    total, nulls = measure(spans[1])
    n = len(starts)
    values = np.full(total + spare + 32, 0xEE, np.uint8)
    validity = np.full((n + 7) // 8 + 1, 0xEE, np.uint8)
    offsets = np.full(n + 2, -77, np.int32)
    answer = gather(
        read_only(data), *spans, values[: total + spare], offsets[: n + 1], validity[:-1]
    )
    assert answer == (n, status.OK, total, nulls)
    assert (values[total + spare :] == 0xEE).all()
    assert (validity[-1], offsets[-1]) == (0xEE, -77)
    buffers = [pa.py_buffer(validity), pa.py_buffer(offsets), pa.py_buffer(values)]
    array = pa.Array.from_buffers(pa.binary(), n, buffers)
    array.validate(full=True)
    assert array.null_count == nulls
    result: list[bytes | None] = array.to_pylist()
    return result


@given(st.lists(st.none() | SIZES.map(lambda n: bytes(range(n % 256))), max_size=40), SIZES)
def test_gathered_values_are_the_spans(values: list[bytes | None], spare: int) -> None:
    assert gathered(*columns(values), spare) == values


def test_spans_may_come_in_any_order_and_overlap() -> None:
    data = bytes(range(100))
    starts, lengths = [90, 0, 50, 50, 99, 100], [10, 100, 3, 3, 1, 0]
    found = gathered(data, starts, lengths)
    assert found == [data[s : s + n] for s, n in zip(starts, lengths, strict=True)]


def test_null_and_empty_stay_apart() -> None:
    assert gathered(*columns([b"", None, b"", None, b"x"])) == [b"", None, b"", None, b"x"]


@pytest.mark.parametrize(
    ("start", "length"), [(-1, 1), (0, 11), (10, 1), (11, 0), (2**62, 1), (-(2**62), 20)]
)
def test_a_span_outside_the_buffer_is_refused(start: int, length: int) -> None:
    spans = np.array([0, start], np.int64), np.array([1, length], np.int32)
    outputs = np.zeros(99, np.uint8), np.zeros(3, np.int32), np.zeros(1, np.uint8)
    answer = gather(read_only(b"x" * 10), *spans, *outputs)
    assert answer == (1, status.SPAN_OUT_OF_RANGE, 1, 0)


@pytest.mark.parametrize(("values", "offsets", "bits"), [(8, 10, 2), (9, 9, 2), (9, 10, 1)])
def test_outputs_too_small_are_never_overrun(values: int, offsets: int, bits: int) -> None:
    spans = np.zeros(9, np.int64), np.ones(9, np.int32)
    outputs = (
        np.zeros(values, np.uint8),
        np.zeros(offsets, np.int32),
        np.zeros(bits, np.uint8),
    )
    assert gather(read_only(b"xyz"), *spans, *outputs)[1] == status.OUTPUT_FULL
