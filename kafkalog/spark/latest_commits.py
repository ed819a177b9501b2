"""The offset commits in force, by several tasks a partition of `__consumer_offsets`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafkalog.columns.schemas import default_columns, select_columns
from kafkalog.reading.request import ReadRequest
from kafkalog.spark.loading import Paths
from kafkalog.spark.types import spark_schema

if TYPE_CHECKING:
    from kafkalog.reading.latest_commits import CommitsPart

_VIEW = "latest_offset_commits"
# Of several copies of a partition each has its own rows.
_KEY = ("group", "topic", "partition", "offsetsPartition", "path")


def latest_commits(spark: SparkSession, path: Paths) -> DataFrame:
    """The rows of view `latest_offset_commits`; none where there is no such topic below `path`.

    The view reads a partition in one task; this cuts large ones into parts that all cores read.
    """
    # Needs kernels; nobody else in this module does.
    from kafkalog.reading.latest_commits import plan_commit_parts

    columns = select_columns(_VIEW, (*default_columns(_VIEW), "path"))
    schema = spark_schema(columns)
    parts = plan_commit_parts([path] if isinstance(path, str) else list(path))
    if not parts:
        return spark.createDataFrame([], schema).drop("path")
    found = spark.range(0, len(parts), 1, len(parts)).mapInArrow(
        _ReadParts(parts, ReadRequest.of(columns)), schema
    )
    others = [column.name for column in columns if column.name not in _KEY]
    return (
        found.groupBy(*_KEY)
        .agg(F.max_by(F.struct(*others), "recordOffset").alias("last"))
        .select(*_KEY, "last.*")
        .where("NOT isTombstone")
        .select(*default_columns(_VIEW))
    )


@dataclass(frozen=True, slots=True)
class _ReadParts:
    """The function of a task: its number in, the rows of its part out."""

    parts: Sequence[CommitsPart]
    request: ReadRequest

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from kafkalog.reading.latest_commits import read_commits_part
        from kafkalog.spark.batch_reader import leave_modules_to_no_collector

        leave_modules_to_no_collector()
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield from read_commits_part(self.parts[number], self.request)
