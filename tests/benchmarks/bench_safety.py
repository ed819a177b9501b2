"""What do `--verify deep`, `--output` and `--max-bytes-per-second` cost, against `--apply` alone?

    python -m tests.benchmarks.bench_safety [--records 4000000] [--keys 1000000] [--rate 100000000]

Each gets a fresh copy of one generated log and one core, as a whole process. Prints one line: wall
and CPU seconds and peak memory in MiB of each, and of the paced run the seconds that its bytes are
worth at least (sources planned, mapped and rewritten from, outputs written and read back).
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from tests.benchmarks.bench_compact import generate, our_command
from tests.benchmarks.side_by_side import fast_directory, run_measured


def size_of(log_dir: Path) -> int:
    """Bytes of all segments below the active one."""
    return sum(path.stat().st_size for path in sorted(log_dir.rglob("*.log"))[:-1])


def main() -> None:
    """Generate, run each, print."""
    parser = argparse.ArgumentParser(description="What safety costs.")
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--value-bytes", type=int, default=100)
    parser.add_argument("--codec", default="none")
    parser.add_argument("--rate", type=int, default=100_000_000)
    args = parser.parse_args()
    args.cores = 1
    result: dict[str, object] = {"bench": "safety", **vars(args)}
    with tempfile.TemporaryDirectory(dir=fast_directory()) as work:
        source, copy, output = Path(work, "source"), Path(work, "copy"), Path(work, "output")
        source.mkdir()
        generate(source, 0, args)
        result["sourceBytes"] = before = size_of(source)
        for name, words in (
            ("apply", []),
            ("verify deep", ["--verify", "deep"]),
            ("output", ["--output", str(output)]),
            ("paced", ["--max-bytes-per-second", str(args.rate)]),
        ):
            shutil.copytree(source, copy)
            command = [*our_command(copy, 1), "--no-undo", *words]
            if name == "output":
                command = [word for word in command if word not in ("--apply", "--no-undo")]
            result[name] = {k: round(v, 2) for k, v in asdict(run_measured(command, "0")).items()}
            if name == "output":
                swap = run_measured(["sh", str(output / "swap.sh")], "0")
                result["swap.sh"] = {k: round(v, 2) for k, v in asdict(swap).items()}
            if name == "paced":
                least = (2 * before + 2 * size_of(copy)) / args.rate
                result["pacedLeastSeconds"] = round(least, 2)
            shutil.rmtree(copy)
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
