"""Undo a run, give the space of its replaced files back, and list what runs hold.

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
from typing import Any

from kafkalog.cleaning.cleaner_stats import FAILED, REFUSED
from kafkalog.clock import now_ms
from kafkalog.errors import InvalidConfigError, LogChangedError
from kafkalog.format.checkpoints import CLEANER_OFFSET_FILE, LOG_START_OFFSET_FILE
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.operations.run_steps import Tell, lock_log_dirs
from kafkalog.runs.journal import append_events, read_events
from kafkalog.runs.run_dir import Run, list_runs, open_run
from kafkalog.swap.checkpoint import CheckpointFile
from kafkalog.swap.interrupted_swap import recover_partition
from kafkalog.swap.journal import KINDS
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.partition_lock import wait_for_other_runs
from kafkalog.swap.plan_check import describe_error, fault_text
from kafkalog.swap.replacement import Replacement, drop_undo, held_bytes
from kafkalog.swap.scratch import Scratch
from kafkalog.swap.undo_swap import check_undo, end_undo, read_undo_record, undo_partition

UNDONE = "undone"
PURGED = "purged"
NOTHING = "nothing"  # nothing of it is kept

# By log dir and file, by partition: before and after of each change.
_Changed = dict[tuple[str, str], dict[tuple[str, int], list[tuple[int | None, int | None]]]]


@dataclass(frozen=True, slots=True)
class Place:
    """A partition that a run planned to change."""

    topic_partition: TopicPartition
    path: str
    log_dir: str


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


@dataclass(frozen=True, slots=True)
class HeldRun:
    """One run of the run dir, and what it still holds."""

    run_id: str
    kind: str
    started: str
    finished: str | None
    partitions: int
    held_partitions: int
    held_bytes: int


def undo_run(
    run_dir: Path, run_id: str, tell: Tell = lambda _: None, files: LocalFiles | None = None
) -> UndoRun:
    """Put back what a run replaced, holding the locks of its log dirs.

    InvalidConfigError if there is no such run that changed logs, LogDirLockedError if a log dir is
    locked: then nothing was changed.
    """
    files = files or LocalFiles()
    run, places, changed = _open(run_dir, run_id)
    results: dict[str, UndoResult] = {}
    resolved: list[str] = []
    problems: list[str] = []
    present = [place for place in places if Path(place.path).is_dir()]
    with lock_log_dirs(_log_dirs(run, present)):
        records: dict[str, Replacement | None] = {}
        for place in present:
            wait_for_other_runs(place.path)
            try:
                done = recover_partition(place.path, files)
                resolved += (f"{place.topic_partition}: {line}" for line in done)
                record = read_undo_record(_scratch(place, run_id))
                if record is not None:
                    check_undo(_scratch(place, run_id), record)
                records[place.path] = record
            except Exception as error:
                results[place.path] = _failed(place, error)
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
            problems += _drop_checkpoints(changed, places, run_id, files)
    gone = (UndoResult(p, REFUSED, "there is no such directory any more") for p in places)
    ended = tuple(results.get(result.place.path, result) for result in gone)
    problems += _note(run, "undone", ended)
    for line in (*resolved, *problems, *map(told, ended)):
        tell(line)
    return UndoRun(run_id, ended, tuple(resolved), tuple(problems))


def purge_run(
    run_dir: Path, run_id: str, tell: Tell = lambda _: None, files: LocalFiles | None = None
) -> UndoRun:
    """Remove what a run keeps: it cannot be undone any more. Raises as `undo_run`."""
    files = files or LocalFiles()
    run, places, changed = _open(run_dir, run_id)
    results: list[UndoResult] = []
    resolved: list[str] = []
    present = [place for place in places if Path(place.path).is_dir()]
    with lock_log_dirs(_log_dirs(run, present)):
        for place in present:
            wait_for_other_runs(place.path)
            try:
                done = recover_partition(place.path, files)
                resolved += (f"{place.topic_partition}: {line}" for line in done)
                freed = drop_undo(_scratch(place, run_id), files)
                results.append(UndoResult(place, PURGED, freed_bytes=freed))
            except Exception as error:
                results.append(_failed(place, error))
        problems = _drop_checkpoints(changed, present, run_id, files)
    problems += _note(run, "purged", results)
    for line in (*resolved, *problems, *map(told, results)):
        tell(line)
    return UndoRun(run_id, tuple(results), tuple(resolved), tuple(problems))


def held_runs(run_dir: Path) -> tuple[list[HeldRun], list[str]]:
    """Every run of a run dir, the oldest first; and what could not be read."""
    runs, problems = list_runs(run_dir)
    return [_held(run) for run in runs], problems


def told(result: UndoResult) -> str:
    """One line about a partition for people."""
    name = result.place.topic_partition
    if result.status == UNDONE:
        return f"{name}: {result.files} files are back"
    if result.status == PURGED:
        return f"{name}: {result.freed_bytes} bytes are free"
    return f"{name}: {result.status}: {result.reason}"


def _held(run: Run) -> HeldRun:
    places, _ = _changes(run)
    held = [_held_at(_scratch(place, run.path.name)) for place in places]
    finished = run.facts.get("finished")
    return HeldRun(
        run.path.name,
        str(run.facts.get("kind")),
        str(run.facts.get("started")),
        None if finished is None else str(finished),
        partitions=len(places),
        held_partitions=sum(size is not None for size in held),
        held_bytes=sum(size or 0 for size in held),
    )


def _held_at(scratch: Scratch) -> int | None:
    try:
        return held_bytes(scratch)
    except OSError:
        return None


def _open(run_dir: Path, run_id: str) -> tuple[Run, list[Place], _Changed]:
    run = open_run(run_dir, run_id)
    kind = run.facts.get("kind")
    if kind not in KINDS:
        raise InvalidConfigError(f"run {run_id} is of {kind}, which changes no log")
    places, changed = _changes(run)
    return run, places, changed


def _log_dirs(run: Run, places: Iterable[Place]) -> list[str]:
    """Those to lock: of the partitions, and those that the run had locked for links to them."""
    found = {str(Path(place.log_dir).resolve()): place.log_dir for place in places}
    options = run.facts.get("options")
    locked = options.get("lockedLogDirs", []) if isinstance(options, dict) else []
    for log_dir in locked if isinstance(locked, list) else []:
        if isinstance(log_dir, str) and Path(log_dir).is_dir():
            found.setdefault(str(Path(log_dir).resolve()), log_dir)
    return sorted(found.values())


def _changes(run: Run) -> tuple[list[Place], _Changed]:
    """The partitions that a run planned to change, and the checkpoint lines it changed."""
    places: dict[str, Place] = {}
    changed: _Changed = {}
    for event in read_events(run.path):
        try:
            if event["event"] == "planned":
                name = TopicPartition(str(event["topic"]), int(event["partition"]))
                path = str(event["path"])
                places[path] = Place(name, path, str(event["logDir"]))
            elif event["event"] == "checkpoint":
                lines = changed.setdefault((str(event["logDir"]), str(event["file"])), {})
                for line in event["lines"]:
                    key = str(line["topic"]), int(line["partition"])
                    change = _offset(line["before"]), _offset(line["after"])
                    lines.setdefault(key, []).append(change)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidConfigError(
                f"the journal cannot be understood: {error!r}", path=str(run.path)
            ) from None
    return list(places.values()), changed


def _offset(value: Any) -> int | None:
    return None if value is None else int(value)


def _scratch(place: Place, run_id: str) -> Scratch:
    return Scratch(place.path, run_id)


def _undo(place: Place, run_id: str, record: Replacement | None, files: LocalFiles) -> UndoResult:
    if record is None:
        return UndoResult(place, NOTHING, "nothing of it is kept")
    try:
        undo_partition(_scratch(place, run_id), record, files)
    except Exception as error:
        return _given_up(place, _failed(place, error), files)
    return UndoResult(place, UNDONE, files=len(record.every_kept) + (record.cut is not None))


def _forget(
    place: Place, run_id: str, record: Replacement | None, files: LocalFiles
) -> Iterator[str]:
    """Drop what is kept of a partition that is undone; why not, if it cannot be."""
    try:
        if record is not None:
            end_undo(_scratch(place, run_id), record, files)
    except OSError as error:
        why = describe_error(error, place.path)
        yield f"{place.topic_partition}: undone, but what was kept is there still: {why}"


def _given_up(place: Place, failed: UndoResult, files: LocalFiles) -> UndoResult:
    """The same after each group that was on its way back is back, or is not: a partition is never
    left in between. Undo can be repeated.
    """
    try:
        resolved = recover_partition(place.path, files)
    except Exception as error:
        why = describe_error(error, place.path)
        reason = f"{failed.reason}; cleaning up failed as well: {why}"
        return replace(failed, reason=reason, fault=failed.fault or fault_text(error))
    if not resolved:
        return failed
    return replace(failed, reason=f"{failed.reason} (interrupted: {'; '.join(resolved)})")


def _failed(place: Place, error: Exception) -> UndoResult:
    status = REFUSED if isinstance(error, LogChangedError) else FAILED
    return UndoResult(place, status, describe_error(error, place.path), fault=fault_text(error))


def _restore(
    changed: _Changed,
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


def _drop_checkpoints(
    changed: _Changed, places: Sequence[Place], run_id: str, files: LocalFiles
) -> list[str]:
    """Remove the kept checkpoint files, where no partition of the log dir is held any more."""
    problems = []
    log_dirs = {log_dir for log_dir, _ in changed} | {place.log_dir for place in places}
    for log_dir in sorted(log_dirs):
        try:
            held = [_held_at(_scratch(p, run_id)) for p in places if p.log_dir == log_dir]
            if all(size is None for size in held) and Path(log_dir).is_dir():
                drop_undo(Scratch(log_dir, run_id), files)
        except OSError as error:
            problems.append(describe_error(error, log_dir))
    return problems


def _note(run: Run, event: str, results: Sequence[UndoResult]) -> list[str]:
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
