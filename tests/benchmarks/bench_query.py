"""How does a scan of a log compare with Spark's own Kafka source, and with what Spark can take?

    python -m tests.benchmarks.bench_query [--records N] [--gib N] [--only WORD]

One JSON line. A broker is started on this machine and N records of 100 bytes are produced, once
uncompressed and once with lz4. On two cores, into the noop sink, all eight columns (headers too):

 kafka        Spark's Kafka source, from the broker
 source       format("kafkalog"), from the broker's log dir
 scan         kafkalog.spark.scan
 memory       a Python source that hands out the very batches of `source` from memory, which is
              what Spark takes at most
 narrow       offset and timestamp without checksums, by `source` and by `scan`; of the same files
              COPIES times, so that what a query costs whatever it reads does not count much
 headers      view `batches` with .schema("baseOffset long, recordsCount int") over N GiB of sparse
              headers: seconds, in a session that runs

All of them in turn, WARM_UPS rounds and then RUNS; figures are medians, in rows/s or seconds.
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
from functools import partial
from pathlib import Path

import pyarrow as pa
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

import kafkalog
from kafkalog.spark import configure_spark, records, register, scan
from tests.benchmarks.bench_scan import COLUMNS, run
from tests.benchmarks.machine import commit
from tests.benchmarks.side_by_side import fast_directory
from tests.support.broker import running_broker
from tests.support.spark_jars import KAFKA_SOURCE, ensure_spark_jars
from tests.support.sparse_log import GIB, KIB, SparseLog

RUNS = 5
WARM_UPS = 2
CODECS = ("none", "lz4")
TASKS = 4
COPIES = 8


class MemorySource(DataSource):
    """The batches of an Arrow file on /dev/shm, a share of them a task."""

    @classmethod
    def name(cls) -> str:
        return "memory_batches"

    def reader(self, schema: StructType) -> MemoryReader:
        return MemoryReader(self.options["path"], schema)


class MemoryReader(DataSourceReader):
    def __init__(self, path: str, schema: StructType) -> None:
        self.path, self.schema = path, schema

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(TASKS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from pyspark.sql.pandas.types import to_arrow_schema

        schema = to_arrow_schema(self.schema, timezone="UTC")
        with pa.memory_map(self.path) as memory, pa.ipc.open_file(memory) as file:
            for number in range(partition.value, file.num_record_batches, TASKS):
                batch = file.get_batch(number)
                yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def main() -> None:
    """Measure and print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--gib", type=int, default=10)
    parser.add_argument("--only", default="", help="runs whose name has this in it")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=fast_directory()) as scratch:
        with running_broker(Path(scratch) / "broker") as broker:
            for codec in CODECS:
                produce(broker.bootstrap_servers, codec, args.records)
            spark = session()
            peers = frames(spark, broker.bootstrap_servers, broker.log_dir, Path(scratch))
            peers["headers"] = headers(spark, Path(scratch) / "sparse", args.gib)
            found = measured({n: f for n, f in peers.items() if args.only in n})
            spark.stop()
    print(json.dumps(report(found, args.records, args.gib)))


def produce(servers: str, codec: str, count: int) -> None:
    """100-byte records with 24-byte keys, in batches of up to 64 KiB."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(codec, 2, 1)])[codec].result(60)
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "compression.codec": codec,
            "linger.ms": 50,
            "batch.size": 65536,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    value = b"%09d status=paid amount=17.50 currency=EUR customer=9 address=none note=---"
    for number in range(count):
        while True:
            try:
                producer.produce(codec, value % number, b"key-%020d" % (number % (count // 4 + 1)))
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    producer.flush()


def session() -> SparkSession:
    """local[2] with Spark's Kafka source."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        configure_spark(SparkSession.builder, master="local[2]")
        .config("spark.jars", ",".join(map(str, ensure_spark_jars(KAFKA_SOURCE))))
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    spark.dataSource.register(MemorySource)
    return spark


