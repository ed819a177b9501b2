"""Replicas digested on Spark: a task has one large partition, or many small ones.

A task writes its part beside the output, and the driver puts the parts together: driver and tasks
must see the log dirs, and the output's directory, under the same paths.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pyspark.sql import SparkSession

from kafkalog.comparing.digest import (
    DigestedPartition,
    DigestExecutor,
    DigestTask,
    digest_partition,
)
from kafkalog.planning.packing import pack_evenly
from kafkalog.spark.tasks import run_pickled_packs

_Done = tuple[DigestTask, DigestedPartition]


def spark_executor(spark: SparkSession) -> DigestExecutor:
    """What digests partitions with Spark tasks; see `kafkalog.comparing.digest`."""

    def execute(tasks: Sequence[DigestTask]) -> Iterable[_Done]:
        packs = pack_evenly(tasks, lambda task: task.replica.size_in_bytes)
        return run_pickled_packs(spark, packs, _digest_pack, f"digest {len(tasks)} partitions")

    return execute


def _digest_pack(tasks: Sequence[DigestTask]) -> Iterator[_Done]:
    return map(digest_partition, tasks)
