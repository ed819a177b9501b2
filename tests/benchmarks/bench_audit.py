"""How long does an audit of a whole cluster's disk take, and how much memory has a worker?

    python -m tests.benchmarks.bench_audit [--topics 500] [--partitions 10] [--segments 10]
                                           [--workers 2] [--dir DIR]

Each segment is a sparse file of 1 MiB: 16 batches of 64 KiB with real headers and right checksums,
holes for records, both indexes. The audit is `kafkalog audit --json` as a whole process, with the
files in the page cache. Prints one JSON line: seconds of wall time and of CPU (all processes), the
largest resident size of any of them, and what was audited.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kafkalog.format import checkpoints
from tests.benchmarks.side_by_side import fast_directory
from tests.support.sparse_log import KIB, SparseLog

BATCHES, BATCH_BYTES = 16, 64 * KIB


def generate(
    log_dir: Path, topics: int, partitions: int, segments: int, batches: int = BATCHES
) -> int:
    """One partition is built, the others are copies of it; returns how many there are."""
    first = SparseLog(log_dir, "topic0-0")
    for _ in range(segments):
        first.fill(BATCH_BYTES, batches)
    names = [(f"topic{t}", p) for t in range(topics) for p in range(partitions)]
    for topic, partition in names[1:]:
        copy = log_dir / f"{topic}-{partition}"
        copy.mkdir()
        for file in first.path.iterdir():
            if file.suffix == ".log":
                _copy_headers(file, copy / file.name, batches)
            else:
                shutil.copy2(file, copy / file.name)
    for name in (checkpoints.HIGH_WATERMARK_FILE, checkpoints.RECOVERY_POINT_FILE):
        lines = dict.fromkeys(names, first.next_offset)
        (log_dir / name).write_bytes(checkpoints.pack_offset_checkpoint(lines))
    return len(names)


def _copy_headers(source: Path, target: Path, batches: int) -> None:
    """The same holes."""
    with source.open("rb") as original, target.open("wb") as file:
        for number in range(batches):
            original.seek(number * BATCH_BYTES)
            file.seek(number * BATCH_BYTES)
            file.write(original.read(61))
        file.truncate(batches * BATCH_BYTES)


def measure(log_dir: Path, workers: int) -> dict[str, object]:
    """One audit as a process of its own."""
    command = [sys.executable, "-m", "kafkalog", "audit", "--log-dir", str(log_dir), "--json"]
    command += ["--config", "cleanup.policy=delete", "--workers", str(workers)]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    out = log_dir.parent / "audit.json"
    with out.open("wb") as file:
        done = subprocess.run(command, stdout=file, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise SystemExit(f"the audit ended with {done.returncode}")
    document = json.loads(out.read_bytes())
    return {
        "wallSeconds": round(time.monotonic() - started, 2),
        "cpuSeconds": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2),
        "peakMiB": after.ru_maxrss // 1024,
        "documentMiB": round(out.stat().st_size / 2**20, 1),
        "totals": document["totals"],
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    for flag, default in (("topics", 500), ("partitions", 10), ("segments", 10), ("workers", 2)):
        parser.add_argument(f"--{flag}", type=int, default=default)
    parser.add_argument("--dir", type=Path, default=None, help="where to work (default: memory)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.dir or fast_directory()) as work:
        log_dir = Path(work) / "data"
        log_dir.mkdir()
        generate(log_dir, args.topics, args.partitions, args.segments)
        measure(log_dir, args.workers)  # kernels compiled, files in the page cache
        result = measure(log_dir, args.workers)
    print(json.dumps({"benchmark": "audit", "workers": args.workers, **result}))


if __name__ == "__main__":
    main()
