"""Remote storage looked at on Spark: the driver lists it and judges, tasks read manifests and, with
a deep look, segments.

Driver and executors must see remote storage under the same paths, and have its credentials and the
files of keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from kafkalog.bucket.document import finding_row
from kafkalog.bucket.look import LookResult, LookTask, look, with_pace
from kafkalog.bucket.request import MIN_AGE_MS, BucketRequest
from kafkalog.bucket.run import Executor, bucket_run
from kafkalog.clock import now_ms as clock_ms
from kafkalog.columns.bucket_schemas import BUCKET_FINDINGS
from kafkalog.log.named_partitions import NamedPartitions, partitions_in
from kafkalog.log.names import names_in, paths_in
from kafkalog.log.segment_file import ChunkBuffers
from kafkalog.planning.packing import pack_evenly
from kafkalog.remote.paths import RemoteStorage
from kafkalog.spark.tasks import run_pickled_packs, tasks_at_once
from kafkalog.spark.types import spark_schema


def bucket(
    spark: SparkSession,
    log_dirs: Sequence[str],
    remote_dirs: Sequence[str],
    *,
    remote_layout: str | None = None,
    remote_keys: Mapping[str, str] | None = None,
    topics: Sequence[str] = (),
    topic_partitions: NamedPartitions = (),
    min_age_ms: int = MIN_AGE_MS,
    deep: bool = False,
    now_ms: int | None = None,
    run_dir: str | None = None,
    since: str | None = None,
    max_bytes_per_second: float | None = None,
) -> DataFrame:
    """What lies in remote storage against what the cluster says of it: a row a finding, in the
    columns `bucket_schemas.BUCKET_FINDINGS`.

    The arguments are the options of `kafkalog bucket`. Nothing is changed.

    Raises InvalidConfigError for log dirs and remote storage that do not exist, log dirs of two
    clusters, a layout that is not read, and topics that are nowhere.
    """
    keys = tuple((remote_keys or {}).items())
    request = BucketRequest(
        paths_in(log_dirs),
        clock_ms() if now_ms is None else now_ms,
        RemoteStorage(paths_in(remote_dirs), remote_layout, keys),
        names_in(topics),
        partitions_in(topic_partitions),
        min_age_ms,
        deep,
        run_dir=run_dir,
        since=since,
    )
    run = bucket_run(request, spark_executor(spark, max_bytes_per_second), lambda _: None)
    names = [column.name for column in BUCKET_FINDINGS]
    rows = [finding_row(finding) for finding in run.findings]
    return spark.createDataFrame(
        [tuple(row[name] for name in names) for row in rows], spark_schema(BUCKET_FINDINGS)
    )


def spark_executor(spark: SparkSession, bytes_per_second: float | None = None) -> Executor:
    """What looks at segments with Spark tasks; see `kafkalog.bucket.run`. All tasks together keep
    to the pace."""

    def execute(tasks: Sequence[LookTask]) -> Iterable[LookResult]:
        at_once = 1 if bytes_per_second is None else tasks_at_once(spark)
        own = [with_pace(task, bytes_per_second, at_once) for task in tasks]
        packs = pack_evenly(own, lambda task: task.size_in_bytes)
        return run_pickled_packs(spark, packs, _look_pack, f"bucket {len(tasks)} segments")

    return execute


def _look_pack(tasks: Sequence[LookTask]) -> Iterator[LookResult]:
    buffers = ChunkBuffers()
    return (look(task, buffers) for task in tasks)
