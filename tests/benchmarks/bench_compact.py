"""How long does compaction take, against Kafka's own cleaner on the same log, as whole processes?

    python -m tests.benchmarks.bench_compact [--records 8000000] [--keys 2000000] [--cores 1]
    [--rounds 3] [--slow]

Both get a fresh copy of one generated log each round, in turn, on the same cores (`taskset`). Ours
is `kafkalog compact --apply`: header scan, map with CRC checks, rewrite, read-back, fsync, swap.
Kafka's is its `Cleaner` from the jars, opened on the directory and run until nothing is dirty.
Prints one JSON line with the medians, in seconds of wall time and of CPU, peak memory in MiB, and
the size of what both wrote, and whether both directories hold the same bytes afterwards (codecs may
compress the same records to other bytes).

With --cores 2 the log is two partitions of half the records each, and both use two threads or
processes. With --spark the job runs as well, by spark-submit with local[cores] on the same cores;
what counts is the time its document tells, which leaves out the start of the session. With --slow
all of it runs on a machine made slow (`machine.made_slow`).
"""

from __future__ import annotations

import argparse
import filecmp
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from kafkalog.format.constants import CompressionType
from tests.benchmarks.machine import made_slow
from tests.benchmarks.side_by_side import (
    Cost,
    circumstances,
    fast_directory,
    median,
    run_measured,
    times_faster,
)
from tests.oracle.setup import ensure_oracle
from tests.support.topics import topic_words

CODECS = {codec.name.lower(): int(codec) for codec in CompressionType}
CONFIG = ("cleanup.policy=compact", "segment.bytes=268435456")


def generate(log_dir: Path, partition: int, args: argparse.Namespace) -> None:
    """One partition, by a process of its own: a child's peak memory starts at its parent's."""
    command = [sys.executable, "-m", "tests.benchmarks.generate", str(log_dir), "--seed"]
    command += [str(partition + 1), "--partition", str(partition), "--codec", args.codec]
    command += ["--records", str(args.records // args.cores)]
    command += ["--value-bytes", str(args.value_bytes)]
    command += ["--keys", str(args.keys // args.cores), "--topic", "bench"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def our_command(log_dir: Path, workers: int) -> list[str]:
    settings = [word for key in CONFIG for word in ("--config", key)]
    command = [sys.executable, "-m", "kafkalog", "compact", "--log-dir", str(log_dir)]
    return [
        *command,
        *topic_words(log_dir),
        *settings,
        "--workers",
        str(workers),
        "--apply",
        "--run-dir",
        f"{log_dir}-runs",
    ]


def kafka_command(log_dir: Path, names: list[str]) -> list[str]:
    runtime = ensure_oracle()
    settings = [word for key in CONFIG for word in ("--config", key)]
    command = [str(runtime.java), "-Xmx1g", "-XX:+UseG1GC", "-cp", runtime.class_path]
    command += ["oracle.Main", "bench-clean", "--log-dir", str(log_dir)]
    return [*command, "--topic-partition", ",".join(names), "--hw", "leo", *settings]


def spark_seconds(log_dir: Path, cores: str) -> float:
    """Seconds the job says it took, from the session's first task on."""
    arguments = our_command(log_dir, len(cores.split(",")))
    job = ["jobs/compact_topics.py", *arguments[4:], "--json"]
    submit = str(Path(sys.executable).with_name("spark-submit"))
    master = f"local[{len(cores.split(','))}]"
    command = ["taskset", "-c", cores, submit, "--master", master, *job]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, env=environment, capture_output=True, check=True)
    return float(json.loads(done.stdout)["seconds"])


def segments_of(log_dir: Path) -> list[Path]:
    """Every file the cleaners write below the active segments, relative to the log dir."""
    found: list[Path] = []
    for folder in sorted(path for path in log_dir.iterdir() if path.is_dir()):
        for kind in ("log", "index", "timeindex"):
            found += [p.relative_to(log_dir) for p in sorted(folder.glob(f"*.{kind}"))[:-1]]
    return found


def same_bytes(ours: Path, kafkas: Path) -> bool:
    """Compared piece by piece: a child's peak memory starts at what its parent holds."""
    names = segments_of(ours)
    return names == segments_of(kafkas) and all(
        filecmp.cmp(ours / name, kafkas / name, shallow=False) for name in names
    )


def size_of(log_dir: Path) -> int:
    """Bytes of what a cleaner writes."""
    return sum((log_dir / name).stat().st_size for name in segments_of(log_dir))


@dataclass(frozen=True, slots=True)
class Pair:
    """Both once, what they left, and whether that is the same bytes."""

    ours: Cost
    kafkas: Cost
    sizes: tuple[int, int]
    equal: bool


def run_pair(work: Path, cores: str, args: argparse.Namespace) -> Pair:
    """In turn, on copies of their own."""
    ours, kafkas = work / "ours", work / "kafkas"
    for copy in (ours, kafkas):
        shutil.copytree(work / "source", copy)
    names = [f"bench-{p}" for p in range(args.cores)]
    costs = (
        run_measured(our_command(ours, args.cores), cores),
        run_measured(kafka_command(kafkas, names), cores),
    )
    equal = args.codec != "none" or same_bytes(ours, kafkas)
    pair = Pair(*costs, (size_of(ours), size_of(kafkas)), equal)
    for copy in (ours, kafkas):
        shutil.rmtree(copy)
    return pair


def main() -> None:
    """Generate, run in turn, print."""
    parser = argparse.ArgumentParser(description="Compaction against Kafka's cleaner.")
    parser.add_argument("--records", type=int, default=8_000_000)
    parser.add_argument("--keys", type=int, default=2_000_000)
    parser.add_argument("--value-bytes", type=int, default=100)
    parser.add_argument("--codec", choices=sorted(CODECS), default="none")
    parser.add_argument("--cores", type=int, choices=(1, 2), default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--spark", action="store_true", help="the job by spark-submit as well")
    parser.add_argument("--slow", action="store_true", help="on a machine made slow")
    parser.add_argument("--dir", type=Path, default=None, help="where to work (default: memory)")
    args = parser.parse_args()
    cores = ",".join(str(core) for core in range(args.cores))
    sparks: list[float] = []
    with tempfile.TemporaryDirectory(dir=args.dir or fast_directory()) as folder:
        work = Path(folder)
        source = work / "source"
        source.mkdir()
        for p in range(args.cores):
            generate(source, p, args)
        with made_slow() if args.slow else nullcontext():
            pairs = [run_pair(work, cores, args) for _ in range(args.rounds)]
        # After the pairs: a JVM's memory goes back to the host of a virtual machine meanwhile, and
        # who comes next pays for getting it again.
        for _ in range(args.rounds if args.spark else 0):
            shutil.copytree(source, work / "spark")
            sparks.append(spark_seconds(work / "spark", cores))
            shutil.rmtree(work / "spark")
    ours, kafkas = [pair.ours for pair in pairs], [pair.kafkas for pair in pairs]
    result = {
        "bench": "compact",
        "records": args.records,
        "keys": args.keys,
        "codec": args.codec,
        "value_bytes": args.value_bytes,
        "cores": args.cores,
        "rounds": args.rounds,
        "kafkalog": median(ours),
        "kafka": median(kafkas),
        "times_faster": times_faster(ours, kafkas),
        "spark_seconds": round(statistics.median(sparks), 2) if sparks else None,
        "output_mib": [round(size / (1 << 20), 1) for size in pairs[-1].sizes],
        "same_bytes": all(pair.equal for pair in pairs) if args.codec == "none" else None,
        "made_slow": args.slow,
        **circumstances(),
        "own_peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
