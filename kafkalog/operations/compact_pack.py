"""Several partitions in one task: large ones one after the other, of small ones a few at once.

Cleaning a small partition is mostly waiting for the disk: its new files are synced, and the names
they are given. The next ones are read, mapped and rewritten meanwhile, by threads that work in
turns: one at a time, but for those that wait for a sync. What holds for attempts of one partition
is not touched by that, each partition is one thread's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from queue import SimpleQueue

from kafkalog.log.pace import paced
from kafkalog.operations.clean_result import CleanResult
from kafkalog.operations.clean_run import CleanRun
from kafkalog.operations.compact_partition import clean_partition
from kafkalog.planning.compaction_plan import CompactionPlan
from kafkalog.planning.packing import pack_evenly
from kafkalog.resources.turns import Turns

# So many at once, of partitions that need little memory to be cleaned; of smaller ones as many as
# have no more bytes together: the file system's journal takes the syncs of all that wait at once.
THREADS, MOST_THREADS = 4, 16
SMALL_BYTES = 8 * 1024 * 1024


def pack_plans(
    plans: Sequence[CompactionPlan], run: CleanRun, *, task_bytes: int, min_tasks: int
) -> list[tuple[CompactionPlan, ...]]:
    """What each task is to clean. A run that may end early keeps its order, a partition a task."""
    if run.end_s is not None:
        return [(plan,) for plan in plans]
    return pack_evenly(
        plans, lambda plan: plan.source_bytes, task_bytes=task_bytes, min_tasks=min_tasks
    )


def clean_pack(plans: Sequence[CompactionPlan], run: CleanRun) -> Iterator[CleanResult]:
    """Carry the plans out; a result each, large partitions first, all in the order given where the
    run may end early. Closed before its end, or interrupted, it finishes what is begun and begins
    nothing further.
    """
    with paced(run.bytes_per_second):
        yield from _clean_all(plans, run)


def _clean_all(plans: Sequence[CompactionPlan], run: CleanRun) -> Iterator[CleanResult]:
    work = partial(clean_partition, run=run)
    if len(plans) == 1 or run.end_s is not None:
        yield from map(work, plans)
        return
    yield from map(work, [plan for plan in plans if plan.source_bytes > SMALL_BYTES])
    small = [plan for plan in plans if plan.source_bytes <= SMALL_BYTES]
    left, others = deque(small), threads_for(small) - 1
    done: SimpleQueue[CleanResult | BaseException] = SimpleQueue()

    def begin_others() -> None:
        nonlocal others
        count, others = min(others, len(left)), 0
        # Shut down where the run is interrupted: then nothing is left for them.
        with suppress(RuntimeError):
            for _ in range(count):
                pool.submit(work_off)

    turns, pool = Turns(begin_others), ThreadPoolExecutor(others + 1, "clean")

    def work_off() -> None:
        # From one partition to the next a thread keeps its turn: the memory it works in is in the
        # processor's cache, and that of each further thread has to be cleared by the system first.
        with turns:
            try:
                while left:
                    done.put(work(left.popleft()))
            except BaseException as error:
                done.put(error)

    try:
        pool.submit(work_off)
        for _ in small:
            result = done.get()
            if isinstance(result, BaseException):
                raise result
            yield result
    finally:
        left.clear()
        pool.shutdown()


def threads_for(plans: Sequence[CompactionPlan]) -> int:
    """How many of these are cleaned at once."""
    largest = max((plan.source_bytes for plan in plans), default=0)
    return max(THREADS, min(MOST_THREADS, THREADS * SMALL_BYTES // max(largest, 1)))
