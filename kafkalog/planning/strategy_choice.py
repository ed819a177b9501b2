"""Which large partitions of a run are worth all workers, one after the other.

A partition across tasks keeps all workers busy, at the price of a shuffle and of stages that wait
for each other; within a task it costs less CPU, but takes its time whatever the workers. So what
counts is how many partitions there are to fill the workers with. Strategy: across tasks go the
longest so many, the others within; the time of the run is asked of the cost model for each such
number, and the least one is taken. Bytes that are written are the same either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from kafkalog.planning.compaction_plan import CLEAN, WITHIN_TASK, CompactionPlan
from kafkalog.planning.compaction_work import CompactionWork, Workers
from kafkalog.planning.cost_model import compaction_cost
from kafkalog.planning.reference_rates import REFERENCE
from kafkalog.planning.run_estimate import work_of

# Of the whole run, whatever the strategies.
_NO_START = replace(REFERENCE, start=0.0, first_job=0.0)


def weigh_strategies(
    plans: Sequence[CompactionPlan], workers: Workers, *, is_compared: bool = False
) -> list[CompactionPlan]:
    """The plans, of which some that were to be across tasks are within one now. `is_compared`:
    `--verify deep`.
    """
    asked = [plan for plan in plans if plan.status == CLEAN]
    works = {plan.path: work_of(plan, is_compared=is_compared) for plan in asked}
    large = [plan.path for plan in asked if works[plan.path].across_tasks]
    if not large:
        return list(plans)
    alone = {path: _seconds(replace(w, across_tasks=False), workers) for path, w in works.items()}
    large.sort(key=lambda path: -alone[path])
    small = [alone[path] for path in works if not works[path].across_tasks]
    shared = [_seconds(works[path], workers) for path in large]
    across = 0  # one worker has nobody to share with
    if workers.count > 1:
        across = _best(shared, [alone[path] for path in large], small, workers.count)
    within = set(large[across:])
    return [replace(p, strategy=WITHIN_TASK) if p.path in within else p for p in plans]


def _seconds(work: CompactionWork, workers: Workers) -> float:
    return compaction_cost([work], workers, _NO_START).seconds


def _best(
    shared: Sequence[float], alone: Sequence[float], small: Sequence[float], workers: int
) -> int:
    """How many of the first to do across tasks: `shared` and `alone` are their seconds across and
    within tasks, the longest first; `small` are seconds of what is within in any case.
    """
    before = [0.0, *accumulate(shared)]
    behind = [*accumulate(reversed(alone), initial=sum(small))][::-1]
    longest_small = max(small, default=0.0)

    def seconds(across: int) -> float:
        tasks = len(alone) - across + len(small)
        longest = max(alone[across] if across < len(alone) else 0.0, longest_small)
        return before[across] + max(behind[across] / max(min(workers, tasks), 1), longest)

    return min(range(len(alone) + 1), key=seconds)
