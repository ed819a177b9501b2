"""Plans to results in worker processes of this machine: what the command line uses in place of
Spark tasks.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from kafkalog.cleaner.clean import CleanRun, clean_partition
from kafkalog.cleaner.stats import FAILED, CleanResult
from kafkalog.planning.compaction_plan import CompactionPlan


def clean_in_processes(
    plans: Sequence[CompactionPlan], run: CleanRun, workers: int
) -> Iterator[CleanResult]:
    """Results in the order they come, the largest partitions started first; in this process if one
    worker is enough.

    A worker that dies (killed, out of memory) fails the partitions that had no result yet; the next
    run resolves what it left.
    """
    workers = min(workers, len(plans))
    if workers <= 1:
        for plan in plans:
            yield clean_partition(plan, run)
        return
    largest_first = sorted(plans, key=lambda plan: -(plan.clean_bytes + plan.cleanable_bytes))
    # fork: kernels are loaded once, before; no thread runs yet that a child could miss.
    with ProcessPoolExecutor(workers, multiprocessing.get_context("fork")) as pool:
        waiting = {pool.submit(clean_partition, plan, run): plan for plan in largest_first}
        for future in as_completed(waiting):
            try:
                yield future.result()
            except BrokenProcessPool:
                yield CleanResult(
                    topic=waiting[future].topic_partition.topic,
                    partition=waiting[future].topic_partition.partition,
                    log_dir=waiting[future].log_dir,
                    status=FAILED,
                    reason="a worker process died: the next run finishes or undoes what it left",
                    next_dirty_offset=None,
                    seconds=0.0,
                )
