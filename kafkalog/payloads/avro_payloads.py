"""Avro payloads by fastavro: each is read by the schema it was written with, resolved into the one
that is asked for.

Types: int INT, long LONG, string and enum STRING, bytes and fixed BINARY, record STRUCT, array
ARRAY, map MAP; a union with null is the other type, of several others their JSON as STRING. Of
logical types date, decimal (up to 38 digits), timestamp-… and local-timestamp-… have types of their
own; times of day and all others are what they are made of. Outside of the years 1 to 9999 a
timestamp is null.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from io import BytesIO
from typing import Any

import pyarrow as pa

from kafkalog.columns.column import TIMESTAMP
from kafkalog.errors import CorruptRecordError, InvalidConfigError
from kafkalog.payloads.payload import Convert, Decoder, in_calendar

_PRIMITIVES = {
    "null": pa.null(), "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(),
    "float": pa.float32(), "double": pa.float64(), "bytes": pa.binary(), "string": pa.string(),
}  # fmt: skip
# Ticks of logical types → microseconds.
_TO_MICROS: dict[str, Convert] = {
    "millis": lambda ticks: in_calendar(ticks * 1000),
    "micros": in_calendar,
    "nanos": lambda ticks: in_calendar(ticks // 1000),
}
_MOST_DIGITS = 38
_NAMED = ("record", "error", "enum", "fixed")

# Type and conversion of one schema.
_Typed = tuple[pa.DataType, Convert]


def avro_decoder(writers: Mapping[int, Any], reader: Any) -> Decoder:
    """writers: schema id → schema, as JSON says it, with all names in it that it refers to (see
    `resolved`); reader: the same of what is asked for. InvalidConfigError for a reader that is no
    schema, or whose record holds itself."""
    from fastavro import parse_schema, schemaless_reader
    from fastavro.schema import SchemaParseException

    try:
        asked: Any = parse_schema(_without_logical_types(reader))
        kind, convert = _Types().of(reader)
    except (SchemaParseException, ValueError, TypeError, KeyError) as error:
        raise InvalidConfigError(f"the schema is no Avro schema: {error}") from None
    parsed: dict[int, Any] = {}

    def decode(schema_id: int, body: bytes) -> Any:
        if schema_id not in writers:
            raise CorruptRecordError(f"no Avro schema has id {schema_id}")
        stream = BytesIO(body)
        try:
            if schema_id not in parsed:
                parsed[schema_id] = parse_schema(_without_logical_types(writers[schema_id]))
            value = convert(schemaless_reader(stream, parsed[schema_id], asked))
        except Exception as error:  # fastavro raises what its own code runs into
            text = f"not Avro of schema {schema_id}: {type(error).__name__} {error}".strip()
            raise CorruptRecordError(text) from None
        if (left := len(body) - stream.tell()) > 0:
            raise CorruptRecordError(f"not Avro of schema {schema_id}: {left} bytes are behind it")
        return value

    return Decoder(kind, decode)


def _without_logical_types(schema: Any) -> Any:
    """fastavro would make Python's dates and times of them, by the writer's word alone."""
    if isinstance(schema, list):
        return [_without_logical_types(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: value for name, value in schema.items() if name != "logicalType"}
    for name in ("type", "items", "values"):
        if name in kept:
            kept[name] = _without_logical_types(kept[name])
    if isinstance(kept.get("fields"), list):
        kept["fields"] = [_without_logical_types(field) for field in kept["fields"]]
    return kept


def with_named(schema: Any, named: Mapping[str, Any]) -> Any:
    """A schema with the types that it refers to, by full name, where they are named first."""
    known: set[str] = set()

    def walk(node: Any, space: str) -> Any:
        if isinstance(node, list):
            return [walk(each, space) for each in node]
        if isinstance(node, str):
            full = node if "." in node or not space else f"{space}.{node}"
            name = full if full in named else node
            if node in _PRIMITIVES or name not in named or name in known:
                return node
            return walk(named[name], "")
        if not isinstance(node, dict):
            return node
        found = dict(node)
        if isinstance(found.get("name"), str) and found.get("type") in _NAMED:
            space = found.get("namespace", space)
            full = (
                found["name"] if "." in found["name"] or not space else f"{space}.{found['name']}"
            )
            space = full.rpartition(".")[0]
            known.add(full)
        for each in ("items", "values") if found.get("type") in ("array", "map") else ():
            found[each] = walk(found[each], space)
        if isinstance(found.get("type"), (list, dict)):
            found["type"] = walk(found["type"], space)
        if isinstance(found.get("fields"), list):
            found["fields"] = [{**f, "type": walk(f["type"], space)} for f in found["fields"]]
        return found

    return walk(schema, "")


class _Types:
    """Arrow's type of a schema; named types stand in it once, and by their names afterwards."""

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}
        self._within: list[str] = []

    def of(self, schema: Any, space: str = "") -> _Typed:
        if isinstance(schema, list):
            return self._union(schema, space)
        if isinstance(schema, str):
            if schema in _PRIMITIVES:
                return _PRIMITIVES[schema], _as_it_is
            full = schema if "." in schema or not space else f"{space}.{schema}"
            return self._of_dict(*self._named.get(full) or self._named[schema])
        if isinstance(schema.get("type"), (dict, list)):
            return self.of(schema["type"], space)
        return self._of_dict(schema, space)

    def _of_dict(self, schema: Any, space: str) -> _Typed:
        kind = schema["type"]
        if kind in _NAMED:
            name = schema["name"]
            space = schema.get("namespace", space)
            full = name if "." in name or not space else f"{space}.{name}"
            space = full.rpartition(".")[0]
            self._named[full] = (schema, space)
            if kind in ("record", "error"):
                return self._record(full, schema["fields"], space)
            if kind == "enum":
                return pa.string(), _as_it_is
        if kind == "array":
            item, convert = self.of(schema["items"], space)
            return pa.list_(item), lambda items: [convert(each) for each in items]
        if kind == "map":
            item, convert = self.of(schema["values"], space)
            return pa.map_(pa.string(), item), lambda m: [(k, convert(v)) for k, v in m.items()]
        if "logicalType" in schema and (found := _logical(schema)) is not None:
            return found
        return (pa.binary(), _as_it_is) if kind == "fixed" else self.of(kind, space)

    def _record(self, name: str, fields: Any, space: str) -> _Typed:
        if name in self._within:
            path = " in ".join((name, *reversed(self._within)))
            raise InvalidConfigError(f"a record that holds itself has no columns: {path}")
        self._within.append(name)
        typed = {field["name"]: self.of(field["type"], space) for field in fields}
        self._within.pop()
        kind = pa.struct([pa.field(each, one) for each, (one, _) in typed.items()])
        return kind, lambda value: {
            each: convert(value[each]) for each, (_, convert) in typed.items()
        }

    def _union(self, branches: list[Any], space: str) -> _Typed:
        # All are looked at, as one may be named later.
        typed = [self.of(each, space) for each in branches if each != "null"]
        if not typed:
            return pa.null(), _as_it_is
        kind, convert = typed[0] if len(typed) == 1 else (pa.string(), _json_text)
        return kind, lambda value: None if value is None else convert(value)


def _logical(schema: Any) -> _Typed | None:
    """None for one that has no type of its own."""
    name, kind = schema["logicalType"], schema["type"]
    if name == "date" and kind == "int":
        return pa.date32(), _as_it_is
    if name == "decimal" and kind in ("bytes", "fixed"):
        digits, scale = schema.get("precision"), schema.get("scale", 0)
        if isinstance(digits, int) and isinstance(scale, int) and scale <= digits <= _MOST_DIGITS:
            return pa.decimal128(digits, scale), lambda raw: _decimal(raw, scale)
    for start, zone in (("timestamp-", TIMESTAMP), ("local-timestamp-", pa.timestamp("us"))):
        convert = _TO_MICROS.get(str(name).removeprefix(start))
        if convert is not None and str(name).startswith(start) and kind == "long":
            return zone, convert
    return None


def _decimal(raw: bytes, scale: int) -> Decimal:
    sign, digits, _ = Decimal(int.from_bytes(raw, signed=True)).as_tuple()
    return Decimal((sign, digits, -scale))


def _as_it_is(value: Any) -> Any:
    return value


def _json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=lambda raw: raw.decode("latin-1"))
