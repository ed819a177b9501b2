"""Records into a Delta table, none of them twice: appended, or the latest of each key merged in.

How far an earlier run came is read from the table: the largest offset of each partition in it. A
run reads the log from there on and commits once, and a commit of Delta is all or nothing; so a run
that is killed leaves the table as it was, and neither a checkpoint nor any other file beside the
table can be lost or contradict it.

Two runs at once would both read from the same offset. An append therefore carries Delta's own
transaction: txnAppId APP_ID, txnVersion the table's version that the offsets were read from. Delta
takes one append of a version, and refuses or leaves out the other, which is then an error here. A
merge needs none: a record is taken only where its offset is higher than the row's.

DataFrame operations and SQL only, so they run on Spark Connect as well.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F

from kafkalog.errors import InvalidConfigError, LogChangedError
from kafkalog.reading.selection import EARLIEST_OFFSET
from kafkalog.spark.analysis import latest_by_key
from kafkalog.spark.loading import Paths, load
from kafkalog.spark.releases import condition_of, packages_conf

APP_ID = "kafkalog export"
MODES = ("append", "merge")
_PLACE = ("topic", "partition", "offset")
# The table says where to start; and a row that stands for a bad batch is no record.
_REFUSED = ("startingoffsets", "startingtimestamp", "view", "path", "paths")

Offsets = dict[str, dict[int, int]]
_SIGNS_OF_NO_DELTA = (
    "PARSE_SYNTAX_ERROR",
    "TABLE_OR_VIEW_NOT_FOUND",
    "org.apache.spark.sql.delta.catalog.DeltaCatalog",
)


@dataclass(frozen=True, slots=True)
class ExportResult:
    """What a run did: rows written, the table's version behind it (None: there was nothing to do),
    and how far the table now has each partition, as {topic: {partition: next offset}}."""

    table: str
    mode: str
    rows: int
    version: int | None
    next_offsets: Offsets

    def to_json(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "mode": self.mode,
            "rows": self.rows,
            "version": self.version,
            "nextOffsets": self.next_offsets,
        }


def export_to_delta(
    spark: SparkSession, path: Paths, table: str, *, mode: str = "append", **options: str
) -> ExportResult:
    """Bring a Delta table up to the log: what it lacks is read, and committed in one version.

    `table` is a path or the name of a catalog table, made by the first run and partitioned by
    topic. Mode `append` has all records as view `records` does, `includeHeaders` on; mode `merge`
    the latest of each key of a partition as `latest_by_key` does, tombstones as rows marked
    `isTombstone`, records without a key left out. `options` are the source's; unless told otherwise
    `isolationLevel` is read_committed, since a row of a transaction that is aborted later would
    stay. A table is of one selection and one mode.

    Raises InvalidConfigError for two replicas of a partition and for options that contradict the
    table; LogChangedError if another run was quicker; PySparkException that names an
    OffsetOutOfRangeError where the log lacks what comes next, unless `failOnDataLoss` is false.
    """
    if mode not in MODES:
        raise InvalidConfigError(f"mode is one of {', '.join(MODES)}, not '{mode}'")
    chosen = _options(options)
    name = _sql_name(table)
    version = _version(spark, name)
    known = {} if version is None else _next_offsets(spark, name)
    ends = _log_ends(spark, path, chosen)
    starts = {
        topic: {p: known.get(topic, {}).get(p, EARLIEST_OFFSET) for p in partitions}
        for topic, partitions in ends.items()
    }
    if starts == ends:
        return ExportResult(table, mode, 0, None, known)
    chosen["startingOffsets"] = json.dumps(starts)
    if mode == "append":
        chosen.setdefault("includeHeaders", "true")
        done = _append(spark, load(spark, "records", path, chosen), table, version)
    else:
        done = _merge(spark, latest_by_key(spark, path, **chosen), table, version)
    return ExportResult(table, mode, *done, _next_offsets(spark, name))


def _options(options: Mapping[str, str]) -> dict[str, str]:
    names = {name.lower(): name for name in options}
    for refused in _REFUSED:
        if refused in names:
            raise InvalidConfigError(
                f"an export takes no option {names[refused]}: it goes on where the table ends"
            )
    if options.get(names.get("mode", ""), "").upper() == "PERMISSIVE":
        raise InvalidConfigError("an export is FAILFAST or DROPMALFORMED: bad batches are no rows")
    chosen = dict(options)
    if "isolationlevel" not in names:
        chosen["isolationLevel"] = "read_committed"
    if "columns" in names:
        asked = {column.strip().lower() for column in options[names["columns"]].split(",")}
        if not asked.issuperset(_PLACE):
            raise InvalidConfigError(f"an export needs the columns {', '.join(_PLACE)}")
    return chosen


def _sql_name(table: str) -> str:
    """A path as Delta's name for it; a name as it is."""
    if _is_path(table):
        return f"delta.`{table.replace('`', '``')}`"
    return table


