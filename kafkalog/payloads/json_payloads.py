"""JSON payloads by a JSON Schema: columns from its `type`, `properties`, `items`.

Types: integer LONG, number DOUBLE, boolean BOOLEAN, string STRING, array ARRAY, object with
`properties` STRUCT, object with `additionalProperties` alone MAP; `null` beside another type is
that type. All else (several types, `anyOf`, what refers to itself, no type at all) is its JSON as
STRING. Of an object what no property names is left out. A value of another type than its property
is an error of the whole payload; nothing else of the schema is checked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

import pyarrow as pa

from kafkalog.errors import CorruptRecordError, InvalidConfigError
from kafkalog.payloads.payload import Decoder

# A value, and where it is in its payload → as Arrow takes it.
_Convert = Callable[[Any, str], Any]
_Typed = tuple[pa.DataType, _Convert]

_SCALARS: dict[str, tuple[pa.DataType, tuple[type, ...]]] = {
    "string": (pa.string(), (str,)),
    "boolean": (pa.bool_(), (bool,)),
    "number": (pa.float64(), (int, float)),
}
_LEVELS = 64


def json_decoder(
    ids: Collection[int], schema: Any, references: Mapping[str, Any] | None = None
) -> Decoder:
    """ids: of the schemas that are JSON's; schema: of what is asked for, as JSON says it;
    references: by the names under which it refers to them. InvalidConfigError for what is none."""
    if not isinstance(schema, (dict, bool)):
        raise InvalidConfigError("the schema is no JSON Schema: an object is expected")
    kind, convert = _Types(schema, references or {}).of(schema, ())

    def decode(schema_id: int, body: bytes) -> Any:
        if schema_id not in ids:
            raise CorruptRecordError(f"no JSON Schema has id {schema_id}")
        try:
            value = json.loads(body.decode("utf-8"), parse_constant=_refused)
        except (ValueError, RecursionError):
            raise CorruptRecordError("not JSON") from None
        return convert(value, "$")

    return Decoder(kind, decode)


def _refused(word: str) -> Any:
    raise ValueError(word)


class _Types:
    """Arrow's types of one schema and the ones that it refers to."""

    def __init__(self, root: Any, references: Mapping[str, Any]) -> None:
        self._root = root
        self._references = references

    def of(self, schema: Any, within: tuple[str, ...]) -> _Typed:
        """within: what was referred to on the way here."""
        if not isinstance(schema, dict) or len(within) > _LEVELS:
            return _TEXT
        if "$ref" in schema:
            name = str(schema["$ref"])
            target = self._target(name)
            return _TEXT if target is None or name in within else self.of(target, (*within, name))
        for word in ("oneOf", "anyOf", "allOf"):
            if isinstance(schema.get(word), list):
                others = [each for each in schema[word] if each != {"type": "null"}]
                return self.of(others[0], (*within, "")) if len(others) == 1 else _TEXT
        kinds = schema.get("type")
        kinds = [each for each in kinds if each != "null"] if isinstance(kinds, list) else [kinds]
        if len(kinds) != 1:
            return _TEXT
        return self._one(kinds[0], schema, (*within, ""))

    def _one(self, kind: Any, schema: dict[str, Any], within: tuple[str, ...]) -> _Typed:
        if kind == "integer":
            return pa.int64(), _integer
        if kind in _SCALARS:
            return _SCALARS[kind][0], _scalar(kind)
        if kind == "array" and isinstance(schema.get("items"), dict):
            return _array(self.of(schema["items"], within))
        if kind == "object" and isinstance(schema.get("properties"), dict):
            typed = {name: self.of(one, within) for name, one in schema["properties"].items()}
            return _struct(typed) if typed else _TEXT
        if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
            return _map(self.of(schema["additionalProperties"], within))
        return _TEXT

    def _target(self, name: str) -> Any:
        """What a reference means: a place in this schema, or a schema of its own."""
        if not name.startswith("#"):
            return self._references.get(name)
        found = self._root
        for part in name[1:].split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, dict) else None
        return found


def _text(value: Any, at: str) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)


_TEXT: _Typed = (pa.string(), _text)


def _wrong(value: Any, at: str, wanted: str) -> CorruptRecordError:
    return CorruptRecordError(
        f"not JSON of the schema: {at} is {type(value).__name__}, not {wanted}"
    )


def _integer(value: Any, at: str) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 1.0 is an integer to JSON Schema
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        if value is None or -(1 << 63) <= value < 1 << 63:
            return value
        raise CorruptRecordError(f"{at} does not fit 64 bits")
    raise _wrong(value, at, "integer")


def _scalar(kind: str) -> _Convert:
    types = _SCALARS[kind][1]

    def convert(value: Any, at: str) -> Any:
        if value is None:
            return None
        if type(value) not in types:
            raise _wrong(value, at, kind)
        if kind != "number":
            return value
        try:
            return float(value)
        except OverflowError:
            raise CorruptRecordError(f"{at} does not fit a double") from None

    return convert


def _array(item: _Typed) -> _Typed:
    def convert(value: Any, at: str) -> Any:
        if value is None:
            return None
        if not isinstance(value, list):
            raise _wrong(value, at, "array")
        return [item[1](each, f"{at}[{i}]") for i, each in enumerate(value)]

    return pa.list_(item[0]), convert


def _struct(typed: Mapping[str, _Typed]) -> _Typed:
    def convert(value: Any, at: str) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _wrong(value, at, "object")
        return {name: one(value.get(name), f"{at}.{name}") for name, (_, one) in typed.items()}

    return pa.struct([pa.field(name, kind) for name, (kind, _) in typed.items()]), convert


def _map(item: _Typed) -> _Typed:
    def convert(value: Any, at: str) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _wrong(value, at, "object")
        return [(name, item[1](each, f"{at}.{name}")) for name, each in value.items()]

    return pa.map_(pa.string(), item[0]), convert
