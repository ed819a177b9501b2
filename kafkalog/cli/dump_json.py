"""Rows of a view as JSON lines, a column at a time: `{"type": "record", "offset": 0, …}`."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.cli.dump_options import DumpOptions
from kafkalog.columns.arrow_arrays import bytes_scalar, number_values
from kafkalog.columns.texts import (
    JSON_ESCAPES,
    bool_text,
    escape,
    join,
    join_lists,
    join_unless_null,
    number_text,
    quoted,
)

_NULL = bytes_scalar(b"null")


def json_lines(kind: str, batch: pa.RecordBatch, options: DumpOptions) -> pa.Array:
    """One line a row, with `type` in front."""
    parts: list[pa.Array | bytes] = []
    head = '{"type": ' + json.dumps(kind)
    for field, column in zip(batch.schema, batch.columns, strict=True):
        parts.append(f"{head}, {json.dumps(field.name)}: ".encode())
        head = ""
        text = _value_text(field, column, options)
        parts.append(pc.coalesce(text, _NULL) if text.null_count else text)
    return join(*parts, b"}\n")


def _value_text(field: pa.Field, column: pa.Array, options: DumpOptions) -> pa.Array:
    kind = field.type
    if pa.types.is_boolean(kind):
        return bool_text(column)
    if pa.types.is_integer(kind):
        return number_text(column)
    if pa.types.is_timestamp(kind):
        text = pc.strftime(column, format="%Y-%m-%dT%H:%M:%SZ").cast(pa.binary())
        return join_unless_null(b'"', text, b'"')
    if pa.types.is_list(kind):
        return _headers_text(column, options)
    if pa.types.is_binary(kind):
        is_key = field.name == "key"
        return quoted(options.key_text(column) if is_key else options.value_text(column))
    return quoted(escape(column.cast(pa.binary()), JSON_ESCAPES))


def _headers_text(column: pa.Array, options: DumpOptions) -> pa.Array:
    pairs = column.values
    if options.redact or column.null_count == len(column):
        return pa.nulls(len(column), pa.binary())
    keys = quoted(escape(pairs.field("key").cast(pa.binary()), JSON_ESCAPES))
    values = pc.coalesce(quoted(options.bytes_text(pairs.field("value"))), _NULL)
    items = join(b'{"key": ', keys, b', "value": ', values, b"}")
    offsets = number_values(column.offsets)
    lists = join(b"[", join_lists(items, offsets), b"]")
    return pc.if_else(pc.is_valid(column), lists, bytes_scalar(None))
