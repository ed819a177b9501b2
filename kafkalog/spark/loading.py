"""One way to load a view of the source as a DataFrame."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from kafkalog.spark.releases import HAS_SOURCES
from kafkalog.spark.scanning import scan_when_asked
from kafkalog.spark.session import register

Paths = str | Sequence[str]


def load(spark: SparkSession, view: str, path: Paths, options: Mapping[str, str]) -> DataFrame:
    """The rows of a view below one or several paths.

    On Spark 3.5 by tasks: what is read is settled now, not when the frame is used.
    """
    if not HAS_SOURCES:
        return scan_when_asked(spark, path, view, options)
    register(spark)
    reader = spark.read.format("kafkalog").options(view=view, **options)
    if isinstance(path, str):
        return reader.load(path)
    return reader.option("paths", json.dumps(list(path))).load()
