"""Temporary views over what a dead ZooKeeper says of its Kafka clusters.

The driver reads the files: a few MiB, and history has one order. The rows then are Spark's.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from kafkalog.reading.request import ReadMode
from kafkalog.reading.zookeeper_tables import (
    OLD_OFFSETS,
    ZOOKEEPER_TABLES,
    Directories,
    read_zookeeper,
)
from kafkalog.spark.releases import frame_of


def zookeeper_views(
    spark: SparkSession,
    directory: Directories,
    *,
    zk_root: str | None = None,
    until_zxid: int | None = None,
    until_ms: int | None = None,
    mode: str = ReadMode.FAILFAST,
    prefix: str = "zookeeper_",
) -> list[str]:
    """Temporary views `zookeeper_brokers`, `zookeeper_topics` … of every cluster there, replaced
    where they are there; returns their names. The other arguments, and the errors, are those of
    `kafkalog.read_zookeeper`.
    """
    tables = read_zookeeper(
        list(ZOOKEEPER_TABLES),
        directory,
        zk_root=zk_root,
        until_zxid=until_zxid,
        until_ms=until_ms,
        mode=mode,
    )
    for name, table in tables.items():
        frame_of(spark, table).createOrReplaceTempView(prefix + name)
    return [prefix + name for name in tables]


def old_commits(
    spark: SparkSession, directory: Directories, zk_root: str | None, *, history: bool
) -> DataFrame:
    """Offsets that consumers kept in ZooKeeper, in columns of `offset_commits` and `source`; with
    `history` all of them and their deletions, else those in force.
    """
    from kafkalog.reading.function_views import group_offsets as made

    table = read_zookeeper([OLD_OFFSETS], directory, zk_root=zk_root)[OLD_OFFSETS]
    if not history:
        return spark.createDataFrame(made.old_commits(table))
    return spark.createDataFrame(table).selectExpr(
        "group", "topic", "partition", "committedOffset AS offset",
        "timestampMs AS commitTimestampMs", "committedOffset IS NULL AS isTombstone",
        "offset AS recordOffset", "source",
    )  # fmt: skip
