"""Recovery on Spark: a large partition a task, or many small ones.

Driver and tasks must see the log dirs under the same path, as for `spark.compact`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pyspark.sql import SparkSession

from kafkalog.operations.recover import RecoverExecutor
from kafkalog.planning.packing import pack_evenly
from kafkalog.repair.recover import recover_partition
from kafkalog.repair.recover_result import RecoverResult, RecoverTask
from kafkalog.spark.tasks import run_packs


def spark_executor(spark: SparkSession) -> RecoverExecutor:
    """What turns tasks into results with Spark tasks; see `kafkalog.operations.recover`."""

    def execute(tasks: Sequence[RecoverTask]) -> Iterable[RecoverResult]:
        packs = pack_evenly(tasks, lambda task: task.partition.size_in_bytes)
        text = f"recover {len(tasks)} partitions"
        return run_packs(spark, packs, _recover_pack, RecoverTask, RecoverResult, text)

    return execute


def _recover_pack(tasks: Sequence[RecoverTask]) -> Iterator[RecoverResult]:
    return map(recover_partition, tasks)
