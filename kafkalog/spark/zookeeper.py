"""Temporary views over what a dead ZooKeeper says of its Kafka clusters.

The driver reads the files: a few MiB, and history has one order. The rows then are Spark's.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from kafkalog.reading.request import ReadMode
from kafkalog.reading.zookeeper_tables import ZOOKEEPER_TABLES, Directories, read_zookeeper


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
        spark.createDataFrame(table).createOrReplaceTempView(prefix + name)
    return [prefix + name for name in tables]
