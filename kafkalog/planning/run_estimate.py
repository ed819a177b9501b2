"""How long a run of compaction will take, by its plans, and how long it took.

What stays of a log is known only when it has been read: an estimate takes it that every record
stays, so that bytes are bounds and, by the constants, so is the time. What a machine needs less or
more than the reference machine, and what its logs lose, earlier runs have shown: where there are
any, the time is in their proportion of taken to estimated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kafkalog.log.inventory import JsonFacts
from kafkalog.planning.compaction_plan import ACROSS_TASKS, CLEAN, CompactionPlan
from kafkalog.planning.compaction_work import CompactionWork, Workers
from kafkalog.planning.cost_model import compaction_cost
from kafkalog.planning.packing import MIN_TASKS, TASK_BYTES, pack_count
from kafkalog.planning.reference_rates import REFERENCE
from kafkalog.texts import format_count

# What the time goes by.
REFERENCE_MACHINE = "reference-machine"
EARLIER_RUNS = "earlier-runs"

# So many of the newest runs count, and none below so many seconds by the constants: of a short one
# most is the start.
_NEWEST = 5
_LEAST_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class RunEstimate(JsonFacts):
    """Of a whole run: see `cost_model.Cost`. `workers` as estimated with; `basis`: what `seconds`
    and `cpu_seconds` go by; `reference_seconds`: `seconds` by the constants alone; `taken_seconds`:
    how long it took, None of a plan.
    """

    seconds: float
    cpu_seconds: float
    bytes_read: int
    bytes_written: int
    bytes_spilled: int
    bytes_shuffled: int
    memory_bytes: int
    tasks: int
    workers: int
    basis: str
    runs: int
    reference_seconds: float
    taken_seconds: float | None = None

    def taken(self, seconds: float) -> RunEstimate:
        """Compared with what it was."""
        return replace(self, taken_seconds=round(seconds, 3))

    def explain(self) -> str:
        """A few words for people, without what was taken."""
        by = "the constants of the reference machine"
        if self.basis == EARLIER_RUNS:
            by = format_count(self.runs, "earlier run")
        return f"in about {self.seconds:.1f} s by {by}"

    def document(self) -> dict[str, Any]:
        """As `compact --json` prints it."""
        return {
            "seconds": self.seconds,
            "takenSeconds": self.taken_seconds,
            "basis": self.basis,
            "runs": self.runs,
            "referenceSeconds": self.reference_seconds,
            "cpuSeconds": self.cpu_seconds,
            "bytesRead": self.bytes_read,
            "bytesWritten": self.bytes_written,
            "bytesSpilled": self.bytes_spilled,
            "bytesShuffled": self.bytes_shuffled,
            "memoryBytes": self.memory_bytes,
            "tasks": self.tasks,
            "workers": self.workers,
        }


def estimate_run(
    plans: Sequence[CompactionPlan],
    workers: Workers,
    earlier: Sequence[tuple[float, float]] = (),
    *,
    is_compared: bool = False,
    bytes_per_second: float | None = None,
) -> RunEstimate | None:
    """Of the plans that will be carried out; None if there is none. `earlier`: seconds by the
    constants, and seconds taken, of earlier runs, the newest first; `is_compared`: `--verify deep`;
    `bytes_per_second`: the most that the run may read and write.
    """
    works = [work_of(plan, is_compared=is_compared) for plan in plans if plan.status == CLEAN]
    if not works:
        return None
    within = [work.source_bytes for work in works if not work.across_tasks]
    packs = None
    if workers.on_spark:
        packs = pack_count(within, task_bytes=TASK_BYTES, min_tasks=MIN_TASKS)
    cost = compaction_cost(works, workers, REFERENCE, packs=packs)
    seconds = cost.seconds
    if bytes_per_second is not None:
        seconds = max(seconds, (cost.bytes_read + cost.bytes_written) / bytes_per_second)
    chosen = _that_count(earlier)
    ratio = sum(taken for _, taken in chosen) / sum(by for by, _ in chosen) if chosen else 1.0
    return RunEstimate(
        seconds=round(seconds * ratio, 3),
        cpu_seconds=round(cost.cpu_seconds * ratio, 3),
        bytes_read=cost.bytes_read,
        bytes_written=cost.bytes_written,
        bytes_spilled=cost.bytes_spilled,
        bytes_shuffled=cost.bytes_shuffled,
        memory_bytes=cost.memory_bytes,
        tasks=cost.tasks,
        workers=workers.count,
        basis=EARLIER_RUNS if chosen else REFERENCE_MACHINE,
        runs=len(chosen),
        reference_seconds=round(seconds, 3),
    )


def _that_count(earlier: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    return [(by, taken) for by, taken in earlier if by >= _LEAST_SECONDS and taken > 0][:_NEWEST]


def work_of(plan: CompactionPlan, *, is_compared: bool) -> CompactionWork:
    records = sum(plan.source_records)
    dirty = sum(
        count
        for source, count in zip(plan.sources, plan.source_records, strict=True)
        if source.base_offset >= plan.first_dirty_offset
    )
    codecs = REFERENCE.codecs
    # A damaged header states any number.
    known = [codec for codec in plan.codecs if codec < len(codecs)]
    return CompactionWork(
        source_bytes=plan.source_bytes,
        records=records,
        dirty_records=dirty,
        keys=max(dirty, 1),
        kept_bytes=plan.source_bytes,
        segments=len(plan.sources),
        groups=len(plan.groups),
        codec=max(known, key=lambda codec: codecs[codec], default=0),
        across_tasks=plan.strategy == ACROSS_TASKS,
        is_compared=is_compared,
    )
