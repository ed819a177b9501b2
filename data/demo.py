"""The main job on the samples, in five sections: `make demo`.

Reads logs that a real broker wrote, queries them with SQL, plans a compaction, compacts a copy on
Spark, and proves the result equal to what Kafka's own cleaner made of the same log. Exit code 0 if
every check holds. Nothing below `data/samples` is changed.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from data.copy_samples import SAMPLES, copy_sample, read_manifest
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.spark import batches, compact, configure_spark, records, segments

BROKER = SAMPLES / "broker"
BEFORE = SAMPLES / "cleaning" / "before"
AFTER = SAMPLES / "cleaning" / "after"
# The settings were altered after this copy was taken: they are not those of its metadata log.
FORCE = ["config-differs"]
STARTED = time.monotonic()

COUNTS = """
SELECT topic, count(*) AS records, count(DISTINCT key) AS keys,
       count_if(value IS NULL) AS tombstones
FROM {prefix}records WHERE topic IN ('accounts', 'sessions') GROUP BY topic ORDER BY topic
"""
LOG_BYTES = """
SELECT topic, count(*) AS segments, sum(sizeInBytes) AS bytes
FROM {prefix}segments WHERE state = 'live' AND topic IN ('accounts', 'sessions')
GROUP BY topic ORDER BY topic
"""
# The last value of every key, as a consumer that reads from the start would have it.
LATEST = """
SELECT topic, hex(key), hex(max_by(value, offset)) FROM {prefix}records
WHERE topic IN ('accounts', 'sessions') GROUP BY topic, key
"""
# A batch without what a compressor of another make may do differently.
BATCH_FACTS = """
SELECT topic, partition, baseOffset, lastOffset, recordsCount, baseTimestampMs, maxTimestampMs,
       codec, producerId, producerEpoch, baseSequence, lastSequence, deleteHorizonMs
