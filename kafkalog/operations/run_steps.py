"""What every run does around its partitions, whatever the verb: lock, resolve leftovers, plan each
one by itself, and keep what went wrong with one away from the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, TypeVar

from kafkalog.errors import InvalidConfigError, describe_error, fault_text
from kafkalog.log.inventory import CLUSTER_METADATA_TOPIC, PartitionInventory, PartitionKind
from kafkalog.log.known_directory import KnownDirectory, known_directory
from kafkalog.log.log_dir import is_behind_link
from kafkalog.operations.run_frame import Run
from kafkalog.requests.run_request import RunRequest
from kafkalog.resources.forked_shares import in_shares
from kafkalog.swap.interrupted_swap import resolve_interrupted_swap
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.log_dir_lock import LogDirLock, check_no_writer, log_dirs_to_lock
from kafkalog.swap.partition_lock import wait_for_other_runs

Tell = Callable[[str], None]
Plan = TypeVar("Plan")


class Problems:
    """What goes wrong with one partition outside its own result, so that the others go on."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.texts = list(texts)
        self.faults: list[str] = []

    def note(self, name: object, error: Exception, directory: str, what: str = "") -> str:
        """Count an error's traceback if it is a fault of ours; the error in words."""
        fault = fault_text(error)
        if fault:
            self.faults.append(f"{name}: {fault}")
        return f"{name}: {what}{describe_error(error, directory)}"

    def add(self, run: Run[Any, Any]) -> None:
        """Those of a plan."""
        self.texts += run.problems
        self.faults += run.faults

    def add_faults(self, results: Iterable[tuple[str, str]]) -> None:
        """(name, traceback) of results; those without a traceback do not count."""
        self.faults += [f"{name}: {fault}" for name, fault in results if fault]


def plan_each(
    partitions: Iterable[PartitionInventory],
    plan: Callable[[PartitionInventory], Plan],
    problems: Problems,
    processes: int = 1,
) -> tuple[Plan, ...]:
    """A plan for each partition, made by so many processes; one that a fault of ours leaves without
    is a problem.

    InvalidConfigError for settings that are wrong for all.
    """
    plans = []
    share = partial(_plan_share, plan)
    for planned, own in in_shares(share, list(partitions), processes):
        problems.texts += own.texts
        problems.faults += own.faults
        plans += planned
    return tuple(plans)


def _plan_share(
    plan: Callable[[PartitionInventory], Plan], partitions: Iterable[PartitionInventory]
) -> list[tuple[list[Plan], Problems]]:
    """Of each partition its plan, if there is one, and what kept it from having one."""
    done = []
    for partition in partitions:
        planned, problems = [], Problems()
        try:
            planned.append(plan(partition))
        except InvalidConfigError:
            raise
        except Exception as error:
            name = partition.topic_partition
            problems.texts.append(problems.note(name, error, partition.path, "not planned: "))
        done.append((planned, problems))
    return done


@contextmanager
def locked_log_dirs(
    request: RunRequest,
) -> Iterator[tuple[list[str], Mapping[str, KnownDirectory]]]:
    """Hold the lock of every log dir of the selected partitions; all these log dirs, and what was
    seen of each directory before, so that only those are read again that have changed meanwhile.

    Raises InvalidConfigError if no topic is named, LogDirLockedError if a log dir is locked, or a
    partition is written to by a process that holds another log dir's lock.
    """
    if not request.topics:
        raise InvalidConfigError("--apply needs --topic; --topic '*' takes all")
    found = request.open_all({})
    partitions = request.select(found)
    log_dirs = log_dirs_to_lock(partitions)
    seen = ((partition.path, known_directory(partition)) for partition in found)
    known = {path: directory for path, directory in seen if directory is not None}
    with lock_log_dirs(log_dirs, [partition.path for partition in partitions]):
        yield log_dirs, known


@contextmanager
def lock_log_dirs(log_dirs: Iterable[str], partitions: Iterable[str]) -> Iterator[None]:
    """Hold the locks of these log dirs; LogDirLockedError if one is held by somebody else, or
    somebody writes to one of these partitions without it.
    """
    with ExitStack() as locks:
        for log_dir in log_dirs:
            locks.enter_context(LogDirLock(log_dir))
        check_no_writer(partitions)
        yield


def resolve_interrupted_swaps(
    partitions: Iterable[PartitionInventory], files: LocalFiles, problems: Problems
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
        if is_behind_link(partition):
            continue
        # Listed while the locks were held: neither files of a run nor the lock of a task of one.
        if not (partition.leftovers or partition.other_segments or partition.deleted_files):
            continue
        wait_for_other_runs(partition.path)
        try:
            for line in resolve_interrupted_swap(partition.path, files):
                yield f"{name}: {line}"
        except Exception as error:
            what = "an interrupted cleaning is not resolved: "
            yield problems.note(name, error, partition.path, what)
