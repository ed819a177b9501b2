"""What differs between the releases of Spark that kafkalog runs on, 3.5 to 4.3.

    3.5   no data source in Python: views are read by `mapInArrow`, streams are not there
    4.0   data sources in Python, with streams; neither filters nor bounds of a stream's batch reach
          them; a name that was found on its own cannot be registered again
    4.1   filters reach them
    4.2   bounds of a stream's batch reach them

Every other module takes these classes and functions from here. What a release has is looked up and
not compared with its number, because vendors put parts of newer releases into older ones. What it
lacks is refused by name, see `needs`.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from kafkalog.errors import InvalidConfigError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceReader,
        DataSourceStreamReader,
        InputPartition,
    )
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
else:
    try:
        from pyspark.sql.datasource import (
            DataSource,
            DataSourceReader,
            DataSourceStreamReader,
            InputPartition,
        )
    except ModuleNotFoundError:  # 3.5
        # The same classes serve `scan`, which needs of them no more than this.
        class DataSource:
            def __init__(self, options):
                self.options = options

        class InputPartition:
            def __init__(self, value):
                self.value = value

        class DataSourceReader: ...

        class DataSourceStreamReader: ...

    try:
        from pyspark.sql.streaming.datasource import (
            ReadAllAvailable,
            ReadLimit,
            ReadMaxRows,
            SupportsTriggerAvailableNow,
        )
    except ModuleNotFoundError:  # before 4.2
        # Nobody makes one: a stream's batch has no bounds there.
        class ReadLimit: ...

        class ReadAllAvailable(ReadLimit): ...

        class ReadMaxRows(ReadLimit): ...

        class SupportsTriggerAvailableNow: ...


__all__ = [
    "DataSource",
    "DataSourceReader",
    "DataSourceStreamReader",
    "InputPartition",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxRows",
    "SupportsTriggerAvailableNow",
]

RELEASE = ".".join(pyspark.__version__.split(".")[:2])

HAS_SOURCES = hasattr(SparkSession, "dataSource")
HAS_FILTERS = HAS_SOURCES and hasattr(sys.modules["pyspark.sql.datasource"], "Filter")
HAS_READ_LIMITS = ReadLimit.__module__ != __name__
HAS_ARROW_UDF = hasattr(sys.modules["pyspark.sql.pandas.functions"], "arrow_udf")

# Delta and Avro, which Spark fetches. Both are made for one release of Spark and one of Scala; none
# of Delta's is made for 4.3 yet.
_PACKAGES: dict[str, str] = {
    "3.5": "io.delta:delta-spark_2.12:3.3.3,org.apache.spark:spark-avro_2.12:3.5.9",
    "4.0": "io.delta:delta-spark_4.0_2.13:4.4.0,org.apache.spark:spark-avro_2.13:4.0.2",
    "4.1": "io.delta:delta-spark_4.1_2.13:4.4.0,org.apache.spark:spark-avro_2.13:4.1.1",
    "4.2": "io.delta:delta-spark_4.2_2.13:4.4.0,org.apache.spark:spark-avro_2.13:4.2.0",
}
WITH_DELTA = tuple(_PACKAGES)


# So many values are tried that one of them misses none of some hundred tasks.
_TRIES_PER_TASK = 64


def needs(is_there: bool, what: str, release: str) -> None:
    """InvalidConfigError that names what this Spark lacks, and the release that has it."""
    if not is_there:
        raise InvalidConfigError(f"{what} needs Spark {release} or newer, this is {RELEASE}")


# -- schemas ---------------------------------------------------------------------------------------

# 4.2 has to be told the zone; before it was always UTC. It also reads Arrow's timestamps without a
# zone as TIMESTAMP_NTZ unless it is told otherwise, as 3.5 to 4.1 do not.
_IN_UTC: dict[str, Any] = (
    {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
)


def arrow_from_spark(schema: StructType) -> pa.Schema:
    """Spark's schema in Arrow's types, timestamps in UTC."""
    return to_arrow_schema(schema, **_IN_UTC)


def spark_from_arrow(schema: pa.Schema) -> StructType:
    """Arrow's schema in Spark's types, timestamps without a zone as they are."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


