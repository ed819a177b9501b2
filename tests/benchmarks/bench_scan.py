"""How many records a second does a scan through Spark take, with all eight columns of Spark's Kafka
source?

    python -m tests.benchmarks.bench_scan [--records N] [--log-dir DIR] [--peer]

One JSON line: rows/s and bytes/s of the decode alone (one process, one core), of
`format("kafkalog")` and of `kafkalog.spark.scan` into the noop sink on local[2], the median of
three after three warm-ups; with --peer the same rows by a source that hands out one ready-made
Arrow batch again and again, which is what Spark itself costs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

import kafkalog
from kafkalog.spark import configure_spark, records, scan
from tests.benchmarks.generate import LogSpec, write_log
from tests.benchmarks.machine import commit

COLUMNS = "key value topic partition offset timestamp timestampType headers".split()
RUNS = 3
WARM_UPS = 3


class ReadyMadeSource(DataSource):
    """Reads nothing: the floor of what any Python source costs."""

    @classmethod
    def name(cls) -> str:
        return "ready_made"

    def schema(self) -> str:
        return (
            "key binary, value binary, topic string, partition int, offset long, timestamp"
            " timestamp, timestampType int, headers array<struct<key: string, value: binary>>"
        )

    def reader(self, schema: StructType) -> ReadyMadeReader:
        return ReadyMadeReader(dict(self.options), schema)


class ReadyMadeReader(DataSourceReader):
    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self.path = options["path"]
        self.batches = int(options["batches"])
        self.schema = schema

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(i) for i in range(4)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from pyspark.sql.pandas.types import to_arrow_schema

        with pa.OSFile(self.path) as file:
            batch = pa.ipc.open_stream(file).read_next_batch()
        schema = to_arrow_schema(self.schema, timezone="UTC")
        ready = pa.RecordBatch.from_arrays(batch.columns, schema=schema)
        yield from (ready for _ in range(self.batches // 4))


def main() -> None:
    """Measure and print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=8_000_000)
    parser.add_argument("--value-bytes", type=int, default=76, help="76: 100-byte records")
    parser.add_argument("--log-dir", type=Path, help="a log written before by generate.py")
    parser.add_argument("--peer", action="store_true", help="also a source that reads nothing")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        log_dir = args.log_dir or Path(scratch)
        if args.log_dir is None:
            spec = LogSpec(args.records, args.records // 4, value_bytes=args.value_bytes)
            write_log(log_dir, "bench", spec)
        print(json.dumps(measure(log_dir, Path(scratch), with_peer=args.peer)))


def measure(log_dir: Path, scratch: Path, *, with_peer: bool) -> dict[str, object]:
    size = sum(path.stat().st_size for path in log_dir.glob("*/*.log"))
    rows = sum(batch.num_rows for batch in kafkalog.read_records(log_dir, columns=["offset"]))
    decode = median_seconds(lambda: drain(log_dir))
    spark = session()
    frame = records(spark, str(log_dir), includeHeaders="true")
    source = median_seconds(lambda: run(frame))
    whole = scan(spark, str(log_dir), includeHeaders="true")
    scanned = median_seconds(lambda: run(whole))
    result: dict[str, object] = {
        "bench": "scan",
        "records": rows,
        "bytes": size,
        "decode_rows_per_s": round(rows / decode),
        "decode_bytes_per_s": round(size / decode),
        "source_rows_per_s": round(rows / source),
        "source_bytes_per_s": round(size / source),
        "scan_rows_per_s": round(rows / scanned),
        "scan_bytes_per_s": round(size / scanned),
        "cores": 2,
        "load": round(os.getloadavg()[0], 1),
        "machine": platform.machine(),
        "commit": commit(),
    }
    if with_peer:
        spark.dataSource.register(ReadyMadeSource)
        peer, peer_rows = peer_frame(spark, log_dir, scratch, rows)
        result["ready_made_rows_per_s"] = round(peer_rows / median_seconds(lambda: run(peer)))
    spark.stop()
    return result


def peer_frame(
    spark: SparkSession, log_dir: Path, scratch: Path, rows: int
) -> tuple[DataFrame, int]:
    """The first Arrow batch of the log, handed out about as often as the log has batches."""
    batch = next(iter(kafkalog.read_records(log_dir, columns=COLUMNS)))
    path = scratch / "batch.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, batch.schema) as stream:
        stream.write_batch(batch)
    batches = max(4, rows // batch.num_rows // 4 * 4)
    options = {"batches": str(batches)}
    frame = spark.read.format("ready_made").options(**options).load(str(path))
    return frame, batches * batch.num_rows


def drain(log_dir: Path) -> None:
    for _ in kafkalog.read_records(log_dir, columns=COLUMNS):
        pass


def run(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def median_seconds(work: Callable[[], None]) -> float:
    """The median of three after those that warm up caches, workers and the JVM's compiler, which
    is not done with Spark's row code before some ten million rows."""
    seconds = []
    for _ in range(WARM_UPS + RUNS):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[WARM_UPS:])


def session() -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = configure_spark(SparkSession.builder.master("local[2]"))
    spark = (
        builder.config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


if __name__ == "__main__":
    main()
