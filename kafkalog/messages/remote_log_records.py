"""Records of `__remote_log_metadata`: which segments of tiered topics lie in remote storage.

Keys are null; the frame is that of the metadata log.

A segment is announced, copied, and later deleted: each step is a record, the first one with all
facts, the later ones with what changed. Up to 3.5 there was no `customMetadata`, under the same
version 0.

Source: RemoteLogSegmentMetadataRecord.json and its kin, RemoteLogMetadataSerde; KIP-405.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from kafkalog.errors import CorruptRecordError
from kafkalog.messages.decoder import decode_newest
from kafkalog.messages.encoder import encode_message
from kafkalog.messages.framed_record import pack_frame, parse_frame
from kafkalog.messages.schema import (
    ALL,
    Array,
    Field,
    Message,
    Primitive,
    Struct,
    UnknownRecord,
    Versions,
)

_INT8, _INT32, _INT64, _UUID = Primitive.INT8, Primitive.INT32, Primitive.INT64, Primitive.UUID


class RemoteLogSegmentState(IntEnum):
    """`remoteLogSegmentState`; Kafka's names."""

    COPY_SEGMENT_STARTED = 0
    COPY_SEGMENT_FINISHED = 1
    DELETE_SEGMENT_STARTED = 2
    DELETE_SEGMENT_FINISHED = 3


class RemotePartitionDeleteState(IntEnum):
    """`remotePartitionDeleteState`; Kafka's names."""

    DELETE_PARTITION_MARKED = 0
    DELETE_PARTITION_STARTED = 1
    DELETE_PARTITION_FINISHED = 2


@dataclass(frozen=True, slots=True)
class RemoteLogRecord:
    """A record that was understood; `fields` by Kafka's names."""

    message: Message
    version: int
    fields: dict[str, Any]


_TOPIC_PARTITION = Field(
    "topicIdPartition",
    Struct(
        (
            Field("name", Primitive.STRING, "topic"),
            Field("id", _UUID, "its id"),
            Field("partition", _INT32, "number"),
        )
    ),
    "the partition",
)
_SEGMENT = Field(
    "remoteLogSegmentId",
    Struct((_TOPIC_PARTITION, Field("id", _UUID, "the segment's id"))),
    "the segment",
)
_BROKER = Field("brokerId", _INT32, "the broker that says so")
_EVENT_TIME = Field("eventTimestampMs", _INT64, "when")
_CUSTOM = Field(
    "customMetadata", Primitive.BYTES, "what the storage adds", nullable=ALL, default_is_null=True,
    source="KIP-917",
)  # fmt: skip
_STATE = Field("remoteLogSegmentState", _INT8, "0 and 1 copy started, finished; 2 and 3 deletion")
_FACTS = (
    Field("startOffset", _INT64, "first offset"),
    Field("endOffset", _INT64, "last offset"),
    _BROKER,
    Field("maxTimestampMs", _INT64, "largest timestamp"),
    _EVENT_TIME,
    Field(
        "segmentLeaderEpochs",
        Array(
            Struct(
                (
                    Field("leaderEpoch", _INT32, "leader epoch"),
                    Field("offset", _INT64, "where it begins"),
                )
            )
        ),
        "its leader epochs",
    ),
    Field("segmentSizeInBytes", _INT32, "size of the .log file"),
)
_TXN_INDEX_EMPTY = Field(
    "txnIndexEmpty", Primitive.BOOL, "it has no aborted transactions", tag=0, source="KIP-1058"
)


def _layouts(
    api_key: int, name: str, meaning: str, fields: tuple[Field, ...]
) -> tuple[Message, ...]:
    """The newest layout; where it has custom metadata also that of 3.0 to 3.5, without."""

    def message(fields: tuple[Field, ...], source: str) -> Message:
        return Message(name, api_key, Versions.parse("0"), ALL, Struct(fields), meaning, source)

    newest = message(fields, f"{name}.json")
    if _CUSTOM not in fields:
        return (newest,)
    before = tuple(f for f in fields if f not in (_CUSTOM, _TXN_INDEX_EMPTY))
    return (newest, message(before, f"{name}.json of 3.0 to 3.5"))


# Type → its layouts, the newest first.
LAYOUTS: dict[int, tuple[Message, ...]] = {
    layouts[0].api_key: layouts
    for layouts in (
        _layouts(
            0, "RemoteLogSegmentMetadataRecord", "a segment is being copied",
            (_SEGMENT, *_FACTS, _CUSTOM, _STATE, _TXN_INDEX_EMPTY),
        ),
        _layouts(
            1, "RemoteLogSegmentMetadataUpdateRecord", "a segment has come to another state",
            (_SEGMENT, _BROKER, _EVENT_TIME, _CUSTOM, _STATE),
        ),
        _layouts(
            2, "RemotePartitionDeleteMetadataRecord", "a partition's segments are being deleted",
            (
                _TOPIC_PARTITION, _BROKER, _EVENT_TIME,
                Field("remotePartitionDeleteState", _INT8, "0 marked, 1 started, 2 finished"),
            ),
        ),
        _layouts(
            3, "RemoteLogSegmentMetadataSnapshotRecord", "a segment, in a snapshot up to 3.7",
            (Field("segmentId", _UUID, "the segment"), *_FACTS, _CUSTOM, _STATE, _TXN_INDEX_EMPTY),
        ),
    )
}  # fmt: skip


def decode_remote_log_record(value: bytes | memoryview | None) -> RemoteLogRecord | UnknownRecord:
    """The message in a value; raises as `parse_frame` and `decode_message`."""
    if value is None:
        raise CorruptRecordError("a remote log metadata record without a value")
    api_key, version, position = parse_frame(value)
    layouts = LAYOUTS.get(api_key)
    if layouts is None:
        return UnknownRecord(api_key)
    if version not in layouts[0].versions:
        return UnknownRecord(api_key, version)
    message, fields = decode_newest(layouts, version, value, position)
    return RemoteLogRecord(message, version, fields)


def encode_remote_log_record(api_key: int, fields: Mapping[str, Any]) -> bytes:
    """The value of a record of a type, by its newest layout; as `encode_message`."""
    return pack_frame(api_key, 0, encode_message(LAYOUTS[api_key][0], 0, fields))