def _version(spark: SparkSession, name: str) -> int | None:
    """The table's version now; None if there is no table."""
    try:
        (latest,) = spark.sql(f"DESCRIBE HISTORY {name} LIMIT 1").select("version").collect()
    except PySparkException as error:
        condition = condition_of(error)
        if condition in ("DELTA_TABLE_ONLY_OPERATION", "DELTA_TABLE_NOT_FOUND"):
            return None
        # Spark alone does not know the statement, or does not find the class of its settings.
        if any(word in f"{condition} {error}" for word in _SIGNS_OF_NO_DELTA):
            raise _no_delta() from None
        raise
    return int(latest.version)


def _no_delta() -> InvalidConfigError:
    delta = packages_conf()["spark.jars.packages"].partition(",")[0]
    return InvalidConfigError(
        f"this session has no Delta: {delta} is missing, or its extension; make the session with"
        " configure_spark(builder, packages=True), or spark-submit with spark_conf/packages.conf"
    )


def _next_offsets(spark: SparkSession, name: str) -> Offsets:
    last = spark.table(name).groupBy("topic", "partition").agg(F.max("offset").alias("last"))
    offsets: Offsets = {}
    for row in last.orderBy("topic", "partition").collect():
        offsets.setdefault(row.topic, {})[row.partition] = row["last"] + 1
    return offsets


def _log_ends(spark: SparkSession, path: Paths, options: Mapping[str, str]) -> Offsets:
    """The end of each partition that will be read; InvalidConfigError if one is there twice."""
    selecting = ["subscribe", "assign", "subscribepattern"]
    if "remotedir" not in {name.lower() for name in options}:
        selecting += ["remotelayout", "remotekey"]  # the path is remote storage itself
    chosen = {k: v for k, v in options.items() if k.lower() in selecting}
    columns = "topic,partition,kind,logEndOffset,path"
    rows = load(spark, "partitions", path, {**chosen, "columns": columns}).collect()
    named = {path} if isinstance(path, str) else set(path)
    offsets: Offsets = {}
    for row in rows:
        if row.kind != "live" and row.path not in named:
            continue
        partitions = offsets.setdefault(row.topic, {})
        if row.partition in partitions:
            name = f"{row.topic}-{row.partition}"
            raise InvalidConfigError(f"an export reads one replica; there are two of {name}")
        partitions[row.partition] = row.logEndOffset
    return offsets


def _append(
    spark: SparkSession, found: DataFrame, table: str, version: int | None
) -> tuple[int, int]:
    """Append in one commit; the rows and the version of it."""
    run = str(uuid.uuid4())
    writer = (
        found.write.format("delta")
        .mode("append")
        .partitionBy("topic")
        .option("txnAppId", APP_ID)
        .option("txnVersion", str(0 if version is None else version + 1))
        .option("userMetadata", run)
    )
    try:
        _save(writer, table)
    except PySparkException as error:
        if "CONCURRENT" in condition_of(error):
            raise _overtaken(table) from None
        raise
    return _committed(spark, table, F.col("userMetadata") == run)


def _merge(
    spark: SparkSession, found: DataFrame, table: str, version: int | None
) -> tuple[int, int]:
    """Merge in one commit; the rows that it changed or added, and the version of it."""
    if version is None:
        empty = spark.createDataFrame([], found.schema).write.format("delta")
        _save(empty.partitionBy("topic"), table)
    source = f"kafkalog_export_{uuid.uuid4().hex}"
    found.createOrReplaceTempView(source)
    try:
        (counts,) = spark.sql(
            f"""
            MERGE INTO {_sql_name(table)} AS t USING {source} AS s
            ON t.topic = s.topic AND t.partition = s.partition AND t.key = s.key
            WHEN MATCHED AND s.offset > t.offset THEN UPDATE SET *
            WHEN NOT MATCHED THEN INSERT *
            """
        ).collect()
    finally:
        spark.catalog.dropTempView(source)
    _, latest = _committed(spark, table, F.col("operation") == "MERGE")
    return int(counts.num_affected_rows), latest


def _save(writer: DataFrameWriter, table: str) -> None:
    if _is_path(table):
        writer.save(table)
    else:
        writer.saveAsTable(table)


def _is_path(table: str) -> bool:
    return "/" in table


def _committed(spark: SparkSession, table: str, is_ours: Column) -> tuple[int, int]:
    """Rows and version of the commit; LogChangedError if it is not there."""
    history = spark.sql(f"DESCRIBE HISTORY {_sql_name(table)}").where(is_ours)
    ours = history.orderBy(F.desc("version")).select("version", "operationMetrics").first()
    if ours is None:
        raise _overtaken(table)
    return int(ours.operationMetrics.get("numOutputRows", 0)), int(ours.version)


def _overtaken(table: str) -> LogChangedError:
    return LogChangedError(
        "another export was appended meanwhile, so this one was not; run it again", path=table
    )