def frames(
    spark: SparkSession, servers: str, log_dir: Path, scratch: Path
) -> dict[str, Callable[[], None]]:
    """What is run, by name and codec."""
    made: dict[str, DataFrame] = {}
    for codec in CODECS:
        kafka = spark.read.format("kafka").option("kafka.bootstrap.servers", servers)
        kafka = kafka.option("subscribe", codec).option("includeHeaders", "true")
        path, everything = str(log_dir), {"subscribe": codec, "includeHeaders": "true"}
        made[f"kafka {codec}"] = kafka.option("startingOffsets", "earliest").load()
        made[f"source {codec}"] = records(spark, path, **everything)
        made[f"scan {codec}"] = scan(spark, path, **everything)
    batches = scratch / "batches.arrow"
    write_batches(log_dir, batches)
    memory = spark.read.format("memory_batches").schema(made["source none"].schema)
    made["memory none"] = memory.load(str(batches))
    narrow = {"subscribe": "none", "columns": "offset,timestamp", "verifyChecksums": "false"}
    longer = str(linked(log_dir, scratch / "longer"))
    made["narrow source"] = records(spark, longer, **narrow)
    made["narrow scan"] = scan(spark, longer, **narrow)
    return {name: partial(run, frame) for name, frame in made.items()}


def linked(log_dir: Path, target: Path) -> Path:
    """A log dir with the partitions of the uncompressed topic, each COPIES times."""
    for number, source in enumerate(sorted(log_dir.glob("none-*")) * COPIES):
        partition = target / f"none-{number}"
        partition.mkdir(parents=True)
        for path in source.glob("*.log"):
            (partition / path.name).hardlink_to(path)
    return target


def write_batches(log_dir: Path, path: Path) -> None:
    """The batches of the uncompressed topic as the reader makes them."""
    directories = sorted(log_dir.glob("none-*"))
    found = [kafkalog.read_records(directory, columns=COLUMNS) for directory in directories]
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, found[0].schema) as target:
        for reader in found:
            for batch in reader:
                target.write_batch(batch)


def headers(spark: SparkSession, log_dir: Path, gib: int) -> Callable[[], None]:
    log = SparseLog(log_dir, "sparse-0")
    for _ in range(gib):
        log.fill(64 * KIB, GIB // (64 * KIB))
    log.write_checkpoints()
    reader = spark.read.format("kafkalog").option("view", "batches")
    return partial(run, reader.schema("baseOffset long, recordsCount int").load(str(log_dir)))


def measured(peers: dict[str, Callable[[], None]]) -> dict[str, float]:
    """Median seconds of each, in turn with all the others."""
    seconds: dict[str, list[float]] = {name: [] for name in peers}
    for number in range(WARM_UPS + RUNS):
        for name, work in peers.items():
            started = time.perf_counter()
            work()
            if number >= WARM_UPS:
                seconds[name].append(time.perf_counter() - started)
    return {name: statistics.median(found) for name, found in seconds.items()}


def report(found: dict[str, float], count: int, gib: int) -> dict[str, object]:
    result: dict[str, object] = {"bench": "query", "records": count, "gib": gib, "runs": RUNS}
    for name, seconds in found.items():
        if name == "headers":
            result["headers_s"] = round(seconds, 2)
        else:
            rows = count * COPIES if name.startswith("narrow") else count
            result[f"{name.replace(' ', '_')}_rows_per_s"] = round(rows / seconds)
    for name in ("source", "scan"):
        for codec in CODECS:
            if {f"kafka {codec}", f"{name} {codec}"} <= found.keys():
                times = found[f"kafka {codec}"] / found[f"{name} {codec}"]
                result[f"{name}_{codec}_times_kafka"] = round(times, 2)
        if {"memory none", f"{name} none"} <= found.keys():
            share = found["memory none"] / found[f"{name} none"]
            result[f"{name}_of_memory"] = round(share, 2)
    result |= {"cores": 2, "load": round(os.getloadavg()[0], 1), "machine": platform.machine()}
    return {**result, "commit": commit()}


if __name__ == "__main__":
    main()
