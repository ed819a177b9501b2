"""A comparison of all partitions asked for, a task each, largest first.

The command line and Spark do the same and differ in how tasks become results (`Executor`). Nothing
is changed and no lock is taken; copies of a cluster that runs differ by what was written meanwhile,
which shows as records that one copy does not have yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kafkalog.comparing.comparison import COMPARED, FAILED
from kafkalog.comparing.difference import ComparedPartition, Difference
from kafkalog.comparing.request import CompareRequest, CompareTask, compare_tasks

Executor = Callable[[Sequence[CompareTask]], Iterable[ComparedPartition]]


@dataclass(frozen=True, slots=True)
class CompareRun:
    """What a run found, by topic and partition; bytes_read: of all copies."""

    partitions: tuple[ComparedPartition, ...]
    bytes_read: int

    @property
    def differences(self) -> list[Difference]:
        """Of all partitions."""
        return [each for partition in self.partitions for each in partition.differences]

    @property
    def failed(self) -> list[ComparedPartition]:
        """Those that could not be compared."""
        return [each for each in self.partitions if each.status == FAILED]

    @property
    def has_failures(self) -> bool:
        """Whether anything differs, or could not be compared."""
        return bool(self.differences) or bool(self.failed)


def compare_run(request: CompareRequest, execute: Executor) -> CompareRun:
    """Compare what is asked for.

    InvalidConfigError for paths and partitions that do not exist, log dirs of two clusters, and
    where no partition is there twice.
    """
    tasks = compare_tasks(request)
    largest_first = sorted(tasks, key=lambda task: -task.size_in_bytes)
    results = sorted(execute(largest_first), key=lambda each: each.topic_partition)
    done = {each.topic_partition for each in results if each.status == COMPARED}
    read = sum(task.size_in_bytes for task in tasks if task.topic_partition in done)
    return CompareRun(tuple(results), read)
