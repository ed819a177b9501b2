"""Undo a run: put back what it replaced.

The journal says which partitions a run planned to change; what it replaced is told by the records
in those directories. Each partition is undone or refused by itself. The order keeps every state on
the way one a broker may start on: a cleaner checkpoint goes back before the segments do (cleaning
more than is due costs time only), a log start after them. What is kept goes when all of that is
done in a log dir: until then `undo` can be repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kafkalog.clock import now_ms
from kafkalog.errors import LogChangedError, describe_error, fault_text
from kafkalog.format.checkpoints import CLEANER_OFFSET_FILE, LOG_START_OFFSET_FILE
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
from kafkalog.swap.checkpoint import CheckpointFile
from kafkalog.swap.interrupted_swap import resolve_interrupted_swap
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.partition_lock import wait_for_other_runs
from kafkalog.swap.replacement import Replacement, drop_undo
from kafkalog.swap.scratch import Scratch
from kafkalog.swap.undo_swap import check_undo, end_undo, read_undo_record, undo_partition

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


def undo_run(
    run_dir: Path, run_id: str, tell: Tell = lambda _: None, files: LocalFiles | None = None
) -> UndoRun:
    """Put back what a run replaced, holding the locks of its log dirs.

    InvalidConfigError if there is no such run that changed logs, LogDirLockedError if a log dir is
    locked: then nothing was changed.
    """
    files = files or LocalFiles()
    run, places, changed = open_history(run_dir, run_id)
    results: dict[str, UndoResult] = {}
    resolved: list[str] = []
    problems: list[str] = []
    present = [place for place in places if Path(place.path).is_dir()]
    with lock_log_dirs(log_dirs_of(run, present), [place.path for place in present]):
        records: dict[str, Replacement | None] = {}
        for place in present:
            wait_for_other_runs(place.path)
            try:
                done = resolve_interrupted_swap(place.path, files)
                resolved += (f"{place.topic_partition}: {line}" for line in done)
                record = read_undo_record(scratch_of(place, run_id))
                if record is not None:
                    check_undo(scratch_of(place, run_id), record)
                records[place.path] = record
            except Exception as error:
                results[place.path] = failed_result(place, error)
        stopped = {(p.log_dir, p.topic_partition) for p in places if p.path in results}
        unsettled = _restore(changed, CLEANER_OFFSET_FILE, run_id, stopped, files)
        for place in present:
            if place.path in records:
                results[place.path] = _undo(place, run_id, records[place.path], files)
        stopped = {
            (p.log_dir, p.topic_partition)
            for p in places
            if p.path in results and results[p.path].status in (REFUSED, FAILED)
        }
        unsettled |= _restore(changed, LOG_START_OFFSET_FILE, run_id, stopped, files)
        problems += unsettled.values()
        for place in present:
            if results[place.path].status == UNDONE and place.log_dir not in unsettled:
                problems += _forget(place, run_id, records[place.path], files)
        if not stopped and not unsettled:
            problems += drop_checkpoints(changed, places, run_id, files)
    gone = (UndoResult(p, REFUSED, "there is no such directory any more") for p in places)
    ended = tuple(results.get(result.place.path, result) for result in gone)
    problems += note_results(run, "undone", ended)
    for line in (*resolved, *problems, *map(describe_result, ended)):
        tell(line)
    return UndoRun(run_id, ended, tuple(resolved), tuple(problems))


def describe_result(result: UndoResult) -> str:
    """One line about a partition for people."""
    name = result.place.topic_partition
    if result.status == UNDONE:
        return f"{name}: {result.files} files are back"
    if result.status == PURGED:
        return f"{name}: {result.freed_bytes} bytes are free"
    return f"{name}: {result.status}: {result.reason}"


def _undo(place: Place, run_id: str, record: Replacement | None, files: LocalFiles) -> UndoResult:
    if record is None:
        return UndoResult(place, NOTHING, "nothing of it is kept")
    try:
        undo_partition(scratch_of(place, run_id), record, files)
    except Exception as error:
        return _given_up(place, failed_result(place, error), files)
    return UndoResult(place, UNDONE, files=len(record.every_kept) + (record.cut is not None))


def _forget(
    place: Place, run_id: str, record: Replacement | None, files: LocalFiles
) -> Iterator[str]:
    """Drop what is kept of a partition that is undone; why not, if it cannot be."""
    try:
        if record is not None:
            end_undo(scratch_of(place, run_id), record, files)
    except OSError as error:
        why = describe_error(error, place.path)
        yield f"{place.topic_partition}: undone, but what was kept is there still: {why}"


def _given_up(place: Place, failed: UndoResult, files: LocalFiles) -> UndoResult:
    """The same after each group that was on its way back is back, or is not: a partition is never
    left in between. Undo can be repeated.
    """
    try:
        resolved = resolve_interrupted_swap(place.path, files)
    except Exception as error:
        why = describe_error(error, place.path)
        reason = f"{failed.reason}; cleaning up failed as well: {why}"
        return replace(failed, reason=reason, fault=failed.fault or fault_text(error))
    if not resolved:
        return failed
    return replace(failed, reason=f"{failed.reason} (interrupted: {'; '.join(resolved)})")


def failed_result(place: Place, error: Exception) -> UndoResult:
    status = REFUSED if isinstance(error, LogChangedError) else FAILED
    return UndoResult(place, status, describe_error(error, place.path), fault=fault_text(error))


def _restore(
    changed: Changes,
    file_name: str,
    run_id: str,
    stopped: Iterable[tuple[str, TopicPartition]],
    files: LocalFiles,
) -> dict[str, str]:
    """Give the lines of a checkpoint back but for partitions that stay as they are. Why not, by log
    dir, where it failed.
    """
    without = {(log_dir, name.topic, name.partition) for log_dir, name in stopped}
    failed = {}
    for (log_dir, name), lines in changed.items():
        if name != file_name:
            continue
        back = {key: line for key, line in lines.items() if (log_dir, *key) not in without}
        try:
            CheckpointFile(log_dir, name, files).restore(run_id, back)
        except Exception as error:
            why = describe_error(error, log_dir)
            failed[log_dir] = f"{log_dir}: {name} was not put back: {why}"
    return failed


def drop_checkpoints(
    changed: Changes, places: Sequence[Place], run_id: str, files: LocalFiles
) -> list[str]:
    """Remove the kept checkpoint files, where no partition of the log dir is held any more."""
    problems = []
    log_dirs = {log_dir for log_dir, _ in changed} | {place.log_dir for place in places}
    for log_dir in sorted(log_dirs):
        try:
            held = [held_at(scratch_of(p, run_id)) for p in places if p.log_dir == log_dir]
            if all(size is None for size in held) and Path(log_dir).is_dir():
                drop_undo(Scratch(log_dir, run_id), files)
        except OSError as error:
            problems.append(describe_error(error, log_dir))
    return problems


def note_results(run: Run, event: str, results: Sequence[UndoResult]) -> list[str]:
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
        append_events(run.path, events, at_ms=now_ms())
    except OSError as error:
        return [f"{run.path}: the journal is not whole: {error.strerror}"]
    return []
