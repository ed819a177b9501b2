"""Arrow arrays out of plain arrays and byte spans, without a Python object per row.

Arrow owns all memory it references: spans and chunks are overwritten by the next read, so
everything is copied once, into buffers of Arrow's pool. The pool keeps freed buffers, so big
batches do not touch new pages each time.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkalog.batches.gathering import gather_spans, measure_spans
from kafkalog.columns.column import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS, TIMESTAMP
from kafkalog.columns.schemas import HEADERS
from kafkalog.errors import RecordTooLargeError
from kafkalog.format.constants import MAX_INT32

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]


def number_array(values: npt.NDArray[np.generic], valid: Mask | None = None) -> pa.Array:
    """Own copy of integers of any width; rows where `valid` is false are null."""
    buffer = pa.allocate_buffer(values.nbytes)
    np.frombuffer(buffer, values.dtype)[:] = values
    return _fixed_width_array(pa.from_numpy_dtype(values.dtype), len(values), buffer, valid)


def bool_array(values: Mask) -> pa.Array:
    """Booleans as Arrow's bitmap."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, _bitmap(values)])


def timestamp_array(milliseconds: Int64s, valid: Mask | None = None) -> pa.Array:
    """Milliseconds as `timestamp[us, UTC]`; null for -1 and for what lies outside years
    0001-9999."""
    n = len(milliseconds)
    buffer = pa.allocate_buffer(n * 8)
    micros = np.frombuffer(buffer, np.int64)
    holds = None
    if n and _needs_nulls(milliseconds):
        holds = (milliseconds >= MIN_TIMESTAMP_MS) & (milliseconds <= MAX_TIMESTAMP_MS)
        holds &= milliseconds != -1
        np.multiply(np.where(holds, milliseconds, 0), 1000, out=micros)
    else:
        np.multiply(milliseconds, 1000, out=micros)
    if valid is not None:
        holds = valid if holds is None else holds & valid
    return _fixed_width_array(TIMESTAMP, n, buffer, holds)


def binary_array(buf: Bytes, starts: Int64s, lengths: Int32s) -> pa.Array:
    """Gather spans of `buf` into a binary array; length -1 is null, 0 is empty.

    RecordTooLargeError past 2 GiB.
    """
    n = len(lengths)
    size, nulls = measure_spans(lengths)
    values, offsets, validity = (
        pa.allocate_buffer(size),
        pa.allocate_buffer(4 * (n + 1)),
        pa.allocate_buffer((n + 7) // 8),
    )
    gather_spans(
        buf,
        starts,
        lengths,
        np.frombuffer(values, np.uint8),
        np.frombuffer(offsets, np.int32),
        np.frombuffer(validity, np.uint8),
    )
    buffers = [validity if nulls else None, offsets, values]
    return pa.Array.from_buffers(pa.binary(), n, buffers, null_count=nulls)


def number_values(array: pa.Array) -> npt.NDArray[Any]:
    """The way back of `number_array`, without a copy; rows that are null hold anything."""
    # Arrow's own ways to numpy look whether there is pandas, by importing it: 0.4 s of CPU.
    type_ = np.dtype(array.type.to_pandas_dtype())
    data = np.frombuffer(array.buffers()[1] or b"", type_)
    return data[array.offset : array.offset + len(array)]


def valid_rows(array: pa.Array) -> Mask:
    """Which rows are not null, without pandas as well."""
    if not array.null_count:
        return np.ones(len(array), np.bool_)
    bits = np.frombuffer(array.buffers()[0], np.uint8)
    end = array.offset + len(array)
    return np.unpackbits(bits, count=end, bitorder="little")[array.offset :].view(np.bool_)


def binary_spans(array: pa.Array) -> tuple[Bytes, Int64s, Int64s]:
    """The way back, without a copy of the bytes: (buf uint8[m], starts int64[n], lengths int64[n]),
    a length of -1 is null.
    """
    _, offsets, values = array.buffers()
    if not len(array):
        return np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int64)
    edges = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    starts = edges[:-1].astype(np.int64)
    lengths = edges[1:] - starts
    if array.null_count:
        lengths[~valid_rows(array)] = -1
    return np.frombuffer(values or b"", np.uint8), starts, lengths


