"""Log compaction on Spark: one task per partition, planned and checkpointed by the driver.

The driver makes the plans, holds the locks of the log dirs and writes the checkpoints; a task owns
one partition from map to swap. All of them must see the log dirs under the same path: `local[*]` on
the broker's host, or a disk that all executors share. A task that finds another disk there stops by
itself.

Tasks are the partitions of a range with one row each, so Spark neither merges nor hashes them
together; DataFrame operations only, as Spark Connect has no SparkContext.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from kafkalog.cleaner.clean import CleanRun, clean_partition
from kafkalog.cleaner.run import CompactionRequest, CompactionRun, Executor, apply_run, plan_run
from kafkalog.cleaner.settings import read_config_file, read_server_properties
from kafkalog.cleaner.stats import CleanResult
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.planning.compaction_plan import CompactionPlan
from kafkalog.planning.log_config import LogConfig


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
        # Largest first: the last task to start should be a small one.
        ordered = sorted(plans, key=lambda plan: -(plan.clean_bytes + plan.cleanable_bytes))
        if not ordered:
            return []
        tasks = spark.range(0, len(ordered), 1, len(ordered))
        rows = tasks.mapInArrow(_CleanTask(ordered, run), "result string").collect()
        return [CleanResult.from_json(json.loads(row.result)) for row in rows]

    return execute


class _CleanTask:
    """The function of a task: ids of plans in, results as JSON out."""

    def __init__(self, plans: Sequence[CompactionPlan], run: CleanRun) -> None:
        self._plans = [json.dumps(plan.to_json()) for plan in plans]
        self._run = run

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                plan = CompactionPlan.from_json(json.loads(self._plans[number]))
                result = clean_partition(plan, self._run)
                yield pa.RecordBatch.from_pydict({"result": [json.dumps(result.to_json())]})
