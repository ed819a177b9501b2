"""Every benchmark whose figures docs/benchmarks.md has, one after the other, each with its peer.

    python -m tests.benchmarks.bench_all [WORD ...] [--out FILE] [--from ROW] [--limit SECONDS]
    [--slow]

A JSON line each, as the benchmarks themselves print it with the row in front; with words only the
rows whose name or arguments hold them all. The first line says what machine it is, a line behind
the first row of compaction its kind, by Kafka's own seconds. Which row runs and how long it took
goes to stderr. All lines are in --out as well, as they come, and `tests.benchmarks.table` makes
them readable. A row that fails or takes longer than --limit is ended with all its processes and
said at the end; the others run. --from goes on with the row of that number, lines are added to
--out then. Where the machine is a quiet one, rows of compaction run again on it made slow
(bench_compact --slow), or with --slow they alone. On a quiet machine it takes about an hour.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TextIO

from tests.benchmarks.machine import QUIET, kind_of, machine
from tests.benchmarks.side_by_side import FAST_DIRECTORY, fast_directory

# What is asked first stands first.
FIGURES = (
    ("compact", "--spark"),
    ("many_partitions",),
    ("small_partitions",),
    ("small_partitions", "--partitions", "20000", "--rounds", "1"),
    ("small_partitions", "--partitions", "1", "--segments", "20000", "--more", "--rounds", "1"),
    ("compact", "--value-bytes", "1000", "--records", "2000000", "--keys", "500000"),
    ("compact", "--codec", "lz4"),
    ("compact", "--codec", "zstd"),
    ("compact", "--codec", "snappy"),
    ("compact", "--codec", "gzip", "--rounds", "1"),
    ("compact", "--cores", "2"),
    ("compact", "--cores", "2", "--codec", "lz4"),
    ("compact", "--cores", "2", "--codec", "zstd"),
    ("safety",),
    ("verify",),
    ("verify", "--records", "32000000", "--codec", "none"),
    ("scan", "--records", "8000000", "--peer"),
    ("start",),
    ("first_query",),
    ("first_query", "--archive"),
    ("cost_model", "--check", "--rounds", "2"),
    # 8 GiB would take twice its time.
    ("spark_workers", "--gib", "4"),
    ("query",),
    ("sql",),
    ("dump", "--records", "1000000", "--rounds", "3"),
    ("decode",),
    ("retain",),
    ("salvage",),
    ("recover", "--records", "16000000", "--rounds", "3"),
    ("contents",),
    ("group_offsets", "--spark"),
    ("audit", "--topics", "50", "--workers", "1"),
    ("audit_on_spark",),
    ("compare",),
    ("remote",),
    ("scale", "--distinct", "100000000"),
)
# Behind these a quiet machine is made slow.
LAST_OF_COMPACTION = ("compact", "--cores", "2", "--codec", "zstd")
# On a machine that is made slow.
SLOW = (
    ("compact", "--slow", "--rounds", "2"),
    ("compact", "--slow", "--rounds", "2", "--value-bytes", "1000", "--records", "2000000",
     "--keys", "500000"),
    ("compact", "--slow", "--rounds", "2", "--codec", "lz4"),
    ("compact", "--slow", "--rounds", "1", "--codec", "zstd"),
)  # fmt: skip
OUT = Path(".cache", "benchmarks.jsonl")
# The largest log of the cost model has 32 GiB.
_LIMIT_SECONDS = 1200.0


def run_row(row: Sequence[str], limit: float) -> tuple[list[dict[str, Any]], str]:
    """What it printed, and why it failed, or nothing. None of its processes and files is left."""
    command = [sys.executable, "-m", f"tests.benchmarks.bench_{row[0]}", *row[1:]]
    with ExitStack() as stack:
        # Both here, since a process that is killed removes nothing.
        fast = tempfile.TemporaryDirectory(prefix="bench-", dir=fast_directory())
        disk = tempfile.TemporaryDirectory(prefix="bench-")
        state = {FAST_DIRECTORY: stack.enter_context(fast), "TMPDIR": stack.enter_context(disk)}
        environment = {**os.environ, **state, "XDG_STATE_HOME": f"{disk.name}/state"}
        output = stack.enter_context(tempfile.TemporaryFile("w+"))
        process = subprocess.Popen(command, env=environment, stdout=output)
        stack.callback(_end_all, process, fast.name)
        try:
            code = process.wait(limit)
            failed = f"exit code {code}" if code else ""
        except subprocess.TimeoutExpired:
            failed = f"not done within {limit:.0f} s"
        output.seek(0)
        return list(_json_lines(output)), failed


def _end_all(process: subprocess.Popen[bytes], directory: str) -> None:
    """The row, and whatever it has started: a broker is in a session of its own, and may have lost
    its parent, but has the variable that names the row's directory.
    """
    process.kill()
    process.wait()
    mark = f"{FAST_DIRECTORY}={directory}".encode()
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in environment.read_bytes().split(b"\0"):
                os.kill(int(environment.parent.name), signal.SIGKILL)
        except OSError:
            continue  # ended meanwhile


def _json_lines(output: TextIO) -> Iterator[dict[str, Any]]:
    """The last one may be half of one."""
    for line in output:
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            sys.stderr.write(line)


def asked_rows(words: Sequence[str], *, slow: bool) -> list[tuple[int, tuple[str, ...]]]:
    """Those that hold all words, with their numbers."""
    rows = list(enumerate(SLOW if slow else FIGURES, 1 + (len(FIGURES) if slow else 0)))
    return [(number, row) for number, row in rows if all(word in row for word in words)]


class _Run:
    """Rows that run, and what is said of them."""

    def __init__(self, out: TextIO, limit: float) -> None:
        self._out = out
        self._limit = limit
        self.failed: list[str] = []
        self.kind: str | None = None

    def say(self, line: dict[str, Any]) -> None:
        for target in (sys.stdout, self._out):
            target.write(json.dumps(line) + "\n")
            target.flush()

    def row(self, number: int, row: tuple[str, ...]) -> None:
        name = " ".join(row)
        sys.stderr.write(f"{number:2} {name} …\n")
        started = time.perf_counter()
        lines, failed = run_row(row, self._limit)
        seconds = time.perf_counter() - started
        for line in lines:
            self.say({"row": name, **line})
            if self.kind is None and row == FIGURES[0]:
                self.kind = kind_of(line["kafka"]["wall_seconds"])
                self.say({"bench": "kind", "kind": self.kind})
        if failed:
            self.failed.append(f"{number} {name}: {failed}")
            self.say({"row": name, "failed": failed})
        sys.stderr.write(f"{number:2} {name}: {failed or 'done'}, {seconds:.0f} s\n")


def _terminated(_signal: int, _frame: object) -> None:
    sys.exit(1)


def main() -> int:
    """Run them; 1 if one failed."""
    parser = argparse.ArgumentParser(description="All benchmarks.")
    parser.add_argument("words", nargs="*", help="only rows that hold them all")
    parser.add_argument("--out", type=Path, default=OUT, help="the lines, as they come")
    parser.add_argument("--from", type=int, default=1, dest="first", help="go on with this row")
    parser.add_argument("--limit", type=float, default=_LIMIT_SECONDS, help="seconds of a row")
    parser.add_argument("--slow", action="store_true", help="those on a machine made slow alone")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, _terminated)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    with args.out.open("a" if args.first > 1 else "w", encoding="utf-8") as out:
        run = _Run(out, args.limit)
        run.say({"bench": "machine", **machine()})
        rows = asked_rows(args.words, slow=args.slow)
        for number, row in rows:
            if number >= args.first:
                run.row(number, row)
            if row == LAST_OF_COMPACTION and run.kind == QUIET:
                for slow_number, slow_row in asked_rows(args.words, slow=True):
                    run.row(slow_number, slow_row)
    minutes = (time.perf_counter() - started) / 60
    sys.stderr.write(f"{len(run.failed)} rows failed, {minutes:.1f} minutes: {args.out}\n")
    for text in run.failed:
        sys.stderr.write(f"  {text}\n")
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main())
