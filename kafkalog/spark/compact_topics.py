"""Log compaction on Spark: planned and checkpointed by the driver, cleaned by tasks.

The driver makes the plans, holds the locks of the log dirs and writes the checkpoints; a task owns
its partitions from map to swap, a large one or many small ones. All of them must see the log dirs
under the same path: `local[*]` on the broker's host, or a disk that all executors share. A task
that finds another disk there stops by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Unpack

from pyspark.sql import SparkSession

from kafkalog.errors import InvalidConfigError
from kafkalog.operations.across_tasks import AcrossTasks
from kafkalog.operations.clean_result import CleanResult
from kafkalog.operations.clean_run import CleanRun
from kafkalog.operations.compact import CompactionRun, Executor, apply_run, plan_run
from kafkalog.operations.compact_output import output_run
from kafkalog.operations.compact_pack import clean_pack, pack_plans
from kafkalog.operations.compact_strategies import execute_by_strategy
from kafkalog.planning.compaction_plan import CompactionPlan
from kafkalog.planning.packing import MIN_TASKS, TASK_BYTES
from kafkalog.requests.run_request import CompactionOptions, compaction_request
from kafkalog.spark.staged_tasks import run_stages
from kafkalog.spark.tasks import run_packs, tasks_at_once, usual_tasks


def compact(
    spark: SparkSession,
    log_dirs: Sequence[str],
    *,
    apply: bool = False,
    **options: Unpack[CompactionOptions],
) -> CompactionRun:
    """Plan compaction of the selected partitions; with `apply` carry it out as Spark tasks.

    The options are those of `kafkalog compact`: topics (names or globs, needed with `apply`),
    topic_partitions, config (KEY=VALUE each), config_file, server_properties, now_ms (default: the
    clock), kafka_version, high_watermark, force, dedupe_buffer_size, max_bytes, max_minutes,
    run_dir, no_undo, swap_per_group, memory, strategy, max_bytes_per_second, verify,
    on_corrupt_batch, estimate (the plan reads the records), replicas (log dirs of other nodes),
    require_replicas, and output: a directory that all hosts share, for new segments beside the log
    dirs instead of in them.
    Without `apply` and `output` nothing is changed, nor any task started.

    Raises InvalidConfigError for what Kafka would refuse, LogDirLockedError if a broker runs. What
    stops one partition is in its result.
    """
    request = replace(
        compaction_request(log_dirs, options), workers=usual_tasks(spark), on_spark=True
    )
    if request.output is not None:
        if apply:
            raise InvalidConfigError("output writes beside the log dirs, apply into them: not both")
        return output_run(request, spark_executor(spark))
    return apply_run(request, spark_executor(spark)) if apply else plan_run(request)


def spark_executor(spark: SparkSession) -> Executor:
    """What turns plans into results with Spark tasks; see `kafkalog.operations.compact`."""

    def execute(plans: Sequence[CompactionPlan], run: CleanRun) -> Iterable[CleanResult]:
        at_once = 1 if run.bytes_per_second is None else tasks_at_once(spark)

        def within(chosen: Sequence[CompactionPlan]) -> Iterable[CleanResult]:
            packs = pack_plans(chosen, run, task_bytes=TASK_BYTES, min_tasks=MIN_TASKS)
            text = f"compact {len(chosen)} partitions, run {run.run_id}"
            work = partial(clean_pack, run=run.shared_by(min(at_once, len(packs))))
            return run_packs(spark, packs, work, CompactionPlan, CleanResult, text)

        def across(tasks: AcrossTasks) -> Iterable[CleanResult]:
            shared = tasks.shared_by(at_once)
            stages = (shared.mergers, shared.merge), (shared.rewrites, shared.rewrite)
            swap = len(shared.plans), shared.swap
            first = len(shared.map_tasks), shared.map
            return run_stages(spark, *first, stages, swap, CleanResult)

        return execute_by_strategy(plans, run, across, within)

    return execute
