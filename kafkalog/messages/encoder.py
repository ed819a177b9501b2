"""Write a generated message: a dict of its fields → bytes, in any of its versions. The other way
round than `decoder`, which has the layout; both read the same tables.

Tags are written in rising order, those that have their default are left out, as Kafka's generated
`write` methods do: the bytes are Kafka's. A field that the version has no place for must have its
default: nothing that is given is left out without a word.

Source: Kafka MessageGenerator (generated `addSize` and `write` methods), KIP-482.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from typing import Any

from kafkalog.errors import UnsupportedMessageVersionError
from kafkalog.format.constants import MAX_INT16
from kafkalog.format.varint import pack_unsigned_varint
from kafkalog.messages.decoder import UNKNOWN_TAGS, default_value
from kafkalog.messages.schema import Array, Field, FieldType, Message, Primitive, Struct

_FORMATS = {
    Primitive.BOOL: ">?", Primitive.INT8: ">b", Primitive.INT16: ">h", Primitive.INT32: ">i",
    Primitive.INT64: ">q", Primitive.UINT16: ">H", Primitive.UINT32: ">I", Primitive.FLOAT64: ">d",
}  # fmt: skip
_UUID_SIZE = 16


def encode_message(message: Message, version: int, fields: Mapping[str, Any]) -> bytes:
    """The body of a message. Values are those of `decode_message`; what is missing has its default.

    Raises UnsupportedMessageVersionError for a version that is not known, or that has no place for
    a value; ValueError, with the field's name, for a value that is none of the field's type.
    """
    if version not in message.versions:
        raise UnsupportedMessageVersionError(f"{message.name} version {version} is not known")
    writer = _Writer(message.name, version, is_flexible=version in message.flexible)
    return writer.struct(message.body, fields, message.name)


class _Writer:
    """Each method gives the bytes of what it is named after; `where` is its name for errors."""

    __slots__ = ("_is_flexible", "_message", "_version")

    def __init__(self, message: str, version: int, *, is_flexible: bool) -> None:
        self._message = message
        self._version = version
        self._is_flexible = is_flexible

    def struct(self, table: Struct, fields: Mapping[str, Any], where: str) -> bytes:
        self._check_names(table, fields, where)
        plain = b"".join(
            self._field(field, fields.get(field.name, default_value(field)), where)
            for field in table.plain_fields(self._version)
        )
        return plain + self._tagged_section(table, fields, where) if self._is_flexible else plain

    def _check_names(self, table: Struct, fields: Mapping[str, Any], where: str) -> None:
        known = {field.name: field for field in table.fields}
        for name, value in fields.items():
            field = known.get(name)
            if field is None:
                if name != UNKNOWN_TAGS:
                    raise ValueError(f"{where}: no field is called {name}")
            elif self._version not in field.versions and not is_default(field, value):
                raise UnsupportedMessageVersionError(
                    f"{self._message} version {self._version} has no place for {name}"
                )

    def _tagged_section(self, table: Struct, fields: Mapping[str, Any], where: str) -> bytes:
        found: dict[int, bytes] = dict(fields.get(UNKNOWN_TAGS, ()))
        for tag, field in table.tagged_fields.items():
            if self._version in field.versions and field.name in fields:
                value = fields[field.name]
                if not is_default(field, value):
                    found[tag] = self._field(field, value, where)
        sections = (
            pack_unsigned_varint(tag) + pack_unsigned_varint(len(data)) + data
            for tag, data in sorted(found.items())
        )
        return pack_unsigned_varint(len(found)) + b"".join(sections)

    def _field(self, field: Field, value: Any, where: str) -> bytes:
        where = f"{where}.{field.name}"
        if value is None and self._version not in field.nullable:
            raise ValueError(f"{where} is null, and version {self._version} knows no null there")
        if not isinstance(field.type, Struct) or self._version not in field.nullable:
            return self._value(field.type, value, where)
        if value is None:
            return b"\0" if field.tag is not None else b"\xff"
        return b"\1" + self._value(field.type, value, where)

    def _value(self, kind: FieldType, value: Any, where: str) -> bytes:
        if isinstance(kind, Struct):
            return self.struct(kind, value, where)
        if isinstance(kind, Array):
            items = b"".join(self._value(kind.item, item, where) for item in value or ())
            return self._length(">i", value) + items
        try:
            return self._primitive(kind, value)
        except (struct.error, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"{where}: {value!r} is no {kind}: {error}") from None

    def _primitive(self, kind: Primitive, value: Any) -> bytes:
        if kind in _FORMATS:
            return struct.pack(_FORMATS[kind], value)
        if kind is Primitive.UUID:
            data = base64.urlsafe_b64decode(value + "==")
            if len(data) != _UUID_SIZE:
                raise ValueError(f"{len(data)} bytes, not {_UUID_SIZE}")
            return data
        if kind is Primitive.BYTES:
            return self._length(">i", value) + bytes(value or b"")
        data = b"" if value is None else value.encode()
        if len(data) > MAX_INT16:
            raise ValueError(f"{len(data)} bytes, and a string has at most {MAX_INT16}")
        return self._length(">h", None if value is None else data) + data

    def _length(self, classic: str, value: Any) -> bytes:
        if self._is_flexible:
            return pack_unsigned_varint(0 if value is None else len(value) + 1)
        return struct.pack(classic, -1 if value is None else len(value))


def is_default(field: Field, value: Any) -> bool:
    """Whether a field has what it has where it is not on the wire."""
    default = default_value(field)
    if isinstance(field.type, Struct) and value is not None and default is not None:
        return bool({**default, **value} == default)
    return bool(value == default)
