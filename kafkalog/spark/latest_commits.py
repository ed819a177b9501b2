"""What `__consumer_offsets` says at its end: the offset commits in force and the last records of
groups and members, in one pass by several tasks a partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafkalog.columns.schemas import LATEST_RECORDS, default_columns
from kafkalog.spark.loading import Paths
from kafkalog.spark.types import spark_schema

if TYPE_CHECKING:
    from kafkalog.reading.latest_commits import CommitsPart

# Of several copies of a partition each has its own commits.
_KEY = ("group", "topic", "partition", "offsetsPartition", "path", "messageType", "key")


@dataclass(frozen=True, slots=True)
class LatestRecords:
    """Two frames over one that is read once and kept: `commits`, the rows of the view
    `latest_offset_commits`, and `messages`, the last record of each key of groups and members:
    columns partition, messageType, key, value, offset, timestampMs.
    """

    commits: DataFrame
    messages: DataFrame


def latest_records(spark: SparkSession, path: Paths) -> LatestRecords:
    """Both without rows where there is no such topic below `path`."""
    # Needs kernels; nobody else in this module does.
    from kafkalog.reading.latest_commits import plan_commit_parts

    schema = spark_schema(LATEST_RECORDS, all_nullable=True)
    parts = plan_commit_parts([path] if isinstance(path, str) else list(path))
    if parts:
        numbers = spark.range(0, len(parts), 1, len(parts))
        # A part has each key once: nothing is to be gained by aggregating before the shuffle, and
        # of what is kept Spark does not put small partitions together.
        found = numbers.mapInArrow(_ReadParts(parts), schema).repartition(len(parts), "group")
    else:
        found = spark.createDataFrame([], schema)
    others = [column.name for column in LATEST_RECORDS if column.name not in _KEY]
    latest = (
        found.groupBy(*_KEY)
        .agg(F.max_by(F.struct(*others), "recordOffset").alias("last"))
        .select(*_KEY, "last.*")
        .cache()
    )
    commits = latest.where("messageType IS NULL AND NOT isTombstone")
    # Few, a coordinator has them in memory: in one piece, so that what is grouped or joined behind
    # it needs no shuffle. Copies of a partition are one.
    last = F.max_by(F.struct("value", "isTombstone", "recordOffset", "timestampMs"), "recordOffset")
    messages = (
        latest.where("messageType IS NOT NULL")
        .coalesce(1)
        .groupBy(F.col("offsetsPartition").alias("partition"), "messageType", "key")
        .agg(last.alias("last"))
        .where("NOT last.isTombstone")
        .selectExpr(
            "partition", "messageType", "key", "last.value AS value",
            "last.recordOffset AS offset", "nullif(last.timestampMs, -1) AS timestampMs",
        )
    )  # fmt: skip
    return LatestRecords(commits.select(*default_columns("latest_offset_commits")), messages)


@dataclass(frozen=True, slots=True)
class _ReadParts:
    """The function of a task: its number in, the rows of its part out."""

    parts: Sequence[CommitsPart]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from kafkalog.reading.latest_commits import read_latest_records
        from kafkalog.spark.batch_reader import leave_modules_to_no_collector

        leave_modules_to_no_collector()
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield from read_latest_records(self.parts[number])
