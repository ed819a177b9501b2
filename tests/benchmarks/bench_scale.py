"""Does compaction cost the same per byte however large a partition is, within bounded memory?

    python -m tests.benchmarks.bench_scale [--gib 1 4 16] [--memory 512m] [--keys-per-record 0.25]
    python -m tests.benchmarks.bench_scale --distinct 100000000

One partition of so many GiB (116 bytes a record uncompressed, as in bench_compact), or of so many
records whose keys are all different, compacted by one worker of the command line in one round.
Prints a JSON line a size: CPU seconds a GiB (of it the system's), wall time, the peak resident size
in MiB (VmHWM). What does not fit the free space of --dir is left out, and said.

A virtual machine gives memory that was freed back to its host, and whose pages have to be got again
pays for that as system time: a small log right behind its generator would have them for nothing,
a large one would not. So each waits first until that is over (--settle).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.topics import topic_words

_SETTLE_SECONDS = 15
# A second run, and a third, of logs that are small.
_MOST_RUNS, _BYTES_OF_RUNS = 3, 3 << 30
_RECORD_BYTES = 127
_GIB = 1 << 30


def generate(log_dir: Path, *arguments: str) -> int:
    """Write the log; its bytes."""
    command = [sys.executable, "-m", "tests.benchmarks.generate", str(log_dir), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(json.loads(done.stdout)["bytes"])


def compact(log_dir: Path, memory: str) -> dict[str, float]:
    """CPU and wall seconds, peak MiB, records read and kept."""
    command = [sys.executable, "-m", "tests.support.peak_memory", "compact", "--log-dir"]
    command += [
        str(log_dir),
        *topic_words(log_dir),
        "--apply",
        "--json",
        "--no-undo",
        "--workers",
        "1",
    ]
    command += ["--config", "cleanup.policy=compact", "--memory", memory]
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    *document, peak = process.stdout.read().splitlines()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{command}: status {status}")
    (partition,) = json.loads("\n".join(document))["partitions"]
    return {
        "wall_seconds": round(time.perf_counter() - started, 1),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "system_seconds": round(usage.ru_stime, 1),
        "peak_mib": round(float(peak)),
        "records": partition["recordsRead"],
        "retained": partition["recordsRetained"],
    }


def measure(work: Path, name: str, args: argparse.Namespace, arguments: list[str]) -> None:
    """One log, one line: of a small one, the median of three runs by CPU time."""
    log_dir, memory = work / name, args.memory
    runs: list[dict[str, float]] = []
    size = 0
    while len(runs) < _MOST_RUNS and len(runs) * size < _BYTES_OF_RUNS:
        size = generate(log_dir, *arguments)
        time.sleep(args.settle)
        runs.append(compact(log_dir, memory))
        shutil.rmtree(log_dir)
    middle = sorted(runs, key=lambda run: run["cpu_seconds"])[len(runs) // 2]
    result = {"bench": "scale", "log": name, "memory": memory, "bytes": size, "runs": len(runs)}
    result |= middle
    result["cpu_seconds_per_gib"] = round(result["cpu_seconds"] * _GIB / size, 2)
    result["load"] = round(os.getloadavg()[0], 1)
    print(json.dumps(result), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compaction of large partitions.")
    parser.add_argument("--gib", type=float, nargs="*", default=[1, 4, 16])
    parser.add_argument("--distinct", type=int, default=0, help="records, each with its own key")
    parser.add_argument("--keys-per-record", type=float, default=0.25)
    parser.add_argument("--memory", default="512m")
    parser.add_argument("--settle", type=float, default=_SETTLE_SECONDS, help="seconds")
    parser.add_argument("--dir", type=Path, default=None, help="where to work")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.dir) as folder:
        work = Path(folder)
        if args.distinct:
            more = ["--value-bytes", "0", "--distinct", "--segment-bytes", str(_GIB)]
            count = str(args.distinct)
            numbers = ["--records", count, "--keys", count, *more]
            measure(work, f"{count}-keys", args, numbers)
            return
        for gib in args.gib:
            # The log, what is made of it, and keys spilled.
            if shutil.disk_usage(work).free < 2.5 * gib * _GIB:
                sys.stderr.write(f"{gib} GiB do not fit into {work}: left out\n")
                continue
            records = int(gib * _GIB / _RECORD_BYTES)
            keys = max(int(records * args.keys_per_record), 1)
            numbers = ["--records", str(records), "--keys", str(keys)]
            measure(work, f"{gib:g}-gib", args, numbers)


if __name__ == "__main__":
    main()
