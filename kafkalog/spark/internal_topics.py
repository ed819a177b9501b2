"""Records of internal topics as DataFrames: what is the same for groups, transactions and remote
segments.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from kafkalog.columns.schemas import ERROR
from kafkalog.errors import InvalidConfigError
from kafkalog.reading.request import ReadMode
from kafkalog.reading.views import default_columns, select_columns
from kafkalog.spark.loading import Paths, load
from kafkalog.spark.types import spark_schema


def read_mode(mode: str) -> ReadMode:
    """InvalidConfigError for one that is not there."""
    if mode.upper() not in ReadMode.__members__:
        raise InvalidConfigError(f"mode '{mode}' is not one of {', '.join(ReadMode)}")
    return ReadMode(mode.upper())


def load_view(
    spark: SparkSession,
    view: str,
    path: Paths,
    topic: str,
    columns: Sequence[str] = (),
    *,
    mode: str = "FAILFAST",
) -> DataFrame:
    """A source view of one internal topic, or some columns of it; without rows where there is none
    of it below `path`. Of several replicas of a partition the one that goes furthest is read.
    """
    # Needs kernels; nobody else in this module does.
    from kafkalog.log.log_dir import open_log_dir
    from kafkalog.log.topic_partition import PartitionKind
    from kafkalog.reading.selection import furthest_replicas

    paths = [path] if isinstance(path, str) else list(path)
    names = tuple(columns) or default_columns(view)
    there = [
        p
        for p in open_log_dir(*paths).partitions
        if p.topic_partition.topic == topic and p.kind == PartitionKind.LIVE
    ]
    if not there:
        found = select_columns(view, names)
        if read_mode(mode) == ReadMode.PERMISSIVE:
            found = (*found, ERROR)
        return spark.createDataFrame([], spark_schema(found))
    furthest = furthest_replicas(there)
    if len(furthest) < len(there):
        path = [partition.path for partition in furthest]
    asked = {"columns": ",".join(columns)} if columns else {}
    return load(spark, view, path, {"subscribe": topic, "mode": mode, **asked})
