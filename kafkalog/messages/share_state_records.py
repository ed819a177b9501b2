"""Records of `__share_group_state`: how far a share group is with a partition, as snapshots and the
updates since.

An update counts only with the snapshot of the same `snapshotEpoch`. 4.0 wrote other fields under
the same version 0.

Source: ShareSnapshot*.json, ShareUpdate*.json; KIP-932.
"""

from __future__ import annotations

from kafkalog.messages.coordinator_record import RecordType, record_type
from kafkalog.messages.schema import Array, Field, Primitive, Struct

_INT8, _INT16, _INT32, _INT64 = Primitive.INT8, Primitive.INT16, Primitive.INT32, Primitive.INT64

_KEY = (
    Field("groupId", Primitive.STRING, "the group"),
    Field("topicId", Primitive.UUID, "the topic"),
    Field("partition", _INT32, "the partition"),
)
_BATCH = Struct(
    (
        Field("firstOffset", _INT64, "first offset"),
        Field("lastOffset", _INT64, "last offset"),
        Field("deliveryState", _INT8, "0 available, 2 acknowledged, 4 archived"),
        Field("deliveryCount", _INT16, "how often they were delivered"),
    )
)
_EPOCH = Field("snapshotEpoch", _INT32, "rises with each snapshot")
_EPOCH_OF_4_0 = Field("snapshotEpoch", Primitive.UINT16, "rises with each snapshot")
_STATE_EPOCH = Field("stateEpoch", _INT32, "rises when the state is set anew")
_LEADER_EPOCH = Field("leaderEpoch", _INT32, "of the partition's leader that wrote it")
_START_OFFSET = Field("startOffset", _INT64, "first offset not done with, -1 unchanged or none")
_BATCHES = Field("stateBatches", Array(_BATCH), "how the offsets behind it stand")
_COMPLETE = Field(
    "deliveryCompleteCount", _INT32, "offsets behind the start that are done with, -1 unknown",
    tag=0, default=-1, source="KIP-1226",
)  # fmt: skip

SHARE_SNAPSHOT = record_type(
    0, "ShareSnapshot", "a partition's whole state", _KEY,
    (
        _EPOCH, _STATE_EPOCH, _LEADER_EPOCH, _START_OFFSET, _COMPLETE,
        Field("createTimestamp", _INT64, "when the state was made, in ms"),
        Field("writeTimestamp", _INT64, "when this was written, in ms"),
        _BATCHES,
    ),
    older=(("4.0", (_EPOCH_OF_4_0, _STATE_EPOCH, _LEADER_EPOCH, _START_OFFSET, _BATCHES)),),
)  # fmt: skip
SHARE_UPDATE = record_type(
    1, "ShareUpdate", "what changed since its snapshot", _KEY,
    (_EPOCH, _LEADER_EPOCH, _START_OFFSET, _COMPLETE, _BATCHES),
    older=(("4.0", (_EPOCH_OF_4_0, _LEADER_EPOCH, _START_OFFSET, _BATCHES)),),
)  # fmt: skip

SHARE_STATE_TYPES: dict[int, RecordType] = {
    known.number: known for known in (SHARE_SNAPSHOT, SHARE_UPDATE)
}
