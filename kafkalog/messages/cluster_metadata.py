"""Records of the metadata log `__cluster_metadata`: their frame, and the tables of those that tell
topics, settings and feature levels. Others are in `broker_records` and `security_records`.

 value   frame_version uvarint (1) | api_key uvarint | version uvarint | message, to the end

All versions are flexible. Frame version 0 was the KRaft preview of 2.8, which no later release
reads. Types without a table here, and versions newer than their table, stay bytes (RawRecord): a
cluster may be newer than this program.

Records between BeginTransaction and EndTransaction count together, or not at all if an
AbortTransaction follows.

Source: Kafka AbstractApiMessageSerde, MetadataRecordSerde, metadata/src/main/resources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafkalog.errors import CorruptRecordError
from kafkalog.messages.broker_records import BROKER_MESSAGES
from kafkalog.messages.decoder import decode_message
from kafkalog.messages.encoder import encode_message
from kafkalog.messages.framed_record import pack_frame, parse_frame
from kafkalog.messages.metadata_message import metadata_message
from kafkalog.messages.schema import ALL, Array, Field, Message, Primitive, Versions
from kafkalog.messages.security_records import SECURITY_MESSAGES

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4

_INT8, _INT16, _INT32 = Primitive.INT8, Primitive.INT16, Primitive.INT32
_STRING, _UUID = Primitive.STRING, Primitive.UUID
_FROM_1, _FROM_2 = Versions.parse("1+"), Versions.parse("2+")


def _changed(name: str, tag: int, meaning: str, item: Primitive = _INT32, **more: Any) -> Field:
    """An array of PartitionChangeRecord: null, which is the default, leaves it as it was."""
    return Field(name, Array(item), meaning, nullable=ALL, tag=tag, default_is_null=True, **more)


TOPIC_RECORD = metadata_message(
    "TopicRecord", 2, "0", "a topic is created",
    Field("name", _STRING, "the topic"),
    Field("topicId", _UUID, "its id; another one if it is created anew"),
)  # fmt: skip
PARTITION_RECORD = metadata_message(
    "PartitionRecord", 3, "0-2", "a partition is created",
    Field("partitionId", _INT32, "its number"),
    Field("topicId", _UUID, "the topic"),
    Field("replicas", Array(_INT32), "the brokers that have it, the preferred leader first"),
    Field("isr", Array(_INT32), "replicas in sync"),
    Field("removingReplicas", Array(_INT32), "replicas that are being removed"),
    Field("addingReplicas", Array(_INT32), "replicas that are being added"),
    Field("leader", _INT32, "the leader, -1 none", default=-1),
    Field("leaderRecoveryState", _INT8, "1 after an unclean election", tag=0, source="KIP-704"),
    Field("leaderEpoch", _INT32, "rises with each leader", default=-1),
    Field("partitionEpoch", _INT32, "rises with each change", default=-1),
    Field(
        "directories", Array(_UUID), "log dirs, in the order of replicas",
        versions=_FROM_1, source="KIP-858",
    ),
    Field(
        "eligibleLeaderReplicas", Array(_INT32), "may lead though not in sync", versions=_FROM_2,
        nullable=_FROM_2, tag=1, default_is_null=True, source="KIP-966",
    ),
    Field(
        "lastKnownElr", Array(_INT32), "may lead after an unclean stop", versions=_FROM_2,
        nullable=_FROM_2, tag=2, default_is_null=True, source="KIP-966",
    ),
)  # fmt: skip
CONFIG_RECORD = metadata_message(
    "ConfigRecord", 4, "0", "a setting is set or removed",
    Field("resourceType", _INT8, "2 topic, 4 broker, 8 broker logger, 16 metrics, 32 group"),
    Field("resourceName", _STRING, "topic, node id, …; empty: the default of all brokers"),
    Field("name", _STRING, "the setting"),
    Field("value", _STRING, "null removes it", nullable=ALL),
)  # fmt: skip
PARTITION_CHANGE_RECORD = metadata_message(
    "PartitionChangeRecord", 5, "0-2", "a partition changes",
    Field("partitionId", _INT32, "its number", default=-1),
    Field("topicId", _UUID, "the topic"),
    _changed("isr", 0, "replicas in sync"),
    Field("leader", _INT32, "the leader, -1 none, -2 unchanged", tag=1, default=-2),
    _changed("replicas", 2, "the brokers that have it"),
    _changed("removingReplicas", 3, "replicas that are being removed"),
    _changed("addingReplicas", 4, "replicas that are being added"),
    Field(
        "leaderRecoveryState", _INT8, "-1 unchanged, 0 recovered, 1 recovering",
        tag=5, default=-1, source="KIP-704",
    ),
    _changed(
        "directories", 8, "log dirs, in the order of replicas", _UUID,
        versions=_FROM_1, source="KIP-858",
    ),
    _changed(
        "eligibleLeaderReplicas", 6, "may lead though not in sync",
        versions=_FROM_2, source="KIP-966",
    ),
    _changed(
        "lastKnownElr", 7, "may lead after an unclean stop", versions=_FROM_2, source="KIP-966"
    ),
)  # fmt: skip
REMOVE_TOPIC_RECORD = metadata_message(
    "RemoveTopicRecord", 9, "0", "a topic is deleted, and its settings with it",
    Field("topicId", _UUID, "the topic"),
)  # fmt: skip
FEATURE_LEVEL_RECORD = metadata_message(
    "FeatureLevelRecord", 12, "0", "a feature's level is set",
    Field("name", _STRING, "metadata.version, transaction.version, …"),
    Field("featureLevel", _INT16, "0 switches it off", source="KIP-778"),
)  # fmt: skip
NO_OP_RECORD = metadata_message("NoOpRecord", 20, "0", "nothing; moves the log on")
BEGIN_TRANSACTION_RECORD = metadata_message(
    "BeginTransactionRecord", 23, "0", "the next records count together",
    Field("name", _STRING, "what for", nullable=ALL, tag=0, default_is_null=True, source="KIP-868"),
)  # fmt: skip
END_TRANSACTION_RECORD = metadata_message("EndTransactionRecord", 24, "0", "they count")
ABORT_TRANSACTION_RECORD = metadata_message(
    "AbortTransactionRecord", 25, "0", "they do not count",
    Field("reason", _STRING, "why", nullable=ALL, tag=0, default_is_null=True, source="KIP-868"),
)  # fmt: skip
CLEAR_ELR_RECORD = metadata_message(
    "ClearElrRecord", 28, "0", "only in-sync replicas may lead from here on",
    Field("topicName", _STRING, "of this topic; empty: of all topics", source="KIP-966"),
)  # fmt: skip

MESSAGES = {
    message.api_key: message
    for message in (
        *BROKER_MESSAGES,
        *SECURITY_MESSAGES,
        TOPIC_RECORD,
        PARTITION_RECORD,
        CONFIG_RECORD,
        PARTITION_CHANGE_RECORD,
        REMOVE_TOPIC_RECORD,
        FEATURE_LEVEL_RECORD,
        NO_OP_RECORD,
        BEGIN_TRANSACTION_RECORD,
        END_TRANSACTION_RECORD,
        ABORT_TRANSACTION_RECORD,
        CLEAR_ELR_RECORD,
    )
}


@dataclass(frozen=True, slots=True)
class MetadataRecord:
    """A record that was understood; `fields` by Kafka's names."""

    message: Message
    version: int
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RawRecord:
    """A record of a type, or a version of a type, that has no table here; `payload` as it lies."""

    api_key: int
    version: int
    payload: bytes

    @property
    def name(self) -> str:
        """For people: `type 99 version 0`, `ConfigRecord version 7`."""
        known = MESSAGES.get(self.api_key)
        kind = f"type {self.api_key}" if known is None else known.name
        return f"{kind} version {self.version}"


def decode_metadata_record(value: bytes | memoryview | None) -> MetadataRecord | RawRecord:
    """The message in the value of a data record of the metadata log or of one of its snapshots.

    Raises CorruptRecordError for a value that is none, and UnsupportedMessageVersionError for
    another frame version.
    """
    if value is None:
        raise CorruptRecordError("a metadata record without a value")
    api_key, version, position = parse_frame(value, preview="the KRaft preview of Kafka 2.8")
    message = MESSAGES.get(api_key)
    if message is None or version not in message.versions:
        return RawRecord(api_key, version, bytes(value[position:]))
    return MetadataRecord(message, version, decode_message(message, version, value, position))


def encode_metadata_record(message: Message, version: int, fields: Mapping[str, Any]) -> bytes:
    """The value of a data record of the metadata log, its frame in front; raises as
    `encode_message`.
    """
    return pack_frame(message.api_key, version, encode_message(message, version, fields))
