"""How fast is a log verified, against Kafka's DumpLogSegments --deep-iteration on the same files?

    python -m tests.benchmarks.bench_verify [--records 8000000] [--rounds 3]
    [--codec none zstd]

Both read files from the page cache, in turn, on one core (`taskset`), as whole processes. Ours is
`kafkalog verify`: checksums, every record's structure, order, indexes. Kafka's tool checks less and
is slower, so it is given one segment. Prints one JSON line with medians:

 verify            bytes a second of wall time and of CPU time, whole process
 verify_reading    the same without the start: one segment after the other in this process
 codec_alone       of zstd or lz4: bytes of log a second that the codec alone takes, the same blocks
                   handed to it in the same order; and which part of that verify_reading reaches
 scan_headers      bytes of log a second whose batch headers are read, without and with the columns
                   of view `batches`
 dump_log_segments Kafka's tool, whole process and without the start of its JVM
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np

import kafkalog
from kafkalog.checking.segment import CHUNK_BYTES, check_segment, segment_task
from kafkalog.format.constants import (
    MAX_BATCH_BYTES,
    MAX_INT64,
    RECORD_BATCH_OVERHEAD,
    CompressionType,
)
from kafkalog.kernels.single_blocks import find_single_blocks
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.segment_file import ChunkBuffers, read_chunks
from kafkalog.log.segment_headers import scan_headers
from kafkalog.native.codec_batches import decompress_batches
from tests.benchmarks.side_by_side import Cost, circumstances, fast_directory, run_measured
from tests.oracle.setup import ensure_oracle

CORE = "0"
Seconds: TypeAlias = tuple[float, float]
# More than a chunk of these logs makes: they halve or so.
_DECOMPRESSED_BYTES = 64 << 20
# Kafka's tool is given this little of a segment to find out what its start takes.
_TINY_BYTES = 100_000


def our_command(log_dir: Path, run_dir: Path) -> list[str]:
    command = [sys.executable, "-m", "kafkalog", "verify", "--log-dir", str(log_dir)]
    return [*command, "--workers", "1", "--run-dir", str(run_dir)]


def kafka_command(log: Path) -> list[str]:
    runtime = ensure_oracle()
    java = [str(runtime.java), "-XX:+UseSerialGC", "-cp", runtime.class_path]
    return [
        *java,
        "org.apache.kafka.tools.DumpLogSegments",
        "--deep-iteration",
        "--files",
        str(log),
    ]


def seconds_of(call: Callable[[], object]) -> Seconds:
    """Wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def codec_seconds(paths: list[str], codec: CompressionType, buffers: ChunkBuffers) -> Seconds:
    """Wall and CPU seconds in the codec, for all batches of these files; reading and finding the
    blocks is not counted."""
    wall, cpu, out = 0.0, 0.0, np.zeros(_DECOMPRESSED_BYTES, np.uint8)
    for path in paths:
        for chunk in read_chunks(path, chunk_bytes=CHUNK_BYTES, buffers=buffers):
            starts = chunk.rows["position"] - chunk.position + RECORD_BATCH_OVERHEAD
            ends = starts - RECORD_BATCH_OVERHEAD + chunk.rows["size_in_bytes"]
            codecs = np.full(starts.size, codec, np.int64)
            firsts, lasts, rooms = np.empty((3, starts.size), np.int64)
            find_single_blocks(
                chunk.buf, codecs, starts, ends, MAX_BATCH_BYTES, firsts, lasts, rooms
            )
            edges = np.empty(starts.size + 1, np.int64)
            arguments = (chunk.buf, codecs, firsts, lasts, rooms, 0, out, 0, MAX_INT64, edges)
            began, began_cpu = time.perf_counter(), time.process_time()
            done = decompress_batches(*arguments)
            wall, cpu = wall + time.perf_counter() - began, cpu + time.process_time() - began_cpu
            assert done == starts.size, f"batch {done} of {path} is not one block"
    return wall, cpu


