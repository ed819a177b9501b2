"""The stages of `across_tasks` in worker processes of this machine, in place of Spark's shuffle.

A task writes its rows' payloads into a file of its own and returns where they lie, so rows are in
memory one at a time, whoever asks for them.
"""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from kafkalog.cleaning.shuffle_rows import ShuffleRow
from kafkalog.operations.across_tasks import AcrossTasks
from kafkalog.operations.clean_result import CleanResult
from kafkalog.resources.process_pool import in_processes
from kafkalog.resources.spilled_array import spill_directory


@dataclass(frozen=True, slots=True)
class _Stored:
    """A row without its payload, and where that lies."""

    row: ShuffleRow
    path: str
    position: int
    size: int

    def read(self) -> ShuffleRow:
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return replace(self.row, payload=os.pread(fd, self.size, self.position))
        finally:
            os.close(fd)


@dataclass(frozen=True, slots=True)
class _StageTask:
    """What a worker is given: a map task's number, or the rows of a task of a later stage."""

    stage: str
    number: int
    rows: tuple[_Stored, ...]


def run_across_tasks(across: AcrossTasks, workers: int) -> list[CleanResult]:
    """The result of each plan that was not forgotten by a worker's death."""
    with tempfile.TemporaryDirectory(prefix="kafkalog-", dir=spill_directory()) as directory:
        work = partial(_run, across, directory)
        tasks = [_StageTask("map", number, ()) for number in range(len(across.map_tasks))]
        for stage in ("merge", "rewrite", "swap"):
            # A stage begins when the one before it has ended: a merger needs the rows of all map
            # tasks. Rows stay in the files of the tasks that made them; only where they lie goes
            # through this process.
            stored = [row for rows in in_processes(tasks, work, workers, _died) for row in rows]
            # Read by this stage, and by nobody after it.
            for path in {task_row.path for task in tasks for task_row in task.rows}:
                Path(path).unlink(missing_ok=True)
            targets: dict[int, list[_Stored]] = defaultdict(list)
            for row in stored:
                targets[row.row.target].append(row)
            tasks = [
                _StageTask(stage, target, tuple(targets[target])) for target in sorted(targets)
            ]
        return [result for task in tasks for result in across.swap(_rows(task.rows))]


def _died(task: _StageTask) -> list[_Stored]:
    """Nothing: what it was to do is missing, and its partition's swap says so."""
    return []


def _run(across: AcrossTasks, directory: str, task: _StageTask) -> list[_Stored]:
    if task.stage == "map":
        return _store(across.map(task.number), directory)
    stage = across.merge if task.stage == "merge" else across.rewrite
    return _store(stage(_rows(task.rows)), directory)


def _rows(stored: Sequence[_Stored]) -> Iterator[ShuffleRow]:
    for row in stored:
        yield row.read()


def _store(rows: Iterable[ShuffleRow], directory: str) -> list[_Stored]:
    fd, path = tempfile.mkstemp(dir=directory)
    stored, position = [], 0
    with os.fdopen(fd, "wb") as file:
        for row in rows:
            file.write(row.payload)
            stored.append(_Stored(replace(row, payload=b""), path, position, len(row.payload)))
            position += len(row.payload)
    return stored
