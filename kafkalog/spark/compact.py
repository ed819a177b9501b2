"""Log compaction on Spark: one task per partition, planned and checkpointed by the driver.

The driver makes the plans, holds the locks of the log dirs and writes the checkpoints; a task owns
one partition from map to swap. All of them must see the log dirs under the same path: `local[*]` on
the broker's host, or a disk that all executors share. A task that finds another disk there stops by
itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import partial

from pyspark.sql import SparkSession

from kafkalog.cleaner.clean import CleanRun, clean_partition
from kafkalog.cleaner.run import CompactionRun, Executor, apply_run, plan_run
from kafkalog.cleaner.run_request import CompactionRequest
from kafkalog.cleaner.settings import read_config_file, read_server_properties
from kafkalog.cleaner.stats import CleanResult
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.planning.compaction_plan import CompactionPlan
from kafkalog.planning.log_config import LogConfig
from kafkalog.spark.tasks import run_tasks


def compact(
    spark: SparkSession,
    log_dirs: Sequence[str],
    *,
    topics: Sequence[str] = (),
    topic_partitions: Sequence[TopicPartition] = (),
    config: Sequence[str] = (),
    now_ms: int | None = None,
    config_file: str | None = None,
    server_properties: str | None = None,
    kafka_version: str | None = None,
    high_watermark: int | None = None,
    force: Sequence[str] = (),
    dedupe_buffer_size: int | None = None,
    apply: bool = False,
) -> CompactionRun:
    """Plan compaction of the selected partitions; with `apply` carry it out as Spark tasks.

    The arguments are the options of `kafkalog compact` (`config` as KEY=VALUE, `topics` names or
    globs, needed with `apply`); now_ms defaults to the clock. Without `apply` nothing is changed,
    nor any task started.

    Raises InvalidConfigError for what Kafka would refuse, LogDirLockedError if a broker runs. What
    stops one partition is in its result.
    """
    request = CompactionRequest(
        log_dirs=tuple(log_dirs),
        now_ms=time.time_ns() // 1_000_000 if now_ms is None else now_ms,
        config=LogConfig.from_overrides(config, is_partial=True),
        topics=tuple(topics),
        topic_partitions=tuple(topic_partitions),
        kafka_version=kafka_version,
        high_watermark=high_watermark,
        force=frozenset(force),
        dedupe_buffer_size=dedupe_buffer_size,
        config_file=read_config_file(config_file),
        server_properties=read_server_properties(server_properties),
    )
    return apply_run(request, spark_executor(spark)) if apply else plan_run(request)


def spark_executor(spark: SparkSession) -> Executor:
    """What turns plans into results with Spark tasks; see `kafkalog.cleaner.run`."""

    def execute(plans: Sequence[CompactionPlan], run: CleanRun) -> Iterable[CleanResult]:
        ordered = sorted(plans, key=lambda plan: -(plan.clean_bytes + plan.cleanable_bytes))
        work = partial(clean_partition, run=run)
        return run_tasks(spark, ordered, work, CompactionPlan, CleanResult)

    return execute
