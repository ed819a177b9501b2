"""Plans to results by the strategy each plan names, for executors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from kafkalog.errors import CodeDiffersError, describe_error, fault_text
from kafkalog.operations.across_tasks import OVERFLOW, AcrossTasks, across_tasks
from kafkalog.operations.clean_result import CleanResult, failed_result
from kafkalog.operations.clean_run import CleanRun
from kafkalog.planning.compaction_plan import ACROSS_TASKS, CompactionPlan

RunAcross = Callable[[AcrossTasks], Iterable[CleanResult]]
RunWithin = Callable[[Sequence[CompactionPlan]], Iterable[CleanResult]]


def execute_by_strategy(
    plans: Sequence[CompactionPlan], run: CleanRun, run_across: RunAcross, run_within: RunWithin
) -> Iterator[CleanResult]:
    """Those across tasks one after the other, each with all workers; then all others side by side,
    and with them the ones of which a segment has to be split.
    """
    within = [plan for plan in plans if plan.strategy != ACROSS_TASKS]
    for plan in plans:
        if plan.strategy != ACROSS_TASKS:
            continue
        try:
            results = list(run_across(across_tasks([plan], run)))
        except CodeDiffersError:
            raise  # so it would be with each partition
        except Exception as error:
            results = [failed_result(plan, describe_error(error, plan.path), fault_text(error))]
        for result in results:
            if result.reason.startswith(OVERFLOW):
                within.append(plan)
            else:
                yield result
    yield from run_within(within)
