"""Does the cost model hold? Its constants fitted to small runs, its sums held against larger ones.

    python -m tests.benchmarks.bench_cost_model [--gib 1 4 16 32] [--rounds 3] [--dir DIR]
    [--write | --check]

Compactions of some twenty small logs (sizes of records, shares of keys, codecs, partitions, many
segments, `--verify deep`, across tasks, not in the page cache) and four audits, by one worker of
the command line, as whole processes, on the disk of --dir; the lowest CPU of --rounds each, and a
round has all logs, since a machine changes its speed. The start is that of a run over next to
nothing, the other constants are fitted to the rest by least squares of the relative errors. Then
larger runs, which no constant saw: 127-byte records over a quarter as many keys of so many GiB,
from 4 GiB on once, and an audit. Right before each of them one of the small logs runs again:
`machineOff` is by how many percent the model is off there, by the machine's speed alone. Prints a
JSON line with the constants, one with those in the code, and a line a run: what was measured, and
by how many percent the model is off, for CPU, the clock, memory and bytes read, written and
spilled; `diskGiB` of what it read was not in the page cache. What does not fit the free space of
--dir is left out, and said. With --write the constants become those of the code, and the documents'
tables are made anew. With --check the larger runs are held against the constants of the code,
without a fit.
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
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from kafkalog.planning.cost_model import Cost, Rates
from kafkalog.planning.reference_rates import REFERENCE
from tests.benchmarks.cost_fit import audited, fitted, rounded, write_module
from tests.benchmarks.cost_runs import (
    AUDITS,
    LARGER_AUDIT,
    TO_FIT,
    Compared,
    Log,
    audits,
    compact,
    of_size,
)
from tests.benchmarks.machine import machine
from tests.support.process_costs import ProcessCosts

# Of its bytes a quarter stays, and a fifth is spilled.
_TIMES_OF_A_LOG = 1.6
_ONE_ROUND_GIB = 4
# The small log that tells how fast the machine is.
_AGAIN = next(log for log in TO_FIT if log.name == "half-gib")
# Of less a plan and a journal are a part that the model does not count.
_LEAST_BYTES_COMPARED = 64 << 20


def off(model: float, measured: float) -> float:
    """In percent."""
    return round(100 * (model / measured - 1), 1)


def line(name: str, cost: Cost, took: ProcessCosts) -> dict[str, object]:
    """A run held against the model."""
    return {
        "bench": "cost_model",
        "log": name,
        "cpuSeconds": round(took.cpu_seconds, 2),
        "cpuOff": off(cost.cpu_seconds, took.cpu_seconds),
        "systemSeconds": round(took.system_seconds, 2),
        "diskGiB": round(took.disk_bytes_read / 2**30, 2),
        "seconds": round(took.wall_seconds, 2),
        "secondsOff": off(cost.seconds, took.wall_seconds),
        "peakMiB": round(took.peak_bytes / 2**20),
        "memoryOff": off(cost.memory_bytes, took.peak_bytes),
        "load": round(os.getloadavg()[0], 1),
    }


def run_line(run: Compared, rates: Rates, start: ProcessCosts) -> dict[str, object]:
    """Of a compaction: of bytes those of a run over next to nothing, and indexes, are left out."""
    cost, work = run.cost(rates), run.works[0]
    found = line(run.name, cost, run.took)
    source = work.source_bytes * len(run.works)
    found["cpuSecondsPerGiB"] = round(run.took.cpu_seconds * 2**30 / source, 2)
    if source > _LEAST_BYTES_COMPARED:
        read = run.took.bytes_read - start.bytes_read
        written = run.took.bytes_written - start.bytes_written - run.other_bytes_written
        found["readOff"] = off(cost.bytes_read + cost.bytes_spilled, read)
        found["writtenOff"] = off(cost.bytes_written + cost.bytes_spilled, written)
    return found


def lowest(found: Sequence[Compared]) -> Compared:
    """The one with the lowest CPU; all of them are said."""
    seconds = [round(run.took.cpu_seconds, 2) for run in found]
    sys.stderr.write(f"{found[0].name} {seconds}\n")
    return min(found, key=lambda run: run.took.cpu_seconds)


def runs_of(log: Log, rounds: int, work: Path) -> Compared:
    """The lowest of so many, one after the other."""
    source = work / "source"
    log.write(source)
    found = [compact(log, source) for _ in range(rounds)]
    shutil.rmtree(source)
    return lowest(found)


def small_runs(rounds: int, work: Path) -> list[Compared]:
    """The lowest of each log that constants are fitted to."""
    for log in TO_FIT:
        log.write(work / log.name)
    found: dict[str, list[Compared]] = {log.name: [] for log in TO_FIT}
    for _ in range(rounds):
        for log in TO_FIT:
            # What all others are held against twice as often.
            for _again in range(1 + (log is TO_FIT[0])):
                found[log.name].append(compact(log, work / log.name))
    for log in TO_FIT:
        shutil.rmtree(work / log.name)
    return [lowest(each) for each in found.values()]


def audited_lowest(each: tuple[int, int, int], rounds: int, work: Path) -> ProcessCosts:
    """The audit with the lowest CPU, each of them a first one."""
    found = audits(work / "data", rounds, *each)
    sys.stderr.write(f"audit-{each} {[round(took.cpu_seconds, 2) for took in found]}\n")
    return min(found, key=lambda took: took.cpu_seconds)


def say(found: dict[str, object]) -> None:
    """A line."""
    print(json.dumps(found), flush=True)


def fit_and_say(rounds: int, work: Path) -> Rates:
    """The constants, and how far they are off of what they are fitted to."""
    runs = small_runs(rounds, work)
    audits_taken = [audited_lowest(each, rounds, work) for each in AUDITS]
    rates = rounded(fitted(runs, audits_taken))
    start = runs[0].took
    say({"bench": "cost_model", "fitted": asdict(rates)})
    say({"bench": "cost_model", "code": asdict(REFERENCE)})
    for run in runs:
        say(run_line(run, rates, start))
    for each, took in zip(AUDITS, audits_taken, strict=True):
        say(line(f"audit-{each}", audited(each, rates), took))
    return rates


def machine_off(rates: Rates, work: Path) -> float:
    """By how many percent the model is off of a log that its constants were fitted to."""
    run = runs_of(_AGAIN, 2, work)
    return off(run.cost(rates).cpu_seconds, run.took.cpu_seconds)


def check(args: argparse.Namespace, rates: Rates, work: Path) -> float:
    """Larger runs against the model; the seconds of CPU a GiB of the first."""
    start = runs_of(TO_FIT[0], args.rounds, work).took
    a_gib = 0.0
    for gib in args.gib:
        # The log, what is made of it, and keys spilled.
        if shutil.disk_usage(work).free < _TIMES_OF_A_LOG * gib * 2**30:
            sys.stderr.write(f"{gib} GiB do not fit into {work}: left out\n")
            continue
        machine_now = machine_off(rates, work)
        run = runs_of(of_size(gib), args.rounds if gib < _ONE_ROUND_GIB else 1, work)
        found = run_line(run, rates, start)
        say({**found, "machineOff": machine_now})
        a_gib = a_gib or float(str(found["cpuSecondsPerGiB"]))
    took = audited_lowest(LARGER_AUDIT, args.rounds, work)
    say(line("larger-audit", audited(LARGER_AUDIT, rates), took))
    return a_gib


def main() -> None:
    """Fit, print, check, print."""
    parser = argparse.ArgumentParser(description="The cost model against whole runs.")
    parser.add_argument("--gib", type=float, nargs="*", default=[1, 4, 16, 32])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dir", type=Path, default=None, help="where to work")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", action="store_true", help="the constants into the code")
    what.add_argument("--check", action="store_true", help="no fit: the constants of the code")
    args = parser.parse_args()
    # A process that compiles needs memory for that.
    subprocess.run([sys.executable, "-m", "kafkalog", "compile"], check=True, capture_output=True)
    with tempfile.TemporaryDirectory(dir=args.dir) as folder:
        rates = REFERENCE if args.check else fit_and_say(args.rounds, Path(folder))
        a_gib = check(args, rates, Path(folder))
    if args.write:
        write_module(rates, machine_text(a_gib))
        # Tables of the documents are made of the constants.
        subprocess.run([sys.executable, "-m", "tests.support.documents", "--quick"], check=True)


def machine_text(a_gib: float) -> str:
    """When and where, for the module's text."""
    where = machine()
    day = time.strftime("%Y-%m-%d")
    return (
        f"{where['cores']} cores,\n{where['processor']}, load {os.getloadavg()[0]:.0f}, {day},"
        f" where a GiB took {a_gib} s of CPU"
    )


if __name__ == "__main__":
    main()
