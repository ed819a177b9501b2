"""How many records a second does a scan through Spark take, with all eight columns of Spark's Kafka
source?

    python -m tests.benchmarks.bench_scan [--records N] [--log-dir DIR] [--peer]

One JSON line: rows/s and bytes/s of the decode alone (one process, one core), of
`format("kafkalog")` and of `kafkalog.spark.scan` into the noop sink on local[2], medians of five
rounds after three that warm up; with --peer as many rows of the same schema, nullability included,
by a source that hands out one ready-made Arrow batch again and again, which is what Spark itself
costs. All take turns in each round, the shares of the peer's rate are medians of the rounds, and
beside them stand the seconds of CPU of the JVM and of the Python workers.
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
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

import kafkalog
from kafkalog.spark import configure_spark, records, scan
from tests.benchmarks.bench_sql import cpu_with_children
from tests.benchmarks.generate import LogSpec, write_log
from tests.benchmarks.machine import commit

COLUMNS = "key value topic partition offset timestamp timestampType headers".split()
RUNS = 5
WARM_UPS = 3
TASKS = 4  # of the peer


class ReadyMadeSource(DataSource):
    """Reads nothing: the floor of what any Python source costs."""

    @classmethod
    def name(cls) -> str:
        return "ready_made"

    def reader(self, schema: StructType) -> ReadyMadeReader:
        return ReadyMadeReader(dict(self.options), schema)


class ReadyMadeReader(DataSourceReader):
    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self.path = options["path"]
        self.rows = int(options["rows"]) // TASKS
        self.schema = schema

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(i) for i in range(TASKS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from pyspark.sql.pandas.types import to_arrow_schema

        with pa.OSFile(self.path) as file:
            batch = pa.ipc.open_stream(file).read_next_batch()
        schema = to_arrow_schema(self.schema, timezone="UTC")
        ready = pa.RecordBatch.from_arrays(batch.columns, schema=schema)
        for _ in range(self.rows // ready.num_rows):
            yield ready
        yield ready.slice(0, self.rows % ready.num_rows)


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
    decode = statistics.median(seconds_of(lambda: drain(log_dir)) for _ in range(3))
    spark = session()
    frames = {
        "source": records(spark, str(log_dir), includeHeaders="true"),
        "scan": scan(spark, str(log_dir), includeHeaders="true"),
    }
    if with_peer:
        spark.dataSource.register(ReadyMadeSource)
        frames["ready_made"] = peer_frame(spark, log_dir, scratch, rows, frames["source"].schema)
    taken = in_turn(frames)
    spark.stop()
    result: dict[str, object] = {
        "bench": "scan",
        "records": rows,
        "bytes": size,
        "decode_rows_per_s": round(rows / decode),
        "decode_bytes_per_s": round(size / decode),
    }
    for name, runs in taken.items():
        seconds, jvm, python = (statistics.median(each) for each in zip(*runs, strict=True))
        result[f"{name}_rows_per_s"] = round(rows / seconds)
        result[f"{name}_cpu_seconds"] = {"jvm": round(jvm, 2), "python": round(python, 2)}
        if with_peer and name != "ready_made":
            pairs = zip(runs, taken["ready_made"], strict=True)
            share = statistics.median(peer[0] / ours[0] for ours, peer in pairs)
            result[f"{name}_share_of_ready_made"] = round(share, 2)
    return {
        **result,
        "cores": 2,
        "load": round(os.getloadavg()[0], 1),
        "machine": platform.machine(),
        "commit": commit(),
    }


def in_turn(frames: dict[str, DataFrame]) -> dict[str, list[tuple[float, float, float]]]:
    """Of each round behind those that warm up caches, workers and the JVM's compiler, which is not
    done with Spark's row code before some ten million rows: seconds, and CPU of JVM and Python."""
    taken: dict[str, list[tuple[float, float, float]]] = {name: [] for name in frames}
    for number in range(WARM_UPS + RUNS):
        for name, frame in frames.items():
            jvm, python = cpu_seconds()
            seconds = seconds_of(lambda frame=frame: run(frame))  # type: ignore[misc]
            jvm_then, python_then = cpu_seconds()
            if number >= WARM_UPS:
                taken[name].append((seconds, jvm_then - jvm, python_then - python))
    return taken


def cpu_seconds() -> tuple[float, float]:
    """So far, of the JVM and of its Python processes."""
    jvm = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            name, _, rest = path.read_text().partition("(")[2].rpartition(")")
            fields = rest.split()
            if name == "java" and int(fields[1]) == os.getpid():
                jvm += int(fields[11]) + int(fields[12])
    seconds = jvm / os.sysconf("SC_CLK_TCK")
    return seconds, cpu_with_children() - seconds - time.process_time()


def peer_frame(
    spark: SparkSession, log_dir: Path, scratch: Path, rows: int, schema: StructType
) -> DataFrame:
    """As many rows, in Arrow batches as the log's first, which most are as large as."""
    batch = next(iter(kafkalog.read_records(log_dir, columns=COLUMNS)))
    path = scratch / "batch.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, batch.schema) as stream:
        stream.write_batch(batch)
    options = {"rows": str(rows)}
    return spark.read.format("ready_made").schema(schema).options(**options).load(str(path))


def drain(log_dir: Path) -> None:
    for _ in kafkalog.read_records(log_dir, columns=COLUMNS):
        pass


def run(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def seconds_of(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def session() -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = configure_spark(SparkSession.builder, master="local[2]")
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
