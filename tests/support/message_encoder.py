"""Generated messages from JSON's form (bytes as base64): what no jar here writes any more, and what
tests break.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from typing import Any

from kafkalog.messages import encoder
from kafkalog.messages.encoder import is_default
from kafkalog.messages.schema import Array, FieldType, Message, Primitive, Struct


def encode_message(message: Message, version: int, fields: Mapping[str, Any]) -> bytes:
    """The body of a message; a field that is missing has its default."""
    return encoder.encode_message(message, version, from_json(message.body, fields))


def from_json(body: Struct, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a message in JSON's form as `decode_message` gives them, those alone that it
    has.
    """
    kinds = {field.name: field.type for field in body.fields}
    known = ((name, value) for name, value in fields.items() if name in kinds)
    return {name: _from_json(kinds[name], value) for name, value in known}


def _from_json(kind: FieldType, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(kind, Struct):
        return from_json(kind, value)
    if isinstance(kind, Array):
        return [_from_json(kind.item, item) for item in value]
    return base64.b64decode(value) if kind is Primitive.BYTES else value


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
        if field.name in fields and (field.tag is None or not is_default(field, fields[field.name]))
    }


def _without(kind: FieldType, value: Any) -> Any:
    if isinstance(kind, Struct) and value is not None:
        return without_defaults(kind, value)
    if isinstance(kind, Array) and value is not None:
        return [_without(kind.item, item) for item in value]
    return value
