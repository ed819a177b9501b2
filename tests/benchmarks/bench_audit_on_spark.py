"""How long does an audit of many log dirs take on Spark, and how long when nothing has changed?

    python -m tests.benchmarks.bench_audit_on_spark [--topics 500] [--partitions 10] [--segments 10]

Four log dirs of two brokers; each segment is a sparse file of three batches of 64 KiB with real
headers and right checksums, with its indexes. `kafkalog.spark.audit` in a session on two cores, in
a process of its own: the first run reads every header, the second one the history of the first; for
a third one, a day later, another segment of each partition is due, so all are judged again.
Prints one JSON line: of each run seconds of wall time beyond the session's start and of CPU
(driver, JVM and workers), the workers' peak resident size, and whether the first two documents say
the same.

The work directory is in memory unless --dir says otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from kafkalog.format import checkpoints, meta_properties
from kafkalog.format.checksum import crc32c
from kafkalog.format.file_names import log_file_name, offset_index_file_name, time_index_file_name
from kafkalog.format.offset_index import pack_offset_index
from kafkalog.format.record_batch import CRC_START, RecordBatchHeader, pack_header
from kafkalog.format.time_index import pack_time_index
from tests.benchmarks.side_by_side import fast_directory

BATCHES, BATCH_BYTES, RECORDS = 3, 64 * 1024, 100
DAY_MS = 86_400_000
NOW_MS = 1_750_000_000_000
# Before both runs, so that both say the same of when a broker was there last.
WRITTEN_NS = (NOW_MS - 60_000) * 1_000_000
LOG_DIRS = 4


def header(offset: int, timestamp_ms: int) -> bytes:
    """A batch header of RECORDS records whose bytes are zeros."""

    def packed(crc: int) -> bytes:
        return pack_header(
            RecordBatchHeader(
                base_offset=offset, batch_length=BATCH_BYTES - 12, partition_leader_epoch=0,
                magic=2, crc=crc, attributes=0, last_offset_delta=RECORDS - 1,
                base_timestamp=timestamp_ms, max_timestamp=timestamp_ms + RECORDS - 1,
                producer_id=-1, producer_epoch=-1, base_sequence=-1, records_count=RECORDS,
            )
        )  # fmt: skip

    body = packed(0)
    return packed(crc32c(body[CRC_START:] + bytes(BATCH_BYTES - len(body))))


def partition_files(segments: int) -> dict[str, tuple[list[bytes], bytes]]:
    """The files of a partition, which all have the same: headers of a log, or an index's bytes."""
    files: dict[str, tuple[list[bytes], bytes]] = {}
    for number in range(segments):
        base = number * BATCHES * RECORDS
        day_ms = NOW_MS - (segments - number) * DAY_MS
        offsets = [base + n * RECORDS for n in range(BATCHES)]
        files[log_file_name(base)] = ([header(o, day_ms + o) for o in offsets], b"")
        lasts = [offset + RECORDS - 1 for offset in offsets[1:]]
        positions = [n * BATCH_BYTES for n in range(1, BATCHES)]
        files[offset_index_file_name(base)] = ([], pack_offset_index(lasts, positions, base))
        times = pack_time_index([day_ms + last for last in lasts], lasts, base)
        files[time_index_file_name(base)] = ([], times)
    return files


