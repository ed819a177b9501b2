"""Checks on Spark: segments read by tasks, partitions judged by the driver.

A task reads some segments, packed so that all tasks have about the same bytes; what they found
comes back with the facts that neighbours are compared by, so the driver opens no `.log`. It does
read the small files beside them: driver and executors must see the log dirs under the same path.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from kafkalog.checking.document import finding_row
from kafkalog.checking.run import Executor, VerifyRequest, verify_run
from kafkalog.checking.segment import check_segment
from kafkalog.checking.segment_report import SegmentReport, SegmentTask
from kafkalog.columns.schemas import FINDINGS
from kafkalog.log.json_facts import JsonFacts
from kafkalog.log.segment_file import ChunkBuffers
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.spark.tasks import run_tasks
from kafkalog.spark.types import spark_schema

# A task reads this much, and there are at least so many of them, to keep a small cluster busy.
_TASK_BYTES = 512 * 1024 * 1024
_MIN_TASKS = 16


@dataclass(frozen=True, slots=True)
class SegmentPack(JsonFacts):
    """The segments one task reads."""

    segments: tuple[SegmentTask, ...]


@dataclass(frozen=True, slots=True)
class PackReport(JsonFacts):
    """What it says of them."""

    reports: tuple[SegmentReport, ...]


def verify(
    spark: SparkSession,
    log_dirs: Sequence[str],
    *,
    topics: Sequence[str] = (),
    topic_partitions: Sequence[TopicPartition] = (),
    run_dir: str | None = None,
    since: str | None = None,
) -> DataFrame:
    """Check the selected partitions: a row a finding, in the columns of README's table `findings`.

    The arguments are the options of `kafkalog verify`; the run is kept in `run_dir` on the driver.
    Nothing below the log dirs is changed.

    Raises InvalidConfigError for paths, partitions and runs that do not exist.
    """
    request = VerifyRequest(
        tuple(log_dirs), tuple(topics), tuple(topic_partitions), run_dir=run_dir, since=since
    )
    run = verify_run(request, spark_executor(spark), _say_nothing)
    names = [column.name for column in FINDINGS]
    rows = [finding_row(finding) for finding in run.findings]
    return spark.createDataFrame(
        [tuple(row[name] for name in names) for row in rows], spark_schema(FINDINGS)
    )


def spark_executor(spark: SparkSession) -> Executor:
    """What turns segments into reports with Spark tasks; see `kafkalog.checking.run`."""

    def execute(tasks: Sequence[SegmentTask]) -> Iterable[SegmentReport]:
        packs = pack_segments(tasks)
        for each in run_tasks(spark, packs, check_pack, SegmentPack, PackReport):
            yield from each.reports

    return execute


def pack_segments(
    tasks: Sequence[SegmentTask], *, task_bytes: int = _TASK_BYTES, min_tasks: int = _MIN_TASKS
) -> list[SegmentPack]:
    """All segments in packs of about the same bytes, the largest pack first."""
    total = sum(task.size_in_bytes for task in tasks)
    count = min(len(tasks), max(min_tasks, -(-total // task_bytes)))
    packs: list[list[SegmentTask]] = [[] for _ in range(count)]
    # Largest segment first, each into the pack that has the least.
    least = [(0, number) for number in range(count)]
    for task in sorted(tasks, key=lambda task: -task.size_in_bytes):
        size, number = heapq.heappop(least)
        packs[number].append(task)
        heapq.heappush(least, (size + task.size_in_bytes, number))
    ordered = sorted(least, reverse=True)
    return [SegmentPack(tuple(packs[number])) for _, number in ordered]


def check_pack(pack: SegmentPack) -> PackReport:
    """The work of a task."""
    buffers = ChunkBuffers()
    return PackReport(tuple(check_segment(task, buffers) for task in pack.segments))


def _say_nothing(_: str) -> None:
    """A call has no one to talk to."""
