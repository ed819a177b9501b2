"""Spark's daemon of Python workers, with the libraries loaded from which each worker is forked.

A worker of a task would import pandas, pyarrow and the package anew: about a second of CPU each. A
session uses this daemon by `spark.python.daemon.module` (what asks a Python source for its schema
and its partitions does not); jobs that are submitted keep Spark's own.
"""

from __future__ import annotations

from importlib import import_module

LOADED = (
    "pandas",
    "pyspark.worker",
    "kafkalog.spark",
    "kafkalog.spark.source",
    "kafkalog.spark.batch_reader",
    "kafkalog.spark.stream_reader",
    "kafkalog.spark.tasks",
    "kafkalog.reading.segment_reader",
)

if __name__ == "__main__":
    for name in LOADED:
        import_module(name)
    from pyspark.daemon import manager

    manager()
