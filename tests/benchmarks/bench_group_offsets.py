"""How long does it take to find the latest offset of every group in a large `__consumer_offsets`?

    python -m tests.benchmarks.bench_group_offsets [--records 20000000] [--keys 50000] [--spark]

One partition of 20 M commits over 50,000 group-topic-partitions, 2.3 GB, as a 4.1+ broker writes
them (value version 4 with topic ids, uncompressed batches of 60). One JSON line: seconds and CPU
seconds of the view `latest_offset_commits` in this process, one core; with --spark those of
`group_offsets` on local[2], the session's start not counted. The result is checked against what was
written.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

import kafkalog
from kafkalog.format.checksum import crc32c
from kafkalog.format.constants import RECORD_BATCH_OVERHEAD
from kafkalog.format.file_names import log_file_name
from kafkalog.format.record_batch import CRC_START, HEADER

BATCH_RECORDS = 60
SEGMENT_BATCHES = 14_000  # about 100 MB, the segment size of this topic
NOW_MS = 1_790_000_000_000
PARTITION = "__consumer_offsets-7"

RECORD = np.dtype(
    [
        ("length", "V2"), ("attributes", "u1"), ("timestamp_delta", "u1"), ("offset_delta", "u1"),
        ("key_length", "V2"), ("type", ">i2"),
        ("group_length", ">i2"), ("group_head", "S23"), ("group", "S5"),
        ("topic_length", ">i2"), ("topic_head", "S25"), ("topic", "S3"), ("partition", ">i4"),
        ("value_length", "u1"), ("version", ">i2"), ("offset", ">i8"), ("epoch", ">i4"),
        ("metadata", "u1"), ("commit_timestamp", ">i8"), ("tags", "V3"), ("topic_id", ">u8", 2),
        ("headers", "u1"),
    ]
)  # fmt: skip
KEY_BYTES = 66
VALUE_BYTES = 42


def varint(value: int) -> bytes:
    """Two bytes of a zigzag varint."""
    folded = value << 1
    return bytes([0x80 | folded & 0x7F, folded >> 7])


def write_commits(
    log_dir: Path, records: int, keys: int, segment_batches: int = SEGMENT_BATCHES
) -> NDArray[np.int64]:
    """Writes the log; the last offset committed to each key."""
    directory = log_dir / PARTITION
    directory.mkdir(parents=True)
    rng = np.random.default_rng(1)
    latest = np.full(keys, -1, np.int64)
    batches = records // BATCH_RECORDS
    for first in range(0, batches, segment_batches):
        count = min(segment_batches, batches - first)
        chosen = rng.integers(0, keys, count * BATCH_RECORDS)
        base_offset = first * BATCH_RECORDS
        offsets = base_offset + np.arange(chosen.size)
        latest[chosen] = offsets  # of repeated ones the last
        body = pack_records(chosen, offsets).view(np.uint8).reshape(count, -1)
        headers = np.zeros(count, HEADER)
        headers["base_offset"] = offsets[::BATCH_RECORDS]
        headers["batch_length"] = body.shape[1] + RECORD_BATCH_OVERHEAD - 12
        headers["magic"] = 2
        headers["last_offset_delta"] = BATCH_RECORDS - 1
        headers["base_timestamp"] = headers["max_timestamp"] = NOW_MS
        for name in ("producer_id", "producer_epoch", "base_sequence"):
            headers[name] = -1
        headers["records_count"] = BATCH_RECORDS
        whole = np.concatenate([headers.view(np.uint8).reshape(count, -1), body], axis=1)
        data = whole.tobytes()
        size = whole.shape[1]
        view = memoryview(data)
        headers["crc"] = [crc32c(view[b * size + CRC_START : (b + 1) * size]) for b in range(count)]
        whole[:, : HEADER.itemsize] = headers.view(np.uint8).reshape(count, -1)
        (directory / log_file_name(base_offset)).write_bytes(whole.tobytes())
    return latest


def pack_records(chosen: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.void]:
    """Records of version 4 commits, key number `chosen`: 100 partitions a group and topic."""
    group, partition = np.divmod(chosen, 100)
    records = np.zeros(chosen.size, RECORD)
    length = RECORD.itemsize - 2
    records["length"] = np.void(varint(length))
    records["offset_delta"] = 2 * (np.arange(chosen.size) % BATCH_RECORDS)
    records["key_length"] = np.void(varint(KEY_BYTES))
    records["type"], records["group_length"], records["topic_length"] = 1, 28, 28
    records["group_head"], records["topic_head"] = (
        b"application-consumers-g",
        b"events-of-the-application",
    )
    texts = np.array([b"%05d" % number for number in range(int(group.max()) + 1)])
    records["group"], records["topic"] = texts[group], b"007"
    records["partition"] = partition
    records["value_length"] = 2 * VALUE_BYTES
    records["version"], records["metadata"] = 4, 1
    records["offset"], records["commit_timestamp"] = offsets, NOW_MS
    records["tags"] = np.void(b"\x01\x00\x10")
    records["topic_id"] = (0x1122334455667788, 0x99AABBCCDDEEFF00)
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=20_000_000)
    parser.add_argument("--keys", type=int, default=50_000)
    parser.add_argument("--spark", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kafkalog-bench-") as name:
        latest = write_commits(Path(name), options.records, options.keys)
        size = sum(path.stat().st_size for path in Path(name).rglob("*.log"))
        started, cpu = time.perf_counter(), time.process_time()
        table = kafkalog.read_view("latest_offset_commits", name)
        seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu
        assert table.num_rows == int((latest >= 0).sum())
        assert pc.sum(table["offset"]).as_py() == int(latest[latest >= 0].sum())
        result = {
            "records": options.records, "keys": table.num_rows, "bytes": size,
            "seconds": round(seconds, 2), "cpuSeconds": round(cpu_seconds, 2),
        }  # fmt: skip
        if options.spark:
            result |= spark_seconds(name, table.num_rows)
    print(json.dumps(result))


def spark_seconds(log_dir: str, expected: int) -> dict[str, float]:
    """`group_offsets` to the driver, the session already there."""
    from pyspark.sql import SparkSession

    from kafkalog.spark import configure_spark, group_offsets

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    spark = configure_spark(builder).getOrCreate()
    spark.range(10).count()
    started, cpu = time.perf_counter(), cpu_seconds_of_children()
    rows = group_offsets(spark, log_dir).toArrow()
    seconds = time.perf_counter() - started
    cpu = cpu_seconds_of_children() - cpu
    assert rows.num_rows == expected
    spark.stop()
    return {"sparkSeconds": round(seconds, 2), "sparkCpuSeconds": round(cpu, 2)}


def cpu_seconds_of_children() -> float:
    """Of the JVM and its workers, as far as they live: what processes below this one have used."""
    parents: dict[int, int] = {}
    used: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # gone meanwhile
        parents[int(stat.parent.name)] = int(fields[1])
        used[int(stat.parent.name)] = sum(map(int, fields[11:15]))
    total = 0
    for process in used:
        above = process
        while above in parents and above != os.getpid():
            above = parents[above]
        total += used[process] if above == os.getpid() and process != os.getpid() else 0
    return total / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
