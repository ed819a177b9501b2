"""Views over a dead ZooKeeper as `kafkalog.spark` offers them."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from kafkalog.reading.zookeeper_tables import ZOOKEEPER_TABLES, read_zookeeper
from kafkalog.spark import zookeeper_views
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
