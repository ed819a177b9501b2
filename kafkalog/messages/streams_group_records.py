"""Records of `__consumer_offsets` that describe streams groups (KIP-1071): the topology, and who
has which tasks of it.

Source: StreamsGroup*.json.
"""

from __future__ import annotations

from kafkalog.messages.consumer_group_records import (
    ASSIGNMENT_EPOCH,
    CLIENT,
    GROUP_KEY,
    MEMBER_KEY,
)
from kafkalog.messages.coordinator_record import record_type
from kafkalog.messages.schema import ALL, Array, Field, Primitive, Struct

_INT8, _INT16, _INT32, _INT64 = Primitive.INT8, Primitive.INT16, Primitive.INT32, Primitive.INT64
_STRING = Primitive.STRING


def _pairs(meaning: str, name: str) -> Field:
    pair = Struct((Field("key", _STRING, "name"), Field("value", _STRING, "value")))
    return Field(name, Array(pair), meaning)


_TASK = (
    Field("subtopologyId", _STRING, "subtopology"),
    Field("partitions", Array(_INT32), "numbers"),
)
_TASKS = Array(Struct(_TASK))
_EPOCHED_TASKS = Array(
    Struct(
        (
            *_TASK,
            Field(
                "assignmentEpochs", Array(_INT32), "since which epoch, one a partition",
                nullable=ALL, tag=0,
            ),
        )
    )
)  # fmt: skip
_ENDPOINT = Struct(
    (Field("host", _STRING, "its host"), Field("port", Primitive.UINT16, "its port"))
)
_TOPIC = Array(
    Struct(
        (
            Field("name", _STRING, "topic"),
            Field("partitions", _INT32, "how many partitions it shall have, 0 as its sources"),
            Field("replicationFactor", _INT16, "0 as the broker says"),
            _pairs("its settings", "topicConfigs"),
        )
    )
)
_COPARTITION_GROUP = Struct(
    (
        Field("sourceTopics", Array(_INT16), "indexes of source topics"),
        Field("sourceTopicRegex", Array(_INT16), "indexes of expressions"),
        Field("repartitionSourceTopics", Array(_INT16), "indexes of repartition topics"),
    )
)
_SUBTOPOLOGY = Struct(
    (
        Field("subtopologyId", _STRING, "subtopology"),
        Field("sourceTopics", Array(_STRING), "topics it reads"),
        Field("sourceTopicRegex", Array(_STRING), "expressions for such"),
        Field("stateChangelogTopics", _TOPIC, "topics of its state stores"),
        Field("repartitionSinkTopics", Array(_STRING), "repartition topics it writes"),
        Field("repartitionSourceTopics", _TOPIC, "repartition topics it reads"),
        Field("copartitionGroups", Array(_COPARTITION_GROUP), "topics with equal partitions"),
    )
)

STREAMS_GROUP_METADATA = record_type(
    17, "StreamsGroupMetadata", "the group's epoch", GROUP_KEY,
    (
        Field("epoch", _INT32, "rises with each change"),
        Field("metadataHash", _INT64, "of its topics"),
        Field("validatedTopologyEpoch", _INT32, "topology that was checked", tag=0, default=-1),
        Field(
            "lastAssignmentConfigs",
            Array(Struct((Field("key", _STRING, "name"), Field("value", _STRING, "value")))),
            "settings of the last assignment", nullable=ALL, tag=1,
        ),
        Field(
            "storedDescriptionTopologyEpoch", _INT32, "topology whose description is kept",
            tag=2, default=-1, source="4.4",
        ),
        Field(
            "failedDescriptionTopologyEpoch", _INT32, "topology whose description failed",
            tag=3, default=-1, source="4.4",
        ),
    ),
)  # fmt: skip
STREAMS_GROUP_MEMBER_METADATA = record_type(
    19, "StreamsGroupMemberMetadata", "what a member is", MEMBER_KEY,
    (
        Field("instanceId", _STRING, "its name, if it is a static member", nullable=ALL),
        Field("rackId", _STRING, "its rack", nullable=ALL),
        *CLIENT,
        Field("rebalanceTimeoutMs", _INT32, "how long it may take to give up tasks", default=-1),
        Field("topologyEpoch", _INT32, "the topology it has"),
        Field("processId", _STRING, "the process it runs in"),
        Field(
            "userEndpoint", _ENDPOINT, "where its queries are answered", nullable=ALL,
            default_is_null=True,
        ),
        _pairs("its tags", "clientTags"),
    ),
)  # fmt: skip
STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA = record_type(
    20, "StreamsGroupTargetAssignmentMetadata", "the epoch of the target assignment", GROUP_KEY,
    ASSIGNMENT_EPOCH,
)  # fmt: skip
STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER = record_type(
    21, "StreamsGroupTargetAssignmentMember", "what a member shall have", MEMBER_KEY,
    (
        Field("activeTasks", _TASKS, "to work on"),
        Field("standbyTasks", _TASKS, "to follow"),
        Field("warmupTasks", _TASKS, "to get ready for"),
    ),
)  # fmt: skip
STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT = record_type(
    22, "StreamsGroupCurrentMemberAssignment", "what a member has", MEMBER_KEY,
    (
        Field("memberEpoch", _INT32, "the epoch it has reached"),
        Field("previousMemberEpoch", _INT32, "the one before"),
        Field("state", _INT8, "1 stable, 2 unrevoked, 3 unreleased tasks"),
        Field("activeTasks", _EPOCHED_TASKS, "it works on"),
        Field("standbyTasks", _EPOCHED_TASKS, "it follows"),
        Field("warmupTasks", _EPOCHED_TASKS, "it gets ready for"),
        Field("activeTasksPendingRevocation", _EPOCHED_TASKS, "active ones it must give up"),
        Field("standbyTasksPendingRevocation", _EPOCHED_TASKS, "standby ones it must give up"),
        Field("warmupTasksPendingRevocation", _EPOCHED_TASKS, "warmup ones it must give up"),
    ),
)  # fmt: skip
STREAMS_GROUP_TOPOLOGY = record_type(
    23, "StreamsGroupTopology", "the topology", GROUP_KEY,
    (
        Field("epoch", _INT32, "rises with each new topology"),
        Field("subtopologies", Array(_SUBTOPOLOGY), "its parts"),
    ),
)  # fmt: skip
