"""Retention beside Spark's other verbs: planned and carried out by the driver.

Deleting a segment is a few renames, so no task is worth starting; the driver must see the log dirs,
as it does for a compaction, whose plans it makes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from pyspark.sql import SparkSession

from kafkalog.cleaner.retention_run import (
    RetentionRun,
    apply_retention_run,
    plan_retention_run,
)
from kafkalog.cleaner.run_request import CompactionRequest
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.planning.log_config import LogConfig


def retain(
    spark: SparkSession,
    log_dirs: Sequence[str],
    *,
    topics: Sequence[str] = (),
    topic_partitions: Sequence[TopicPartition] = (),
    config: Sequence[str] = (),
    now_ms: int | None = None,
    kafka_version: str = "4.3",
    high_watermark: int | None = None,
    apply: bool = False,
) -> RetentionRun:
    """Plan retention of the selected partitions; with `apply` delete what it allows.

    The arguments are the options of `kafkalog retain`, as in `compact`; the session starts no task.

    Raises InvalidConfigError for what Kafka would refuse, LogDirLockedError if a broker runs. What
    stops one partition is in its result.
    """
    request = CompactionRequest(
        log_dirs=tuple(log_dirs),
        now_ms=time.time_ns() // 1_000_000 if now_ms is None else now_ms,
        config=LogConfig.from_overrides(config),
        topics=tuple(topics),
        topic_partitions=tuple(topic_partitions),
        kafka_version=kafka_version,
        high_watermark=high_watermark,
    )
    return apply_retention_run(request) if apply else plan_retention_run(request)
