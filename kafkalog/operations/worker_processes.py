"""Compaction plans to results in worker processes; see `process_pool` and `clean_pack`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from kafkalog.operations.across_tasks import AcrossTasks
from kafkalog.operations.clean_result import CleanResult
from kafkalog.operations.clean_run import CleanRun
from kafkalog.operations.compact_pack import clean_pack, pack_plans
from kafkalog.operations.compact_strategies import execute_by_strategy
from kafkalog.planning.compaction_plan import CompactionPlan
from kafkalog.resources.process_pool import in_processes
from kafkalog.resources.staged_tasks import run_stages

# Results come a pack at a time: small enough that one sees how far the run has come.
_PACK_BYTES = 32 * 1024 * 1024
_PACKS_PER_WORKER = 16


def clean_in_processes(
    plans: Sequence[CompactionPlan], run: CleanRun, workers: int
) -> Iterator[CleanResult]:
    """Carry the plans out, the largest begun first, or in the order given where the run may end
    early; see `in_processes`.
    """
    return execute_by_strategy(
        plans,
        run,
        lambda across: _run_across(across.shared_by(workers), workers),
        lambda within: _in_packs(within, run, workers),
    )


def _run_across(across: AcrossTasks, workers: int) -> list[CleanResult]:
    """The result of each plan that was not forgotten by a worker's death."""
    stages = across.merge, across.rewrite
    return run_stages(len(across.map_tasks), across.map, stages, across.swap, workers)


def _in_packs(
    plans: Sequence[CompactionPlan], run: CleanRun, workers: int
) -> Iterator[CleanResult]:
    # What a worker that died was at is the next run's to resolve: nobody does its tasks again.
    run = replace(run, may_repeat=False)
    if min(workers, len(plans)) <= 1:
        yield from clean_pack(plans, run)
        return
    run = run.shared_by(min(workers, len(plans)))
    packs = pack_plans(plans, run, task_bytes=_PACK_BYTES, min_tasks=_PACKS_PER_WORKER * workers)
    for results in in_processes(packs, partial(_clean_all, run=run), workers, _died):
        yield from results


def _clean_all(plans: Sequence[CompactionPlan], run: CleanRun) -> list[CleanResult]:
    return list(clean_pack(plans, run))


def _died(plans: Sequence[CompactionPlan]) -> list[CleanResult]:
    """None: whoever asked knows which plans have no result."""
    return []
