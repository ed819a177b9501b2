"""How long does it take to rebuild the indexes and producer snapshots of a log, against Kafka's own
loader recovering the same log, as whole processes?

    python -m tests.benchmarks.bench_recover [--records 24000000] [--rounds 5] [--core 0]

One generated partition whose indexes are empty. In alternating runs on one core (`taskset`) ours is
`kafkalog recover --apply --workers 1`, Kafka's is its loader from the jars after an unclean stop,
recovery point 0; both check every batch's CRC and sync what they write. Before each run the indexes
are emptied again. Prints one JSON line: medians of wall and CPU seconds, MB/s,
and whether both wrote the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.side_by_side import (
    Cost,
    circumstances,
    fast_directory,
    median,
    run_measured,
    times_faster,
)
from tests.oracle.setup import ensure_oracle

NAME = "bench-0"
MADE = (".index", ".timeindex", ".txnindex", ".snapshot")


def our_command(log_dir: Path, now_ms: int) -> list[str]:
    command = [sys.executable, "-m", "kafkalog", "recover", "--log-dir", str(log_dir)]
    command += ["--run-dir", f"{log_dir}-runs"]
    return [*command, "--topic", "bench", "--apply", "--workers", "1", "--now", str(now_ms)]


def kafka_command(log_dir: Path, now_ms: int) -> list[str]:
    runtime = ensure_oracle()
    command = [str(runtime.java), "-Xmx1g", "-XX:+UseSerialGC", "-cp", runtime.class_path]
    command += ["oracle.Main", "recover", "--log-dir", str(log_dir), "--topic-partition", NAME]
    return [*command, "--now", str(now_ms), "--config", "segment.bytes=268435456"]


def take_made(directory: Path) -> str:
    """Empty the indexes and remove the snapshots of a run; a digest of them.

    Were an index missing, Kafka's loader would read that segment twice.
    """
    digest = hashlib.sha256()
    for path in sorted(directory.iterdir()):
        if path.suffix in MADE:
            digest.update(path.name.encode() + path.read_bytes())
            if path.suffix == ".snapshot":
                path.unlink()
            else:
                os.truncate(path, 0)
    return digest.hexdigest()


def main() -> None:
    """Generate, run in turn, print."""
    parser = argparse.ArgumentParser(description="Rebuilding indexes against Kafka's loader.")
    parser.add_argument("--records", type=int, default=24_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--core", default="0")
    parser.add_argument("--dir", type=Path, default=None, help="where to work (default: memory)")
    args = parser.parse_args()
    now_ms = time.time_ns() // 1_000_000
    costs: dict[str, list[Cost]] = {"kafkalog": [], "kafka": []}
    made: dict[str, set[str]] = {"kafkalog": set(), "kafka": set()}
    with tempfile.TemporaryDirectory(dir=args.dir or fast_directory()) as work:
        log_dir = Path(work, "log")
        log_dir.mkdir()
        command = [sys.executable, "-m", "tests.benchmarks.generate", str(log_dir)]
        command += ["--records", str(args.records), "--keys", str(args.records // 4)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        directory = log_dir / NAME
        log_bytes = sum(path.stat().st_size for path in directory.glob("*.log"))
        take_made(directory)
        for _ in range(args.rounds):
            for who, command_of in (("kafkalog", our_command), ("kafka", kafka_command)):
                costs[who].append(run_measured(command_of(log_dir, now_ms), args.core))
                made[who].add(take_made(directory))
                (directory / "leader-epoch-checkpoint").unlink(missing_ok=True)
        shutil.rmtree(log_dir)
    ours, kafkas = costs["kafkalog"], costs["kafka"]
    speed = {
        who: round(log_bytes / 1e6 / statistics.median(cost.wall_seconds for cost in each))
        for who, each in costs.items()
    }
    result = {
        "bench": "recover",
        "log_bytes": log_bytes,
        "rounds": args.rounds,
        "kafkalog": median(ours),
        "kafka": median(kafkas),
        "megabytes_per_second": speed,
        "times_faster": times_faster(ours, kafkas),
        "same_bytes": made["kafkalog"] == made["kafka"] and len(made["kafka"]) == 1,
        **circumstances(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
