"""The frame of `undo` and `purge`, which change what an earlier run holds: find that run, lock its
log dirs, resolve what was interrupted, do the verb's work place by place, note the results.

They do not go through `frame.apply`: the earlier run's journal tells which partitions there are, so
nothing is selected, planned or judged by settings, no worker is needed, and what was done is noted
in that journal, not in one of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kafkalog.clock import now_ms
from kafkalog.errors import LogChangedError, describe_error, fault_text
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.operations.run_history import (
    Changes,
    Place,
    held_at,
    log_dirs_of,
    open_history,
    scratch_of,
)
from kafkalog.operations.run_steps import Tell, lock_log_dirs
from kafkalog.planning.statuses import FAILED, REFUSED
from kafkalog.runs.journal import append_events
from kafkalog.runs.run_dir import Run
from kafkalog.swap.interrupted_swap import resolve_interrupted_swap
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.partition_lock import wait_for_other_runs
from kafkalog.swap.replacement import drop_undo
from kafkalog.swap.scratch import Scratch

UNDONE = "undone"
PURGED = "purged"
NOTHING = "nothing"  # nothing of it is kept


@dataclass(frozen=True, slots=True)
class UndoResult:
    """What became of one partition: `undone`, `purged`, `nothing`, `refused` or `failed`, and why.
    `files` is how many came back, `freed_bytes` the space that became free.
    """

    place: Place
    status: str
    reason: str = ""
    files: int = 0
    freed_bytes: int = 0
    fault: str = ""


@dataclass(frozen=True, slots=True)
class UndoRun:
    """What an undo or a purge did. resolved: interrupted changes it found, and what became of
    them.
    """

    run_id: str
    results: tuple[UndoResult, ...]
    resolved: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def faults(self) -> tuple[str, ...]:
        """Tracebacks of faults of ours."""
        return tuple(f"{r.place.topic_partition}: {r.fault}" for r in self.results if r.fault)


@dataclass(slots=True)
class EarlierRun:
    """The run that is undone or purged, while its log dirs are locked. `present`: its partitions
    that are still there; `results`: by path, of those that have come to their end.
    """

    run: Run
    places: Sequence[Place]
    changed: Changes
    files: LocalFiles
    present: list[Place] = field(default_factory=list)
    results: dict[str, UndoResult] = field(default_factory=dict)
    resolved: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def run_id(self) -> str:
        return self.run.path.name

    @property
    def waiting(self) -> list[Place]:
        """The partitions without a result."""
        return [place for place in self.present if place.path not in self.results]

    @property
    def stopped(self) -> set[tuple[str, TopicPartition]]:
        """Log dir and name of the partitions that stay as they are."""
        return {
            (place.log_dir, place.topic_partition)
            for place in self.present
            if place.path in self.results and self.results[place.path].status in (REFUSED, FAILED)
        }

    def for_each(self, work: Callable[[Place], UndoResult | None]) -> None:
        """Do this for each partition that waits; with a result, or an error, it is at its end."""
        for place in self.waiting:
            try:
                result = work(place)
            except Exception as error:
                result = failed_result(place, error)
            if result is not None:
                self.results[place.path] = result

    def resolve(self, place: Place) -> None:
        """Finish or undo what was interrupted in a partition, by whomever."""
        done = resolve_interrupted_swap(place.path, self.files)
        self.resolved += (f"{place.topic_partition}: {line}" for line in done)

    def drop_checkpoints(self, places: Iterable[Place]) -> None:
        """Remove the kept checkpoint files, where no partition of the log dir is held any more."""
        places = list(places)
        log_dirs = {log_dir for log_dir, _ in self.changed} | {place.log_dir for place in places}
        for log_dir in sorted(log_dirs):
            try:
                held = [held_at(scratch_of(p, self.run_id)) for p in places if p.log_dir == log_dir]
                if all(size is None for size in held) and Path(log_dir).is_dir():
                    drop_undo(Scratch(log_dir, self.run_id), self.files)
            except OSError as error:
                self.problems.append(describe_error(error, log_dir))

    def finish(self, event: str, results: Sequence[UndoResult], tell: Tell) -> UndoRun:
        """Note the results in the run's journal under this event, and tell them."""
        events = [
            {
                "event": event,
                "topic": result.place.topic_partition.topic,
                "partition": result.place.topic_partition.partition,
                "path": result.place.path,
                "status": result.status,
                "reason": result.reason,
            }
            for result in results
        ]
        try:
            append_events(self.run.path, events, at_ms=now_ms())
        except OSError as error:
            self.problems.append(f"{self.run.path}: the journal is not whole: {error.strerror}")
        for line in (*self.resolved, *self.problems, *map(_describe, results)):
            tell(line)
        return UndoRun(self.run_id, tuple(results), tuple(self.resolved), tuple(self.problems))


@contextmanager
def locked_run(run_dir: Path, run_id: str, files: LocalFiles | None) -> Iterator[EarlierRun]:
    """The run, its log dirs locked and its partitions resolved; those that cannot be resolved have
    a result.

    InvalidConfigError if there is no such run that changed logs, LogDirLockedError if a log dir is
    locked: then nothing was changed.
    """
    run, places, changed = open_history(run_dir, run_id)
    earlier = EarlierRun(run, places, changed, files or LocalFiles())
    earlier.present += (place for place in places if Path(place.path).is_dir())
    paths = [place.path for place in earlier.present]
    with lock_log_dirs(log_dirs_of(run, earlier.present), paths):
        for path in paths:
            wait_for_other_runs(path)
        earlier.for_each(earlier.resolve)
        yield earlier


def failed_result(place: Place, error: Exception) -> UndoResult:
    """The result of a partition that this error stopped."""
    status = REFUSED if isinstance(error, LogChangedError) else FAILED
    return UndoResult(place, status, describe_error(error, place.path), fault=fault_text(error))


def _describe(result: UndoResult) -> str:
    """One line about a partition for people."""
    name = result.place.topic_partition
    if result.status == UNDONE and not result.reason:
        return f"{name}: {result.files} files are back"
    if result.status == PURGED:
        return f"{name}: {result.freed_bytes} bytes are free"
    return f"{name}: {result.status}: {result.reason}"
