"""A stream into Delta as a process of its own, to be killed:

    python -m tests.support.stream_to_delta LOG_DIR TABLE CHECKPOINT DONE

It says "running" once a batch of its own is through. When the file DONE is there it takes what is
left, and ends.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from kafkalog.spark import configure_spark
from tests.support.spark_jars import session_settings


def main() -> None:
    """Run until DONE."""
    log_dir, table, checkpoint, done = sys.argv[1:]
    spark = _session()
    stream = (
        spark.readStream.format("kafkalog")
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
    main()
