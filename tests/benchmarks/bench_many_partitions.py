"""How long do many small partitions take, against Kafka's own cleaner on the same log dir?

    python -m tests.benchmarks.bench_many_partitions [--partitions 1000] [--cores 2] [--rounds 3]

Each partition is 1 MiB in four segments of 256 KiB, uncompressed, 8,200 records over 2,000 keys.
Ours is `kafkalog compact --apply` as a whole process: start, planning, map, rewrite, read-back,
fsync, swap, checkpoint, and the journal, which lies beside the log dir. Kafka's are its cleaner
threads, one a core, over logs that are open as in a broker, with a checkpoint written after each
partition; opening, closing and the JVM's start do not count. In turn on fresh copies, on the same
cores (`taskset`). Prints one JSON line: medians in seconds of wall time and of CPU, and whether
both log dirs hold the same bytes afterwards.

The work directory is in memory unless --dir says otherwise: there nobody waits for a disk.
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
from pathlib import Path

from tests.benchmarks.bench_compact import same_bytes
from tests.benchmarks.side_by_side import Cost, fast_directory, median, run_measured, times_faster
from tests.oracle.setup import ensure_oracle

CONFIG = ("cleanup.policy=compact", "segment.bytes=1048576")
RECORDS, KEYS, SEGMENT_BYTES = 8_200, 2_000, 256 * 1024


def generate(log_dir: Path, partitions: int) -> None:
    """In a process of its own: a child's peak memory starts at its parent's."""
    spec = f"records={RECORDS}, keys={KEYS}, segment_bytes={SEGMENT_BYTES}"
    code = (
        "import sys; from pathlib import Path;"
        "from tests.benchmarks.generate import LogSpec, write_log;"
        f"[write_log(Path(sys.argv[1]), 'many', LogSpec({spec}, seed=p + 1), p)"
        " for p in range(int(sys.argv[2]))]"
    )
    subprocess.run([sys.executable, "-c", code, str(log_dir), str(partitions)], check=True)


def our_command(log_dir: Path, workers: int) -> list[str]:
    settings = [word for key in CONFIG for word in ("--config", key)]
    command = [sys.executable, "-m", "kafkalog", "compact", "--log-dir", str(log_dir)]
    command += ["--topic", "many", *settings, "--workers", str(workers)]
    return [*command, "--run-dir", f"{log_dir}-runs", "--apply"]


def run_kafka(log_dir: Path, threads: int, cores: str) -> Cost:
    """What the cleaner threads took, by their own clock."""
    runtime = ensure_oracle()
    settings = [word for key in CONFIG for word in ("--config", key)]
    command = ["taskset", "-c", cores, str(runtime.java), "-Xmx2g", "-XX:+UseG1GC"]
    command += ["-cp", runtime.class_path, "oracle.Main", "bench-many", "--log-dir", str(log_dir)]
    command += ["--threads", str(threads), "--hw", "leo", *settings]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    answer = json.loads(done.stdout)
    return Cost(answer["seconds"], answer["cpuSeconds"], 0.0)


def main() -> None:
    """Generate, run in turn, print."""
    parser = argparse.ArgumentParser(description="Many small partitions against Kafka's cleaner.")
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--cores", type=int, choices=(1, 2), default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dir", type=Path, default=None, help="where to work (default: memory)")
    args = parser.parse_args()
    cores = ",".join(str(core) for core in range(args.cores))
    ours: list[Cost] = []
    kafkas: list[Cost] = []
    equal = True
    with tempfile.TemporaryDirectory(dir=args.dir or fast_directory()) as work:
        source, copies = Path(work, "source"), (Path(work, "ours"), Path(work, "kafkas"))
        generate(source, args.partitions)
        for _ in range(args.rounds):
            for copy in copies:
                shutil.copytree(source, copy)
            ours.append(run_measured(our_command(copies[0], args.cores), cores))
            kafkas.append(run_kafka(copies[1], args.cores, cores))
            equal = equal and same_bytes(*copies)
            for copy in copies:
                shutil.rmtree(copy)
            shutil.rmtree(f"{copies[0]}-runs")
    result = {
        "bench": "many_partitions",
        "partitions": args.partitions,
        "cores": args.cores,
        "rounds": args.rounds,
        "kafkalog": median(ours),
        "kafka": median(kafkas),
        "times_faster": times_faster(ours, kafkas),
        "times_less_cpu": round(
            statistics.median(
                k.cpu_seconds / o.cpu_seconds for o, k in zip(ours, kafkas, strict=True)
            ),
            2,
        ),
        "same_bytes": equal,
        "load": round(os.getloadavg()[0], 1),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
