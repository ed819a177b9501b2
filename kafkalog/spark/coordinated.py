"""Transactional ids, open transactions, remote segments and share state: what the other
coordinators keep, as DataFrames.

Source: Kafka TransactionStateManager, TransactionsCommand; RemoteLogMetadataCache (KIP-405);
ShareCoordinatorShard (KIP-932).
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from kafkalog import clock
from kafkalog.format.topics import (
    OFFSETS_TOPIC,
    REMOTE_LOG_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTION_TOPIC,
)
from kafkalog.messages.remote_log_records import RemoteLogSegmentState
from kafkalog.messages.transaction_records import TransactionState
from kafkalog.spark.internal_topics import latest_messages, load_view
from kafkalog.spark.loading import Paths

_TRANSACTION = (
    "producerId LONG, previousProducerId LONG, nextProducerId LONG, producerEpoch SHORT, "
    "transactionTimeoutMs INT, transactionStatus INT, "
    "transactionPartitions ARRAY<STRUCT<topic: STRING, partitionIds: ARRAY<INT>>>, "
    "transactionLastUpdateTimestampMs LONG, transactionStartTimestampMs LONG, "
    "clientTransactionVersion SHORT"
)
_OPEN = (
    "topic STRING, partition INT, producerId LONG, producerEpoch SHORT, firstOffset LONG, "
    "lastOffset LONG, lastTimestampMs LONG"
)
_SEGMENT_ID = (
    "STRUCT<topicIdPartition: STRUCT<name: STRING, id: STRING, partition: INT>, id: STRING>"
)
_SEGMENT = (
    f"remoteLogSegmentId {_SEGMENT_ID}, startOffset LONG, endOffset LONG, brokerId INT, "
    "maxTimestampMs LONG, eventTimestampMs LONG, segmentSizeInBytes INT, "
    "remoteLogSegmentState INT, txnIndexEmpty BOOLEAN"
)
_SHARE = (
    "snapshotEpoch INT, stateEpoch INT, leaderEpoch INT, startOffset LONG, "
    "deliveryCompleteCount INT, createTimestamp LONG, writeTimestamp LONG, "
    "stateBatches ARRAY<STRUCT<firstOffset: LONG, lastOffset: LONG, deliveryState: INT, "
    "deliveryCount: INT>>"
)
# States in which the coordinator still has partitions to write markers to, or waits for the client.
_UNDER_WAY = ("ONGOING", "PREPARE_COMMIT", "PREPARE_ABORT", "PREPARE_EPOCH_FENCE")


def _names(states: type[TransactionState] | type[RemoteLogSegmentState]) -> str:
    """SQL: a map of a state's number to its name."""
    return "map(" + ", ".join(f"{state.value}, '{state.name}'" for state in states) + ")"


# -- transactions ----------------------------------------------------------------------------------


def transactional_ids(spark: SparkSession, path: Paths) -> DataFrame:
    """A row a transactional id: transactionalId, producerId, producerEpoch, state (Kafka's names),
    timeoutMs, startMs (null before the first partition), lastUpdateMs, partitions, clientVersion,
    coordinatorPartition.
    """
    latest = latest_messages(load_view(spark, "messages", path, TRANSACTION_TOPIC))
    return latest.select(
        F.get_json_object("key", "$.transactionalId").alias("transactionalId"),
        F.from_json("value", _TRANSACTION).alias("v"),
        "partition",
    ).selectExpr(
        "transactionalId", "v.producerId AS producerId", "v.producerEpoch AS producerEpoch",
        f"element_at({_names(TransactionState)}, v.transactionStatus) AS state",
        "v.transactionTimeoutMs AS timeoutMs",
        "nullif(v.transactionStartTimestampMs, -1) AS startMs",
        "v.transactionLastUpdateTimestampMs AS lastUpdateMs",
        "v.transactionPartitions AS partitions",
        "coalesce(v.clientTransactionVersion, 0) AS clientVersion",
        "partition AS coordinatorPartition",
    )  # fmt: skip