FROM {prefix}batches WHERE topic IN ('accounts', 'sessions')
"""
RECORD_FACTS = """
SELECT topic, partition, offset, timestamp, hex(key), hex(value), to_json(headers)
FROM {prefix}records WHERE topic IN ('accounts', 'sessions')
"""


def main() -> int:
    spark = session()
    failed = run(spark)
    spark.stop()
    print(f"\nDone in {time.monotonic() - STARTED:.0f} s: ", end="")
    print(f"{failed} checks failed." if failed else "every check holds.")
    return 1 if failed else 0


def run(spark: SparkSession) -> int:
    """The five sections; returns how many checks of the last one do not hold."""
    with tempfile.TemporaryDirectory(prefix="kafkalog-demo-") as scratch:
        show_segments(spark)
        show_queries(spark)
        copy = copy_sample("cleaning/before", Path(scratch) / "logs")
        show_plan(spark, copy)
        show_compaction(spark, copy)
        return show_verification(spark, copy)


def session() -> SparkSession:
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = configure_spark(SparkSession.builder.master("local[2]").appName("kafkalog demo"))
    spark = (
        builder.config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def section(number: int, title: str) -> None:
    print(
        f"\n== {number}. {title} ".ljust(100, "=") + f" {time.monotonic() - STARTED:.0f} s\n",
        flush=True,
    )


def views(spark: SparkSession, log_dir: Path, prefix: str) -> None:
    """Temporary views PREFIX_records, PREFIX_batches and PREFIX_segments."""
    found = {
        "records": records(spark, str(log_dir), includeHeaders="true"),
        "batches": batches(spark, str(log_dir), verifyChecksums="true"),
        "segments": segments(spark, str(log_dir)),
    }
    for name, frame in found.items():
        frame.createOrReplaceTempView(f"{prefix}_{name}")


def show(spark: SparkSession, query: str, **names: str) -> None:
    spark.sql(query.format(**names)).show(40, truncate=60)


def show_segments(spark: SparkSession) -> None:
    section(1, f"Segments as a table: {BROKER.relative_to(SAMPLES.parents[1])}")
    views(spark, BROKER, "broker")
    show(
        spark,
        """
        SELECT topic, partition, baseOffset, nextOffset, recordsCount AS records,
               batchesCount AS batches, sizeInBytes AS bytes, isActive AS active, state
        FROM broker_segments
        WHERE topic IN ('orders', 'codec-zstd', 'compacted', 'transactions', 'removed')
        ORDER BY topic, partition, baseOffset, state DESC
        """,
    )


def show_queries(spark: SparkSession) -> None:
    section(2, "SQL over records and batches")
    show(
        spark,
        """
        SELECT get_json_object(cast(value AS STRING), '$.status') AS status, count(*) AS orders,
               round(sum(get_json_object(cast(value AS STRING), '$.amount')), 2) AS amount,
               count(DISTINCT key) AS customers, min(timestamp) AS first, max(timestamp) AS last
        FROM broker_records WHERE topic = 'orders' GROUP BY status ORDER BY orders DESC
        """,
    )
    show(
        spark,
        """
        SELECT codec, count(*) AS batches, sum(recordsCount) AS records, sum(sizeInBytes) AS bytes,
               round(sum(sizeInBytes) / sum(recordsCount), 1) AS bytesPerRecord,
               count(DISTINCT producerId) AS producers, count_if(isTransactional) AS transactional
        FROM broker_batches GROUP BY codec ORDER BY codec
        """,
    )


def show_plan(spark: SparkSession, copy: Path) -> None:
    section(3, "The compaction plan (nothing is changed)")
    cleaning = read_manifest()["cleaning"]
    now_ms = max(cleaning["nowMs"].values())
    print("As the cluster's own metadata has it, which kept the cleaner away from these topics:\n")
    for plan in compact(spark, [str(copy)], now_ms=now_ms).plans:
        print(plan.explain())
    print("\nWith the settings the broker's cleaner was given next:\n")
    run = compact(spark, [str(copy)], config=settings(cleaning), now_ms=now_ms, force=FORCE)
    for plan in run.plans:
        print(plan.explain())


def show_compaction(spark: SparkSession, copy: Path) -> None:
    section(4, "Compaction of a copy on Spark, before and after")
    cleaning = read_manifest()["cleaning"]
    views(spark, BEFORE, "before")
    show(spark, COUNTS, prefix="before_")
    show(spark, LOG_BYTES, prefix="before_")
    # The broker's cleaner read its clock once per partition; for equal bytes so do we.
    for name, now_ms in cleaning["nowMs"].items():
        topic, _, partition = name.rpartition("-")
        run = compact(
            spark,
            [str(copy)],
            topics=[topic],
            topic_partitions=[TopicPartition(topic, int(partition))],
            config=settings(cleaning),
            now_ms=now_ms,
            force=FORCE,
            apply=True,
        )
        for result in run.results:
            stats = result.stats
            print(
                f"{name}: {result.status} {result.reason} {stats.records_read} records to "
                f"{stats.records_retained}, {stats.bytes_before} bytes to {stats.bytes_after}; "
                f"{stats.superseded} superseded"
            )
    print()
    views(spark, copy, "copy")
    show(spark, COUNTS, prefix="copy_")
    show(spark, LOG_BYTES, prefix="copy_")


def show_verification(spark: SparkSession, copy: Path) -> int:
    """Prints one line per check; returns how many do not hold."""
    section(5, "Verification, with what Kafka's own cleaner wrote")
    views(spark, AFTER, "kafka")
    checks = {
        "every batch's checksum agrees": spark.table("copy_batches")
        .where("isValid IS NULL OR NOT isValid")
        .isEmpty(),
        "every key has the value it had": same(spark, LATEST, "before_"),
        "the records are those Kafka's cleaner kept": same(spark, RECORD_FACTS, "kafka_"),
        "the batches are those Kafka's cleaner wrote": same(spark, BATCH_FACTS, "kafka_"),
        "accounts: all files byte for byte Kafka's": not different_files(copy, "accounts-"),
        "the cleaner's checkpoint is Kafka's": checkpoint(copy) == checkpoint(AFTER),
        "a second run finds nothing to do": is_clean(spark, copy),
    }
    for text, holds in checks.items():
        print(f"  {'yes' if holds else 'NO '}  {text}")
    return sum(not holds for holds in checks.values())


def same(spark: SparkSession, query: str, prefix: str) -> bool:
    """Whether the query gives the same rows for the copy and for `prefix`, each as often."""
    ours, theirs = (
        Counter(map(tuple, spark.sql(query.format(prefix=name)).collect()))
        for name in ("copy_", prefix)
    )
    return bool(ours) and ours == theirs


def different_files(copy: Path, prefix: str) -> list[str]:
    """Files of the copy that differ from Kafka's; the epochs of its restart are not the cleaner's
    work, and what either keeps of the replaced files is no part of the log."""
    names = {
        path.relative_to(root).as_posix()
        for root in (copy, AFTER)
        for path in cleaned_files(root, prefix)
    }
    return [name for name in sorted(names) if content(copy / name) != content(AFTER / name)]


def cleaned_files(root: Path, prefix: str) -> Iterator[Path]:
    for path in root.glob(f"{prefix}*/*"):
        if path.suffix not in (".deleted", ".undo") and path.name != "leader-epoch-checkpoint":
            yield path


def content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def checkpoint(root: Path) -> list[str]:
    return sorted((root / "cleaner-offset-checkpoint").read_text().splitlines())


def is_clean(spark: SparkSession, copy: Path) -> bool:
    cleaning = read_manifest()["cleaning"]
    now_ms = max(cleaning["nowMs"].values())
    run = compact(
        spark,
        [str(copy)],
        topics=cleaning["topics"],
        config=settings(cleaning),
        now_ms=now_ms,
        force=FORCE,
        apply=True,
    )
    return bool(run.plans) and not run.results


def settings(cleaning: dict[str, Any]) -> list[str]:
    return [f"{key}={value}" for key, value in cleaning["config"].items()]


if __name__ == "__main__":
    sys.exit(main())
