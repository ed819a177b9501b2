"""One way to load a view of the source as a DataFrame."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from kafkalog.spark.asked_reads import schema_of
from kafkalog.spark.releases import HAS_SOURCES
from kafkalog.spark.scanning import scan_when_asked
from kafkalog.spark.session import register

Paths = str | Sequence[str]


def load(spark: SparkSession, view: str, path: Paths, options: Mapping[str, str]) -> DataFrame:
    """The rows of a view below one or several paths.

    On Spark 3.5 by tasks: what is read is settled now, not when the frame is used.

    Options that are refused raise InvalidConfigError here.
    """
    if not HAS_SOURCES:
        return scan_when_asked(spark, path, view, options)
    register(spark)
    where = {"path": path} if isinstance(path, str) else {"paths": json.dumps(list(path))}
    given = {**options, "view": view, **where}
    # A reader that is told its schema starts no Python process to ask the source for it.
    reader = spark.read.format("kafkalog").schema(schema_of(given))
    return reader.options(**given).load()
