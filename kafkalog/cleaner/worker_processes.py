"""Compaction plans to results in worker processes; see `process_pool`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from kafkalog.cleaner.clean import CleanRun, clean_partition
from kafkalog.cleaner.process_pool import in_processes
from kafkalog.cleaner.stats import FAILED, CleanResult
from kafkalog.planning.compaction_plan import CompactionPlan


def clean_in_processes(
    plans: Sequence[CompactionPlan], run: CleanRun, workers: int
) -> Iterator[CleanResult]:
    """Carry the plans out, begun in the order given; see `in_processes`."""
    return in_processes(plans, partial(clean_partition, run=run), workers, _died)


def _died(plan: CompactionPlan) -> CleanResult:
    return CleanResult(
        topic=plan.topic_partition.topic,
        partition=plan.topic_partition.partition,
        log_dir=plan.log_dir,
        status=FAILED,
        reason="a worker process died: the next run finishes or undoes what it left",
        next_dirty_offset=None,
        seconds=0.0,
    )