# -- frames ----------------------------------------------------------------------------------------


def frame_of(spark: SparkSession, table: pa.Table, schema: StructType | None = None) -> DataFrame:
    """A small Arrow table of the driver as a DataFrame; `schema` has its nullability."""
    wanted = spark_from_arrow(table.schema) if schema is None else schema
    if not _takes_arrow():
        return spark.range(0, 1, 1, 1).mapInArrow(_Rows(table), wanted)
    return spark.createDataFrame(table, wanted)


def _takes_arrow() -> bool:
    return RELEASE != "3.5"


class _Rows:
    """The function of a task that hands out a table it was sent."""

    def __init__(self, table: pa.Table) -> None:
        self._batches: Sequence[pa.RecordBatch] = table.to_batches()

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield from self._batches


# -- errors, functions -----------------------------------------------------------------------------


def condition_of(error: PySparkException) -> str:
    """The name of an error's condition, empty where it has none."""
    ask = getattr(error, "getCondition", None) or error.getErrorClass
    return ask() or ""


def quiet_query_errors() -> None:
    """4.0 and newer write each error of a query to stderr as JSON, some KiB, before they raise it:
    not here, where who catches it says what it is."""
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:
        return
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)


def is_utf8(binary: Column) -> Column:
    """Whether bytes are UTF-8; `is_valid_utf8` came with 4.0."""
    if hasattr(F, "is_valid_utf8"):
        return F.is_valid_utf8(binary.cast("string"))
    # Java puts U+FFFD in the place of what is not, so other bytes come back.
    return F.encode(F.decode(binary, "UTF-8"), "UTF-8") == binary


# -- the session -----------------------------------------------------------------------------------


def to_tasks(frame: DataFrame, tasks: int, column: str) -> DataFrame:
    """Each row to the task of its number in a column of integers, from 0 on."""
    if hasattr(frame, "repartitionById"):  # 4.1
        return frame.repartitionById(tasks, column)
    # A shuffle goes by the hash of a value, so each number becomes one whose hash is its task.
    tried = frame.sparkSession.range(_TRIES_PER_TASK * tasks)
    rows = tried.selectExpr("id", f"pmod(hash(id), {tasks}) AS task").collect()
    values = {row.task: row.id for row in rows}
    of_task = F.array(*(F.lit(values[task]).cast("long") for task in range(tasks)))
    return frame.repartition(tasks, of_task[F.col(column)])


def register_source(spark: SparkSession, source: type[DataSource]) -> None:
    """Tell a session of a source; InvalidConfigError on 3.5, which has none in Python."""
    needs(HAS_SOURCES, 'format("kafkalog")', "4.0")
    try:
        spark.dataSource.register(source)
    except PySparkException as error:
        # 4.0 has found it through `pyspark_kafkalog`, and keeps what it has.
        if condition_of(error) != "DATA_SOURCE_ALREADY_EXISTS":
            raise


def add_tag(spark: SparkSession, tag: str) -> None:
    """Jobs started from now on carry this tag."""
    _tagging(spark, "add")(tag)


def remove_tag(spark: SparkSession, tag: str) -> None:
    """And no more."""
    _tagging(spark, "remove")(tag)


def _tagging(spark: SparkSession, verb: str) -> Callable[[str], None]:
    # 3.5 has a session's tags over Spark Connect alone, and the context's for all others.
    context = getattr(spark, "sparkContext", None) if RELEASE == "3.5" else None
    owner, noun = (spark, "Tag") if context is None else (context, "JobTag")
    found: Callable[[str], None] = getattr(owner, f"{verb}{noun}")
    return found


def packages_conf(release: str = RELEASE) -> dict[str, str]:
    """Settings of a session that writes Delta tables and decodes Avro, whose jars Spark does not
    ship; InvalidConfigError where there is no Delta for this Spark.

    The same lines are in `spark_conf/packages.conf` (4.2) and `spark_conf/packages-….conf`.
    """
    if release not in _PACKAGES:
        known = ", ".join(_PACKAGES)
        raise InvalidConfigError(f"Delta has no release for Spark {release}: it has for {known}")
    return {
        "spark.jars.packages": _PACKAGES[release],
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
