"""How long until a fresh session has answered a first query, beyond what Spark itself takes?

    python -m tests.benchmarks.bench_first_query [--rounds 3] [--master local[1] local[2]]
    [--archive]

Each a process and session of its own, in turn, over the sample log dir of a broker:
`format("kafkalog")` and its first count; `create_views` and the first query of one. Beside them a
session with Spark's own first job, a sum over a range, and with a first job in Python, `mapInArrow`
over a range. Prints one JSON line: of each the median seconds and CPU seconds (driver, JVM and all
Python processes) of the session's start and of what comes behind it, and the medians, of the
rounds, of what the first two take behind it beyond either of Spark's. With --archive all four start
from the kept archive of Spark's classes, which is made first where it is not there; else none does.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from data.copy_samples import SAMPLES
from kafkalog.spark import configure_spark, create_views
from kafkalog.spark.archive_classes import make_archive
from kafkalog.spark.class_archive import kept_archive
from kafkalog.spark.session import SESSION_CONF
from tests.benchmarks.bench_sql import cpu_with_children
from tests.benchmarks.side_by_side import circumstances

Times = dict[str, float]
_PATH = str(SAMPLES / "broker")
_OPTIONS = "spark.driver.extraJavaOptions"


def as_they_are(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def sum_of_range(spark: SparkSession) -> None:
    spark.range(1000).selectExpr("sum(id)").collect()


def python_over_range(spark: SparkSession) -> None:
    spark.range(1000).mapInArrow(as_they_are, "id long").count()


def load_and_count(spark: SparkSession) -> None:
    assert spark.read.format("kafkalog").load(_PATH).count() > 0


def views_and_query(spark: SparkSession) -> None:
    create_views(spark, _PATH)
    assert spark.sql("SELECT count(*) FROM records").first()


WORK: dict[str, Callable[[SparkSession], None]] = {
    "sum": sum_of_range, "python": python_over_range,
    "load": load_and_count, "views": views_and_query,
}  # fmt: skip
SPARKS, OURS = ("sum", "python"), ("load", "views")


def measure(master: str, work: Callable[[SparkSession], None], *, archive: bool) -> Times:
    """In this process, which has done nothing else."""
    started = time.perf_counter()
    builder = configure_spark(SparkSession.builder, master=master)
    if not archive:
        builder = builder.config(_OPTIONS, SESSION_CONF[_OPTIONS])
    builder = builder.config("spark.ui.enabled", "false")
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    begun, cpu_begun = time.perf_counter(), cpu_with_children()
    work(spark)
    ended, cpu_ended = time.perf_counter(), cpu_with_children()
    spark.stop()
    return {
        "session_seconds": begun - started, "seconds": ended - begun,
        "session_cpu_seconds": cpu_begun, "cpu_seconds": cpu_ended - cpu_begun,
    }  # fmt: skip


def measured(master: str, name: str, *, archive: bool) -> Times:
    """By a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.bench_first_query", "--master", master]
    if archive:
        command += ["--archive"]
    done = subprocess.run([*command, "--one", name], stdout=subprocess.PIPE, check=True)
    times: Times = json.loads(done.stdout)
    return times


def beyond(ours: list[Times], sparks: list[Times]) -> Times:
    """Medians of the rounds, of what comes behind the session's start: that is Spark's alone."""
    return {
        name: round(statistics.median(
            our[name] - spark[name] for our, spark in zip(ours, sparks, strict=True)
        ), 2)
        for name in ("seconds", "cpu_seconds")
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="The first query of a fresh session.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--master", nargs="+", default=["local[1]", "local[2]"])
    parser.add_argument("--archive", action="store_true", help="from an archive of classes")
    parser.add_argument("--one", choices=WORK, help="this one, in this process")
    args = parser.parse_args()
    if args.one:
        times = measure(args.master[0], WORK[args.one], archive=args.archive)
        print(json.dumps(times))
        return
    if args.archive and kept_archive() is None:
        make_archive()
    result: dict[str, object] = {
        "bench": "first_query", "rounds": args.rounds, "archive": args.archive,
    }  # fmt: skip
    for master in args.master:
        taken: dict[str, list[Times]] = {name: [] for name in WORK}
        for _ in range(args.rounds):
            for name in WORK:
                taken[name].append(measured(master, name, archive=args.archive))
        result[master] = {
            name: {key: round(statistics.median(each[key] for each in times), 2)
                   for key in times[0]}
            for name, times in taken.items()
        } | {
            f"{our} beyond {spark}": beyond(taken[our], taken[spark])
            for our in OURS for spark in SPARKS
        }  # fmt: skip
    print(json.dumps(result | circumstances()))


if __name__ == "__main__":
    main()
