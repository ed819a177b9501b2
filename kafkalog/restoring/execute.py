"""Who carries out the tasks of a restore: this process, or Spark tasks on hosts that see the same
paths. The lock of the target's log dirs is the driver's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from kafkalog.restoring import beside
from kafkalog.restoring.new_directory import stage_directory
from kafkalog.restoring.restore import RestoreResult, RestoreTask, restore_partition
from kafkalog.swap.local_files import LocalFiles

# How tasks become results, in any order; a task whose worker died has none.
RestoreExecutor = Callable[[Sequence[RestoreTask]], Iterable[RestoreResult]]

# Of large logs: while one waits for the disk at its end the next one is copied.
_AT_ONCE = 2


def carry_out_task(task: RestoreTask, files: LocalFiles) -> RestoreResult:
    """A partition of a topic that is there, or one that is made with its topic."""
    if task.new_topic_id is None:
        return restore_partition(task, files)
    return stage_directory(task, files)


def in_this_process(files: LocalFiles) -> RestoreExecutor:
    """Small logs one after the other, then large ones two at a time."""
    work = partial(carry_out_task, files=files)

    def execute(tasks: Sequence[RestoreTask]) -> Iterator[RestoreResult]:
        large = [task for task in tasks if task.size_in_bytes >= beside.THREADS_FROM_BYTES]
        yield from (work(task) for task in tasks if task.size_in_bytes < beside.THREADS_FROM_BYTES)
        with ThreadPoolExecutor(_AT_ONCE, "kafkalog-restore") as threads:
            yield from threads.map(work, large)

    return execute