def text_array(buf: Bytes, starts: Int64s, lengths: Int32s) -> pa.Array:
    """Gather spans as UTF-8 text; malformed bytes become U+FFFD, as Java reads them."""
    raw = binary_array(buf, starts, lengths)
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [None if b is None else b.decode("utf-8", "replace") for b in raw.to_pylist()]
        return pa.array(texts, pa.string())


def bytes_array(values: Sequence[bytes | None]) -> pa.Array:
    """Byte strings of Python by buffers, None as null. RecordTooLargeError past 2 GiB."""
    ends = np.cumsum([0, *(len(value or b"") for value in values)], dtype=np.int64)
    if ends[-1] > MAX_INT32:
        raise RecordTooLargeError(f"{ends[-1]} bytes of text, the limit is {MAX_INT32}")
    data = pa.py_buffer(b"".join(value or b"" for value in values))
    valid = np.array([value is not None for value in values], np.bool_)
    buffers = [_bitmap(valid), pa.py_buffer(ends.astype(np.int32)), data]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers)


def bytes_scalar(value: bytes | None) -> pa.Scalar:
    """One of them."""
    return bytes_array([value])[0]


def constant_array(value: object, type_: pa.DataType, n: int) -> pa.Array:
    """`n` times the same value (None: null); long ones are cut from a cached array."""
    capacity = max(1024, 1 << (n - 1).bit_length()) if n else 1024
    return _constants(value, type_, capacity).slice(0, n)


def headers_array(keys: pa.Array, values: pa.Array, list_offsets: Int32s, filled: Mask) -> pa.Array:
    """Header lists of `len(filled)` records; a record without headers is null, as in Spark's Kafka
    source."""
    pairs = pa.StructArray.from_arrays([keys, values], fields=list(HEADERS.value_type))
    offsets = pa.py_buffer(list_offsets.tobytes())
    return pa.Array.from_buffers(HEADERS, len(filled), [_bitmap(filled), offsets], children=[pairs])


@lru_cache(maxsize=64)
def _constants(value: object, type_: pa.DataType, capacity: int) -> pa.Array:
    if value is None:
        return pa.nulls(capacity, type_)
    return pa.repeat(_array_of_one(value, type_)[0], capacity)


def _array_of_one(value: object, type_: pa.DataType) -> pa.Array:
    """By buffers: of an object of Python's Arrow makes it by way of pandas, which a process that
    reads a few records would import for that alone."""
    if isinstance(value, str) and type_ == pa.string():
        return bytes_array([value.encode()]).view(type_)
    if isinstance(value, int) and pa.types.is_signed_integer(type_):
        number = value.to_bytes(type_.bit_width // 8, sys.byteorder, signed=True)
        return pa.Array.from_buffers(type_, 1, [None, pa.py_buffer(number)])
    return pa.array([value], type_)


def _needs_nulls(milliseconds: Int64s) -> bool:
    """Cheap first look; a lowest value of -1 or below needs the exact rule."""
    low, high = int(milliseconds.min()), int(milliseconds.max())
    return low < 0 or high > MAX_TIMESTAMP_MS


def _fixed_width_array(
    type_: pa.DataType, n: int, buffer: pa.Buffer, valid: Mask | None
) -> pa.Array:
    validity = None if valid is None else _bitmap(valid)
    return pa.Array.from_buffers(type_, n, [validity, buffer])


def _bitmap(flags: Mask) -> pa.Buffer:
    """Arrow's bits: least significant first."""
    return pa.py_buffer(np.packbits(flags, bitorder="little").tobytes())