def open_transactions(spark: SparkSession, path: Paths, *, now_ms: int | None = None) -> DataFrame:
    """A row for each partition that an open transaction keeps waiting: topic, partition,
    producerId, producerEpoch, transactionalId, firstOffset, lastOffset, lastTimestampMs, ageMs,
    timeoutMs, coordinatorState, isHanging, blockedGroups, command.

    Consumers that read committed records stop at `firstOffset`. A transaction hangs if its
    coordinator knows nothing of it there, or should have ended it by its timeout; `command` ends
    it. `blockedGroups` have commits in it. `now_ms` is the clock by default. The driver reads the
    producers' state of each partition: its newest snapshot and the headers behind it.
    """
    now = clock.now_ms() if now_ms is None else now_ms
    found = spark.createDataFrame(_open_rows(path, now), _OPEN)
    ids = transactional_ids(spark, path)
    under_way = (
        ids.withColumn("p", F.explode_outer("partitions"))
        .withColumn("n", F.explode_outer("p.partitionIds"))
        .select("producerId", F.col("p.topic").alias("topic"), F.col("n").alias("partition"),
                F.lit(True).alias("isThere"))
        .distinct()
    )  # fmt: skip
    commits = load_view(spark, "offset_commits", path, OFFSETS_TOPIC)
    blocked = commits.where("transactionState = 'open'").groupBy(
        F.lit(OFFSETS_TOPIC).alias("topic"), F.col("offsetsPartition").alias("partition")
    ).agg(F.sort_array(F.collect_set("group")).alias("blockedGroups"))  # fmt: skip
    states = ", ".join(f"'{state}'" for state in _UNDER_WAY)
    known = ids.selectExpr(
        "producerId", "transactionalId", "timeoutMs", "state AS coordinatorState",
        "producerEpoch AS coordinatorEpoch",
    )  # fmt: skip
    return (
        found.join(known, "producerId", "left")
        .join(under_way, ["producerId", "topic", "partition"], "left")
        .join(blocked, ["topic", "partition"], "left")
        .withColumn("ageMs", F.lit(now) - F.col("lastTimestampMs"))
        .withColumn(
            "isHanging",
            F.expr(
                f"NOT (coalesce(coordinatorState, '') IN ({states}) AND coalesce(isThere, false)"
                " AND producerEpoch <= coordinatorEpoch AND ageMs <= timeoutMs)"
            ),
        )
        .withColumn(
            "command",
            F.format_string(
                "kafka-transactions.sh --bootstrap-server SERVER abort --topic %s --partition %d"
                " --start-offset %d",
                "topic", "partition", "firstOffset",
            ),
        )
        .select(
            "topic", "partition", "producerId", "producerEpoch", "transactionalId", "firstOffset",
            "lastOffset", "lastTimestampMs", "ageMs", "timeoutMs", "coordinatorState", "isHanging",
            "blockedGroups", "command",
        )
        .orderBy(F.desc("ageMs"), "topic", "partition")
    )  # fmt: skip


def _open_rows(path: Paths, now_ms: int) -> list[tuple[object, ...]]:
    # Needs kernels; a driver that only looks at schemas does not.
    from kafkalog.log.log_dir import open_log_dir
    from kafkalog.log.producer_state import active_producers
    from kafkalog.log.topic_partition import PartitionKind
    from kafkalog.reading.selection import furthest_replicas

    never_expires = 2**62  # an open transaction is never forgotten
    rows: list[tuple[object, ...]] = []
    inventory = open_log_dir(*([path] if isinstance(path, str) else path))
    live = [p for p in inventory.partitions if p.kind == PartitionKind.LIVE]
    for partition in furthest_replicas(live):
        for producer in active_producers(partition, now_ms, never_expires).values():
            if producer.current_txn_first_offset is not None:
                name = partition.topic_partition
                rows.append(
                    (
                        name.topic, name.partition, producer.producer_id, producer.epoch,
                        producer.current_txn_first_offset, producer.last_data_offset,
                        producer.last_timestamp_ms,
                    )
                )  # fmt: skip
    return rows


# -- remote segments -------------------------------------------------------------------------------


