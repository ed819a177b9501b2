"""Transactional ids, open transactions, remote segments and share state: what the other
coordinators keep, as DataFrames.

Tasks decode the topics; what the records say together `reading.function_views` makes of them, for
other engines too.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from kafkalog.format.topics import (
    REMOTE_LOG_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTION_TOPIC,
)
from kafkalog.reading.option_table import OPEN_TRANSACTIONS
from kafkalog.spark.gathered import made_in_one_task
from kafkalog.spark.internal_topics import load_rows
from kafkalog.spark.loading import Paths, load


def transactional_ids(spark: SparkSession, path: Paths, *, mode: str = "FAILFAST") -> DataFrame:
    """A row a transactional id: transactionalId, producerId, producerEpoch, state (Kafka's names),
    timeoutMs, startMs (null before the first partition), lastUpdateMs, partitions, clientVersion,
    coordinatorPartition.

    `mode`, here and in the functions below: a record that cannot be read raises CorruptRecordError
    with FAILFAST; with PERMISSIVE there is a column `error`, and a row that has nothing else for
    each such record; DROPMALFORMED leaves it out.
    """
    from kafkalog.reading.function_views import transactions as made

    messages = load_rows(spark, "messages", path, TRANSACTION_TOPIC, made.STATE_COLUMNS, mode)
    ids = made_in_one_task(messages.rows, made.transactional_ids, made.TRANSACTIONAL_IDS)
    return messages.beside(ids)


def open_transactions(
    spark: SparkSession, path: Paths, *, now_ms: int | None = None, mode: str = "FAILFAST"
) -> DataFrame:
    """A row for each partition that an open transaction keeps waiting: topic, partition,
    producerId, producerEpoch, transactionalId, firstOffset, lastOffset, lastTimestampMs, ageMs,
    timeoutMs, coordinatorState, isHanging, blockedGroups, command.

    Consumers that read committed records stop at `firstOffset`. A transaction hangs if its
    coordinator knows nothing of it there, or should have ended it by its timeout; `command` ends
    it. `blockedGroups` have commits in it. `now_ms` is the clock by default. One task reads the
    producers' state of each partition: its newest snapshot and the headers behind it.
    """
    options = {"mode": mode} | ({} if now_ms is None else {"now": str(now_ms)})
    return load(spark, OPEN_TRANSACTIONS, path, options)


def remote_segments(spark: SparkSession, path: Paths, *, mode: str = "FAILFAST") -> DataFrame:
    """A row a remote segment: topic, partition, topicId, segmentId, startOffset, endOffset (both
    included), sizeInBytes, maxTimestampMs, brokerId, state, history (state and time of each event),
    isOrphan, gapBefore, overlapsPrevious.

    An orphan was never finished, or its deletion was not: storage may hold bytes that nobody reads.
    Gaps (offsets that no finished segment has) and overlaps are between finished segments of a
    partition in the order of their offsets; after an unclean election overlaps are lawful.
    """
    from kafkalog.reading.function_views import remote_segments as made

    messages = load_rows(spark, "messages", path, REMOTE_LOG_TOPIC, made.EVENT_COLUMNS, mode)
    segments = made_in_one_task(messages.rows, made.remote_segments, made.REMOTE_SEGMENTS)
    return messages.beside(segments)


def share_states(spark: SparkSession, path: Paths, *, mode: str = "FAILFAST") -> DataFrame:
    """A row for each share group and partition: group, topicId, partition, snapshotEpoch,
    stateEpoch, leaderEpoch, startOffset, deliveryCompleteCount, createMs, writeMs, snapshotBatches,
    updates (how many count with the snapshot), updateBatches (theirs, in order), statePartition.
    """
    from kafkalog.reading.function_views import share_states as made

    messages = load_rows(spark, "messages", path, SHARE_STATE_TOPIC, made.STATE_COLUMNS, mode)
    states = made_in_one_task(messages.rows, made.share_states, made.SHARE_STATES)
    return messages.beside(states)
