"""How many lines a second does a dump with all records have, against Kafka's DumpLogSegments on the
same file, as whole processes?

    python -m tests.benchmarks.bench_dump [--records 2000000] [--rounds 5] [--core 0]

In alternating runs on one core (`taskset`), each into a file in memory: ours is
`kafkalog dump --print-data-log`, Kafka's its class from the jars with the same option. Prints one
JSON line: medians of wall and CPU seconds, lines a second, and whether both wrote the same but for
escaped backslashes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
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


def our_command(file: Path) -> list[str]:
    return [sys.executable, "-m", "kafkalog", "dump", "--print-data-log", str(file)]


def kafka_command(file: Path) -> list[str]:
    runtime = ensure_oracle()
    command = [str(runtime.java), "-Xmx512m", "-XX:+UseSerialGC", "-cp", runtime.class_path]
    command += ["org.apache.kafka.tools.DumpLogSegments", "--print-data-log"]
    return [*command, "--files", str(file)]


def run_into(command: list[str], output: Path, core: str) -> Cost:
    """`run_measured` with stdout in a file."""
    script = ["bash", "-c", 'out="$1"; shift; exec "$@" > "$out"', "bash", str(output), *command]
    return run_measured(script, core)


def count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(piece.count(b"\n") for piece in iter(lambda: file.read(1 << 20), b""))


def main() -> None:
    """Generate, run in turn, print."""
    parser = argparse.ArgumentParser(description="Dumping against DumpLogSegments.")
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--core", default="0")
    parser.add_argument("--dir", type=Path, default=None, help="where to work (default: memory)")
    args = parser.parse_args()
    ours: list[Cost] = []
    kafkas: list[Cost] = []
    with tempfile.TemporaryDirectory(dir=args.dir or fast_directory()) as work:
        command = [sys.executable, "-m", "tests.benchmarks.generate", work]
        command += ["--records", str(args.records), "--keys", str(args.records // 4)]
        command += ["--segment-bytes", str(1 << 30)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        log = max(Path(work, "bench-0").glob("*.log"), key=lambda path: path.stat().st_size)
        mine, other = Path(work, "ours"), Path(work, "kafkas")
        for _ in range(args.rounds):
            ours.append(run_into(our_command(log), mine, args.core))
            kafkas.append(run_into(kafka_command(log), other, args.core))
        # After all runs: a child's peak memory starts at its parent's. Values have backslashes.
        equal = mine.read_bytes().replace(rb"\\", b"\\") == other.read_bytes()
        lines = count_lines(mine)
        log_bytes = log.stat().st_size
    result = {
        "bench": "dump",
        "lines": lines,
        "log_bytes": log_bytes,
        "rounds": args.rounds,
        "kafkalog": median(ours),
        "kafka": median(kafkas),
        "million_lines_per_second": {
            who: round(lines / 1e6 / statistics.median(cost.wall_seconds for cost in each), 2)
            for who, each in (("kafkalog", ours), ("kafka", kafkas))
        },
        "times_faster": times_faster(ours, kafkas),
        "same_lines": equal,
        **circumstances(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
