"""What consumers of a classic group say to each other through the broker, which keeps it as bytes:
the subscription and the assignment of a member.

 i16 version | message, never flexible; what is behind it is ignored

A version above the newest here reads as that one.

Source: ConsumerProtocolSubscription.json, ConsumerProtocolAssignment.json; KIP-429, KIP-792,
KIP-881.
"""

from __future__ import annotations

from typing import Any

from kafkalog.errors import CorruptRecordError
from kafkalog.messages.decoder import decode_prefix
from kafkalog.messages.schema import ALL, NONE, Array, Field, Message, Primitive, Struct, Versions

PROTOCOL_TYPE = "consumer"

_NO_KEY = -1
_VERSION_BYTES = 2
_FROM_1 = Versions.parse("1+")
_STRING, _INT32 = Primitive.STRING, Primitive.INT32


def _partitions(versions: Versions) -> Array:
    return Array(
        Struct(
            (
                Field("topic", _STRING, "topic", versions=versions),
                Field("partitions", Array(_INT32), "numbers", versions=versions),
            )
        )
    )


_USER_DATA = Field(
    "userData", Primitive.BYTES, "what the assignor adds", nullable=ALL, default_is_null=True
)


def _message(name: str, meaning: str, *fields: Field) -> Message:
    # any version is read; those above the newest have its fields
    return Message(name, _NO_KEY, ALL, NONE, Struct(fields), meaning, f"{name}.json")


SUBSCRIPTION = _message(
    "ConsumerProtocolSubscription", "what a member asks for",
    Field("topics", Array(_STRING), "topics it subscribes to"),
    _USER_DATA,
    Field(
        "ownedPartitions", _partitions(_FROM_1), "what it has from before", versions=_FROM_1,
        source="KIP-429",
    ),
    Field(
        "generationId", _INT32, "the generation it had that from", versions=Versions.parse("2+"),
        default=-1, source="KIP-792",
    ),
    Field(
        "rackId", _STRING, "its rack", versions=Versions.parse("3+"),
        nullable=Versions.parse("3+"), default_is_null=True, source="KIP-881",
    ),
)  # fmt: skip
ASSIGNMENT = _message(
    "ConsumerProtocolAssignment", "what a member is given",
    Field("assignedPartitions", _partitions(ALL), "the partitions"),
    _USER_DATA,
)  # fmt: skip


def decode_consumer_protocol(message: Message, data: bytes) -> tuple[int, dict[str, Any]]:
    """(version, fields) of SUBSCRIPTION or ASSIGNMENT. CorruptRecordError for bytes that are none,
    empty ones too.
    """
    if len(data) < _VERSION_BYTES:
        raise CorruptRecordError(f"{message.name} of {len(data)} bytes", position=0)
    version = int.from_bytes(data[:_VERSION_BYTES], "big", signed=True)
    if version < 0:
        raise CorruptRecordError(f"{message.name} version {version}", position=0)
    fields, _ = decode_prefix(message, version, data, _VERSION_BYTES)
    return version, fields
