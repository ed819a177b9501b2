"""Protobuf payloads by Google's library.

    message indexes     zigzag varints: how many, then the place of the message in its file, the
                        outermost first; a lone 0 is [0], the first message of the file

Types: enum STRING, bytes BINARY, uint32 LONG, uint64 LONG (as its 64 bits), repeated ARRAY, map
MAP, message STRUCT, google.protobuf.Timestamp TIMESTAMP. A field that was not written is null where
the format tells (messages, oneof, optional), else the default of its type.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError

from kafkalog.errors import CorruptRecordError, InvalidConfigError
from kafkalog.format.varint import parse_varint
from kafkalog.payloads.payload import Decoder

_TIMESTAMP = "google.protobuf.Timestamp"
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SCALARS = {
    FieldDescriptor.CPPTYPE_INT32: pa.int32(),
    FieldDescriptor.CPPTYPE_INT64: pa.int64(),
    FieldDescriptor.CPPTYPE_UINT32: pa.int64(),
    FieldDescriptor.CPPTYPE_UINT64: pa.int64(),
    FieldDescriptor.CPPTYPE_DOUBLE: pa.float64(),
    FieldDescriptor.CPPTYPE_FLOAT: pa.float32(),
    FieldDescriptor.CPPTYPE_BOOL: pa.bool_(),
    FieldDescriptor.CPPTYPE_ENUM: pa.string(),
}

# Of one message in Python: how its fields are read.
Convert = Callable[[Any], Any]


def message_type(descriptors: bytes, message: str) -> pa.DataType:
    """The type of a message's column; InvalidConfigError for a descriptor set that is none, and a
    message that is not in it or holds itself."""
    return _struct(_descriptor(descriptors, message), ())


def registered_decoder(writers: Mapping[int, bytes], reader: bytes, message: str | None) -> Decoder:
    """writers: schema id → descriptor set, its own file the last one; reader: the same of what is
    asked for, and the full name of the message (default: the first one of its file). What was
    written as another message is an error of its own. As Protobuf has it, fields are known by their
    numbers, so that the reader's own class reads what an older or newer schema wrote."""
    name = message or first_message(reader)
    kind = message_type(reader, name)

    def decode(schema_id: int, body: bytes) -> Any:
        if schema_id not in writers:
            raise CorruptRecordError(f"no Protobuf schema of the subject has id {schema_id}")
        start, written = _message_written(writers[schema_id], body)
        if written != name:
            raise CorruptRecordError(f"message {written}, not {name}")
        return _read(reader, name, body[start:])

    return Decoder(kind, decode)


def first_message(descriptors: bytes) -> str:
    """The full name of the first message in the file of a descriptor set, which is the last."""
    file = descriptor_pb2.FileDescriptorSet.FromString(descriptors).file[-1]
    if not file.message_type:
        raise InvalidConfigError("the schema of Protobuf has no message")
    name = file.message_type[0].name
    return f"{file.package}.{name}" if file.package else name


def further_messages(descriptors: bytes) -> list[str]:
    """The full names of the other messages at the top of that file, which are no part of one there
    and have fields: what a topic's other records may be."""
    file = descriptor_pb2.FileDescriptorSet.FromString(descriptors).file[-1]
    parts = {part for message in file.message_type for part in _types_in(message)}
    own = [message.name for message in file.message_type[1:] if message.field]
    names = (f"{file.package}.{name}" if file.package else name for name in own)
    return [name for name in names if f".{name}" not in parts]


def _types_in(message: Any) -> Iterator[str]:
    """Of its fields and of those of the messages in it, with a dot in front."""
    for field in message.field:
        yield field.type_name
    for inner in message.nested_type:
        yield from _types_in(inner)


def _message_written(descriptors: bytes, body: bytes) -> tuple[int, str]:
    """(position behind the message indexes, full name of the message that they mean)."""
    found, position = _indexes_of(body)
    name = _message_at(descriptors, tuple(found))
    if name is None:
        raise CorruptRecordError(f"message {found} is not in its schema's file")
    return position, name


@cache
def _message_at(descriptors: bytes, indexes: tuple[int, ...]) -> str | None:
    file = descriptor_pb2.FileDescriptorSet.FromString(descriptors).file[-1]
    names = [file.package] if file.package else []
    kinds: Sequence[Any] = file.message_type
    for index in indexes:
        written = [kind for kind in kinds if not kind.options.map_entry]
        if not 0 <= index < len(written):
            return None
        names.append(written[index].name)
        kinds = written[index].nested_type
    return ".".join(names)


def _read(descriptors: bytes, message: str, body: bytes) -> Any:
    kind, convert, _ = _reader(descriptors, message)
    try:
        return convert(kind.FromString(body))
    except (DecodeError, ValueError):  # what is no message; text that is no UTF-8
        raise CorruptRecordError(f"not Protobuf of {message}") from None


def decode_message(
    descriptors: bytes, message: str, body: bytes | None, *, is_framed: bool
) -> dict[str, Any]:
    """`payload` and `error` of one message; with `is_framed` message indexes are in front."""
    if body is None:
        return {"payload": None, "error": None}
    try:
        indexes = _reader(descriptors, message)[2]
        start = _skip_indexes(body, indexes) if is_framed else 0
        return {"payload": _read(descriptors, message, body[start:]), "error": None}
    except CorruptRecordError as error:
        return {"payload": None, "error": error.reason}


