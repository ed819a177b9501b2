"""Rebuilding indexes and producer snapshots on Spark, one task per partition.

Driver and tasks must see the log dirs under the same path, as for `spark.compact`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import SparkSession

from kafkalog.cleaner.rebuild import rebuild_partition
from kafkalog.cleaner.rebuild_result import RebuildResult, RebuildTask
from kafkalog.cleaner.rebuild_run import RebuildExecutor
from kafkalog.spark.tasks import run_tasks


def spark_rebuild_executor(spark: SparkSession) -> RebuildExecutor:
    """What turns tasks into results with Spark tasks; see `kafkalog.cleaner.rebuild_run`."""

    def execute(tasks: Sequence[RebuildTask]) -> Iterable[RebuildResult]:
        ordered = sorted(tasks, key=lambda task: -task.partition.size_in_bytes)
        return run_tasks(spark, ordered, rebuild_partition, RebuildTask, RebuildResult)

    return execute
