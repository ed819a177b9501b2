"""Read a generated message: bytes → a dict of its fields, in any of its versions.

 classic    string i16 length, bytes i32 length, array i32 count; null is -1
 flexible   uvarint of length + 1 for all three, null is 0; every struct ends with a tagged section:
            uvarint count, then per field uvarint tag, uvarint size, payload
 both       numbers big-endian; uuid 16 bytes; a nullable struct has one byte in front, negative
            for null (in a tagged field: a uvarint, 0 for null)

Strategy: one recursive reader that never looks past `end` and believes no length: a string, bytes
or array that needs more than is left is an error before anything is allocated. Tagged fields may
come in any order and twice, then the last one counts; those without a name here are kept as bytes
under UNKNOWN_TAGS. Malformed UTF-8 reads as U+FFFD, as in Kafka.

Source: Kafka MessageGenerator (generated `read` methods), ByteUtils, KIP-482.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from typing import Any

from kafkalog.errors import CorruptRecordError, UnsupportedMessageVersionError
from kafkalog.format.constants import MAX_INT16, MAX_INT32
from kafkalog.format.varint import parse_unsigned_varint
from kafkalog.messages.schema import Array, Field, FieldType, Message, Primitive, Struct

# The key of what a struct had in tags that its table does not name: ((tag, bytes), …).
UNKNOWN_TAGS = "_unknownTaggedFields"

_NUMBERS = {
    Primitive.INT8: struct.Struct(">b"),
    Primitive.INT16: struct.Struct(">h"),
    Primitive.INT32: struct.Struct(">i"),
    Primitive.INT64: struct.Struct(">q"),
    Primitive.UINT16: struct.Struct(">H"),
    Primitive.UINT32: struct.Struct(">I"),
    Primitive.FLOAT64: struct.Struct(">d"),
}
_SMALLEST: dict[Primitive, int] = {kind: fmt.size for kind, fmt in _NUMBERS.items()}
_SMALLEST |= {Primitive.UUID: 16}
_EMPTY: dict[Primitive, Any] = {
    Primitive.BOOL: False,
    Primitive.FLOAT64: 0.0,
    Primitive.UUID: "AAAAAAAAAAAAAAAAAAAAAA",
    Primitive.STRING: "",
    Primitive.BYTES: b"",
}


def decode_message(
    message: Message, version: int, data: bytes | memoryview, position: int = 0
) -> dict[str, Any]:
    """The fields of a message whose body is data[position:], which it must fill exactly.

    Strings are str, bytes are bytes, a uuid is its text (url-safe base64 without padding), arrays
    are lists, structs dicts; a field that is not in `version` has its default.

    Raises UnsupportedMessageVersionError for a version that is not known, CorruptRecordError, its
    position counted in `data`, for bytes that are no such message.
    """
    fields, end = decode_prefix(message, version, data, position)
    if end != len(data):
        left = len(data) - end
        raise CorruptRecordError(
            f"{message.name}: {left} bytes are left after the last field", position=end
        )
    return fields


def decode_prefix(
    message: Message, version: int, data: bytes | memoryview, position: int = 0
) -> tuple[dict[str, Any], int]:
    """The fields of a message that begins at `position`, and where it ends; raises as
    `decode_message`.
    """
    if version not in message.versions:
        raise UnsupportedMessageVersionError(f"{message.name} version {version} is not known")
    reader = _Reader(data, position, version, is_flexible=version in message.flexible)
    return reader.struct(message.body, len(data)), reader.position


def decode_newest(
    layouts: Sequence[Message], version: int, data: bytes | memoryview, position: int = 0
) -> tuple[Message, dict[str, Any]]:
    """The first of some layouts that takes data[position:] to its last byte, and the fields: where
    releases gave a version other fields. Raises as `decode_message` of the first layout.
    """
    try:
        return layouts[0], decode_message(layouts[0], version, data, position)
    except CorruptRecordError:
        for layout in layouts[1:]:
            try:
                return layout, decode_message(layout, version, data, position)
            except CorruptRecordError:
                continue
        raise


class _Reader:
    """A cursor in `data`; every method reads what it is named after, up to `end`."""

    __slots__ = ("_data", "_is_flexible", "_version", "position")

    def __init__(
        self, data: bytes | memoryview, position: int, version: int, *, is_flexible: bool
    ) -> None:
        self._data = data
        self._version = version
        self._is_flexible = is_flexible
        self.position = position

    def struct(self, table: Struct, end: int) -> dict[str, Any]:
        fields = {
            field.name: self._field(field, end) for field in table.plain_fields(self._version)
        }
        tagged, unknown = self._tagged_section(table, end) if self._is_flexible else ({}, ())
        for field in table.fields:
            if field.name not in fields:
                fields[field.name] = tagged.get(field.name, _Absent)
                if fields[field.name] is _Absent:
                    fields[field.name] = default_value(field)
        if unknown:
            fields[UNKNOWN_TAGS] = unknown
        return fields

    def _tagged_section(
        self, table: Struct, end: int
    ) -> tuple[dict[str, Any], tuple[tuple[int, bytes], ...]]:
        found: dict[str, Any] = {}
        unknown: list[tuple[int, bytes]] = []
        for _ in range(self._count(self._uvarint(end), 2, "tagged field", end)):
            start = self.position
            tag, size = self._uvarint(end), self._uvarint(end)
            if size > end - self.position:
                raise self._error(f"tag {tag} of {size} bytes", self.position, end)
            payload_end = self.position + size
            field = table.tagged_fields.get(tag)
            if field is None:
                unknown.append((tag, bytes(self._data[self.position : payload_end])))
            elif self._version not in field.versions:
                raise CorruptRecordError(
                    f"tag {tag} ({field.name}) is not in version {self._version}", position=start
                )
            else:
                found[field.name] = self._field(field, payload_end)
            # The stated size rules: Kafka's own reader trusts the payload, which is the same in
            # every message that it wrote.
            self.position = payload_end
        return found, tuple(unknown)

    def _field(self, field: Field, end: int) -> Any:
        start = self.position
        value = self._value(field, end)
        if value is None and self._version not in field.nullable:
            raise CorruptRecordError(f"{field.name} is null", position=start)
        return value

    def _value(self, field: Field, end: int) -> Any:
        kind = field.type
        if isinstance(kind, Array):
            return self._array(kind, end)
        if isinstance(kind, Struct):
            is_null = self._version in field.nullable and self._is_null_struct(field, end)
            return None if is_null else self.struct(kind, end)
        return self._primitive(kind, end)

    def _is_null_struct(self, field: Field, end: int) -> bool:
        if field.tag is not None:
            return self._uvarint(end) == 0
        return int(self._number(Primitive.INT8, end)) < 0

    def _array(self, kind: Array, end: int) -> list[Any] | None:
        count = self._length(">i", "array", end)
        if count < 0:
            return None
        self._count(count, _smallest(kind.item), "item", end)
        if isinstance(kind.item, Struct):
            return [self.struct(kind.item, end) for _ in range(count)]
        return [self._item(kind.item, end) for _ in range(count)]

    def _item(self, kind: Primitive, end: int) -> Any:
        start = self.position
        item = self._primitive(kind, end)
        if item is None:
            raise CorruptRecordError(f"an item of type {kind} is null", position=start)
        return item

    def _primitive(self, kind: Primitive, end: int) -> Any:
        if kind in _NUMBERS:
            return self._number(kind, end)
        if kind == Primitive.BOOL:
            return self._number(Primitive.INT8, end) != 0
        if kind == Primitive.UUID:
            return base64.urlsafe_b64encode(self._take(16, "uuid", end)).decode()[:22]
        if kind == Primitive.BYTES:
            length = self._length(">i", "bytes", end)
            return None if length < 0 else self._take(length, "bytes", end)
        start = self.position
        length = self._length(">h", "string", end)
        if length > MAX_INT16:
            raise CorruptRecordError(f"string of {length} bytes", position=start)
        return None if length < 0 else self._take(length, "string", end).decode("utf-8", "replace")

    def _number(self, kind: Primitive, end: int) -> int | float:
        layout = _NUMBERS[kind]
        number: int | float = layout.unpack(self._take(layout.size, kind, end))[0]
        return number

    def _length(self, classic: str, what: str, end: int) -> int:
        """A length or count; negative for null."""
        if not self._is_flexible:
            layout = struct.Struct(classic)
            return int(layout.unpack(self._take(layout.size, f"{what} length", end))[0])
        # A Java int: with bit 31 set it is negative, and null.
        length = self._uvarint(end)
        return -1 if length > MAX_INT32 else length - 1

    def _count(self, count: int, smallest: int, what: str, end: int) -> int:
        if count * smallest > end - self.position:
            raise self._error(f"{count} {what}s", self.position, end)
        return count

    def _uvarint(self, end: int) -> int:
        start = self.position
        if start < end and self._data[start] < 0x80:  # nearly all of them
            self.position += 1
            return self._data[start]
        value, self.position = parse_unsigned_varint(self._data, self.position, end)
        return value

    def _take(self, length: int, what: str, end: int) -> bytes:
        start = self.position
        if length > end - start:
            raise self._error(f"{what} of {length} bytes", start, end)
        self.position += length
        return bytes(self._data[start : self.position])

    @staticmethod
    def _error(what: str, position: int, end: int) -> CorruptRecordError:
        left = max(end - position, 0)
        return CorruptRecordError(f"{what}, but {left} bytes are left", position=position)


class _Absent:
    """Stands for a tagged field that is not there: None is a value."""


def _smallest(kind: Primitive | Struct) -> int:
    """Bytes an item needs at least, so that no count asks for more items than there can be."""
    return 1 if isinstance(kind, Struct) else _SMALLEST.get(kind, 1)


def default_value(field: Field) -> Any:
    """What a field has where it is not on the wire."""
    if field.default is not None or field.default_is_null:
        return field.default
    return _empty(field.type)


def _empty(kind: FieldType) -> Any:
    if isinstance(kind, Array):
        return []
    if isinstance(kind, Struct):
        return {field.name: default_value(field) for field in kind.fields}
    return _EMPTY.get(kind, 0)
