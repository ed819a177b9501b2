"""The cluster's own tables as DataFrames: brokers, controllers, partitions, settings, rights.

The driver reads the metadata log, which is small; driver and executors need not share a disk. With
`at_offset` or `at_time_ms` a table is as of there: the events up to it, and of what holds for a
while (settings, quotas, topics …) what was in force.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from kafkalog.cluster.history import Until
from kafkalog.columns.cluster_schemas import CLUSTER_TABLES
from kafkalog.errors import InvalidConfigError
from kafkalog.reading.cluster_tables import history_tables, read_histories
from kafkalog.spark.releases import frame_of
from kafkalog.spark.types import spark_schema

MODES = ("FAILFAST", "PERMISSIVE")

Paths = str | Sequence[str]


def cluster_tables(
    spark: SparkSession,
    path: Paths,
    *,
    at_offset: int | None = None,
    at_time_ms: int | None = None,
    mode: str = "FAILFAST",
) -> dict[str, DataFrame]:
    """All of the cluster's tables by name, read once; empty where there is no metadata log.

    `path`: log dirs of one or many nodes, comma separated or as a list; of each cluster the
    member's log that goes furthest counts. `mode`: FAILFAST raises CorruptRecordError for what
    cannot be read, PERMISSIVE leaves it out. InvalidConfigError for paths that do not exist.
    """
    if mode.upper() not in MODES:
        raise InvalidConfigError(f"mode '{mode}' is not one of {', '.join(MODES)}")
    paths = [each.strip() for each in path.split(",")] if isinstance(path, str) else list(path)
    until = Until(offset=at_offset, time_ms=at_time_ms)
    tables = history_tables(read_histories(paths, until), in_force=until != Until(), mode=mode)
    return {
        name: frame_of(spark, table, spark_schema(CLUSTER_TABLES[name]))
        for name, table in tables.items()
    }


def brokers(spark: SparkSession, path: Paths, **where: int | str | None) -> DataFrame:
    """Registrations of brokers and what became of them: a row an event."""
    return _table(spark, "brokers", path, where)


def controllers(spark: SparkSession, path: Paths, **where: int | str | None) -> DataFrame:
    """Elections of controllers, voters, and what `quorum-state` promises: a row an event."""
    return _table(spark, "controllers", path, where)


def partition_changes(spark: SparkSession, path: Paths, **where: int | str | None) -> DataFrame:
    """Leaders, in-sync replicas and assignments over time: a row a change of a partition."""
    return _table(spark, "partition_changes", path, where)


def topics(spark: SparkSession, path: Paths, **where: int | str | None) -> DataFrame:
    """Topics, those that are deleted too: a row for each id."""
    return _table(spark, "topics", path, where)


def configs(spark: SparkSession, path: Paths, **where: int | str | None) -> DataFrame:
    """Settings of topics, brokers, groups: a row for each span a value was in force."""
    return _table(spark, "configs", path, where)


def features(spark: SparkSession, path: Paths, **where: int | str | None) -> DataFrame:
    """Finalized feature levels: a row for each span."""
    return _table(spark, "features", path, where)


def client_quotas(spark: SparkSession, path: Paths, **where: int | str | None) -> DataFrame:
    """Quotas of users, clients and addresses: a row for each span."""
    return _table(spark, "client_quotas", path, where)


def acls(spark: SparkSession, path: Paths, **where: int | str | None) -> DataFrame:
    """Access control entries: a row for each span."""
    return _table(spark, "acls", path, where)


def scram(spark: SparkSession, path: Paths, **where: int | str | None) -> DataFrame:
    """SCRAM credentials without their secrets: a row for each span."""
    return _table(spark, "scram", path, where)


def tokens(spark: SparkSession, path: Paths, **where: int | str | None) -> DataFrame:
    """Delegation tokens without their secrets: a row for each span."""
    return _table(spark, "tokens", path, where)


def _table(
    spark: SparkSession, name: str, path: Paths, where: dict[str, int | str | None]
) -> DataFrame:
    return cluster_tables(spark, path, **where)[name]  # type: ignore[arg-type]
