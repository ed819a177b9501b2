"""Random generated messages as JSON, by our tables: what Kafka's own converters read.

Odd values come often: nulls, empty strings and arrays, the ends of a type's range, characters of
one to four bytes of UTF-8; a tagged field has its default half the time.
"""

from __future__ import annotations

import base64
import random
from typing import Any

from kafkalog.messages.decoder import default_value
from kafkalog.messages.schema import Array, Field, FieldType, Message, Primitive, Struct

_BITS = {
    Primitive.INT8: 8,
    Primitive.INT16: 16,
    Primitive.INT32: 32,
    Primitive.INT64: 64,
    Primitive.UINT16: 16,
    Primitive.UINT32: 32,
}
_UNSIGNED = (Primitive.UINT16, Primitive.UINT32)
_TEXTS = ("", "a", "topic-1", "é", "漢字", "😀 x", "n" * 127, "m" * 128)
_REALS = (0.0, -1.5, 1048576.0, 1e300, 5e-324)


def random_message(message: Message, version: int, rng: random.Random) -> dict[str, Any]:
    """The fields of a version."""
    return _struct(message.body, version, rng)


def _struct(body: Struct, version: int, rng: random.Random) -> dict[str, Any]:
    return {
        field.name: _field(field, version, rng)
        for field in body.fields
        if version in field.versions and not (field.tag is not None and rng.random() < 0.3)
    }


def _field(field: Field, version: int, rng: random.Random) -> Any:
    if version in field.nullable and rng.random() < 0.25:
        return None
    if field.tag is not None and rng.random() < 0.2:
        default = default_value(field)
        return base64.b64encode(default).decode() if isinstance(default, bytes) else default
    return _value(field.type, version, rng)


def _value(kind: FieldType, version: int, rng: random.Random) -> Any:
    if isinstance(kind, Struct):
        return _struct(kind, version, rng)
    if isinstance(kind, Array):
        return [_value(kind.item, version, rng) for _ in range(rng.choice((0, 1, 2, 5)))]
    if kind in _BITS:
        return _number(_BITS[kind], kind in _UNSIGNED, rng)
    if kind is Primitive.BOOL:
        return rng.random() < 0.5
    if kind is Primitive.FLOAT64:
        return rng.choice(_REALS)
    if kind is Primitive.STRING:
        return rng.choice(_TEXTS)
    data = rng.randbytes(16 if kind is Primitive.UUID else rng.choice((0, 1, 16, 200)))
    if kind is Primitive.UUID:
        return base64.urlsafe_b64encode(data).decode().rstrip("=")
    return base64.b64encode(data).decode()


def _number(bits: int, unsigned: bool, rng: random.Random) -> int:
    lowest = 0 if unsigned else -1 << (bits - 1)
    highest = lowest + (1 << bits) - 1
    return rng.choice((0, 1, lowest, highest, rng.randint(lowest, highest)))
