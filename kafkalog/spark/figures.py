"""Frames small enough to plot: bytes by topic, records over time, how uneven keys are.

Each has a row a bar or a point, in the order to draw, and says so of its columns;
`.toPandas().plot(...)` or `df.plot` draw it. DataFrame operations only, and of the log no more than
batch headers, save for keys.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from kafkalog.columns.column import MAX_TIMESTAMP_MS
from kafkalog.spark.analysis import hot_keys
from kafkalog.spark.loading import Paths, load


def bytes_by_topic(spark: SparkSession, path: Paths, **options: str) -> DataFrame:
    """A bar a topic, the largest first: `topic`, `sizeInBytes` of its live segments,
    `recordsCount`, `partitionsCount`."""
    columns = "topic,partition,state,sizeInBytes,recordsCount"
    found = load(spark, "segments", path, {"columns": columns} | options)
    return (
        found.where(F.col("state") == "live")
        .groupBy("topic")
        .agg(
            F.sum("sizeInBytes").alias("sizeInBytes"),
            F.sum("recordsCount").alias("recordsCount"),
            F.countDistinct("partition").alias("partitionsCount"),
        )
        .orderBy(F.desc("sizeInBytes"), "topic")
    )


def records_over_time(
    spark: SparkSession, path: Paths, *, every: str = "1 minute", **options: str
) -> DataFrame:
    """A point a topic and span of time (`every`: an interval as Spark writes it): `topic`,
    `timestamp` (its start), `recordsCount`, `sizeInBytes`.

    By the largest timestamp of each batch: a batch counts where it ends. Markers of transactions
    and wrappers of magic 0 and 1, whose headers do not tell how many records they have, do not.
    """
    columns = "topic,maxTimestampMs,recordsCount,sizeInBytes,isControl"
    found = load(spark, "batches", path, {"columns": columns} | options)
    at = F.window(F.timestamp_millis("maxTimestampMs"), every)["start"]
    return (
        found.where(~F.col("isControl") & (F.col("recordsCount") > 0))
        .where(F.col("maxTimestampMs").between(0, MAX_TIMESTAMP_MS))
        .groupBy("topic", at.alias("timestamp"))
        .agg(
            F.sum("recordsCount").alias("recordsCount"),
            F.sum("sizeInBytes").alias("sizeInBytes"),
        )
        .orderBy("topic", "timestamp")
    )


def key_skew(spark: SparkSession, path: Paths, *, points: int = 100, **options: str) -> DataFrame:
    """The Lorenz curve of each topic, of `points` points at most: the largest `keysShare` of its
    keys have `bytesShare` of its bytes. A straight line if all keys cost the same."""
    by_key = hot_keys(spark, path, **options).where(F.col("key").isNotNull())
    topic = Window.partitionBy("topic")
    largest_first = topic.orderBy(F.desc("sizeInBytes"), "key")
    ranked = by_key.select(
        "topic",
        F.row_number().over(largest_first).alias("rank"),
        F.count("*").over(topic).alias("keys"),
        F.sum("sizeInBytes")
        .over(largest_first.rowsBetween(Window.unboundedPreceding, 0))
        .alias("bytesSoFar"),
        F.sum("sizeInBytes").over(topic).alias("bytes"),
    )
    place = F.ceil(F.col("rank") * points / F.col("keys"))
    return (
        ranked.groupBy("topic", place.alias("place"))
        .agg(
            (F.max("rank") / F.max("keys")).alias("keysShare"),
            (F.max("bytesSoFar") / F.max("bytes")).alias("bytesShare"),
        )
        .drop("place")
        .orderBy("topic", "keysShare")
    )
