"""Records of `__consumer_offsets` that are as old as the topic: offset commits and the classic
groups' metadata. Consumer, share and streams groups have modules of their own.

Kafka wrote commits with version 0 up to 0.8.2, 1 with an explicit expiry and up to 2.0, 3 from 2.1
and 4, the first flexible one, since 4.1; key type 0 is that of 0.8.2 and has, since 4.1, a value of
its own with the bytes of version 0.

Source: OffsetCommitValue.json, GroupMetadataValue.json and their keys.
"""

from __future__ import annotations

from kafkalog.messages.coordinator_record import record_type
from kafkalog.messages.schema import ALL, NONE, Array, Field, Primitive, Struct, Versions

_INT32, _INT64 = Primitive.INT32, Primitive.INT64
_STRING, _BYTES = Primitive.STRING, Primitive.BYTES
_FROM_4 = Versions.parse("4+")

_COMMIT_KEY = (
    Field("group", _STRING, "the group"),
    Field("topic", _STRING, "the topic"),
    Field("partition", _INT32, "the partition"),
)
_OFFSET = Field("offset", _INT64, "the next offset the group wants")
_METADATA = Field("metadata", _STRING, "what the client wrote beside it")
_TIMESTAMP = Field("commitTimestamp", _INT64, "when it was committed, in ms")

LEGACY_OFFSET_COMMIT = record_type(
    0, "LegacyOffsetCommit", "an offset commit of 0.8.2", _COMMIT_KEY,
    (_OFFSET, _METADATA, _TIMESTAMP), flexible=NONE,
)  # fmt: skip
OFFSET_COMMIT = record_type(
    1, "OffsetCommit", "an offset commit", _COMMIT_KEY,
    (
        _OFFSET,
        Field(
            "leaderEpoch", _INT32, "of the last record that was read, -1 unknown",
            versions=Versions.parse("3+"), default=-1, source="KIP-320",
        ),
        _METADATA,
        _TIMESTAMP,
        Field(
            "expireTimestamp", _INT64, "when it expires in ms, -1 as the broker says",
            versions=Versions.parse("1"), default=-1,
        ),
        Field(
            "topicId", Primitive.UUID, "the topic's id, zero if unknown",
            versions=_FROM_4, tag=0, source="KIP-848",
        ),
    ),
    versions="0-4", flexible=_FROM_4,
)  # fmt: skip

_MEMBER = Struct(
    (
        Field("memberId", _STRING, "the member"),
        Field(
            "groupInstanceId", _STRING, "its name, if it is a static member",
            versions=Versions.parse("3+"), nullable=Versions.parse("3+"), default_is_null=True,
            source="KIP-345",
        ),
        Field("clientId", _STRING, "client.id"),
        Field("clientHost", _STRING, "the address it came from"),
        Field(
            "rebalanceTimeout", _INT32, "how long it may take to join again, in ms",
            versions=Versions.parse("1+"),
        ),
        Field("sessionTimeout", _INT32, "how long it may be silent, in ms"),
        Field("subscription", _BYTES, "what it asked for, as the protocol writes it"),
        Field("assignment", _BYTES, "what it was given, as the protocol writes it"),
    )
)  # fmt: skip
GROUP_METADATA = record_type(
    2, "GroupMetadata", "a classic group after a rebalance",
    (Field("group", _STRING, "the group"),),
    (
        Field("protocolType", _STRING, "consumer, connect …; empty for commits only"),
        Field("generation", _INT32, "rises with each rebalance"),
        Field("protocol", _STRING, "the assignor that was chosen", nullable=ALL),
        Field("leader", _STRING, "the member that assigns", nullable=ALL),
        Field(
            "currentStateTimestamp", _INT64, "when the group came into its state, in ms",
            versions=Versions.parse("2+"), default=-1,
        ),
        Field("members", Array(_MEMBER), "its members"),
    ),
    versions="0-4", flexible=_FROM_4,
)  # fmt: skip
