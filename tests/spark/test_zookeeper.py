"""Views over a dead ZooKeeper as `kafkalog.spark` offers them."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from data.copy_samples import SAMPLES
from kafkalog import read_view
from kafkalog.reading.zookeeper_tables import ZOOKEEPER_TABLES, read_zookeeper
from kafkalog.spark import group_offsets, zookeeper_views
from tests.zookeeper.live import ENSEMBLE, cluster_id

pytestmark = pytest.mark.spark


def test_views_have_the_rows_and_columns_of_the_tables(spark: SparkSession) -> None:
    names = zookeeper_views(spark, ENSEMBLE)
    assert names == [f"zookeeper_{table}" for table in ZOOKEEPER_TABLES]
    tables = read_zookeeper(list(ZOOKEEPER_TABLES), ENSEMBLE)
    for name, table in tables.items():
        view = spark.table(f"zookeeper_{name}")
        assert view.columns == table.schema.names
        assert view.count() == table.num_rows
    left = spark.sql(
        "SELECT DISTINCT brokerId FROM zookeeper_brokers WHERE event = 'expired' "
        f"AND clusterId = '{cluster_id('')}' ORDER BY brokerId"
    )
    assert [row.brokerId for row in left.collect()] == [1, 2]
    grown = spark.sql(
        "SELECT count(*) AS n FROM zookeeper_partition_changes "
        "WHERE topic = 'plain' AND array_contains(isrJoined, 2)"
    )
    assert grown.collect()[0].n > 0


def test_offsets_of_old_consumers_stand_beside_those_of_the_topic(spark: SparkSession) -> None:
    log_dir = str(SAMPLES / "zookeeper" / "broker-1")
    disk = read_view("partitions", log_dir, columns=["topic", "partition", "logEndOffset"])
    ends = {(row["topic"], row["partition"]): row["logEndOffset"] for row in disk.to_pylist()}
    latest = group_offsets(spark, log_dir, zookeeper_dir=str(ENSEMBLE)).collect()
    found = {(row.group, row.topic, row.partition): row for row in latest}
    assert {key: row.offset for key, row in found.items()} == {
        ("old", "plain", 0): 25,
        ("old", "plain", 1): 7,
    }
    for (_, topic, partition), row in found.items():
        assert row.source.startswith("zookeeper")
        assert row.logEndOffset == ends[topic, partition]
        assert row.lag == max(0, row.logEndOffset - row.offset)
        assert (row.expiresAtMs, row.isExpired) == (None, False)
    history = group_offsets(spark, log_dir, history=True, zookeeper_dir=str(ENSEMBLE))
    assert sorted(row.offset for row in history.collect()) == [5, 7, 15, 25]
