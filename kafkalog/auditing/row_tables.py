"""Small tables of what an audit keeps: made of rows, and read again.

By buffers: of a list of Python's pyarrow makes an array by way of pandas, whose import costs an
audit a quarter of a second and 40 MB.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

_INT64 = pa.int64()
# The texts of each type have ends of this size.
_ENDS: dict[pa.DataType, type[np.signedinteger[Any]]] = {
    pa.string(): np.int32,
    pa.large_string(): np.int64,
    pa.large_binary(): np.int64,
}


def table_of(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Rows with all fields of a schema: int64 (no nulls), texts, bytes. UnicodeEncodeError for a
    text that is not UTF-8.
    """
    return table_of_columns(([row[field.name] for row in rows] for field in schema), schema)


def table_of_columns(columns: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    """The same of its columns."""
    arrays = [_array(own, field.type) for own, field in zip(columns, schema, strict=True)]
    return pa.Table.from_batches([pa.RecordBatch.from_arrays(arrays, schema=schema)])


def read_table_of(path: Path, schema: pa.Schema) -> pa.Table | None:
    """A Parquet file of this schema, None of one that has another; its checksums are compared.
    OSError or pyarrow's own for a file that is no good. Not by pyarrow's `read_table`, which
    imports pandas.
    """
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            # By one thread: each has memory of its own, 25 MB in all for a file of 2.
            is_same = file.schema_arrow.equals(schema)
            return file.read(use_threads=False) if is_same else None
    except UnicodeDecodeError as error:  # a name of a column
        raise pa.ArrowInvalid(f"{path}: {error}") from None


def numbers_array(numbers: Iterable[int]) -> pa.Array:
    """An array of int64; OverflowError for a number that has more bits."""
    return _of_column(np.fromiter(numbers, np.int64))


def lists_array(counts: np.ndarray, numbers: np.ndarray) -> pa.Array:
    """Lists of int64, which lie one after the other in `numbers`; `counts` of each."""
    ends = np.append(0, np.cumsum(counts, dtype=np.int64))
    return pa.LargeListArray.from_arrays(_of_column(ends), _of_column(numbers))


def column_of_lists(column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """How many numbers each list of int64 has, and all of them one after the other."""
    array = column.combine_chunks()
    # Not by `to_numpy`, which imports pandas.
    return np.diff(_numbers(array.offsets)), _numbers(array.flatten())


def _numbers(array: pa.Array) -> np.ndarray:
    if not len(array):
        return np.empty(0, np.int64)
    return np.frombuffer(array.buffers()[1], np.int64, len(array), 8 * array.offset)


def _of_column(values: np.ndarray) -> pa.Array:
    data = np.ascontiguousarray(values, np.int64)
    return pa.Array.from_buffers(_INT64, len(data), [None, pa.py_buffer(data)])


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if kind == _INT64:
        return numbers_array(values)
    lengths, data = _joined(values)
    ends = np.fromiter(accumulate(lengths, initial=0), _ENDS[kind])
    is_there = np.fromiter((value is not None for value in values), np.bool_)
    known = pa.py_buffer(np.packbits(is_there, bitorder="little")) if None in values else None
    return pa.Array.from_buffers(kind, len(values), [known, pa.py_buffer(ends), pa.py_buffer(data)])


def _joined(values: Sequence[str | bytes | None]) -> tuple[Iterable[int], bytes]:
    """How many bytes each text or bytes has, and all of them one after the other."""
    if all(type(value) is str for value in values):
        text = "".join(cast(Sequence[str], values))
        if text.isascii():  # a byte a character
            return map(len, cast(Sequence[str], values)), text.encode()
    texts = [v.encode() if isinstance(v, str) else v or b"" for v in values]
    return map(len, texts), b"".join(texts)
