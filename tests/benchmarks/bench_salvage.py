"""How long does salvage of a damaged segment take, and how much does it keep?

    python -m tests.benchmarks.bench_salvage [--records 1500000] [--damaged 500] [--rounds 3]

One partition of 16 KB batches, of which every so many have a wrong length. In turn on fresh copies
and one core (`taskset`), as whole processes: `kafkalog salvage`, and what a broker does with such a
log, Kafka's loader from the jars after an unclean stop, which cuts it at the first bad batch.
Prints one JSON line: medians of wall and CPU seconds, and the bytes that either keeps.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kafkalog.log.segment_headers import scan_headers
from tests.benchmarks.bench_recover import NAME, kafka_command
from tests.benchmarks.side_by_side import Cost, circumstances, fast_directory, median, run_measured

# Where a batch has its length, and what is written there instead.
_LENGTH_AT, _WRONG = 8, (-5).to_bytes(4, "big", signed=True)


def generate(log_dir: Path, records: int, damaged: int) -> tuple[int, int]:
    """The partition; its bytes, and the bytes of its batches that are sound."""
    command = [sys.executable, "-m", "tests.benchmarks.generate", str(log_dir), "--records"]
    command += [str(records), "--keys", str(records // 4), "--segment-bytes", str(1 << 30)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (log,) = (path for path in (log_dir / NAME).glob("*.log") if path.stat().st_size)
    rows = scan_headers(str(log)).rows
    bad = rows[len(rows) // (2 * damaged) :: len(rows) // damaged][:damaged]
    with log.open("r+b") as file:
        for position in bad["position"].tolist():
            file.seek(position + _LENGTH_AT)
            file.write(_WRONG)
    size = log.stat().st_size
    return size, size - int(bad["size_in_bytes"].sum())


def our_command(log_dir: Path, output: Path) -> list[str]:
    command = [sys.executable, "-m", "kafkalog", "salvage", "--log-dir", str(log_dir)]
    command += ["--output", str(output)]
    # Something was left out, so its exit code is 1.
    return ["sh", "-c", '"$@"; test $? = 1', "sh", *command]


def kept(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*.log"))


def main() -> None:
    """Generate, run in turn, print."""
    parser = argparse.ArgumentParser(description="Salvage, and what a broker keeps.")
    parser.add_argument("--records", type=int, default=1_500_000)
    parser.add_argument("--damaged", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--core", default="0")
    args = parser.parse_args()
    now_ms = time.time_ns() // 1_000_000
    costs: dict[str, list[Cost]] = {"kafkalog": [], "kafka": []}
    keeps: dict[str, int] = {}
    with tempfile.TemporaryDirectory(dir=fast_directory()) as work:
        source, copy, output = Path(work, "source"), Path(work, "copy"), Path(work, "output")
        source.mkdir()
        size, sound = generate(source, args.records, args.damaged)
        commands = {
            "kafkalog": (our_command(copy, output), output),
            "kafka": (kafka_command(copy, now_ms), copy),
        }
        for _ in range(args.rounds):
            for who, (command, result_dir) in commands.items():
                shutil.copytree(source, copy)
                costs[who].append(run_measured(command, args.core))
                keeps[who] = kept(result_dir)
                shutil.rmtree(copy)
            shutil.rmtree(output)
    result = {
        "bench": "salvage",
        "bytes": size,
        "sound_bytes": sound,
        "damaged": args.damaged,
        "rounds": args.rounds,
        **{who: median(each) for who, each in costs.items()},
        "kept_bytes": keeps,
        **circumstances(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
