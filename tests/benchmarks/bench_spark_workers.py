"""Do two workers of a Spark cluster compact twice as much in the same time as one?

    python -m tests.benchmarks.bench_spark_workers [--gib 4] [--rounds 2] [--dir DIR]

A standalone cluster on this machine, with one worker of one core and then with two, compacts the
same log of so many GiB in partitions of one (two at least), on a disk and with nothing of it in the
page cache. One JSON line: medians of the seconds that the job says it took, and which share of
twice one worker's rate two have. The session waits for its executors, so their start is not in
these seconds; that of their Python processes is. Besides the cores of the workers there is one
driver: a machine of two cores has none left for it.
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

from tests.benchmarks.bench_compact import our_command
from tests.benchmarks.side_by_side import circumstances, forget
from tests.support.standalone import standalone_cluster

_RECORD_BYTES = 127
_GIB = 1 << 30
_WORKERS = (1, 2)
# The session is there when all of spark.cores.max are.
_SETTINGS = (
    "spark.ui.enabled=false",
    "spark.scheduler.minRegisteredResourcesRatio=1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime=300s",
)


def generate(log_dir: Path, partition: int, gib: float) -> None:
    """One partition, of records over a quarter as many keys."""
    records = int(gib * _GIB / _RECORD_BYTES)
    command = [sys.executable, "-m", "tests.benchmarks.generate", str(log_dir)]
    command += ["--seed", str(partition + 1), "--partition", str(partition), "--topic", "bench"]
    command += ["--records", str(records), "--keys", str(max(records // 4, 1))]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _linked(source: str, target: str) -> None:
    """Segments are replaced and never written into: a second name is as good as a copy."""
    if source.endswith(".log"):
        os.link(source, target)
    else:
        shutil.copy2(source, target)


def seconds(log_dir: Path, work: Path, workers: int) -> float:
    """What the job says it took."""
    job = ["jobs/compact_topics.py", *our_command(log_dir, workers)[4:], "--json", "--no-undo"]
    submit = str(Path(sys.executable).with_name("spark-submit"))
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with standalone_cluster(work, workers=workers) as cluster:
        command = [submit, "--master", cluster.url, "--executor-memory", "512m"]
        for setting in _SETTINGS:
            command += ["--conf", setting]
        command += ["--conf", f"spark.cores.max={workers}", *job]
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stderr.decode()[-2000:]}")
    document = json.loads(done.stdout)
    statuses = {partition["status"] for partition in document["partitions"]}
    if statuses != {"compacted"}:
        raise RuntimeError(f"{command}: {statuses}")
    return float(document["seconds"])


def measure(work: Path, gib: float, rounds: int) -> dict[int, list[float]]:
    """By workers, in turn."""
    subprocess.run([sys.executable, "-m", "kafkalog", "compile"], check=True, capture_output=True)
    source = work / "source"
    source.mkdir()
    partitions = max(int(gib), 2)
    for partition in range(partitions):
        generate(source, partition, gib / partitions)
    taken: dict[int, list[float]] = {workers: [] for workers in _WORKERS}
    for number in range(rounds):
        for workers in _WORKERS:
            cluster = work / f"cluster-{number}-{workers}"
            cluster.mkdir()
            log_dir = work / "log"
            shutil.copytree(source, log_dir, copy_function=_linked)
            forget(log_dir)
            taken[workers].append(seconds(log_dir, cluster, workers))
            shutil.rmtree(log_dir)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description="Compaction by one and by two workers of Spark.")
    parser.add_argument("--gib", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--dir", type=Path, default=None, help="where to work")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.dir) as folder:
        # The log and what is made of it.
        if shutil.disk_usage(folder).free < 2.5 * args.gib * _GIB:
            sys.exit(f"{args.gib:g} GiB do not fit into {folder}")
        taken = measure(Path(folder), args.gib, args.rounds)
    one, two = (statistics.median(taken[workers]) for workers in _WORKERS)
    result = {
        "bench": "spark_workers",
        "gib": args.gib,
        "rounds": args.rounds,
        "one_worker_seconds": round(one, 1),
        "two_workers_seconds": round(two, 1),
        "share_of_twice_one": round(one / (2 * two), 2),
        **circumstances(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
