"""Records of MirrorMaker 2's own topics: checkpoints, heartbeats, offset syncs.

 key     the fields of the key, without a version
 value   version i16 (not of offset syncs), then its fields; strings with an i16 length

Source: Kafka Checkpoint, Heartbeat, OffsetSync (connect-mirror, connect-mirror-client); KIP-382.
"""

from __future__ import annotations

import struct
from typing import Any

from kafkalog.errors import CorruptRecordError
from kafkalog.messages.decoder import decode_message
from kafkalog.messages.schema import NONE, Field, Message, Primitive, Struct, Versions

_INT32, _INT64, _STRING = Primitive.INT32, Primitive.INT64, Primitive.STRING
_VERSION = struct.Struct(">h")


def _message(name: str, meaning: str, *fields: Field) -> Message:
    body = Struct(fields)
    return Message(name, -1, Versions.parse("0"), NONE, body, meaning, "connect-mirror")


_CHECKPOINT_KEY = _message(
    "checkpoint key", "whose offset of what",
    Field("group", _STRING, "the consumer group"),
    Field("targetTopic", _STRING, "the topic's name in the target cluster"),
    Field("targetPartition", _INT32, "its partition"),
)  # fmt: skip
_CHECKPOINT = _message(
    "checkpoint", "a group's offset in both clusters",
    Field("upstreamOffset", _INT64, "in the source cluster"),
    Field("downstreamOffset", _INT64, "in the target cluster"),
    Field("metadata", _STRING, "what the group's client wrote beside it"),
)  # fmt: skip
_HEARTBEAT_KEY = _message(
    "heartbeat key", "from where to where",
    Field("sourceClusterAlias", _STRING, "the source cluster"),
    Field("targetClusterAlias", _STRING, "the target cluster"),
)  # fmt: skip
_HEARTBEAT = _message("heartbeat", "a sign of life", Field("heartbeatMs", _INT64, "when"))
_OFFSET_SYNC_KEY = _message(
    "offset sync key", "a partition",
    Field("sourceTopic", _STRING, "the topic's name in the source cluster"),
    Field("sourcePartition", _INT32, "its partition"),
)  # fmt: skip
_OFFSET_SYNC = _message(
    "offset sync", "the same record's offset in both clusters",
    Field("upstreamOffset", _INT64, "in the source cluster"),
    Field("downstreamOffset", _INT64, "in the target cluster"),
)  # fmt: skip


def decode_checkpoint(key: bytes | None, value: bytes | None) -> dict[str, Any]:
    """The fields of a checkpoint, of a tombstone those of its key alone. Raises as
    `decode_message`; so do the others.
    """
    return _key(_CHECKPOINT_KEY, key) | _with_version(_CHECKPOINT, value)


def decode_heartbeat(key: bytes | None, value: bytes | None) -> dict[str, Any]:
    """The fields of a heartbeat."""
    return _key(_HEARTBEAT_KEY, key) | _with_version(_HEARTBEAT, value)


def decode_offset_sync(key: bytes | None, value: bytes | None) -> dict[str, Any]:
    """The fields of an offset sync, which has no version."""
    fields = {} if value is None else decode_message(_OFFSET_SYNC, 0, value)
    return _key(_OFFSET_SYNC_KEY, key) | fields


def _key(message: Message, key: bytes | None) -> dict[str, Any]:
    if key is None:
        raise CorruptRecordError(f"{message.name} is null")
    return decode_message(message, 0, key)


def _with_version(message: Message, value: bytes | None) -> dict[str, Any]:
    if value is None:
        return {}
    if len(value) < _VERSION.size:
        raise CorruptRecordError(f"{message.name} of {len(value)} bytes has no version")
    version = _VERSION.unpack_from(value)[0]
    return {"version": version} | decode_message(message, version, value, _VERSION.size)
