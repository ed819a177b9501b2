"""Checks on Spark: segments read by tasks, partitions judged by the driver.

A task reads some segments, packed so that all tasks have about the same bytes; what they found
comes back with the facts that neighbours are compared by, so the driver opens no `.log`. It does
read the small files beside them: driver and executors must see the log dirs under the same path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from kafkalog.checking.document import finding_row
from kafkalog.checking.request import VerifyRequest
from kafkalog.checking.run import Executor, verify_run
from kafkalog.checking.segment import check_segment
from kafkalog.checking.segment_report import SegmentReport, SegmentTask
from kafkalog.columns.schemas import FINDINGS
from kafkalog.log.named_partitions import NamedPartitions, partitions_in
from kafkalog.log.names import names_in, paths_in
from kafkalog.log.segment_file import ChunkBuffers
from kafkalog.planning.packing import pack_evenly
from kafkalog.remote.paths import RemoteStorage
from kafkalog.spark.tasks import run_packs
from kafkalog.spark.types import spark_schema
from kafkalog.texts import format_bytes

Tell = Callable[[str], None]


def verify(
    spark: SparkSession,
    log_dirs: Sequence[str],
    *,
    topics: Sequence[str] = (),
    topic_partitions: NamedPartitions = (),
    run_dir: str | None = None,
    since: str | None = None,
    remote_dirs: Sequence[str] = (),
    remote_layout: str | None = None,
    remote_keys: Mapping[str, str] | None = None,
) -> DataFrame:
    """Check the selected partitions: a row a finding, in the columns `schemas.FINDINGS`.

    The arguments are the options of `kafkalog verify`; the run is kept in `run_dir` on the driver.
    Nothing below the log dirs is changed. Of remote storage executors need the credentials, and
    the files of `remote_keys` under the same path.

    Raises InvalidConfigError for paths, partitions and runs that do not exist.
    """
    request = VerifyRequest(
        paths_in(log_dirs),
        names_in(topics),
        partitions_in(topic_partitions),
        run_dir=run_dir,
        since=since,
        remote=RemoteStorage(
            paths_in(remote_dirs), remote_layout, tuple((remote_keys or {}).items())
        ),
    )
    run = verify_run(request, spark_executor(spark), _say_nothing)
    names = [column.name for column in FINDINGS]
    rows = [finding_row(finding) for finding in run.findings]
    return spark.createDataFrame(
        [tuple(row[name] for name in names) for row in rows], spark_schema(FINDINGS)
    )


def spark_executor(spark: SparkSession, tell: Tell | None = None) -> Executor:
    """What turns segments into reports with Spark tasks; see `kafkalog.checking.run`. `tell` gets a
    line for each partition whose segments have all been read.
    """

    def execute(tasks: Sequence[SegmentTask]) -> Iterable[SegmentReport]:
        packs = pack_evenly(tasks, lambda task: task.size_in_bytes)
        text = f"verify {len(tasks)} segments"
        reports = run_packs(spark, packs, _check_pack, SegmentTask, SegmentReport, text)
        return reports if tell is None else _told(reports, tasks, tell)

    return execute


def _told(
    reports: Iterable[SegmentReport], tasks: Sequence[SegmentTask], tell: Tell
) -> Iterator[SegmentReport]:
    all_of = Counter(_partition(task) for task in tasks)
    left = Counter(all_of)
    sizes: Counter[str] = Counter()
    for task in tasks:
        sizes[_partition(task)] += task.size_in_bytes
    for report in reports:
        path = _partition(report.task)
        left[path] -= 1
        if not left[path]:
            done = f"{all_of[path]} segments, {format_bytes(sizes[path])} read"
            tell(f"{Path(path).name}: {done}")
        yield report


def _partition(task: SegmentTask) -> str:
    return str(Path(task.path).parent)


def _check_pack(tasks: Sequence[SegmentTask]) -> Iterator[SegmentReport]:
    buffers = ChunkBuffers()
    return (check_segment(task, buffers) for task in tasks)


def _say_nothing(_: str) -> None:
    """A call has no one to talk to."""
