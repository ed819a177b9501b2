"""Write generated messages by our tables: what no jar here writes any more, and what tests break.

The other way round than `kafkalog.messages.decoder`, which Kafka's own classes check. Fields are in
JSON's form: bytes as base64.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from typing import Any

from kafkalog.format.varint import pack_unsigned_varint
from kafkalog.messages.decoder import default_value
from kafkalog.messages.schema import Array, Field, FieldType, Message, Primitive, Struct

_FORMATS = {
    Primitive.BOOL: ">?", Primitive.INT8: ">b", Primitive.INT16: ">h", Primitive.INT32: ">i",
    Primitive.INT64: ">q", Primitive.UINT16: ">H", Primitive.UINT32: ">I", Primitive.FLOAT64: ">d",
}  # fmt: skip


def encode_message(message: Message, version: int, fields: Mapping[str, Any]) -> bytes:
    """The body of a message; a field that is missing has its default."""
    return _struct(message.body, version, fields, flexible=version in message.flexible)


def encode_value(message: Message, version: int, fields: Mapping[str, Any]) -> bytes:
    """The value of a coordinator's record."""
    return struct.pack(">h", version) + encode_message(message, version, fields)


def encode_key(message: Message, fields: Mapping[str, Any]) -> bytes:
    """The key of a coordinator's record."""
    return struct.pack(">h", message.api_key) + encode_message(message, 0, fields)


def without_defaults(body: Struct, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields without tagged ones that have their default, as Kafka's converters write them."""
    return {
        field.name: _without(field.type, fields[field.name])
        for field in body.fields
        if field.name in fields
        and (field.tag is None or not _is_default(field, fields[field.name]))
    }


def _without(kind: FieldType, value: Any) -> Any:
    if isinstance(kind, Struct) and value is not None:
        return without_defaults(kind, value)
    if isinstance(kind, Array) and value is not None:
        return [_without(kind.item, item) for item in value]
    return value


def _is_default(field: Field, value: Any) -> bool:
    default = default_value(field)
    if isinstance(field.type, Struct) and value is not None and default is not None:
        return {**default, **value} == default
    return bool(value == default)


def _struct(body: Struct, version: int, fields: Mapping[str, Any], *, flexible: bool) -> bytes:
    data = b"".join(
        _field(field, version, fields.get(field.name, default_value(field)), flexible=flexible)
        for field in body.plain_fields(version)
    )
    if not flexible:
        return data
    tagged = [
        (tag, _field(field, version, fields[field.name], flexible=True))
        for tag, field in sorted(body.tagged_fields.items())
        if version in field.versions
        and field.name in fields
        and not _is_default(field, fields[field.name])
    ]
    sections = (pack_unsigned_varint(t) + pack_unsigned_varint(len(d)) + d for t, d in tagged)
    return data + pack_unsigned_varint(len(tagged)) + b"".join(sections)


def _field(field: Field, version: int, value: Any, *, flexible: bool) -> bytes:
    marker = b""
    if isinstance(field.type, Struct) and version in field.nullable:
        if value is None:
            return b"\0" if field.tag is not None else b"\xff"
        marker = b"\1"
    return marker + _value(field.type, version, value, flexible=flexible)


def _value(kind: FieldType, version: int, value: Any, *, flexible: bool) -> bytes:
    if isinstance(kind, Struct):
        return _struct(kind, version, value, flexible=flexible)
    if isinstance(kind, Array):
        items = b"".join(_value(kind.item, version, v, flexible=flexible) for v in value or ())
        return _length(">i", value, flexible=flexible) + items
    if kind in _FORMATS:
        return struct.pack(_FORMATS[kind], value)
    if kind is Primitive.UUID:
        return base64.urlsafe_b64decode(value + "==")
    data = value
    if value is not None:
        data = value.encode() if kind is Primitive.STRING else base64.b64decode(value)
    classic = ">h" if kind is Primitive.STRING else ">i"
    return _length(classic, data, flexible=flexible) + (data or b"")


def _length(classic: str, value: Any, *, flexible: bool) -> bytes:
    if flexible:
        return pack_unsigned_varint(0 if value is None else len(value) + 1)
    return struct.pack(classic, -1 if value is None else len(value))
