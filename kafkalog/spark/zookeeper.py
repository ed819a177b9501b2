"""Temporary views over what a dead ZooKeeper says of its Kafka clusters.

The driver reads the files: a few MiB, and history has one order. The rows then are Spark's.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

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
    """Offsets that consumers kept in ZooKeeper, in the columns of `offset_commits` that they have
    and `source`; with `history` all of them and their deletions, else those in force.
    """
    table = read_zookeeper([OLD_OFFSETS], directory, zk_root=zk_root)[OLD_OFFSETS]
    found = frame_of(spark, table).selectExpr(
        "group", "topic", "partition", "committedOffset AS offset",
        "timestampMs AS commitTimestampMs", "committedOffset IS NULL AS isTombstone",
        "offset AS recordOffset", "source",
    )  # fmt: skip
    if history:
        return found
    rest = ("offset", "commitTimestampMs", "isTombstone", "recordOffset", "source")
    return (
        found.groupBy("group", "topic", "partition")
        .agg(F.max_by(F.struct(*rest), "recordOffset").alias("last"))
        .select("group", "topic", "partition", "last.*")
        .where("NOT isTombstone")
    )