def _skip_indexes(body: bytes, indexes: Sequence[int]) -> int:
    """The position behind the message indexes; CorruptRecordError if they name another message."""
    found, position = _indexes_of(body)
    if found != list(indexes):
        raise CorruptRecordError(f"message {found} of its schema's file, not {list(indexes)}")
    return position


def _indexes_of(body: bytes) -> tuple[list[int], int]:
    count, position = parse_varint(body)
    found = [] if count else [0]
    while len(found) < count:
        index, position = parse_varint(body, position)
        found.append(index)
    return found, position


@cache
def _reader(descriptors: bytes, message: str) -> tuple[Any, Convert, list[int]]:
    """Once a worker: the message's class, what makes a dict of it, and its place in its file."""
    found = _descriptor(descriptors, message)
    return message_factory.GetMessageClass(found), _converter(found), _indexes(found)


def _indexes(descriptor: Descriptor) -> list[int]:
    """The place of a message in its file; entries of maps, which no one wrote, do not count."""
    outer = descriptor.containing_type
    siblings = (
        descriptor.file.message_types_by_name.values() if outer is None else outer.nested_types
    )
    written = [kind.full_name for kind in siblings if not kind.GetOptions().map_entry]
    before = [] if outer is None else _indexes(outer)
    return [*before, written.index(descriptor.full_name)]


@cache
def _descriptor(descriptors: bytes, message: str) -> Descriptor:
    try:
        waiting = list(descriptor_pb2.FileDescriptorSet.FromString(descriptors).file)
    except DecodeError:
        raise InvalidConfigError("the schema of Protobuf is no descriptor set") from None
    pool = descriptor_pool.DescriptorPool()
    known: set[str] = set()
    while ready := [file for file in waiting if known.issuperset(file.dependency)]:
        for file in ready:
            pool.Add(file)
            known.add(file.name)
            waiting.remove(file)
    if waiting:
        lacks = sorted({name for file in waiting for name in file.dependency} - known)
        raise InvalidConfigError(f"the descriptor set lacks {', '.join(lacks)}")
    try:
        return pool.FindMessageTypeByName(message)
    except KeyError:
        raise InvalidConfigError(f"message {message} is not in the descriptor set") from None


# -- types -----------------------------------------------------------------------------------------


def _struct(descriptor: Descriptor, within: tuple[str, ...]) -> pa.DataType:
    if descriptor.full_name in within:
        path = " in ".join((descriptor.full_name, *reversed(within)))
        raise InvalidConfigError(f"a message that holds itself has no columns: {path}")
    if descriptor.full_name == _TIMESTAMP:
        return pa.timestamp("us", tz="UTC")
    inside = (*within, descriptor.full_name)
    return pa.struct([pa.field(f.name, _field_type(f, inside)) for f in descriptor.fields])


def _field_type(field: FieldDescriptor, within: tuple[str, ...]) -> pa.DataType:
    if _is_map(field):
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        return pa.map_(_one_type(key, within), _one_type(value, within))
    one = _one_type(field, within)
    return pa.list_(one) if field.is_repeated else one


def _one_type(field: FieldDescriptor, within: tuple[str, ...]) -> pa.DataType:
    if field.message_type is not None:
        return _struct(field.message_type, within)
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return pa.binary() if field.type == FieldDescriptor.TYPE_BYTES else pa.string()
    return _SCALARS[field.cpp_type]


def _is_map(field: FieldDescriptor) -> bool:
    kind = field.message_type
    return bool(field.is_repeated and kind is not None and kind.GetOptions().map_entry)


# -- values ----------------------------------------------------------------------------------------


def _converter(descriptor: Descriptor) -> Convert:
    """A message → a dict by its field names; a Timestamp → a datetime."""
    if descriptor.full_name == _TIMESTAMP:
        return _datetime
    fields = [(field.name, field.has_presence, _value(field)) for field in descriptor.fields]

    def convert(message: Any) -> dict[str, Any]:
        return {
            name: None if optional and not message.HasField(name) else value(getattr(message, name))
            for name, optional, value in fields
        }

    return convert


def _value(field: FieldDescriptor) -> Convert:
    if _is_map(field):
        inner = _one_value(field.message_type.fields_by_name["value"])
        return lambda entries: [(key, inner(entries[key])) for key in entries]
    one = _one_value(field)
    return (lambda values: [one(v) for v in values]) if field.is_repeated else one


def _one_value(field: FieldDescriptor) -> Convert:
    if field.message_type is not None:
        return _converter(field.message_type)
    if field.enum_type is not None:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return lambda number: names.get(number, str(number))
    if field.cpp_type == FieldDescriptor.CPPTYPE_UINT64:
        return lambda number: number - (1 << 64) if number >= 1 << 63 else number
    return lambda value: value


def _datetime(timestamp: Any) -> dt.datetime | None:
    """None outside of the years 1 to 9999, which Spark's timestamps are shown in."""
    try:
        micros = timestamp.seconds * 1_000_000 + timestamp.nanos // 1000
        return _EPOCH + dt.timedelta(microseconds=micros)
    except OverflowError:
        return None
