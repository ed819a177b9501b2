"""Records of `__consumer_offsets` that describe groups of the consumer protocol (KIP-848).

The group's epoch rises when its members or topics change; a target assignment is computed for it;
each member has its own assignment, which moves towards that target. 3.7 (early access) wrote other
fields under the same version 0.

Source: ConsumerGroup*.json; the layouts of 3.7 from release 3.7.
"""

from __future__ import annotations

from kafkalog.messages.coordinator_record import record_type
from kafkalog.messages.schema import ALL, Array, Field, Primitive, Struct

_INT8, _INT16, _INT32, _INT64 = Primitive.INT8, Primitive.INT16, Primitive.INT32, Primitive.INT64
_STRING, _BYTES, _UUID = Primitive.STRING, Primitive.BYTES, Primitive.UUID

GROUP_KEY = (Field("groupId", _STRING, "the group"),)
MEMBER_KEY = (*GROUP_KEY, Field("memberId", _STRING, "the member"))
TOPIC_PARTITIONS = Array(
    Struct((Field("topicId", _UUID, "topic"), Field("partitions", Array(_INT32), "numbers")))
)
ASSIGNMENT_EPOCH = (
    Field("assignmentEpoch", _INT32, "the group epoch it was computed for"),
    Field("assignmentTimestamp", _INT64, "when, in ms; 0 unknown", tag=0),
)
TARGET = (Field("topicPartitions", TOPIC_PARTITIONS, "what the member shall have"),)
CLIENT = (
    Field("clientId", _STRING, "client.id"),
    Field("clientHost", _STRING, "the address it came from"),
)
TOPIC_RACKS = Array(
    Struct(
        (
            Field("topicId", _UUID, "topic"),
            Field("topicName", _STRING, "its name"),
            Field("numPartitions", _INT32, "how many partitions it has"),
            Field(
                "partitionMetadata",
                Array(
                    Struct(
                        (
                            Field("partition", _INT32, "number"),
                            Field("racks", Array(_STRING), "racks of its replicas"),
                        )
                    )
                ),
                "where they are",
            ),
        )
    )
)
_EPOCHED_PARTITIONS = Array(
    Struct(
        (
            *TOPIC_PARTITIONS.item.fields,  # type: ignore[union-attr]
            Field(
                "assignmentEpochs", Array(_INT32), "since which epoch, one a partition",
                nullable=ALL, tag=0, source="KIP-1251",
            ),
        )
    )
)  # fmt: skip
_INSTANCE_AND_RACK = (
    Field("instanceId", _STRING, "its name, if it is a static member", nullable=ALL),
    Field("rackId", _STRING, "its rack", nullable=ALL),
)
_ASKED = (
    *_INSTANCE_AND_RACK,
    *CLIENT,
    Field("subscribedTopicNames", Array(_STRING), "topics it subscribes to"),
    Field("subscribedTopicRegex", _STRING, "and by this expression", nullable=ALL),
    Field("rebalanceTimeoutMs", _INT32, "how long it may take to give up partitions", default=-1),
    Field("serverAssignor", _STRING, "the assignor it prefers", nullable=ALL),
)
_CLASSIC_MEMBER = Struct(
    (
        Field("sessionTimeoutMs", _INT32, "how long it may be silent"),
        Field(
            "supportedProtocols",
            Array(
                Struct(
                    (
                        Field("name", _STRING, "assignor"),
                        Field("metadata", _BYTES, "subscription for it"),
                    )
                )
            ),
            "assignors it can do",
        ),
    )
)
_EPOCHS = (
    Field("memberEpoch", _INT32, "the epoch it has reached"),
    Field("previousMemberEpoch", _INT32, "the one before"),
)

CONSUMER_GROUP_METADATA = record_type(
    3, "ConsumerGroupMetadata", "the group's epoch", GROUP_KEY,
    (
        Field("epoch", _INT32, "rises with each change"),
        Field("metadataHash", _INT64, "of its topics, 0 unknown", tag=0, source="KIP-1101"),
    ),
)  # fmt: skip
CONSUMER_GROUP_PARTITION_METADATA = record_type(
    4, "ConsumerGroupPartitionMetadata", "its topics as they were, up to 4.0", GROUP_KEY,
    (Field("topics", TOPIC_RACKS, "the topics"),),
    older=(
        ("3.7", (Field("epoch", _INT32, "group epoch"), Field("topics", TOPIC_RACKS, "topics"))),
    ),
)  # fmt: skip
CONSUMER_GROUP_MEMBER_METADATA = record_type(
    5, "ConsumerGroupMemberMetadata", "what a member asks for", MEMBER_KEY,
    (
        *_ASKED,
        Field(
            "classicMemberMetadata", _CLASSIC_MEMBER, "of one that speaks the classic protocol",
            nullable=ALL, tag=0,
        ),
    ),
    older=(
        ("3.7", (
            *_ASKED,
            Field("assignors", Array(Struct((
                Field("name", _STRING, "assignor"),
                Field("minimumVersion", _INT16, "lowest version"),
                Field("maximumVersion", _INT16, "highest version"),
                Field("reason", _INT8, "why"),
                Field("version", _INT16, "of the metadata"),
                Field("metadata", _BYTES, "the metadata"),
            ))), "assignors it can do"),
        )),
    ),
)  # fmt: skip
CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA = record_type(
    6, "ConsumerGroupTargetAssignmentMetadata", "the epoch of the target assignment", GROUP_KEY,
    ASSIGNMENT_EPOCH,
)  # fmt: skip
_METADATA_OF_3_7 = (
    Field("metadataVersion", _INT16, "of the metadata"),
    Field("metadataBytes", _BYTES, "the metadata"),
)
_ERROR_OF_3_7 = Field("error", _INT8, "what the assignor said")
CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER = record_type(
    7, "ConsumerGroupTargetAssignmentMember", "what a member shall have", MEMBER_KEY, TARGET,
    older=(("3.7", (_ERROR_OF_3_7, *TARGET, *_METADATA_OF_3_7)),),
)  # fmt: skip
CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT = record_type(
    8, "ConsumerGroupCurrentMemberAssignment", "what a member has", MEMBER_KEY,
    (
        *_EPOCHS,
        Field("state", _INT8, "0 stable, 1 unrevoked, 2 unreleased partitions"),
        Field("assignedPartitions", _EPOCHED_PARTITIONS, "what it has"),
        Field("partitionsPendingRevocation", _EPOCHED_PARTITIONS, "what it must give up"),
    ),
    older=(
        ("3.7", (
            *_EPOCHS,
            Field("targetMemberEpoch", _INT32, "the epoch it moves to"),
            Field("assignedPartitions", TOPIC_PARTITIONS, "what it has"),
            Field("partitionsPendingRevocation", TOPIC_PARTITIONS, "what it must give up"),
            Field("partitionsPendingAssignment", TOPIC_PARTITIONS, "what it waits for"),
            _ERROR_OF_3_7,
            *_METADATA_OF_3_7,
        )),
    ),
)  # fmt: skip
CONSUMER_GROUP_REGULAR_EXPRESSION = record_type(
    16, "ConsumerGroupRegularExpression", "the topics an expression means",
    (*GROUP_KEY, Field("regularExpression", _STRING, "the expression")),
    (
        Field("topics", Array(_STRING), "topics that match"),
        Field("version", _INT64, "the metadata's version it was resolved with"),
        Field("timestamp", _INT64, "when, in ms"),
    ),
)  # fmt: skip
