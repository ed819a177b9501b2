"""A stream into Delta as a process of its own, to be killed:

    python -m tests.support.stream_to_delta LOG_DIR TABLE CHECKPOINT DONE PLANS

It says "running" once a batch of its own is through. When the file DONE is there it takes what is
left, and ends. Each plan of a batch is a line of the file PLANS, with the time before it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.types import StructType

from kafkalog.spark import configure_spark
from kafkalog.spark.source import KafkaLogSource
from kafkalog.spark.stream_reader import KafkaLogStreamReader
from tests.support.spark_jars import session_settings

PLANS = "KAFKALOG_PLANS"


class WatchedReader(KafkaLogStreamReader):
    """The source's reader, with a diary of its plans."""

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        line = json.dumps({"time": time.time(), "start": start, "end": end})
        found = super().partitions(start, end)
        with Path(os.environ[PLANS]).open("a") as plans:
            plans.write(f"{line}\n")
        return found


class WatchedSource(KafkaLogSource):
    """The source with such a reader."""

    @classmethod
    def name(cls) -> str:
        return "watched"

    def streamReader(self, schema: StructType) -> KafkaLogStreamReader:
        return WatchedReader(*self._asked(schema))


def main() -> None:
    """Run until DONE."""
    log_dir, table, checkpoint, done, os.environ[PLANS] = sys.argv[1:]
    spark = _session()
    spark.dataSource.register(WatchedSource)
    stream = (
        spark.readStream.format("watched")
        .option("failOnDataLoss", "false")
        .option("maxOffsetsPerTrigger", "400")
        .option("columns", "topic,partition,offset,key,value")
        .load(log_dir)
    )
    query = _start(stream, table, checkpoint)
    is_running = False
    while not Path(done).exists():
        time.sleep(0.1)
        if query.exception() is not None:
            query = _start_again(query, stream, table, checkpoint)
        # rows are not counted where Delta plans a batch's query anew
        if not is_running and any("addBatch" in p.durationMs for p in query.recentProgress):
            is_running = True
            sys.stdout.write("running\n")
            sys.stdout.flush()
    query.processAllAvailable()
    query.stop()
    spark.stop()


def _start(stream: DataFrame, table: str, checkpoint: str) -> StreamingQuery:
    return (
        stream.writeStream.format("delta")
        .option("checkpointLocation", checkpoint)
        .trigger(processingTime="100 milliseconds")
        .start(table)
    )


def _start_again(
    query: StreamingQuery, stream: DataFrame, table: str, checkpoint: str
) -> StreamingQuery:
    """Spark gives a Python worker ten seconds to start, which a busy machine may exceed."""
    if "failed to connect back" not in str(query.exception()):
        raise SystemExit(str(query.exception()))
    return _start(stream, table, checkpoint)


def _session() -> SparkSession:
    builder = configure_spark(SparkSession.builder.master("local[2]"))
    for key, value in session_settings().items():
        builder = builder.config(key, value)
    spark = (
        builder.config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.databricks.delta.snapshotPartitions", "2")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


if __name__ == "__main__":
    # classes of a module that has a name, which workers import
    from tests.support import stream_to_delta

    stream_to_delta.main()