def generate(root: Path, topics: int, partitions: int, segments: int) -> list[str]:
    """The log dirs."""
    files = partition_files(segments)
    ends: list[dict[tuple[str, int], int]] = [{} for _ in range(LOG_DIRS)]
    for topic in range(topics):
        for partition in range(partitions):
            place = (topic * partitions + partition) % LOG_DIRS
            path = root / f"data-{place}" / f"topic-{topic:04}-{partition}"
            path.mkdir(parents=True)
            for name, (headers, data) in files.items():
                with (path / name).open("wb") as file:
                    file.write(data)
                    for number, packed in enumerate(headers):
                        file.seek(number * BATCH_BYTES)
                        file.write(packed)
                    if headers:
                        file.truncate(BATCHES * BATCH_BYTES)
                os.utime(path / name, ns=(WRITTEN_NS, WRITTEN_NS))
            ends[place][f"topic-{topic:04}", partition] = segments * BATCHES * RECORDS
    for place, end in enumerate(ends):
        meta = meta_properties.MetaProperties(1, "5L6g3nShT-eMCtK--X86sw", place // 2, None)
        log_dir = root / f"data-{place}"
        (log_dir / meta_properties.META_PROPERTIES_FILE).write_bytes(
            meta_properties.pack_meta_properties(meta)
        )
        for name in (checkpoints.HIGH_WATERMARK_FILE, checkpoints.RECOVERY_POINT_FILE):
            (log_dir / name).write_bytes(checkpoints.pack_offset_checkpoint(end))
            os.utime(log_dir / name, ns=(WRITTEN_NS, WRITTEN_NS))
    return [str(root / f"data-{place}") for place in range(LOG_DIRS)]


class Processes(threading.Thread):
    """The processes below this one: CPU seconds of all, the peak resident size of any worker."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak_mib = 0.0
        self.is_done = False
        self._ticks: dict[int, int] = {}

    @property
    def cpu_seconds(self) -> float:
        """So far; what a process did after it was last looked at is lost."""
        self._look()
        return sum(self._ticks.values()) / os.sysconf("SC_CLK_TCK")

    def run(self) -> None:
        while not self.is_done:
            self._look()
            time.sleep(0.25)

    def _look(self) -> None:
        parents: dict[int, int] = {}
        ticks: dict[int, int] = {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            pid = int(path.parent.name)
            parents[pid], ticks[pid] = int(fields[1]), int(fields[11]) + int(fields[12])
        own = {os.getpid()}
        while more := {pid for pid, parent in parents.items() if parent in own} - own:
            own |= more
        for pid in own & ticks.keys():
            self._ticks[pid] = ticks[pid]
            self._look_at_worker(Path("/proc", str(pid)))

    def _look_at_worker(self, path: Path) -> None:
        try:
            if b"pyspark.daemon" in (path / "cmdline").read_bytes():
                lines = (path / "status").read_text().splitlines()
                peak = next(line for line in lines if line.startswith("VmHWM:"))
                self.peak_mib = max(self.peak_mib, int(peak.split()[1]) / 1024)
        except (OSError, StopIteration):
            return


def measure(log_dirs: list[str], run_dir: str) -> dict[str, Any]:
    """All runs, in this process."""
    from pyspark.sql import SparkSession

    from kafkalog.spark import audit, configure_spark

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = configure_spark(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    processes = Processes()
    processes.start()
    figures: dict[str, Any] = {}
    documents = []
    for name, later_ms in (("first", 0), ("second", 1), ("day_later", DAY_MS)):
        started, cpu = time.monotonic(), processes.cpu_seconds
        options: dict[str, Any] = {"run_dir": run_dir, "now_ms": NOW_MS + later_ms}
        done = audit(spark, log_dirs, config=["cleanup.policy=delete"], **options)
        figures[f"{name}_seconds"] = round(time.monotonic() - started, 2)
        figures[f"{name}_cpu_seconds"] = round(processes.cpu_seconds - cpu, 1)
        print(figures, file=sys.stderr, flush=True)
        documents.append(done.document)
    processes.is_done = True
    figures["worker_peak_mib"] = round(processes.peak_mib, 1)
    figures["segments"] = documents[0]["totals"]["segments"]
    same = ("totals", "topics", "partitions", "segments", "findings")
    figures["same"] = all(documents[0][part] == documents[1][part] for part in same)
    spark.stop()
    return figures


def main() -> None:
    """Generate, run three times, print."""
    parser = argparse.ArgumentParser(description="An audit of many partitions on Spark.")
    parser.add_argument("--topics", type=int, default=500)
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--segments", type=int, default=10)
    parser.add_argument("--dir", type=Path, default=None, help="where to work (default: memory)")
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measure(args.measure[1:], args.measure[0])))
        return
    with tempfile.TemporaryDirectory(dir=args.dir or fast_directory()) as work:
        log_dirs = generate(Path(work), args.topics, args.partitions, args.segments)
        command = [sys.executable, "-m", "tests.benchmarks.bench_audit_on_spark", "--measure"]
        done = subprocess.run(
            [*command, f"{work}/runs", *log_dirs], stdout=subprocess.PIPE, text=True, check=True
        )
        figures = json.loads(done.stdout.splitlines()[-1])
        result = {
            "bench": "audit_on_spark",
            "topics": args.topics,
            "partitions": args.partitions * args.topics,
        }
        print(json.dumps(result | figures | {"load": round(os.getloadavg()[0], 1)}))


if __name__ == "__main__":
    main()
