"""The main functions in a Spark Connect session, as a process of its own:

    python -m tests.spark.connect_session LOG_DIR COPY WORK few|all

A Connect session has no SparkContext and no JVM to reach into. It prints what it found as one JSON
line; `test_connect.py` compares that with what the log holds. COPY is a log dir to compact.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafkalog import spark as kl
from kafkalog.operations.retain import RetentionRun
from tests.support.spark_jars import session_settings


def main() -> None:
    """Ask few or all questions, print the answers."""
    log_dir, copy, work, how_many = sys.argv[1:]
    spark = _session()
    answers = few(spark, log_dir, copy, work)
    if how_many == "all":
        answers |= others(spark, log_dir, work)
    answers["module"] = type(spark).__module__
    sys.stdout.write(json.dumps(answers) + "\n")
    sys.stdout.flush()
    spark.stop()


def few(spark: SparkSession, log_dir: str, copy: str, work: str) -> dict[str, Any]:
    """The source, with filters pushed down, the scan, and a job of tasks."""
    # a frame each: what Spark 4.2.0 pushed into one stays with it
    records = kl.records(spark, log_dir, subscribe="orders")
    whole = kl.records(spark, log_dir, subscribe="orders")
    compacted = kl.compact(
        spark, [copy], topics=["orders"], apply=True, run_dir=f"{work}/runs",
        config=["cleanup.policy=compact", "min.cleanable.dirty.ratio=0"],
    )  # fmt: skip
    return {
        "records": _numbers(records.where(F.col("offset") < 4), "offset"),
        "decoded": _numbers(kl.decode(whole, "json", "n INT").select("decoded.n"), "n"),
        "scan": kl.scan(spark, log_dir, subscribe="orders").count(),
        "compacted": [result.status for result in compacted.results],
        "left": _numbers(kl.records(spark, copy, subscribe="orders"), "offset"),
    }


def others(spark: SparkSession, log_dir: str, work: str) -> dict[str, Any]:
    """Every other function that has rows of its own to tell."""
    views = kl.create_views(spark, log_dir)
    exports = [
        kl.export_to_delta(spark, log_dir, f"{work}/{mode}", mode=mode, subscribe="orders")
        for mode in ("append", "append", "merge")
    ]
    return {
        "batches": kl.batches(spark, log_dir).count(),
        "segments": kl.segments(spark, log_dir).count(),
        "partitions": kl.partitions(spark, log_dir).count(),
        "latest": _numbers(kl.latest_by_key(spark, log_dir, subscribe="orders"), "offset"),
        "gaps": _numbers(kl.gaps(spark, log_dir), "missingCount"),
        "keys": kl.key_stats(spark, log_dir).agg(F.sum("distinctKeys")).collect()[0][0],
        "views": len(set(views)) == len(views) > 20,
        "sql": spark.sql("SELECT count(*) FROM record_offsets").collect()[0][0],
        "exports": [done.rows for done in exports],
        "table": _numbers(spark.read.format("delta").load(f"{work}/append"), "offset"),
        "bars": kl.bytes_by_topic(spark, log_dir).count(),
        "points": kl.records_over_time(spark, log_dir, every="1 day").count(),
        "findings": kl.verify(spark, [log_dir], run_dir=f"{work}/runs").count(),
        "topics": len(kl.create_topic_views(spark, log_dir)),
        "deleted": [len(plan.deleted) for plan in _retention(spark, log_dir).plans],
        "streamed": _streamed(spark, log_dir, work),
    }


def _numbers(frame: DataFrame, column: str) -> list[int]:
    return sorted(row[0] for row in frame.select(column).collect())


def _retention(spark: SparkSession, log_dir: str) -> RetentionRun:
    config = ["cleanup.policy=delete", "retention.ms=-1", "retention.bytes=1"]
    return kl.retain(spark, [log_dir], topics=["orders"], config=config)


def _streamed(spark: SparkSession, log_dir: str, work: str) -> int:
    query = (
        spark.readStream.format("kafkalog")
        .load(log_dir)
        .writeStream.format("delta")
        .option("checkpointLocation", f"{work}/checkpoint")
        .trigger(availableNow=True)
        .start(f"{work}/streamed")
    )
    query.awaitTermination(300)
    return spark.read.format("delta").load(f"{work}/streamed").count()


def _session() -> SparkSession:
    builder = kl.configure_spark(SparkSession.builder.remote("local[2]"))
    for key, value in session_settings().items():
        builder = builder.config(key, value)
    return (
        builder.config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.databricks.delta.snapshotPartitions", "2")
        .getOrCreate()
    )


if __name__ == "__main__":
    main()
