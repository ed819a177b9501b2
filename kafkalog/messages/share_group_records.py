"""Records of `__consumer_offsets` that describe share groups (KIP-932): members, assignments, and
the topic partitions whose state the share coordinator keeps (see `share_state_records`).

Source: ShareGroup*.json; older layouts from releases 3.9 and 4.0.
"""

from __future__ import annotations

from kafkalog.messages.consumer_group_records import (
    ASSIGNMENT_EPOCH,
    CLIENT,
    GROUP_KEY,
    MEMBER_KEY,
    TARGET,
    TOPIC_PARTITIONS,
    TOPIC_RACKS,
)
from kafkalog.messages.coordinator_record import record_type
from kafkalog.messages.schema import ALL, Array, Field, Primitive, Struct

_INT8, _INT32, _INT64 = Primitive.INT8, Primitive.INT32, Primitive.INT64
_TOPIC = (
    Field("topicId", Primitive.UUID, "topic"),
    Field("topicName", Primitive.STRING, "its name"),
)
_TOPICS = Array(Struct(_TOPIC))
_PARTITIONS = Array(Struct((*_TOPIC, Field("partitions", Array(_INT32), "numbers"))))
_EPOCH = Field("epoch", _INT32, "rises with each change")
_INITIALIZED_AND_DELETING = (
    Field("initializedTopics", _PARTITIONS, "partitions that have a state"),
    Field("deletingTopics", _TOPICS, "topics whose state is being deleted"),
)

SHARE_GROUP_PARTITION_METADATA = record_type(
    9, "ShareGroupPartitionMetadata", "its topics as they were, 3.9 and 4.0", GROUP_KEY,
    (Field("topics", TOPIC_RACKS, "the topics"),),
    older=(("3.9", _INITIALIZED_AND_DELETING),),
)  # fmt: skip
SHARE_GROUP_MEMBER_METADATA = record_type(
    10, "ShareGroupMemberMetadata", "what a member asks for", MEMBER_KEY,
    (
        Field("rackId", Primitive.STRING, "its rack", nullable=ALL),
        *CLIENT,
        Field("subscribedTopicNames", Array(Primitive.STRING), "topics it subscribes to"),
    ),
)  # fmt: skip
SHARE_GROUP_METADATA = record_type(
    11, "ShareGroupMetadata", "the group's epoch", GROUP_KEY,
    (_EPOCH, Field("metadataHash", _INT64, "of its topics", source="KIP-1101")),
    older=(("3.9 and 4.0", (_EPOCH,)),),
)  # fmt: skip
SHARE_GROUP_TARGET_ASSIGNMENT_METADATA = record_type(
    12, "ShareGroupTargetAssignmentMetadata", "the epoch of the target assignment", GROUP_KEY,
    ASSIGNMENT_EPOCH,
)  # fmt: skip
SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER = record_type(
    13, "ShareGroupTargetAssignmentMember", "what a member shall have", MEMBER_KEY, TARGET
)
SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT = record_type(
    14, "ShareGroupCurrentMemberAssignment", "what a member has", MEMBER_KEY,
    (
        Field("memberEpoch", _INT32, "the epoch it has reached"),
        Field("previousMemberEpoch", _INT32, "the one before"),
        Field("state", _INT8, "0 stable, 1 unrevoked, 2 unreleased partitions"),
        Field("assignedPartitions", TOPIC_PARTITIONS, "what it has"),
    ),
)  # fmt: skip
SHARE_GROUP_STATE_PARTITION_METADATA = record_type(
    15, "ShareGroupStatePartitionMetadata", "the partitions that have a state", GROUP_KEY,
    (
        Field("initializingTopics", _PARTITIONS, "partitions whose state is being made"),
        *_INITIALIZED_AND_DELETING,
    ),
    older=(("3.9 and 4.0", _INITIALIZED_AND_DELETING),),
)  # fmt: skip
