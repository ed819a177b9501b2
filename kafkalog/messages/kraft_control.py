"""Values of the control records that KRaft writes: who leads, what a snapshot begins and ends with,
which version and voters a quorum has.

No version stands in front of them: the first field tells it, and the message is read as version 0
all the same. All versions are flexible.

Source: Kafka ControlRecordUtils; LeaderChangeMessage.json and its kin; KIP-595, KIP-630, KIP-853.
"""

from __future__ import annotations

from typing import Any

from kafkalog.format.control_record import ControlRecordType
from kafkalog.messages.decoder import decode_message
from kafkalog.messages.schema import ALL, Array, Field, Message, Primitive, Struct, Versions

_INT16, _INT32, _INT64 = Primitive.INT16, Primitive.INT32, Primitive.INT64
_VERSION = Field("version", _INT16, "the version of the record")
_NO_KEY = -1


def _message(name: str, meaning: str, *fields: Field) -> Message:
    body = Struct((_VERSION, *fields))
    return Message(name, _NO_KEY, Versions.parse("0"), ALL, body, meaning, f"{name}.json")


_VOTER = Struct((Field("voterId", _INT32, "the node"),))
_ENDPOINT = Struct(
    (
        Field("name", Primitive.STRING, "the listener"),
        Field("host", Primitive.STRING, "its host"),
        Field("port", Primitive.UINT16, "its port"),
    )
)
_FEATURE = Struct(
    (
        Field("minSupportedVersion", _INT16, "lowest kraft.version"),
        Field("maxSupportedVersion", _INT16, "highest kraft.version"),
    )
)
_FULL_VOTER = Struct(
    (
        Field("voterId", _INT32, "the node"),
        Field("voterDirectoryId", Primitive.UUID, "its directory"),
        Field("endpoints", Array(_ENDPOINT), "where it is reached"),
        Field("kRaftVersionFeature", _FEATURE, "the versions it can do"),
    )
)

MESSAGES = {
    ControlRecordType.LEADER_CHANGE: _message(
        "LeaderChangeMessage", "a leader was elected",
        Field("leaderId", _INT32, "who"),
        Field("voters", Array(_VOTER), "the voters"),
        Field("grantingVoters", Array(_VOTER), "those that voted for it"),
    ),
    ControlRecordType.SNAPSHOT_HEADER: _message(
        "SnapshotHeaderRecord", "a snapshot begins",
        Field("lastContainedLogTimestamp", _INT64, "time of its last record in ms"),
    ),
    ControlRecordType.SNAPSHOT_FOOTER: _message("SnapshotFooterRecord", "a snapshot is whole"),
    ControlRecordType.KRAFT_VERSION: _message(
        "KRaftVersionRecord", "the quorum's protocol", Field("kRaftVersion", _INT16, "its version")
    ),
    ControlRecordType.KRAFT_VOTERS: _message(
        "VotersRecord", "the voters change", Field("voters", Array(_FULL_VOTER), "all of them")
    ),
}  # fmt: skip


def decode_kraft_control(kind: ControlRecordType, value: bytes) -> dict[str, Any]:
    """The fields of a KRaft control record's value, in the order of its definition.

    CorruptRecordError for bytes that are none.
    """
    return decode_message(MESSAGES[kind], 0, value)
