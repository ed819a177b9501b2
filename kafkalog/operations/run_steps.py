"""What every run does around its partitions, whatever the verb: lock, resolve leftovers, plan each
one by itself, and keep what went wrong with one away from the others.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from kafkalog.errors import InvalidConfigError
from kafkalog.log.inventory import CLUSTER_METADATA_TOPIC, PartitionInventory, PartitionKind
from kafkalog.requests.run_request import RunRequest
from kafkalog.swap.interrupted_swap import recover_partition
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.log_dir_lock import LogDirLock, log_dirs_to_lock
from kafkalog.swap.partition_lock import wait_for_other_runs
from kafkalog.swap.plan_check import describe_error, fault_text

Tell = Callable[[str], None]
Plan = TypeVar("Plan")


class Troubles:
    """What goes wrong with one partition outside its own result, so that the others go on."""

    def __init__(self, problems: Iterable[str] = ()) -> None:
        self.problems = list(problems)
        self.faults: list[str] = []

    def note(self, name: object, error: Exception, directory: str, what: str = "") -> str:
        """Count an error's traceback if it is a fault of ours; the error in words."""
        fault = fault_text(error)
        if fault:
            self.faults.append(f"{name}: {fault}")
        return f"{name}: {what}{describe_error(error, directory)}"

    def add_faults(self, results: Iterable[tuple[str, str]]) -> None:
        """(name, traceback) of results; those without a traceback do not count."""
        self.faults += [f"{name}: {fault}" for name, fault in results if fault]


def new_run_id() -> str:
    """A name no other run has; part of the names of its scratch files, so letters and digits
    only.
    """
    return secrets.token_hex(6)


def plan_each(
    partitions: Iterable[PartitionInventory],
    plan: Callable[[PartitionInventory], Plan],
    troubles: Troubles,
) -> tuple[Plan, ...]:
    """A plan for each partition; one that a fault of ours leaves without is a problem.

    InvalidConfigError for settings that are wrong for all.
    """
    plans = []
    for partition in partitions:
        try:
            plans.append(plan(partition))
        except InvalidConfigError:
            raise
        except Exception as error:
            name = partition.topic_partition
            troubles.problems.append(troubles.note(name, error, partition.path, "not planned: "))
    return tuple(plans)


@contextmanager
def locked_log_dirs(request: RunRequest) -> Iterator[list[str]]:
    """Hold the lock of every log dir of the selected partitions, and of those in which links to
    them lie that were given; all these log dirs.

    Raises InvalidConfigError if no topic is named, LogDirLockedError if a log dir is locked.
    """
    if not request.topics:
        raise InvalidConfigError("--apply needs --topic; --topic '*' takes all")
    log_dirs = log_dirs_to_lock(request.open(), request.log_dirs)
    with lock_log_dirs(log_dirs):
        yield log_dirs


@contextmanager
def lock_log_dirs(log_dirs: Iterable[str]) -> Iterator[None]:
    """Hold the locks of these log dirs; LogDirLockedError if one is held by somebody else."""
    with ExitStack() as locks:
        for log_dir in log_dirs:
            locks.enter_context(LogDirLock(log_dir))
        yield


def recover_partitions(
    partitions: Iterable[PartitionInventory], files: LocalFiles, troubles: Troubles
) -> Iterator[str]:
    """Resolve what interrupted runs left, where anything may be changed at all; what was done.

    A partition that cannot be resolved is left to its plan, which refuses it. LogDirLockedError if
    a task of an earlier run is at work on one and does not end.
    """
    for partition in partitions:
        name = partition.topic_partition
        # A swap that crosses the log start looks like remote segments: it is resolved, too.
        if partition.kind is not PartitionKind.LIVE or name.topic == CLUSTER_METADATA_TOPIC:
            continue
        wait_for_other_runs(partition.path)
        try:
            for line in recover_partition(partition.path, files):
                yield f"{name}: {line}"
        except Exception as error:
            what = "an interrupted cleaning is not resolved: "
            yield troubles.note(name, error, partition.path, what)
