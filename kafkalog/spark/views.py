"""DataFrames and temporary views over a log, one name for each.

Spark asks a Python source for all columns of its schema, even for `count()`: the way to decode less
is a schema with fewer columns. So beside the wide views there are narrow ones.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import kafkalog.spark as room
from kafkalog.errors import InvalidConfigError
from kafkalog.log.named_partitions import NamedPartitions, partitions_in
from kafkalog.log.names import names_in, paths_in
from kafkalog.reading.function_views.table import FUNCTION_VIEWS, RECORD_VIEWS, TOPIC_VIEWS
from kafkalog.reading.option_table import OPEN_TRANSACTIONS
from kafkalog.reading.sql_views import SQL_VIEWS, options_for
from kafkalog.spark.loading import Paths, load

# Of the internal topics.
_WITH_AGES = ("group_offsets", OPEN_TRANSACTIONS)


def records(spark: SparkSession, path: Paths, **options: str) -> DataFrame:
    """The records below `path`: a row a record. `options` are those of the data source
    (`subscribe`, `columns` …)."""
    return load(spark, "records", path, options)


def batches(spark: SparkSession, path: Paths, **options: str) -> DataFrame:
    """The record batches below `path`: a row a batch, nothing decompressed."""
    return load(spark, "batches", path, options)


def segments(spark: SparkSession, path: Paths, **options: str) -> DataFrame:
    """The segments below `path`: a row a `.log` file."""
    return load(spark, "segments", path, options)


def partitions(spark: SparkSession, path: Paths, **options: str) -> DataFrame:
    """The partition directories below `path`."""
    return load(spark, "partitions", path, options)


def messages(spark: SparkSession, path: Paths, **options: str) -> DataFrame:
    """The records of internal topics below `path`, decoded: a row a record."""
    return load(spark, "messages", path, options)


def list_segments(
    spark: SparkSession,
    log_dirs: Sequence[str],
    topics: Sequence[str] = (),
    topic_partitions: NamedPartitions = (),
) -> DataFrame:
    """The segments of the partitions that `--topic` (names or globs) and `--topic-partition` mean.

    In the order of topic, partition and offset. InvalidConfigError for a name that matches nothing.
    """
    found = segments(spark, log_dirs, **assigning(log_dirs, topics, topic_partitions))
    return found.orderBy("topic", "partition", "kind", "baseOffset", "path")


def assigning(
    log_dirs: Sequence[str],
    topics: Sequence[str] = (),
    topic_partitions: NamedPartitions = (),
) -> dict[str, str]:
    """What `--topic` (names or globs) and `--topic-partition` mean, as options of the source;
    InvalidConfigError for a name that matches nothing."""
    if not topics and not topic_partitions:
        return {}
    # Needs kernels; nobody else in this module does.
    from kafkalog.log.log_dir import open_log_dir
    from kafkalog.log.selection import select_partitions

    chosen = select_partitions(
        open_log_dir(*paths_in(log_dirs)),
        names_in(topics),
        partitions_in(topic_partitions),
    )
    assigned: dict[str, list[int]] = {}
    for name in sorted({partition.topic_partition for partition in chosen}):
        assigned.setdefault(name.topic, []).append(name.partition)
    return {"assign": json.dumps(assigned)}


def create_views(
    spark: SparkSession, path: Paths, *, prefix: str = "", **options: str
) -> list[str]:
    """Temporary views over `path`, replaced where they are there; returns their names.

    The source's views under their names, the narrow `record_offsets` and `record_keys` that decode
    less, and the cluster's own tables (`brokers`, `configs` …). `options` go to each view they are
    for (`subscribe`, `mode`, `now` …).

    The cluster's tables are read now, by the driver, as far as they can be: empty where it sees no
    metadata log.
    """
    created = []
    mode = {name: text for name, text in options.items() if name.lower() == "mode"}
    views = {**SQL_VIEWS, OPEN_TRANSACTIONS: (OPEN_TRANSACTIONS, mode)}
    for name, (view, own) in views.items():
        chosen = {**options_for(view, options), **own}
        load(spark, view, path, chosen).createOrReplaceTempView(prefix + name)
        created.append(prefix + name)
    for name in RECORD_VIEWS:
        chosen = options_for(FUNCTION_VIEWS[name].reads, options)
        getattr(room, name)(spark, path, **chosen).createOrReplaceTempView(prefix + name)
        created.append(prefix + name)
    for name, frame in _cluster_tables(spark, path).items():
        frame.createOrReplaceTempView(prefix + name)
        created.append(prefix + name)
    return created


def _cluster_tables(spark: SparkSession, path: Paths) -> dict[str, DataFrame]:
    from kafkalog.spark.cluster import cluster_tables

    try:
        return cluster_tables(spark, path, mode="PERMISSIVE")
    except InvalidConfigError:  # no path of the driver's
        return cluster_tables(spark, ())


def create_topic_views(
    spark: SparkSession,
    path: Paths,
    *,
    prefix: str = "",
    mode: str = "FAILFAST",
    now_ms: int | None = None,
    decode: bool = False,
) -> list[str]:
    """Temporary views of what the internal topics below `path` say: groups, group_offsets,
    transactional_ids …, each the function of that name in `kafkalog.spark`; returns their names.
    `mode`: what becomes of what cannot be read, as for `groups`. `now_ms`: the time that ages are
    computed for, the clock by default.

    With `decode` also a view `topic_…` of each topic whose keys or values have a schema in the
    topic `_schemas` there: partition, offset, timestamp, key and value as their types, and why one
    is null (`keyError`, `valueError`). See `decode`.

    Apart from `create_views`, because these look at the disk when they are made.
    """
    for name in TOPIC_VIEWS:
        ages: dict[str, Any] = {"now_ms": now_ms} if name in _WITH_AGES else {}
        getattr(room, name)(spark, path, mode=mode, **ages).createOrReplaceTempView(prefix + name)
    tables = _topic_tables(spark, path, mode) if decode else {}
    for name, frame in tables.items():
        frame.createOrReplaceTempView(prefix + name)
    return [prefix + name for name in (*TOPIC_VIEWS, *tables)]


def _topic_tables(spark: SparkSession, path: Paths, mode: str) -> dict[str, DataFrame]:
    # Needs kernels, and the libraries of the formats.
    from kafkalog.spark.registered_payloads import topic_frames

    return topic_frames(spark, path, mode=mode)
