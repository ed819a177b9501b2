"""Replicas compared on Spark: a task has one large partition, or many small ones; of a very large
one it has a range of offsets.

The driver looks at names, sizes and small files; tasks read the logs: driver and executors must see
the log dirs of all nodes under the same paths.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from kafkalog.columns.compare_schemas import DIFFERENCES
from kafkalog.comparing.across_tasks import CompareAcross, execute_by_size
from kafkalog.comparing.comparison import compare_partition
from kafkalog.comparing.difference import ComparedPartition
from kafkalog.comparing.document import difference_row
from kafkalog.comparing.request import CompareRequest, CompareTask
from kafkalog.comparing.run import Executor, compare_run
from kafkalog.errors import KafkaLogError
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.healing.heal import HealResult, HealTask, heal_partition
from kafkalog.healing.run import HealExecutor
from kafkalog.log.named_partitions import NamedPartitions, partitions_in
from kafkalog.log.names import names_in, paths_in
from kafkalog.planning.packing import pack_evenly
from kafkalog.remote.paths import RemoteStorage
from kafkalog.resources.memory import DEFAULT_MEMORY_BYTES, check_memory
from kafkalog.spark.staged_tasks import run_stages
from kafkalog.spark.tasks import run_pickled_packs
from kafkalog.spark.types import spark_schema
from kafkalog.texts import format_bytes

Tell = Callable[[str], None]


def compare(
    spark: SparkSession,
    log_dirs: Sequence[str],
    *,
    topics: Sequence[str] = (),
    topic_partitions: NamedPartitions = (),
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
    max_batch_bytes: int = MAX_BATCH_BYTES,
    hash_key: str | None = None,
    remote_dirs: Sequence[str] = (),
    remote_layout: str | None = None,
    remote_keys: Mapping[str, str] | None = None,
) -> DataFrame:
    """What differs between the replicas of the selected partitions: a row a difference, in the
    columns `compare_schemas.DIFFERENCES`.

    The arguments are the options of `kafkalog compare`; `log_dirs` may name digests, `memory_bytes`
    is of a worker. Nothing below the log dirs is changed.

    Raises InvalidConfigError for paths and partitions that do not exist, log dirs of two clusters,
    and where no partition is there twice; KafkaLogError for partitions that could not be compared,
    with the reason of each.
    """
    request = CompareRequest(
        paths_in(log_dirs),
        names_in(topics),
        partitions_in(topic_partitions),
        check_memory(memory_bytes),
        max_batch_bytes,
        hash_key,
        RemoteStorage(paths_in(remote_dirs), remote_layout, tuple((remote_keys or {}).items())),
    )
    run = compare_run(request, spark_executor(spark))
    failed = [f"{each.topic_partition}: {each.reason}" for each in run.failed]
    if failed:
        raise KafkaLogError(f"not compared: {'; '.join(failed)}")
    names = [column.name for column in DIFFERENCES]
    rows = []
    for difference in run.differences:
        row = difference_row(difference, redact=False)
        key = row["keyBytes"]
        row["keyBytes"] = None if key is None else base64.b64decode(key)
        rows.append(tuple(row[name] for name in names))
    return spark.createDataFrame(rows, spark_schema(DIFFERENCES))


def spark_executor(spark: SparkSession, tell: Tell | None = None) -> Executor:
    """What compares partitions with Spark tasks; see `kafkalog.comparing.run`. `tell` gets a line
    for each partition that is compared."""

    def within(tasks: Sequence[CompareTask]) -> Iterable[ComparedPartition]:
        packs = pack_evenly(tasks, lambda task: task.size_in_bytes)
        text = f"compare {len(tasks)} partitions"
        return run_pickled_packs(spark, packs, _compare_pack, text)

    def across(stages: CompareAcross) -> list[ComparedPartition]:
        read = len(stages.ranges), stages.read
        judge, conclude = (stages.judges, stages.judge), (1, stages.conclude)
        return run_stages(spark, *read, [judge], conclude, ComparedPartition)

    def execute(tasks: Sequence[CompareTask]) -> Iterable[ComparedPartition]:
        results = execute_by_size(tasks, across, within)
        return results if tell is None else _told(results, tasks, tell)

    return execute


def _told(
    results: Iterable[ComparedPartition], tasks: Sequence[CompareTask], tell: Tell
) -> Iterator[ComparedPartition]:
    sizes = {task.topic_partition: task.size_in_bytes for task in tasks}
    for result in results:
        name = result.topic_partition
        count = len(result.differences)
        found = "1 difference" if count == 1 else f"{count} differences"
        done = f"{len(result.replicas)} replicas, {format_bytes(sizes[name])}, {found}"
        tell(f"{name}: {result.reason or done}")
        yield result


def heal_executor(spark: SparkSession) -> HealExecutor:
    """What heals partitions with Spark tasks; see `kafkalog.healing.run`. The lock of the log dirs
    is the driver's: tasks must be able to see it, on the same host."""

    def execute(tasks: Sequence[HealTask]) -> Iterable[HealResult]:
        packs = pack_evenly(tasks, lambda task: task.size_in_bytes)
        return run_pickled_packs(spark, packs, _heal_pack, f"heal {len(tasks)} partitions")

    return execute


def _heal_pack(tasks: Sequence[HealTask]) -> Iterator[HealResult]:
    return map(heal_partition, tasks)


def _compare_pack(tasks: Sequence[CompareTask]) -> Iterator[ComparedPartition]:
    return map(compare_partition, tasks)
