"""How long does retention of a log of many small segments take, against Kafka's own deletion?

    python -m tests.benchmarks.bench_retain [--segments 2000] [--rounds 3] [--core 0]

One partition, half of whose segments are past `retention.ms`. In turn on fresh copies and one core
(`taskset`), as whole processes: `kafkalog retain --apply` looks at every segment, plans, and
deletes; Kafka's log from the jars is opened after a clean stop and asked to delete what is old. The
plan alone is measured as well. Prints one JSON line: medians of wall and CPU seconds, and whether
the same segments are left.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
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
from tests.support.log_builder import START_MS
from tests.support.sparse_log import KIB, RECORDS, SparseLog

NAME = "bench-0"
BATCHES = 4


def generate(log_dir: Path, segments: int) -> tuple[int, str]:
    """One partition; the time at which half of it is too old, and the limit of that."""
    log = SparseLog(log_dir, NAME)
    for _ in range(segments):
        log.fill(4 * KIB, BATCHES)
    log.write_checkpoints()
    limit_ms = segments // 2 * BATCHES * RECORDS
    return START_MS + log.next_offset, f"retention.ms={limit_ms}"


def our_command(log_dir: Path, now_ms: int, limit: str) -> list[str]:
    command = [sys.executable, "-m", "kafkalog", "retain", "--log-dir", str(log_dir)]
    command += ["--topic", "bench", "--run-dir", f"{log_dir}-runs", "--now", str(now_ms)]
    return [*command, "--config", limit, "--config", "cleanup.policy=delete"]


def kafka_command(log_dir: Path, now_ms: int, limit: str) -> list[str]:
    runtime = ensure_oracle()
    command = [str(runtime.java), "-XX:+UseSerialGC", "-cp", runtime.class_path, "oracle.Main"]
    command += ["retain", "--log-dir", str(log_dir), "--topic-partition", NAME, "--hw", "leo"]
    return [*command, "--now", str(now_ms), "--config", limit, "--config", "cleanup.policy=delete"]


def segments_left(log_dir: Path) -> list[str]:
    return sorted(path.name for path in (log_dir / NAME).glob("*.log"))


def main() -> None:
    """Generate, run in turn, print."""
    parser = argparse.ArgumentParser(description="Retention against Kafka's own.")
    parser.add_argument("--segments", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--core", default="0")
    args = parser.parse_args()
    costs: dict[str, list[Cost]] = {"plan": [], "kafkalog": [], "kafka": []}
    left: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory(dir=fast_directory()) as work:
        source, copy = Path(work, "source"), Path(work, "copy")
        now_ms, limit = generate(source, args.segments)
        commands = {
            "plan": our_command(copy, now_ms, limit),
            "kafkalog": [*our_command(copy, now_ms, limit), "--apply"],
            "kafka": kafka_command(copy, now_ms, limit),
        }
        for _ in range(args.rounds):
            for who, command in commands.items():
                shutil.copytree(source, copy)
                costs[who].append(run_measured(command, args.core))
                left[who] = segments_left(copy)
                shutil.rmtree(copy)
    result = {
        "bench": "retain",
        "segments": args.segments,
        "rounds": args.rounds,
        **{who: median(each) for who, each in costs.items()},
        "times_faster": times_faster(costs["kafkalog"], costs["kafka"]),
        "segments_left": len(left["kafkalog"]),
        "same_segments": left["kafkalog"] == left["kafka"],
        **circumstances(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
