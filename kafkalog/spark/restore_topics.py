"""Topics restored by Spark tasks: a task has one large partition, or many small ones, which it
copies, indexes and compares with the source.

The driver plans, holds the locks of the target's log dirs, and writes metadata and checkpoints:
driver and tasks must see source and target under the same paths, and where topics are there already
run on one host, as the locks tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pyspark.sql import SparkSession

from kafkalog.planning.packing import pack_evenly
from kafkalog.restoring.execute import RestoreExecutor, carry_out_task
from kafkalog.restoring.restore import RestoreResult, RestoreTask
from kafkalog.spark.tasks import run_pickled_packs
from kafkalog.swap.local_files import LocalFiles


def spark_executor(spark: SparkSession) -> RestoreExecutor:
    """What restores partitions with Spark tasks; see `kafkalog.restoring.execute`."""

    def execute(tasks: Sequence[RestoreTask]) -> Iterable[RestoreResult]:
        packs = pack_evenly(tasks, lambda task: task.size_in_bytes)
        return run_pickled_packs(spark, packs, _restore_pack, f"restore {len(tasks)} partitions")

    return execute


def _restore_pack(tasks: Sequence[RestoreTask]) -> Iterator[RestoreResult]:
    return (carry_out_task(task, LocalFiles()) for task in tasks)
