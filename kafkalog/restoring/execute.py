"""Who carries out the tasks of a restore: this process, or Spark tasks on hosts that see the same
paths. The lock of the target's log dirs is the driver's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from kafkalog.restoring.new_directory import stage_directory
from kafkalog.restoring.restore import RestoreResult, RestoreTask, restore_partition
from kafkalog.swap.local_files import LocalFiles

# How tasks become results, in any order; a task whose worker died has none.
RestoreExecutor = Callable[[Sequence[RestoreTask]], Iterable[RestoreResult]]


def carry_out_task(task: RestoreTask, files: LocalFiles) -> RestoreResult:
    """A partition of a topic that is there, or one that is made with its topic."""
    if task.new_topic_id is None:
        return restore_partition(task, files)
    return stage_directory(task, files)


def in_this_process(files: LocalFiles) -> RestoreExecutor:
    """One after the other."""

    def execute(tasks: Sequence[RestoreTask]) -> Iterator[RestoreResult]:
        return (carry_out_task(task, files) for task in tasks)

    return execute
