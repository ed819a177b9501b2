"""Groups of `__consumer_offsets` as DataFrames: what they are, who is in them, where they are, and
what they cost their coordinator.

Everything is read from the log alone, as a coordinator does when it loads it;
`reading.consumer_offsets` says what it means.

Source: Kafka GroupMetadataManager, OffsetMetadataManager, OffsetExpirationConditionImpl; KIP-211
(expiry), KIP-848, KIP-932, KIP-1071.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafkalog import clock
from kafkalog.format.topics import OFFSETS_TOPIC
from kafkalog.messages.group_types import KINDS
from kafkalog.spark.internal_topics import load_view, read_mode
from kafkalog.spark.latest_commits import judged_offsets, latest_records
from kafkalog.spark.loading import Paths
from kafkalog.spark.zookeeper import old_commits

# Kafka's default of offsets.retention.minutes: seven days.
OFFSETS_RETENTION_MINUTES = 7 * 24 * 60


def groups(spark: SparkSession, path: Paths, *, mode: str = "FAILFAST") -> DataFrame:
    """A row a group: group, kind (classic, consumer, share, streams, simple), state, protocolType,
    protocol, epoch (a classic group's generation), members, stateTimestampMs, coordinatorPartition.

    `state` is what the log tells: Empty, Stable, and of the new protocols Assigning (the target is
    behind the group's epoch) and Reconciling (a member is behind it). A simple group has offsets
    and nothing else.

    `mode`: a record that cannot be read raises CorruptRecordError with FAILFAST. With PERMISSIVE
    there is a column `error`: beside the group, whose row is then not whole, or in a row of its own
    where the record does not tell whose it is. DROPMALFORMED leaves it out. Both warn once, and
    what the record may have replaced is not shown.
    """
    return latest_records(spark, path, mode=read_mode(mode)).groups


def group_members(spark: SparkSession, path: Paths, *, mode: str = "FAILFAST") -> DataFrame:
    """A row a member: group, kind, memberId, instanceId, rackId, clientId, clientHost, epoch,
    subscribedTopics, subscription and assignment (JSON, as the kind writes them), isLeader. `mode`
    as for `groups`.
    """
    return latest_records(spark, path, mode=read_mode(mode)).members


def group_offsets(
    spark: SparkSession,
    path: Paths,
    *,
    history: bool = False,
    now_ms: int | None = None,
    offsets_retention_minutes: int = OFFSETS_RETENTION_MINUTES,
    zookeeper_dir: Paths | None = None,
    zk_root: str | None = None,
    mode: str = "FAILFAST",
) -> DataFrame:
    """A row for each group, topic and partition: the columns of `latest_offset_commits`, or with
    `history` of all commits, and source, diskTopicId, logStartOffset, logEndOffset, lag,
    expiresAtMs, isExpired.

    With `zookeeper_dir`, the data directory of a dead ZooKeeper (`zk_root`: one cluster of it),
    the offsets that the consumers before 0.9 kept there come too. `source` is __consumer_offsets or
    zookeeper; `recordOffset` of the latter is the zxid, and they never expire.

    `lag` is against the log end on the same disk, null where the partition is not there.
    `expiresAtMs` is when a coordinator may drop the offset if nothing changes, null while the group
    uses it; `now_ms` is the clock by default.

    `mode` as for `groups`; a row with an `error` has of a commit what its key tells.
    """
    latest = latest_records(spark, path, with_log_ends=True, mode=read_mode(mode))
    now = clock.now_ms() if now_ms is None else now_ms
    retention_ms = offsets_retention_minutes * 60_000
    if not history and zookeeper_dir is None:
        return latest.offsets(now, retention_ms)
    commits = latest.commits
    if history:
        commits = load_view(spark, "offset_commits", path, OFFSETS_TOPIC, mode=mode)
    commits = commits.withColumn("source", F.lit(OFFSETS_TOPIC))
    if zookeeper_dir is not None:
        old = old_commits(spark, zookeeper_dir, zk_root, history=history)
        commits = commits.unionByName(old, allowMissingColumns=True)
    commits = commits.join(F.broadcast(latest.log_ends), ["topic", "partition"], "left")
    commits = commits.join(F.broadcast(latest.use), "group", "left")
    commits = commits.withColumn("usedTopicsCount", F.expr("size(usedTopics)"))
    commits = commits.withColumn("usesTopic", F.expr("array_contains(usedTopics, topic)"))
    return judged_offsets(commits.drop("usedTopics"), now, retention_ms)


def top_committers(spark: SparkSession, path: Paths) -> DataFrame:
    """A row a group, the one with the most bytes first: group, coordinatorPartition, commits,
    tombstones, bytes, firstCommitMs, lastCommitMs, commitsPerHour. Of the log as it is: what was
    compacted away does not count.
    """
    commits = load_view(spark, "offset_commits", path, OFFSETS_TOPIC)
    hours = "greatest(lastCommitMs - firstCommitMs, 1) / 3600000D"
    return (
        commits.groupBy("group", F.col("offsetsPartition").alias("coordinatorPartition"))
        .agg(
            F.expr("count_if(NOT isTombstone)").alias("commits"),
            F.expr("count_if(isTombstone)").alias("tombstones"),
            F.sum("recordBytes").alias("bytes"),
            F.min("commitTimestampMs").alias("firstCommitMs"),
            F.max("commitTimestampMs").alias("lastCommitMs"),
        )
        .withColumn("commitsPerHour", F.expr(f"IF(commits > 1, commits / ({hours}), NULL)"))
        .orderBy(F.desc("bytes"), "group")
    )


def rebalances(spark: SparkSession, path: Paths) -> DataFrame:
    """A row for each group and hour: group, kind, hour, rebalances (generations of a classic group,
    epochs of the others), lastEpoch.
    """
    messages = load_view(spark, "group_messages", path, OFFSETS_TOPIC).where("value IS NOT NULL")
    classic = messages.where("messageType = 'GroupMetadata'").selectExpr(
        "get_json_object(key, '$.group') AS group", "'classic' AS kind", "timestamp",
        "CAST(get_json_object(value, '$.generation') AS INT) AS epoch",
    )  # fmt: skip
    kinds = {f"{prefix}Metadata": kind for prefix, kind in KINDS.items()}
    kind_of = F.create_map(*(F.lit(text) for pair in kinds.items() for text in pair))
    others = (
        messages.where(F.col("messageType").isin(list(kinds)))
        .withColumn("kind", kind_of[F.col("messageType")])
        .selectExpr(
            "get_json_object(key, '$.groupId') AS group", "kind", "timestamp",
            "CAST(get_json_object(value, '$.epoch') AS INT) AS epoch",
        )
    )  # fmt: skip
    each = classic.unionByName(others).groupBy("group", "kind", "epoch").agg(F.min("timestamp"))
    each = each.withColumnRenamed("min(timestamp)", "timestamp")
    return (
        each.groupBy("group", "kind", F.date_trunc("hour", "timestamp").alias("hour"))
        .agg(F.count("epoch").alias("rebalances"), F.max("epoch").alias("lastEpoch"))
        .orderBy("group", "hour")
    )


def coordinator_load(spark: SparkSession, path: Paths) -> DataFrame:
    """A row a partition of `__consumer_offsets`: coordinatorPartition, groups, offsets, bytes,
    batches, records, firstMs, lastMs, recordsPerSecond, bytesPerSecond. An estimate from the log as
    it is: what was compacted away does not count.
    """
    batches = load_view(spark, "batches", path, OFFSETS_TOPIC)
    load = batches.groupBy(F.col("partition").alias("coordinatorPartition")).agg(
        F.sum("sizeInBytes").alias("bytes"),
        F.count("*").alias("batches"),
        F.sum("recordsCount").alias("records"),
        F.min("maxTimestampMs").alias("firstMs"),
        F.max("maxTimestampMs").alias("lastMs"),
    )
    latest = latest_records(spark, path)
    keys = latest.commits.groupBy(F.col("offsetsPartition").alias("coordinatorPartition")).agg(
        F.count("*").alias("offsets")
    )
    count = latest.groups.groupBy("coordinatorPartition").agg(F.count("*").alias("groups"))
    seconds = "(greatest(lastMs - firstMs, 1) / 1000D)"
    return (
        load.join(keys, "coordinatorPartition", "left")
        .join(count, "coordinatorPartition", "left")
        .fillna(0, ["offsets", "groups"])
        .withColumn("recordsPerSecond", F.expr(f"IF(records > 1, records / {seconds}, NULL)"))
        .withColumn("bytesPerSecond", F.expr(f"IF(records > 1, bytes / {seconds}, NULL)"))
        .orderBy("coordinatorPartition")
    )
