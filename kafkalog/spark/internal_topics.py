"""Records of internal topics as DataFrames: what is the same for groups, transactions and remote
segments.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

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
    spark: SparkSession, view: str, path: Paths, topic: str, mode: str = "FAILFAST"
) -> DataFrame:
    """A source view of one internal topic; without rows where there is none of it below `path`. Of
    several replicas of a partition the one that goes furthest is read.
    """
    # Needs kernels; nobody else in this module does.
    from kafkalog.log.log_dir import open_log_dir
    from kafkalog.log.topic_partition import PartitionKind
    from kafkalog.reading.selection import furthest_replicas

    paths = [path] if isinstance(path, str) else list(path)
    there = [
        p
        for p in open_log_dir(*paths).partitions
        if p.topic_partition.topic == topic and p.kind == PartitionKind.LIVE
    ]
    if not there:
        columns = select_columns(view, default_columns(view))
        if read_mode(mode) == ReadMode.PERMISSIVE:
            columns = (*columns, ERROR)
        return spark.createDataFrame([], spark_schema(columns))
    furthest = furthest_replicas(there)
    if len(furthest) < len(there):
        path = [partition.path for partition in furthest]
    return load(spark, view, path, {"subscribe": topic, "mode": mode})


def latest_messages(messages: DataFrame) -> DataFrame:
    """The last record of each key of a coordinator's topic, tombstones left out: columns partition,
    messageType, key, value, offset, timestamp. In one piece: a coordinator has them in memory, and
    what is grouped or joined behind it needs no shuffle of mostly empty partitions.
    """
    last = F.max_by(F.struct("value", "valueBytes", "offset", "timestamp"), "offset")
    return (
        messages.where("key IS NOT NULL")
        .groupBy("partition", "messageType", "key")
        .agg(last.alias("last"))
        .where("last.valueBytes IS NOT NULL")
        .select("partition", "messageType", "key", "last.value", "last.offset", "last.timestamp")
        .coalesce(1)
    )
