"""THE columns of what the other coordinators keep: transactional ids, open transactions, remote
segments, share state.
"""

from __future__ import annotations

import pyarrow as pa

from kafkalog.columns.cluster_schemas import NODES, TEXTS
from kafkalog.columns.column import Column, not_null, nullable


def _list(element: pa.DataType) -> pa.DataType:
    """Named as Spark names them when it turns its own schema into Arrow."""
    return pa.list_(pa.field("element", element))


TRANSACTION_PARTITIONS = _list(
    pa.struct([pa.field("topic", pa.string()), pa.field("partitionIds", NODES)])
)
SEGMENT_EVENTS = _list(
    pa.struct([pa.field("timestampMs", pa.int64()), pa.field("state", pa.string())])
)
STATE_BATCHES = _list(
    pa.struct(
        [
            pa.field("firstOffset", pa.int64()),
            pa.field("lastOffset", pa.int64()),
            pa.field("deliveryState", pa.int32()),
            pa.field("deliveryCount", pa.int32()),
        ]
    )
)

TRANSACTIONAL_IDS: tuple[Column, ...] = (
    not_null("transactionalId", pa.string(), "transactional.id"),
    nullable("producerId", pa.int64(), "its producer id"),
    nullable("producerEpoch", pa.int16(), "its epoch"),
    nullable("state", pa.string(), "Kafka's name: ONGOING, COMPLETE_COMMIT …"),
    nullable("timeoutMs", pa.int32(), "transaction.timeout.ms"),
    nullable("startMs", pa.int64(), "when it began; null before the first partition"),
    nullable("lastUpdateMs", pa.int64(), "when the coordinator wrote this"),
    nullable("partitions", TRANSACTION_PARTITIONS, "partitions that take part"),
    not_null("clientVersion", pa.int32(), "the client's version of transactions"),
    not_null("coordinatorPartition", pa.int32(), "partition of __transaction_state"),
)

OPEN_TRANSACTIONS: tuple[Column, ...] = (
    not_null("topic", pa.string(), "topic"),
    not_null("partition", pa.int32(), "partition that waits for its end"),
    not_null("producerId", pa.int64(), "whose it is"),
    not_null("producerEpoch", pa.int16(), "its epoch"),
    nullable("transactionalId", pa.string(), "transactional.id, where the coordinator knows it"),
    not_null("firstOffset", pa.int64(), "where consumers of committed records stop"),
    nullable("lastOffset", pa.int64(), "last offset of its data"),
    not_null("lastTimestampMs", pa.int64(), "of its last batch"),
    not_null("ageMs", pa.int64(), "from then to now"),
    nullable("timeoutMs", pa.int32(), "transaction.timeout.ms"),
    nullable("coordinatorState", pa.string(), "state that the coordinator has it in"),
    not_null(
        "isHanging",
        pa.bool_(),
        "its coordinator does not know it there, or should have ended it by its timeout",
    ),
    nullable("blockedGroups", TEXTS, "groups that have commits in it"),
    not_null("command", pa.string(), "the command that ends it"),
)

REMOTE_SEGMENTS: tuple[Column, ...] = (
    nullable("topic", pa.string(), "topic"),
    nullable("partition", pa.int32(), "partition number"),
    nullable("topicId", pa.string(), "topic id"),
    nullable("segmentId", pa.string(), "id of the remote segment"),
    nullable("startOffset", pa.int64(), "its first offset"),
    nullable("endOffset", pa.int64(), "its last offset, included"),
    nullable("sizeInBytes", pa.int32(), "its bytes"),
    nullable("maxTimestampMs", pa.int64(), "largest timestamp"),
    nullable("brokerId", pa.int32(), "the broker that copied it"),
    nullable("state", pa.string(), "Kafka's name: COPY_SEGMENT_STARTED …"),
    not_null("history", SEGMENT_EVENTS, "state and time of each event"),
    not_null("isOrphan", pa.bool_(), "never finished, or its deletion was not"),
    not_null(
        "gapBefore", pa.bool_(), "offsets in front of it that no finished segment of these has"
    ),
    not_null("overlapsPrevious", pa.bool_(), "shares offsets with a finished one before it"),
)

SHARE_STATES: tuple[Column, ...] = (
    not_null("group", pa.string(), "the share group"),
    nullable("topicId", pa.string(), "topic id"),
    not_null("partition", pa.int32(), "partition number"),
    nullable("snapshotEpoch", pa.int32(), "of the last snapshot"),
    nullable("stateEpoch", pa.int32(), "of the state"),
    nullable("leaderEpoch", pa.int32(), "of the partition's leader"),
    nullable("startOffset", pa.int64(), "first offset that is not done with"),
    nullable("deliveryCompleteCount", pa.int32(), "records behind it that are done with"),
    nullable("createMs", pa.int64(), "when the state was created"),
    nullable("writeMs", pa.int64(), "when the snapshot was written"),
    nullable("snapshotBatches", STATE_BATCHES, "batches of the snapshot"),
    not_null("updates", pa.int32(), "updates that count with the snapshot"),
    not_null("updateBatches", STATE_BATCHES, "batches of these, in order"),
    not_null("statePartition", pa.int32(), "partition of __share_group_state"),
)
