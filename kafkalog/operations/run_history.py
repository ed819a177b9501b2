"""What a run of the run dir changed, as its journal says, and what it still holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafkalog.errors import InvalidConfigError
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.runs.journal import read_events
from kafkalog.runs.run_dir import Run, list_runs, open_run
from kafkalog.swap.journal import KINDS
from kafkalog.swap.replacement import held_bytes
from kafkalog.swap.scratch import Scratch

# By log dir and file, by partition: before and after of each change.
Changes = dict[tuple[str, str], dict[tuple[str, int], list[tuple[int | None, int | None]]]]


@dataclass(frozen=True, slots=True)
class Place:
    """A partition that a run planned to change."""

    topic_partition: TopicPartition
    path: str
    log_dir: str


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
    log_dirs: tuple[str, ...] = ()  # of these partitions


def held_runs(run_dir: Path) -> tuple[list[HeldRun], list[str]]:
    """Every run of a run dir, the oldest first; and what could not be read."""
    runs, problems = list_runs(run_dir)
    return [_held(run) for run in runs], problems


def _held(run: Run) -> HeldRun:
    places, _ = changes_of(run)
    held = [held_at(scratch_of(place, run.path.name)) for place in places]
    finished = run.facts.get("finished")
    return HeldRun(
        run.path.name,
        str(run.facts.get("kind")),
        str(run.facts.get("started")),
        None if finished is None else str(finished),
        partitions=len(places),
        held_partitions=sum(size is not None for size in held),
        held_bytes=sum(size or 0 for size in held),
        log_dirs=tuple(dict.fromkeys(place.log_dir for place in places)),
    )


def held_at(scratch: Scratch) -> int | None:
    try:
        return held_bytes(scratch)
    except OSError:
        return None


def open_history(run_dir: Path, run_id: str) -> tuple[Run, list[Place], Changes]:
    run = open_run(run_dir, run_id)
    kind = run.facts.get("kind")
    if kind not in KINDS:
        raise InvalidConfigError(f"run {run_id} is of {kind}, which changes no log")
    places, changed = changes_of(run)
    return run, places, changed


def log_dirs_of(run: Run, places: Iterable[Place]) -> list[str]:
    """Those to lock: of the partitions, and those that the run had locked for links to them."""
    found = {str(Path(place.log_dir).resolve()): place.log_dir for place in places}
    options = run.facts.get("options")
    locked = options.get("lockedLogDirs", []) if isinstance(options, dict) else []
    for log_dir in locked if isinstance(locked, list) else []:
        if isinstance(log_dir, str) and Path(log_dir).is_dir():
            found.setdefault(str(Path(log_dir).resolve()), log_dir)
    return sorted(found.values())


def changes_of(run: Run) -> tuple[list[Place], Changes]:
    """The partitions that a run planned to change, and the checkpoint lines it changed."""
    places: dict[str, Place] = {}
    changed: Changes = {}
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


def scratch_of(place: Place, run_id: str) -> Scratch:
    return Scratch(place.path, run_id)