def remote_segments(spark: SparkSession, path: Paths) -> DataFrame:
    """A row a remote segment: topic, partition, topicId, segmentId, startOffset, endOffset (both
    included), sizeInBytes, maxTimestampMs, brokerId, state, history (state and time of each event),
    isOrphan, gapBefore, overlapsPrevious.

    An orphan was never finished, or its deletion was not: storage may hold bytes that nobody reads.
    Gaps (offsets that no finished segment has) and overlaps are between finished segments of a
    partition in the order of their offsets; after an unclean election overlaps are lawful.
    """
    each = _segment_states(load_view(spark, "messages", path, REMOTE_LOG_TOPIC))
    is_finished = "state = 'COPY_SEGMENT_FINISHED'"
    before = (
        Window.partitionBy("topicId", "partition", F.expr(is_finished))
        .orderBy("startOffset", "endOffset")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    return (
        each.withColumn("previousEnd", F.max("endOffset").over(before))
        .withColumn(
            "isOrphan", F.expr("state IN ('COPY_SEGMENT_STARTED', 'DELETE_SEGMENT_STARTED')")
        )
        .withColumn(
            "gapBefore", F.expr(f"coalesce({is_finished} AND startOffset > previousEnd + 1, false)")
        )
        .withColumn(
            "overlapsPrevious",
            F.expr(f"coalesce({is_finished} AND startOffset <= previousEnd, false)"),
        )
        .drop("previousEnd")
        .orderBy("topic", "partition", "startOffset")
    )


def _segment_states(messages: DataFrame) -> DataFrame:
    """A row a segment: what its first event says of it, and its events in order."""
    events = messages.where(
        F.col("messageType").isin(
            "RemoteLogSegmentMetadataRecord", "RemoteLogSegmentMetadataUpdateRecord"
        )
    ).select("partition", "offset", F.from_json("value", _SEGMENT).alias("v"))
    event = F.struct(
        F.col("offset"),
        F.col("v.eventTimestampMs").alias("timestampMs"),
        F.expr(f"element_at({_names(RemoteLogSegmentState)}, v.remoteLogSegmentState)").alias(
            "state"
        ),
    )
    first = F.expr("first(IF(v.startOffset IS NULL, NULL, v), true)").alias("v")
    place = "v.remoteLogSegmentId.topicIdPartition"
    return (
        events.groupBy(
            F.col(f"{place}.id").alias("topicId"),
            F.col(f"{place}.name").alias("topic"),
            F.col(f"{place}.partition").alias("partition"),
            F.col("v.remoteLogSegmentId.id").alias("segmentId"),
        )
        .agg(first, F.sort_array(F.collect_list(event)).alias("events"))
        .selectExpr(
            "topic", "partition", "topicId", "segmentId", "v.startOffset AS startOffset",
            "v.endOffset AS endOffset", "v.segmentSizeInBytes AS sizeInBytes",
            "v.maxTimestampMs AS maxTimestampMs", "v.brokerId AS brokerId",
            "element_at(events, -1).state AS state",
            "transform(events, e -> struct(e.timestampMs, e.state)) AS history",
        )
    )  # fmt: skip


# -- share state -----------------------------------------------------------------------------------


def share_states(spark: SparkSession, path: Paths) -> DataFrame:
    """A row for each share group and partition: group, topicId, partition, snapshotEpoch,
    stateEpoch, leaderEpoch, startOffset, deliveryCompleteCount, createMs, writeMs, snapshotBatches,
    updates (how many count with the snapshot), updateBatches (theirs, in order), statePartition.
    """
    messages = load_view(spark, "messages", path, SHARE_STATE_TOPIC).where("value IS NOT NULL")
    rows = messages.select(
        F.col("partition").alias("statePartition"),
        "offset",
        "messageType",
        F.get_json_object("key", "$.groupId").alias("group"),
        F.get_json_object("key", "$.topicId").alias("topicId"),
        F.get_json_object("key", "$.partition").cast("int").alias("partition"),
        F.from_json("value", _SHARE).alias("v"),
    )
    keys = ["group", "topicId", "partition", "statePartition"]
    snapshots = (
        rows.where("messageType = 'ShareSnapshot'")
        .groupBy(*keys)
        .agg(F.max_by("v", "offset").alias("s"), F.max("offset").alias("snapshotOffset"))
    )
    updates = rows.where("messageType = 'ShareUpdate'").select(
        *keys, F.col("offset").alias("updateOffset"), F.col("v").alias("u")
    )
    joined = snapshots.join(updates, keys, "left").withColumn(
        "u",
        F.expr(
            "IF(updateOffset > snapshotOffset AND u.snapshotEpoch = s.snapshotEpoch,"
            " struct(updateOffset, u), NULL)"
        ),
    )
    each = joined.groupBy(*keys).agg(
        F.first("s").alias("s"), F.sort_array(F.collect_list("u")).alias("us")
    )
    last = "element_at(filter(us, e -> e.u.startOffset >= 0), -1).u.startOffset"
    return each.selectExpr(
        "group", "topicId", "partition", "s.snapshotEpoch AS snapshotEpoch",
        "s.stateEpoch AS stateEpoch",
        "coalesce(try_element_at(us, -1).u.leaderEpoch, s.leaderEpoch) AS leaderEpoch",
        f"coalesce({last.replace('element_at', 'try_element_at')}, s.startOffset) AS startOffset",
        "coalesce(try_element_at(us, -1).u.deliveryCompleteCount, s.deliveryCompleteCount)"
        " AS deliveryCompleteCount",
        "s.createTimestamp AS createMs", "s.writeTimestamp AS writeMs",
        "s.stateBatches AS snapshotBatches", "size(us) AS updates",
        "flatten(transform(us, e -> e.u.stateBatches)) AS updateBatches", "statePartition",
    ).orderBy("group", "topicId", "partition")  # fmt: skip
