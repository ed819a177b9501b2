"""Records of internal topics as DataFrames: what is the same for groups, transactions and remote
segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafkalog.columns.schemas import ERROR
from kafkalog.reading.request import ReadMode, read_mode
from kafkalog.reading.views import default_columns, select_columns
from kafkalog.spark.loading import Paths, load
from kafkalog.spark.releases import spark_from_arrow
from kafkalog.spark.same_code import on_same_code
from kafkalog.spark.types import spark_schema


@dataclass(frozen=True, slots=True)
class TopicRows:
    """rows: what can be read of a view; errors: of mode PERMISSIVE, a row with the one column
    `error` for each record or batch that cannot be, else None."""

    rows: DataFrame
    errors: DataFrame | None

    def beside(self, made: DataFrame, *more: TopicRows) -> DataFrame:
        """A frame that was made of these rows, and of more: with their errors."""
        frames = [its.errors for its in (self, *more) if its.errors is not None]
        if not frames:
            return made
        none = F.lit(None).cast("string")
        return reduce(
            partial(DataFrame.unionByName, allowMissingColumns=True),
            [made.withColumn(ERROR.name, none), *frames],
        )


def load_rows(
    spark: SparkSession, view: str, path: Paths, topic: str, columns: Sequence[str], mode: str
) -> TopicRows:
    """As `load_view`, with what cannot be read apart."""
    from kafkalog.reading.function_views.unreadable import ERRORS, columns_with_errors, errors_of

    if read_mode(mode) != ReadMode.PERMISSIVE:
        return TopicRows(load_view(spark, view, path, topic, columns, mode=mode), None)
    asked = columns_with_errors(view, columns)
    found = load_view(spark, view, path, topic, asked, mode=mode)
    is_sound = F.col(ERROR.name).isNull()
    errors = found.where(~is_sound).mapInArrow(
        on_same_code(partial(errors_of, view)), spark_from_arrow(ERRORS)
    )
    return TopicRows(found.where(is_sound).select(*columns), errors)


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
