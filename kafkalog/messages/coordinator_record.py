"""Records of the coordinators' topics, `__consumer_offsets`, `__transaction_state` and
`__share_group_state`: a message in the key says whose state, one in the value what it is now.

 key     i16 type | key message (never flexible)
 value   i16 version | value message; null removes the key's state

Coordinators read past bytes behind either. Up to Kafka 4.0 the number in front of the key was
called its version; the bytes are the same. A few values changed their fields and kept their version
number: the newest layout that takes a value to its last byte counts, else the newest that it begins
with. Types and versions without a table stay bytes (UnknownRecord).

Source: Kafka CoordinatorRecordSerde, CoordinatorRecordType.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafkalog.errors import CorruptRecordError
from kafkalog.messages.decoder import decode_newest, decode_prefix
from kafkalog.messages.schema import ALL, NONE, Field, Message, Struct, UnknownRecord, Versions

_SHORT_BYTES = 2
_KEY_VERSIONS = Versions.parse("0")


@dataclass(frozen=True)
class RecordType:
    """One type of a coordinator's records. `older`: value layouts of earlier releases that have the
    same version number, the newest first.
    """

    name: str
    key: Message
    value: Message
    older: tuple[Message, ...] = ()

    @property
    def number(self) -> int:
        return self.key.api_key


RecordTypes = Mapping[int, RecordType]


@dataclass(frozen=True, slots=True)
class CoordinatorRecord:
    """A record that was understood. `value`, and with it `layout` and `version`, is None for a
    tombstone.
    """

    type: RecordType
    key: dict[str, Any]
    layout: Message | None
    version: int | None
    value: dict[str, Any] | None


def record_type(
    number: int,
    name: str,
    meaning: str,
    key: tuple[Field, ...],
    value: tuple[Field, ...],
    *,
    versions: str = "0",
    flexible: Versions = ALL,
    older: tuple[tuple[str, tuple[Field, ...]], ...] = (),
) -> RecordType:
    """A type whose messages are called `<name>Key` and `<name>Value`.

    `older` are (releases, fields) of other layouts of version 0.
    """

    def layout(fields: tuple[Field, ...], source: str) -> Message:
        return Message(
            f"{name}Value", number, Versions.parse(versions), flexible, Struct(fields), meaning,
            source,
        )  # fmt: skip

    key_source = f"{name}Key.json"
    return RecordType(
        name,
        Message(
            f"{name}Key", number, _KEY_VERSIONS, NONE, Struct(key), f"whose: {meaning}", key_source
        ),
        layout(value, f"{name}Value.json"),
        tuple(layout(fields, f"{name}Value.json of {releases}") for releases, fields in older),
    )


def decode_coordinator_record(
    types: RecordTypes, key: bytes | memoryview | None, value: bytes | memoryview | None
) -> CoordinatorRecord | UnknownRecord:
    """The record of a key and a value; CorruptRecordError for bytes that are none."""
    if key is None:
        raise CorruptRecordError("a coordinator's record without a key")
    number = _short(key, "type of the key")
    known = types.get(number)
    if known is None:
        return UnknownRecord(number)
    key_fields, _ = decode_prefix(known.key, 0, key, _SHORT_BYTES)
    if value is None:
        return CoordinatorRecord(known, key_fields, None, None, None)
    version = _short(value, "version of the value")
    if version not in known.value.versions:
        return UnknownRecord(number, version)
    layouts = (known.value, *known.older)
    try:
        layout, fields = decode_newest(layouts, version, value, _SHORT_BYTES)
    except CorruptRecordError:
        layout, fields = known.value, decode_prefix(known.value, version, value, _SHORT_BYTES)[0]
    return CoordinatorRecord(known, key_fields, layout, version, fields)


def _short(data: bytes | memoryview, what: str) -> int:
    if len(data) < _SHORT_BYTES:
        raise CorruptRecordError(f"{what}: 2 bytes are needed, {len(data)} are there", position=0)
    return int.from_bytes(data[:_SHORT_BYTES], "big", signed=True)
