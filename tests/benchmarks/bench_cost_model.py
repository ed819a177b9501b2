"""Does the cost model hold? Its constants fitted to small runs, its sums held against larger ones.

    python -m tests.benchmarks.bench_cost_model [--gib 1 4] [--rounds 2] [--dir DIR]

Compactions of some fourteen small logs (sizes of records, shares of keys, codecs, partitions,
`--verify deep`) and four audits, by one worker of the command line, as whole processes; the lowest
CPU of --rounds each. The constants are fitted to these by least squares of the relative errors.
Then larger runs, which no constant saw: 127-byte records over a quarter as many keys of so many
GiB, and an audit. Prints a JSON line with the constants, beside those in the code, and a line a
run: what was measured, and by how many percent the model is off, for CPU, memory and bytes read,
written and spilled. What does not fit the free space of --dir is left out, and said.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from kafkalog.planning.cost_model import Cost, Rates, audit_cost
from kafkalog.planning.reference_rates import REFERENCE
from tests.benchmarks.cost_runs import (
    AUDITS,
    LARGER_AUDIT,
    NO_RATES,
    ONE_WORKER,
    TO_FIT,
    Compared,
    Log,
    audit,
    compact,
    lowest,
    of_size,
)
from tests.support.process_costs import ProcessCosts

# Fitted to compactions; the codecs' come beside them.
_NAMES = (
    "start", "partition", "source_byte", "record", "near_byte", "kept_byte", "entry",
    "compared_record",
)  # fmt: skip
_AUDIT_NAMES = ("audit_start", "audited_partition", "audited_segment", "audited_batch")
_CODECS = 5


def units() -> Iterator[Rates]:
    """One constant 1 each, the others 0."""
    for name in _NAMES:
        yield replace(NO_RATES, **{name: 1.0})
    for codec in range(1, _CODECS):
        yield replace(NO_RATES, codecs=tuple(float(c == codec) for c in range(_CODECS)))


def fit(rows: Sequence[Sequence[float]], seconds: Sequence[float]) -> list[float]:
    """The constants, none below 0, whose sums have the least squares of relative errors."""
    matrix = np.array(rows) / np.array(seconds)[:, None]
    used = list(range(matrix.shape[1]))
    found = np.zeros(matrix.shape[1])
    while True:
        values = np.linalg.lstsq(matrix[:, used], np.ones(len(seconds)), rcond=None)[0]
        if (values >= 0).all():
            break
        used.pop(int(values.argmin()))
    found[used] = values
    return [float(value) for value in found]


def fitted(runs: Sequence[Compared], audits: Sequence[ProcessCosts]) -> Rates:
    """The constants of this machine."""
    rows = [[run.cost(unit).cpu_seconds for unit in units()] for run in runs]
    values = fit(rows, [run.took.cpu_seconds for run in runs])
    count = len(_NAMES)
    rates = replace(
        REFERENCE, **dict(zip(_NAMES, values, strict=False)), codecs=(0.0, *values[count:])
    )
    audit_units = [replace(NO_RATES, **{name: 1.0}) for name in _AUDIT_NAMES]
    rows = [[_audited(each, unit).cpu_seconds for unit in audit_units] for each in AUDITS]
    values = fit(rows, [took.cpu_seconds for took in audits])
    return replace(rates, **dict(zip(_AUDIT_NAMES, values, strict=True)))


def _audited(each: tuple[int, int, int], rates: Rates) -> Cost:
    topics, segments, batches = each
    partitions = topics * 10
    in_all = partitions * segments
    return audit_cost(partitions, in_all, in_all * batches, ONE_WORKER, rates)


def off(model: float, measured: float) -> float:
    """In percent."""
    return round(100 * (model / measured - 1), 1)


def line(name: str, cost: Cost, took: ProcessCosts, start: ProcessCosts, indexes: int) -> str:
    """A run held against the model. Of bytes those of a run over next to nothing are left out."""
    measured = took.cpu_seconds
    found = {
        "bench": "cost_model",
        "log": name,
        "cpuSeconds": round(measured, 2),
        "cpuOff": off(cost.cpu_seconds, measured),
        "peakMiB": round(took.peak_bytes / 2**20),
        "memoryOff": off(cost.memory_bytes, took.peak_bytes),
        "load": round(os.getloadavg()[0], 1),
    }
    read = took.bytes_read - start.bytes_read
    written = took.bytes_written - start.bytes_written - indexes
    if cost.bytes_written and name != "start":
        found["readOff"] = off(cost.bytes_read + cost.bytes_spilled, read)
        found["writtenOff"] = off(cost.bytes_written + cost.bytes_spilled, written)
    return json.dumps(found)


def runs_of(log: Log, rounds: int, work: Path, settle: float = 0) -> Compared:
    """The one with the lowest CPU."""
    source = work / "source"
    log.write(source)
    found = [compact(log, source, settle) for _ in range(rounds)]
    shutil.rmtree(source)
    return min(found, key=lambda run: run.took.cpu_seconds)


def main() -> None:
    """Fit, print, check, print."""
    parser = argparse.ArgumentParser(description="The cost model against whole runs.")
    parser.add_argument("--gib", type=float, nargs="*", default=[1, 4])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--settle", type=float, default=0, help="seconds before each larger run")
    parser.add_argument("--dir", type=Path, default=None, help="where to work")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.dir) as folder:
        work = Path(folder)
        runs_of(TO_FIT[0], 1, work)  # kernels compiled
        runs = [runs_of(log, args.rounds, work) for log in TO_FIT]
        audits = [lowest([audit(work / "data", *a) for _ in range(args.rounds)]) for a in AUDITS]
        rates = fitted(runs, audits)
        print(json.dumps({"bench": "cost_model", "fitted": asdict(rates)}), flush=True)
        print(json.dumps({"bench": "cost_model", "code": asdict(REFERENCE)}), flush=True)
        start = runs[0].took
        for run in runs:
            print(line(run.name, run.cost(rates), run.took, start, run.other_bytes_written))
        for each, took in zip(AUDITS, audits, strict=True):
            print(line(f"audit-{each}", _audited(each, rates), took, start, 0))
        sys.stdout.flush()
        for gib in args.gib:
            # The log, what is made of it, and keys spilled.
            if shutil.disk_usage(work).free < 2.5 * gib * 2**30:
                sys.stderr.write(f"{gib} GiB do not fit into {work}: left out\n")
                continue
            run = runs_of(of_size(gib), args.rounds if gib < 4 else 1, work, args.settle)
            text = line(run.name, run.cost(rates), run.took, start, run.other_bytes_written)
            print(text, flush=True)
        took = lowest([audit(work / "data", *LARGER_AUDIT) for _ in range(args.rounds)])
        print(line("larger-audit", _audited(LARGER_AUDIT, rates), took, start, 0))


if __name__ == "__main__":
    main()