def rates(size: int, costs: list[Seconds]) -> dict[str, float]:
    """GB a second, of the medians."""
    wall, cpu = (statistics.median(each) for each in zip(*costs, strict=True))
    return {
        "gb_per_second": round(size / wall / 1e9, 3),
        "gb_per_cpu_second": round(size / cpu / 1e9, 3),
    }


def main() -> None:
    """Generate, run in turn, print."""
    parser = argparse.ArgumentParser(description="Verification against DumpLogSegments.")
    parser.add_argument("--records", type=int, default=8_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--codec", nargs="+", default=["none", "zstd"])
    parser.add_argument("--dir", type=Path, default=None, help="where to work (default: memory)")
    args = parser.parse_args()
    for codec in args.codec:
        measure(codec, args)


def measure(codec: str, args: argparse.Namespace) -> None:
    """A line."""
    with tempfile.TemporaryDirectory(dir=args.dir or fast_directory()) as work:
        log_dir = Path(work, "logs")
        command = [sys.executable, "-m", "tests.benchmarks.generate", str(log_dir)]
        command += ["--records", str(args.records), "--segment-bytes", str(128 << 20)]
        subprocess.run([*command, "--codec", codec], check=True, stdout=subprocess.DEVNULL)
        (partition,) = open_log_dir(log_dir).partitions
        tasks = [segment_task(segment) for segment in partition.segments]
        paths = [task.path for task in tasks if task.size_in_bytes]
        size = partition.size_in_bytes
        first = Path(paths[0])
        tiny = Path(work, "tiny", first.name)
        tiny.parent.mkdir()
        tiny.write_bytes(first.read_bytes()[:_TINY_BYTES])
        buffers = ChunkBuffers()
        kind = CompressionType[codec.upper()]
        os.sched_setaffinity(0, {int(CORE)})
        ours: list[Cost] = []
        kafkas: list[Cost] = []
        starts: list[Cost] = []
        reading, scanning, viewing, decompressing = [], [], [], []
        for _ in range(args.rounds):
            # 1: it finds that a log dir alone has no metadata log.
            ours.append(run_measured(our_command(log_dir, Path(work, "runs")), CORE, (0, 1)))
            starts.append(run_measured(kafka_command(tiny), CORE))
            kafkas.append(run_measured(kafka_command(first), CORE))
            reading.append(seconds_of(lambda: [check_segment(task, buffers) for task in tasks]))
            if kind in (CompressionType.ZSTD, CompressionType.LZ4):
                decompressing.append(codec_seconds(paths, kind, buffers))
            scanning.append(seconds_of(lambda: [scan_headers(path) for path in paths]))
            viewing.append(seconds_of(lambda: kafkalog.read_batches(log_dir)))
        shutil.rmtree(log_dir)
    first_bytes = tasks[0].size_in_bytes
    whole = [(cost.wall_seconds, cost.cpu_seconds) for cost in kafkas]
    without_start = [
        (max(k.wall_seconds - s.wall_seconds, 1e-9), max(k.cpu_seconds - s.cpu_seconds, 1e-9))
        for k, s in zip(kafkas, starts, strict=True)
    ]
    of_codec: dict[str, object] = {}
    if decompressing:
        pairs = zip(decompressing, reading, strict=True)
        of_codec["codec_alone"] = rates(size, decompressing)
        of_codec["verify_reading_of_codec"] = round(
            statistics.median(c[1] / r[1] for c, r in pairs), 2
        )
    print(
        json.dumps(
            {
                "bench": "verify",
                "records": args.records,
                "codec": codec,
                "log_bytes": size,
                "rounds": args.rounds,
                "verify": rates(size, [(c.wall_seconds, c.cpu_seconds) for c in ours]),
                "verify_peak_mib": round(statistics.median(c.peak_mib for c in ours)),
                "verify_reading": rates(size, reading),
                **of_codec,
                "scan_headers": rates(size, scanning),
                "read_batches": rates(size, viewing),
                "dump_log_segments": rates(first_bytes, whole),
                "dump_log_segments_without_start": rates(first_bytes, without_start),
                **circumstances(),
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    main()
