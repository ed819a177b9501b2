"""How long does `kafkalog sql` take on DuckDB, against the readers alone and against Spark?

    python -m tests.benchmarks.bench_sql [--records N] [--runs N] [--spark]

One JSON line.

 duckdb       the guide's ten questions on data/samples/broker, and `first`, README's first one,
              each a whole process: seconds by the clock and of CPU, medians of RUNS
 spark        with --spark the same queries once in one session on all cores, in this order, with
              the CPU of the JVM and its workers; `start` is the session with its views
 rates        N records of 116 bytes, uncompressed, in memory: count(*), bytes of values, and a
              group by key, in a process that has started: seconds by the clock and of CPU with one
              thread and with all cores, of `read_records` with the same column (of values the
              bytes too, which the query leaves on the disk), and of DuckDB with one thread over
              that column as an Arrow table in memory, in turn; `share` is
              the readers' CPU by the query's, `share of both` that of the readers and DuckDB
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import duckdb
import pyarrow as pa
from pyspark.sql import SparkSession

import kafkalog
from kafkalog.cli.statements import split_statements
from kafkalog.spark import configure_spark, create_views
from tests.benchmarks.generate import LogSpec, write_log
from tests.benchmarks.machine import commit
from tests.benchmarks.side_by_side import fast_directory
from tests.support.documents import DOCS, examples

SAMPLES = "data/samples/broker"
FIRST = (
    "SELECT topic, count(*) AS records, count(DISTINCT key) AS keys, "
    "count_if(value IS NULL) AS tombstones FROM records WHERE topic = 'orders' GROUP BY topic"
)
# Query → the column that the readers alone decode for it.
RATES = {
    "count": ("SELECT count(*) AS n FROM records", "partition"),
    "value bytes": ("SELECT sum(octet_length(value)) AS n FROM records", "value"),
    "group by key": (
        "SELECT count(*) AS n FROM (SELECT key, count(*) AS m FROM records GROUP BY key)",
        "key",
    ),
}

Times = tuple[float, float]
Result = TypeVar("Result")


def questions() -> list[str]:
    guide = DOCS / "guides" / "query.md"
    text = next(e.text for e in examples("sql", guide) if "What is in here?" in e.text)
    return list(split_statements(text))


def process(query: str) -> Times:
    """(seconds by the clock, of CPU) of the command."""
    command = [sys.executable, "-m", "kafkalog", "sql", SAMPLES, "--sql", query]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def on_spark(asked: Mapping[str, str]) -> dict[str, Times]:
    """The same of each query in one session."""
    found: dict[str, Times] = {}

    def timed(name: str, work: Callable[[], Result]) -> Result:
        cpu, began = cpu_with_children(), time.perf_counter()
        done = work()
        found[name] = time.perf_counter() - began, cpu_with_children() - cpu
        return done

    def start() -> SparkSession:
        builder = SparkSession.builder.config("spark.ui.enabled", "false")
        session = configure_spark(builder, master="local[*]").getOrCreate()
        create_views(session, SAMPLES)
        return session

    spark = timed("start", start)
    for name, query in asked.items():
        timed(name, lambda query=query: spark.sql(query).collect())  # type: ignore[misc]
        print(name, found[name], file=sys.stderr, flush=True)
    spark.stop()
    return found


def cpu_with_children() -> float:
    """Seconds of CPU of this process and all that it started, and those did."""
    stats: dict[int, list[str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            stats[int(path.parent.name)] = path.read_text().rpartition(")")[2].split()
    ours, ticks = {os.getpid()}, 0
    while its := {pid for pid, stat in stats.items() if int(stat[1]) in ours or pid in ours}:
        # user and system time, its own and that of children it has waited for
        ticks += sum(int(number) for pid in its for number in stats.pop(pid)[11:15])
        ours |= its
    return ticks / os.sysconf("SC_CLK_TCK")


def here(work: Callable[[], object]) -> Times:
    """The same of work in this process."""
    cpu, began = time.process_time(), time.perf_counter()
    work()
    return time.perf_counter() - began, time.process_time() - cpu


def medians(times: list[Times]) -> list[float]:
    return [round(statistics.median(each), 2) for each in zip(*times, strict=True)]


def rates(log_dir: str, runs: int) -> dict[str, object]:
    def read(column: str) -> None:
        for _ in kafkalog.read_records(log_dir, columns=column):
            pass

    found: dict[str, object] = {}
    for name, (query, column) in RATES.items():
        table = pa.Table.from_batches(kafkalog.read_records(log_dir, columns=column))
        alone = duckdb.connect(config={"threads": 1})
        alone.register("records", table)
        peers: dict[str, Callable[[], object]] = {
            "readers": lambda column=column: read(column),  # type: ignore[misc]
            "1 thread": lambda query=query: kafkalog.sql(log_dir, query, threads=1),  # type: ignore[misc]
            "all cores": lambda query=query: kafkalog.sql(log_dir, query),  # type: ignore[misc]
            "duckdb alone": lambda query=query, alone=alone: alone.execute(query).fetchall(),  # type: ignore[misc]
        }
        for work in peers.values():
            work()
        times: dict[str, list[Times]] = {peer: [] for peer in peers}
        for _ in range(runs):
            for peer, work in peers.items():
                times[peer].append(here(work))
        by_peer = {peer: medians(each) for peer, each in times.items()}
        readers, whole = by_peer["readers"][1], by_peer["1 thread"][1]
        both = readers + by_peer["duckdb alone"][1]
        found[name] = {
            **by_peer,
            "share": round(readers / whole, 2),
            "share of both": round(both / whole, 2),
        }
        alone.close()
    return found


def main() -> None:
    """Measure and print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=8_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--spark", action="store_true")
    args = parser.parse_args()
    process("SELECT 1 AS warm")
    result: dict[str, object] = {"bench": "sql", "records": args.records, "runs": args.runs}
    asked = {"first": FIRST} | {str(n): query for n, query in enumerate(questions(), 1)}
    result["duckdb"] = {
        name: medians([process(query) for _ in range(args.runs)]) for name, query in asked.items()
    }
    if args.spark:
        result["spark"] = {name: medians([times]) for name, times in on_spark(asked).items()}
    with tempfile.TemporaryDirectory(dir=fast_directory()) as scratch:
        spec = LogSpec(records=args.records, keys=max(args.records // 4, 1))
        write_log(Path(scratch), "bench", spec)
        result["rates"] = rates(scratch, args.runs)
    result |= {"cores": len(os.sched_getaffinity(0)), "load": round(os.getloadavg()[0], 1)}
    print(json.dumps({**result, "machine": platform.machine(), "commit": commit()}))


if __name__ == "__main__":
    main()
