"""DataFrames over Kafka's log directories: the only room that imports pyspark.

    from kafkalog.spark import configure_spark, create_views
    spark = configure_spark(SparkSession.builder).getOrCreate()
    create_views(spark, "/var/lib/kafka/data")
    spark.sql("SELECT topic, count(*) FROM record_offsets GROUP BY topic")

Read `options` (what a load takes), `source` (schema and columns), `batch_reader` (driver and
tasks), `types` (why a batch's nullability matters), `views`. Functions take a SparkSession first
and return DataFrames.
"""

from __future__ import annotations

from kafkalog.spark.compact import compact
from kafkalog.spark.session import configure_spark, register
from kafkalog.spark.views import (
    batches,
    create_views,
    list_segments,
    partitions,
    records,
    segments,
)

__all__ = [
    "batches",
    "compact",
    "configure_spark",
    "create_views",
    "list_segments",
    "partitions",
    "records",
    "register",
    "segments",
]
