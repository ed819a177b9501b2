"""Columns of any Arrow type as the text of JSON lines and of CSV, whole columns at a time.

The text of a value is the one that Spark's to_json gives: bytes in base64, times as
2026-01-01T00:00:00.000Z, what JSON has no number for (NaN, Infinity) as a string.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.texts import (
    JSON_ESCAPES,
    base64_text,
    bool_text,
    escape,
    join,
    join_lists,
    lines_of,
    number_text,
    quoted,
)

_NULL = pa.scalar(b"null", pa.binary())


def json_lines(batch: pa.RecordBatch) -> memoryview:
    """An object a row, and the ends of lines."""
    return lines_of(join(_object(batch.schema.names, batch.columns, len(batch)), b"\n"))


def csv_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows in columns that CSV has: numbers, truth values and text."""
    arrays = [_csv_column(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _csv_column(array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_primitive(kind) and not pa.types.is_temporal(kind):
        return array
    if pa.types.is_binary(kind):
        return base64_text(array).cast(pa.string())
    if pa.types.is_nested(kind):
        text = json_values(array)
        return pc.if_else(pc.is_valid(array), text, pa.scalar(None, text.type)).cast(pa.string())
    return _plain(array)


def json_values(array: pa.Array) -> pa.Array:
    """A JSON value a row, `null` for null."""
    text = _value(array)
    return pc.coalesce(text, _NULL) if text.null_count else text


def _object(names: list[str], columns: list[pa.Array], rows: int) -> pa.Array:
    if not columns:
        return pa.array([b"{}"] * rows, pa.binary())
    parts: list[pa.Array | bytes] = []
    for number, (name, column) in enumerate(zip(names, columns, strict=True)):
        comma = "," if number else "{"
        parts += [f"{comma}{json.dumps(name, ensure_ascii=False)}:".encode(), json_values(column)]
    return join(*parts, b"}")


def _value(array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_null(kind):
        return pa.nulls(len(array), pa.binary())
    if pa.types.is_boolean(kind):
        return bool_text(array)
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return number_text(array)
    if pa.types.is_floating(kind):
        text = array.cast(pa.string()).cast(pa.binary())
        return pc.if_else(pc.is_finite(array), text, quoted(_words(array)))
    if pa.types.is_binary(kind):
        return quoted(base64_text(array))
    if pa.types.is_map(kind):
        return _lists(array, _pairs(array), b"{", b"}")
    if pa.types.is_list(kind):
        return _lists(array, json_values(array.values), b"[", b"]")
    if pa.types.is_struct(kind):
        names = [kind.field(number).name for number in range(kind.num_fields)]
        text = _object(names, array.flatten(), len(array))
        return pc.if_else(pc.is_valid(array), text, pa.scalar(None, pa.binary()))
    return quoted(escape(_plain(array).cast(pa.binary()), JSON_ESCAPES))


def _words(array: pa.Array) -> pa.Array:
    """Java's names of what is no number."""
    infinite = pc.if_else(pc.greater(array, 0), "Infinity", "-Infinity")
    return pc.if_else(pc.is_nan(array), "NaN", infinite).cast(pa.binary())


def _pairs(array: pa.MapArray) -> pa.Array:
    keys = array.keys
    text = keys if pa.types.is_string(keys.type) else json_values(keys).cast(pa.string())
    names = quoted(escape(text.cast(pa.binary()), JSON_ESCAPES))
    return join(names, b":", json_values(array.items))


def _lists(array: pa.Array, items: pa.Array, opening: bytes, closing: bytes) -> pa.Array:
    joined = join(opening, join_lists(items, np.asarray(array.offsets)), closing)
    return pc.if_else(pc.is_valid(array), joined, pa.scalar(None, pa.binary()))


def _plain(array: pa.Array) -> pa.Array:
    """Text of what is a string in JSON."""
    kind = array.type
    if pa.types.is_timestamp(kind):
        end = "Z" if kind.tz is not None else ""
        return pc.strftime(_of_milliseconds(array), format=f"%Y-%m-%dT%H:%M:%S{end}")
    return array.cast(pa.string())


def _of_milliseconds(array: pa.Array) -> pa.Array:
    """Three digits of a second where no value has more."""
    milliseconds = array.cast(pa.timestamp("ms", tz=array.type.tz), safe=False)
    same = pc.all(pc.equal(milliseconds.cast(array.type), array)).as_py()
    return array if same is False else milliseconds
