"""Rebuilding indexes and producer snapshots on Spark: a large partition a task, or many small ones.

Driver and tasks must see the log dirs under the same path, as for `spark.compact`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pyspark.sql import SparkSession

from kafkalog.operations.recover import RebuildExecutor
from kafkalog.planning.packing import pack_evenly
from kafkalog.repair.recover import rebuild_partition
from kafkalog.repair.recover_result import RebuildResult, RebuildTask
from kafkalog.spark.tasks import run_packs


def spark_rebuild_executor(spark: SparkSession) -> RebuildExecutor:
    """What turns tasks into results with Spark tasks; see `kafkalog.operations.recover`."""

    def execute(tasks: Sequence[RebuildTask]) -> Iterable[RebuildResult]:
        packs = pack_evenly(tasks, lambda task: task.partition.size_in_bytes)
        text = f"recover {len(tasks)} partitions"
        return run_packs(spark, packs, _rebuild_pack, RebuildTask, RebuildResult, text)

    return execute


def _rebuild_pack(tasks: Sequence[RebuildTask]) -> Iterator[RebuildResult]:
    return map(rebuild_partition, tasks)
