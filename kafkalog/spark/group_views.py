"""Groups of `__consumer_offsets` as DataFrames: what they are, who is in them, where they are, and
what they cost their coordinator.

Everything is read from the log alone, as a coordinator does when it loads it;
`reading.consumer_offsets` says what it means.

Source: Kafka GroupMetadataManager, OffsetMetadataManager, OffsetExpirationConditionImpl; KIP-211
(expiry), KIP-848, KIP-932, KIP-1071.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafkalog import clock
from kafkalog.format.topics import OFFSETS_TOPIC
from kafkalog.log.names import paths_in
from kafkalog.reading.function_views.table import OFFSETS_RETENTION_MINUTES
from kafkalog.reading.request import read_mode
from kafkalog.spark.gathered import made_in_one_task, made_of_all, summed_up
from kafkalog.spark.internal_topics import load_rows, load_view
from kafkalog.spark.latest_commits import judged_offsets, latest_records
from kafkalog.spark.loading import Paths
from kafkalog.spark.zookeeper import old_commits


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


def lag(spark: SparkSession, path: Paths, *, mode: str = "FAILFAST") -> DataFrame:
    """A row for each group, topic and partition: group, topic, partition, state (behind, atEnd,
    beyondEnd, belowStart, noCommit, noLog), committedOffset, commitTimestampMs, logStartOffset,
    highWatermark, logEndOffset, lag, lostOffsets, lagBytes, lagMs, firstTimestampMs,
    logEndTimestampMs, isLeaderHere, error.

    As `kafka-consumer-groups --describe` tells it, of a cluster that is stopped, and in bytes and
    time. `reading.function_views.lag` says what the log's end is. The tasks read the groups' topic,
    and one of them a few batches of each partition that a group is behind in. `mode` as for
    `groups`: with PERMISSIVE a commit that cannot be read has a row with its `error`.
    """
    from kafkalog.reading.function_views.lag import LAG

    latest = latest_records(spark, path, mode=read_mode(mode))
    frames = {"commits": latest.commits, "members": latest.members}
    return made_of_all(spark, frames, partial(_lag, paths_in(path)), LAG)


def _lag(paths: Sequence[str], frames: Mapping[str, pa.Table]) -> pa.Table:
    from kafkalog.reading.function_views.lag import lag as made
    from kafkalog.reading.function_views.shared_reads import SharedReads

    reads = SharedReads(paths)
    changes = reads.cluster_tables["partition_changes"]
    return made(frames["commits"], frames["members"], reads.inventory, changes)


def top_committers(spark: SparkSession, path: Paths, *, mode: str = "FAILFAST") -> DataFrame:
    """A row a group, the one with the most bytes first: group, coordinatorPartition, commits,
    tombstones, bytes, firstCommitMs, lastCommitMs, commitsPerHour. Of the log as it is: what was
    compacted away does not count.

    `mode`, here and in the functions below: with PERMISSIVE there is a column `error`, and a row
    that has nothing else for each record that cannot be read.
    """
    from kafkalog.reading.function_views import group_costs as made

    commits = load_rows(spark, "offset_commits", path, OFFSETS_TOPIC, made.COMMITTER_COLUMNS, mode)
    sums = summed_up(commits.rows, made.committer_sums, made.COMMITTER_SUMS)
    return commits.beside(made_in_one_task(sums, made.top_committers, made.TOP_COMMITTERS))


def rebalances(spark: SparkSession, path: Paths, *, mode: str = "FAILFAST") -> DataFrame:
    """A row for each group and hour: group, kind, hour, rebalances (generations of a classic group,
    epochs of the others), lastEpoch.
    """
    from kafkalog.reading.function_views import group_costs as made

    messages = load_rows(spark, "group_messages", path, OFFSETS_TOPIC, made.REBALANCE_COLUMNS, mode)
    epochs = summed_up(messages.rows, made.group_epochs, made.GROUP_EPOCHS)
    return messages.beside(made_in_one_task(epochs, made.rebalances, made.REBALANCES))


def coordinator_load(spark: SparkSession, path: Paths, *, mode: str = "FAILFAST") -> DataFrame:
    """A row a partition of `__consumer_offsets`: coordinatorPartition, groups, offsets, bytes,
    batches, records, firstMs, lastMs, recordsPerSecond, bytesPerSecond. An estimate from the log as
    it is: what was compacted away does not count.
    """
    from kafkalog.reading.function_views import group_costs as made

    batches = load_rows(spark, "batches", path, OFFSETS_TOPIC, made.LOAD_COLUMNS, mode)
    latest = latest_records(spark, path, mode=read_mode(mode))
    frames = {
        "sums": summed_up(batches.rows, made.load_sums, made.LOAD_SUMS),
        "commits": latest.commits.select("offsetsPartition"),
        "groups": latest.groups.select("coordinatorPartition"),
    }
    return batches.beside(made_of_all(spark, frames, _coordinator_load, made.COORDINATOR_LOAD))


def _coordinator_load(frames: Mapping[str, pa.Table]) -> pa.Table:
    from kafkalog.reading.function_views import group_costs as made

    return made.coordinator_load(frames["sums"], frames["commits"], frames["groups"])
