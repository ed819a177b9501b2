"""The constants of the cost model by runs that were measured, and the module that has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from kafkalog.planning import reference_rates
from kafkalog.planning.cost_model import Cost, Rates, audit_cost
from kafkalog.planning.reference_rates import REFERENCE
from tests.benchmarks.cost_runs import AUDITS, NO_RATES, ONE_WORKER, Compared
from tests.support.process_costs import ProcessCosts

# Fitted to compactions; the codecs' come beside them, the start is measured alone.
_NAMES = (
    "partition", "segment", "source_byte", "again_byte", "cold_byte", "record", "near_byte",
    "kept_byte", "entry", "compared_record",
)  # fmt: skip
_AUDIT_NAMES = ("audited_partition", "audited_segment", "audited_batch")
_CODECS = 5
_MODULE = '''"""The constants of `cost_model` on the reference machine: {machine}.

Written by `python -m tests.benchmarks.bench_cost_model --write`, which fits them to whole runs, but
for Spark's own and `wait_byte`, which are single figures of docs/benchmarks.md.
"""

from __future__ import annotations

from kafkalog.planning.cost_model import Rates

REFERENCE = Rates(
{lines}
)
'''


def fitted(runs: Sequence[Compared], audits: Sequence[ProcessCosts]) -> Rates:
    """The constants of this machine. The first of each are runs over next to nothing: the start."""
    start, audit_start = runs[0].took.cpu_seconds, audits[0].cpu_seconds
    rows = [[run.cost(unit).cpu_seconds for unit in _units()] for run in runs[1:]]
    values = fit(rows, [run.took.cpu_seconds for run in runs[1:]], start)
    count = len(_NAMES)
    found = dict(zip(_NAMES, values[:count], strict=True))
    codecs = (0.0, *values[count:])
    audit_units = [replace(NO_RATES, **{name: 1.0}) for name in _AUDIT_NAMES]
    rows = [[audited(each, unit).cpu_seconds for unit in audit_units] for each in AUDITS[1:]]
    values = fit(rows, [took.cpu_seconds for took in audits[1:]], audit_start)
    found |= dict(zip(_AUDIT_NAMES, values, strict=True))
    # The start has loaded less than a run does that has something to do.
    found["base_bytes"] = base([(run.cost(NO_RATES), run.took) for run in runs[1:]])
    audited_alone = [audited(each, NO_RATES) for each in AUDITS]
    found["audit_base_bytes"] = base(list(zip(audited_alone, audits, strict=True)))
    return replace(REFERENCE, start=start, audit_start=audit_start, codecs=codecs, **found)


def base(runs: Sequence[tuple[Cost, ProcessCosts]]) -> float:
    """The memory of a process beyond what the model says that makes the largest relative error of
    all runs the least: a peak is that of the start for some, of the work for others.
    """
    beyond = [took.peak_bytes - cost.memory_bytes for cost, took in runs]
    candidates = np.linspace(max(min(beyond), 0), max(*beyond, 0), 200)
    return min(
        (float(candidate) for candidate in candidates),
        key=lambda value: max(
            abs((cost.memory_bytes + value) / max(took.peak_bytes, 1) - 1) for cost, took in runs
        ),
    )


def fit(rows: Sequence[Sequence[float]], seconds: Sequence[float], start: float) -> list[float]:
    """The constants, none below 0, whose sums with the start have the least squares of errors
    relative to the seconds.
    """
    measured = np.array(seconds)
    matrix = np.array(rows) / measured[:, None]
    wanted = np.maximum(measured - start, 0) / measured
    used = list(range(matrix.shape[1]))
    found = np.zeros(matrix.shape[1])
    # Columns are seconds a byte and seconds a segment: far apart unless each is made 1.
    scale = np.maximum(np.abs(matrix).max(axis=0), 1e-300)
    while True:
        values = np.linalg.lstsq((matrix / scale)[:, used], wanted, rcond=None)[0]
        if (values >= 0).all():
            break
        used.pop(int(values.argmin()))
    found[used] = values
    return [float(value) for value in found / scale]


def audited(each: tuple[int, int, int], rates: Rates) -> Cost:
    """What the model makes of an audit of so many topics, segments, batches."""
    topics, segments, batches = each
    partitions = topics * 10
    in_all = partitions * segments
    return audit_cost(partitions, in_all, in_all * batches, ONE_WORKER, rates)


def _units() -> Iterator[Rates]:
    """One constant 1 each, the others 0."""
    for name in _NAMES:
        yield replace(NO_RATES, **{name: 1.0})
    for codec in range(1, _CODECS):
        yield replace(NO_RATES, codecs=tuple(float(c == codec) for c in range(_CODECS)))


def rounded(rates: Rates) -> Rates:
    """To three digits, as they are written."""
    values = {field.name: getattr(rates, field.name) for field in fields(Rates)}
    return Rates(**{name: _rounded(value) for name, value in values.items()})


def _rounded(value: float | tuple[float, ...]) -> float | tuple[float, ...]:
    if isinstance(value, tuple):
        return tuple(float(f"{each:.3g}") for each in value)
    return float(f"{value:.3g}")


def module_text(rates: Rates, machine: str) -> str:
    """`kafkalog.planning.reference_rates` with these constants."""
    values = {field.name: getattr(rounded(rates), field.name) for field in fields(Rates)}
    lines = "\n".join(f"    {name}={value!r}," for name, value in values.items())
    return _MODULE.format(machine=machine, lines=lines)


def write_module(rates: Rates, machine: str) -> None:
    """In the place of the constants that are there."""
    Path(reference_rates.__file__).write_text(module_text(rates, machine), encoding="utf-8")
