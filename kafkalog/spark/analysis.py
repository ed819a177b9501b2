"""Questions about a whole log as DataFrames: the latest record of each key, keys by what they cost,
offsets that are not there.

DataFrame operations only, so they run on Spark Connect as well. Each takes a SparkSession, a path
and options of the data source (`subscribe`, `isolationLevel` …).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from kafkalog.spark.loading import Paths, load

_PLACE = ("topic", "partition")
_LATEST = ("offset", "timestamp", "timestampMs", "value", "headers")
_HOT_KEYS = 10


def latest_by_key(spark: SparkSession, path: Paths, **options: str) -> DataFrame:
    """What compaction that has caught up would leave: the last record of each key of a partition.

    Tombstones are rows too, marked by `isTombstone`; records without a key are left out, as
    compaction does; so is, unless `isolationLevel` says otherwise, what was not committed.
    """
    columns = ",".join((*_PLACE, "key", *_LATEST))
    found = load(
        spark, "records", path, {"isolationLevel": "read_committed", "columns": columns} | options
    )
    latest = F.max_by(F.struct(*_LATEST), "offset").alias("latest")
    grouped = found.where(F.col("key").isNotNull()).groupBy(*_PLACE, "key").agg(latest)
    return grouped.select(*_PLACE, "key", "latest.*").withColumn(
        "isTombstone", F.col("value").isNull()
    )


def hot_keys(spark: SparkSession, path: Paths, **options: str) -> DataFrame:
    """A row a key of a topic, null included: how often, how many bytes, which share of the topic's.

    Order by `sizeInBytes` or `recordsCount` for the hot ones.
    """
    by_key = _by_key(spark, path, options)
    topic = Window.partitionBy("topic")
    share = F.col("sizeInBytes") / F.nullif(F.sum("sizeInBytes").over(topic), F.lit(0))
    return by_key.withColumn("share", share)


def key_stats(
    spark: SparkSession, path: Paths, *, approximate: bool = False, **options: str
) -> DataFrame:
    """A row a topic: records, distinct keys, tombstones, bytes of keys, values and headers, and the
    ten keys with the most bytes.

    Keys are counted exactly, in a shuffle of all keys; with `approximate` by a sketch (5 % off
    at most for 95 % of counts), and hot keys are left out.
    """
    if approximate:
        measured = _measured(spark, path, options)
        distinct = F.approx_count_distinct("key", 0.025).alias("distinctKeys")
        return measured.groupBy("topic").agg(*_sums(measured.columns), distinct)
    by_key = _by_key(spark, path, options)
    ranked = F.row_number().over(
        Window.partitionBy("topic").orderBy(F.desc("sizeInBytes"), F.asc_nulls_last("key"))
    )
    hot = F.when(F.col("rank") <= _HOT_KEYS, F.struct("sizeInBytes", "key", "recordsCount"))
    summed = [F.sum(name).alias(name) for name in _COUNTS]
    distinct = F.count("key").alias("distinctKeys")
    hottest = F.sort_array(F.collect_list(hot), asc=False).alias("hotKeys")
    return by_key.withColumn("rank", ranked).groupBy("topic").agg(*summed, distinct, hottest)


def gaps(spark: SparkSession, path: Paths, **options: str) -> DataFrame:
    """Offsets that no record has, by the batch headers alone: a row a range.

    `startOffset` to `endOffset` (excluded), of which `missingCount` have no record, and `place`:
    `start` (below the first batch: deleted by retention, or never there), `segments` (between two
    segments), `batches` (between two batches of a segment), `batch` (inside a batch, where its
    header does not tell which: compaction takes records out of batches). Compaction leaves gaps of
    all kinds but the first; in a log that was never compacted the others are losses. Batches of
    magic 0 and 1 do not say where they begin: gaps around those wrappers are not reported.
    """
    columns = "topic,partition,baseOffset,lastOffset,recordsCount,segmentBaseOffset,isControl,path"
    found = load(spark, "batches", path, {"columns": columns} | options)
    log = Window.partitionBy(*_PLACE, "logPath").orderBy("baseOffset")
    following = found.select(
        *_PLACE,
        F.regexp_replace("path", "/[^/]*$", "").alias("logPath"),
        "segmentBaseOffset",
        "baseOffset",
        "lastOffset",
        "recordsCount",
    ).select(
        "*",
        F.lag("lastOffset").over(log).alias("lastBefore"),
        F.lag("segmentBaseOffset").over(log).alias("segmentBefore"),
    )
    is_wrapper = F.col("recordsCount") < 0
    between = (
        following.where(~is_wrapper)
        .where(F.col("baseOffset") > F.coalesce("lastBefore", F.lit(-1)) + 1)
        .select(
            *_PLACE,
            (F.coalesce("lastBefore", F.lit(-1)) + 1).alias("startOffset"),
            F.col("baseOffset").alias("endOffset"),
            (F.col("baseOffset") - F.coalesce("lastBefore", F.lit(-1)) - 1).alias("missingCount"),
            _place_of_gap().alias("place"),
            F.col("logPath").alias("path"),
        )
    )
    span = F.col("lastOffset") - F.col("baseOffset") + 1
    inside = (
        following.where(~is_wrapper)
        .where(span > F.col("recordsCount"))
        .select(
            *_PLACE,
            F.col("baseOffset").alias("startOffset"),
            (F.col("lastOffset") + 1).alias("endOffset"),
            (span - F.col("recordsCount")).alias("missingCount"),
            F.lit("batch").alias("place"),
            F.col("logPath").alias("path"),
        )
    )
    return between.unionByName(inside)


_COUNTS = (
    "recordsCount", "tombstonesCount", "keyBytes", "valueBytes", "headerBytes", "sizeInBytes",
)  # fmt: skip


def _place_of_gap() -> Column:
    return (
        F.when(F.col("lastBefore").isNull(), "start")
        .when(F.col("segmentBaseOffset") != F.col("segmentBefore"), "segments")
        .otherwise("batches")
    )


def _measured(spark: SparkSession, path: Paths, options: dict[str, str]) -> DataFrame:
    """A row a record: its key, and the bytes of its parts."""
    columns = "topic,key,keySize,valueSize,headers"
    found = load(spark, "records", path, {"columns": columns} | options)
    header_bytes = F.aggregate(
        "headers",
        F.lit(0).cast("bigint"),
        lambda total, header: (
            total
            + F.octet_length(header["key"])
            + F.coalesce(F.octet_length(header["value"]), F.lit(0))
        ),
    )
    return found.select(
        "topic",
        "key",
        F.lit(1).cast("bigint").alias("recordsCount"),
        F.col("valueSize").isNull().cast("bigint").alias("tombstonesCount"),
        F.coalesce("keySize", F.lit(0)).cast("bigint").alias("keyBytes"),
        F.coalesce("valueSize", F.lit(0)).cast("bigint").alias("valueBytes"),
        F.coalesce(header_bytes, F.lit(0).cast("bigint")).alias("headerBytes"),
    ).withColumn("sizeInBytes", F.expr("keyBytes + valueBytes + headerBytes"))


def _by_key(spark: SparkSession, path: Paths, options: dict[str, str]) -> DataFrame:
    measured = _measured(spark, path, options)
    return measured.groupBy("topic", "key").agg(*_sums(measured.columns))


def _sums(columns: Sequence[str]) -> list[Column]:
    return [F.sum(name).alias(name) for name in _COUNTS if name in columns]
