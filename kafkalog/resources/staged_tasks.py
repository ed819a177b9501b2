"""Work in stages of many tasks each, in worker processes of this machine; Spark's shuffle does the
same across hosts (`spark.staged_tasks`).

What travels between the stages are packed blobs of about 1 MiB, never a row per record: a row of
any kind goes to the task `target` of the next stage. What the others of its fields mean the work
says whose rows these are. A task writes its rows' payloads into a file of its own and returns where
they lie, so rows are in memory one at a time, whoever asks for them.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from kafkalog.resources.process_pool import in_processes
from kafkalog.resources.spilled_array import spill_directory

BLOB_BYTES = 1024 * 1024

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ShuffleRow:
    """See above."""

    target: int
    plan: int
    kind: int
    number: int
    first: int
    payload: bytes

    def to(self, target: int) -> ShuffleRow:
        """The same for another task."""
        return replace(self, target=target)

    @property
    def facts(self) -> Any:
        """A payload of JSON."""
        return json.loads(self.payload)


def facts_row(target: int, plan: int, kind: int, number: int, facts: Any) -> ShuffleRow:
    """A row whose payload is JSON."""
    return ShuffleRow(target, plan, kind, number, 0, json.dumps(facts).encode())


First = Callable[[int], Iterable[ShuffleRow]]
Stage = Callable[[Iterable[ShuffleRow]], Iterable[ShuffleRow]]


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
    """What a worker is given: the number of a task of the first stage, or the rows of a task of a
    later one, which is stage `stage` of those."""

    stage: int
    number: int
    rows: tuple[_Stored, ...]


def run_stages(
    tasks: int,
    first: First,
    stages: Sequence[Stage],
    last: Callable[[Iterable[ShuffleRow]], Iterable[Result]],
    workers: int,
) -> list[Result]:
    """`first` of each number below `tasks`, then each stage of the rows for each of its targets,
    and `last`, in this process, of what these gave. All are pickled but `last`.

    A stage gets its rows by their kinds, so that what it needs of one may come before another;
    where Spark runs the stages they come in any order. A worker that dies gave no rows: who needs
    them has to see that they are missing.
    """
    with tempfile.TemporaryDirectory(prefix="kafkalog-", dir=spill_directory()) as directory:
        work = partial(_run, first, tuple(stages), directory)
        waiting = [_StageTask(-1, number, ()) for number in range(tasks)]
        for number in range(len(stages) + 1):
            # A stage begins when the one before it has ended: a task needs the rows of all tasks in
            # front. Rows stay in the files of the tasks that made them; only where they lie goes
            # through this process.
            stored = [row for rows in in_processes(waiting, work, workers, _died) for row in rows]
            # Read by this stage, and by nobody after it.
            for path in {task_row.path for task in waiting for task_row in task.rows}:
                Path(path).unlink(missing_ok=True)
            targets: dict[int, list[_Stored]] = defaultdict(list)
            for row in stored:
                targets[row.row.target].append(row)
            waiting = [
                _StageTask(number, target, tuple(sorted(rows, key=lambda each: each.row.kind)))
                for target, rows in sorted(targets.items())
            ]
        return [result for task in waiting for result in last(_rows(task.rows))]


def _died(task: _StageTask) -> list[_Stored]:
    return []


def _run(
    first: First, stages: tuple[Stage, ...], directory: str, task: _StageTask
) -> list[_Stored]:
    if task.stage < 0:
        return _store(first(task.number), directory)
    return _store(stages[task.stage](_rows(task.rows)), directory)


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
