"""Rebuilding over many partitions: lock, resolve leftovers, look at each log, put it right.

The same frame as a compaction's (`run`), and as there the command line and Spark differ in how
tasks become results (`RebuildExecutor`). A dry run reads every log as well, takes no lock and
changes nothing. Settings decide how dense an index is and when a producer expires, never whether
the files are valid, so doubts about them are noted and stop nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace

from kafkalog.log.inventory import (
    CLUSTER_METADATA_TOPIC,
    LogInventory,
    PartitionInventory,
    PartitionKind,
    TopicPartition,
)
from kafkalog.operations.run_frame import Run
from kafkalog.operations.run_steps import (
    Tell,
    Troubles,
    locked_log_dirs,
    new_run_id,
    plan_each,
    recover_partitions,
)
from kafkalog.repair.recover import rebuild_partition
from kafkalog.repair.recover_result import (
    DONE,
    FAILED,
    REBUILD,
    REFUSED,
    SOUND,
    RebuildResult,
    RebuildTask,
)
from kafkalog.requests.run_request import RunRequest
from kafkalog.requests.run_settings import RunSettings
from kafkalog.resources.process_pool import in_processes
from kafkalog.swap.journal import RECOVER, RunJournal, begin_journal
from kafkalog.swap.local_files import LocalFiles

RebuildExecutor = Callable[[Sequence[RebuildTask]], Iterable[RebuildResult]]


RebuildRun = Run[RebuildTask, RebuildResult]


def look_run(
    request: RunRequest, execute: RebuildExecutor, tell: Tell = lambda _: None
) -> RebuildRun:
    """Look at every selected partition; nothing is locked or changed.

    Raises InvalidConfigError for paths that do not exist and partitions that are named but not
    there.
    """
    return _run(request, request.open_all(), execute, tell, None)


def rebuild_run(
    request: RunRequest,
    execute: RebuildExecutor,
    tell: Tell = lambda _: None,
    files: LocalFiles | None = None,
) -> RebuildRun:
    """Look, and put right what is not, holding the lock of every log dir to the end.

    Raises InvalidConfigError without topics, LogDirLockedError if a log dir is locked: then nothing
    was changed.
    """
    files = files or LocalFiles()
    with locked_log_dirs(request) as log_dirs:
        journal = begin_journal(request, new_run_id(), RECOVER, log_dirs)
        found = request.open_all()
        may_be_changed = [p for p in request.select(found) if _never_rebuilt(p) is None]
        troubles = Troubles()
        recovered = tuple(recover_partitions(may_be_changed, files, troubles))
        for line in recovered:
            tell(line)
        journal.resolved(recovered)
        if recovered:
            found = request.open_all()
        done = _run(request, found, execute, tell, journal)
        problems = (*troubles.problems, *done.problems, *journal.problems)
        for problem in problems:
            tell(problem)
        journal.finish(done.results)
        return replace(
            done,
            recovered=recovered,
            problems=problems,
            faults=(*troubles.faults, *done.faults),
        )


def _run(
    request: RunRequest,
    everything: LogInventory,
    execute: RebuildExecutor,
    tell: Tell,
    journal: RunJournal | None,
) -> RebuildRun:
    found, settings = request.select(everything), request.read_settings(everything)
    troubles = Troubles(found.problems)
    apply = journal is not None
    run_id = new_run_id() if journal is None else journal.run_id
    tasks = plan_each(found, lambda p: _task(p, request, settings, run_id, apply=apply), troubles)
    results = {}
    for task in tasks:
        if (result := _without_reading(task)) is not None:
            results[task.partition.path] = result
    chosen = [task for task in tasks if task.partition.path not in results]
    if journal is not None:
        journal.planned(
            (task.partition.topic_partition, task.partition.path, task.partition.log_dir, 0)
            for task in chosen
        )
    coming = execute(chosen)
    try:
        for result in coming:
            results[result.path] = result
            if journal is not None and result.status != SOUND:
                name = TopicPartition(result.topic, result.partition)
                journal.ended(name, result.path, result.status, result.reason, result.replaced)
            if result.status != SOUND:
                tell(told(result))
    finally:
        # Nobody may be at work any more when the locks are given up.
        if isinstance(coming, Generator):
            coming.close()
    troubles.add_faults((f"{r.topic}-{r.partition}", r.fault) for r in results.values())
    return RebuildRun(
        run_id,
        applied=apply,
        plans=tasks,
        results=tuple(results[task.partition.path] for task in tasks),
        problems=tuple(troubles.problems),
        notes=settings.notes,
        faults=tuple(troubles.faults),
        keeps_undo=request.keeps_undo,
    )


def _task(
    partition: PartitionInventory,
    request: RunRequest,
    settings: RunSettings,
    run_id: str,
    *,
    apply: bool,
) -> RebuildTask:
    resolved = settings.resolve(partition)
    note = resolved.refusal if settings.has_metadata(partition) else None
    return RebuildTask(
        partition,
        resolved.config,
        request.now_ms,
        run_id,
        apply,
        os.getpid(),
        note,
        request.keeps_undo,
        max_batch_bytes=request.max_batch_bytes,
    )


def _without_reading(task: RebuildTask) -> RebuildResult | None:
    """The result of a partition whose log need not, or cannot yet, be read."""
    partition = task.partition
    status, reason = REFUSED, _never_rebuilt(partition)
    if reason is None and partition.leftovers:
        names = ", ".join(partition.leftovers)
        if task.apply:
            reason = f"what an interrupted cleaning left could not be resolved: {names}"
        else:
            status = REBUILD
            reason = f"an interrupted cleaning is finished or undone first: {names}"
    if reason is None:
        return None
    name = partition.topic_partition
    return RebuildResult(
        name.topic, name.partition, partition.path, partition.log_dir, status, reason
    )


def _never_rebuilt(partition: PartitionInventory) -> str | None:
    if partition.kind is not PartitionKind.LIVE:
        return f"a -{partition.kind} directory is never rebuilt"
    if partition.topic_partition.topic == CLUSTER_METADATA_TOPIC:
        return f"{CLUSTER_METADATA_TOPIC} is recovered by its node at every start"
    return None


def told(result: RebuildResult) -> str:
    """One line about a partition for people."""
    name = f"{result.topic}-{result.partition}"
    if result.status in (DONE, REBUILD) and result.files:
        what = "files rebuilt" if result.status == DONE else "files to rebuild"
        return f"{name}: {len(result.files)} {what}"
    return f"{name}: {result.status}: {result.reason}" if result.reason else name


def rebuild_in_processes(tasks: Sequence[RebuildTask], workers: int) -> Iterator[RebuildResult]:
    """An executor of this machine, the largest partitions first; see `in_processes`."""
    largest_first = sorted(tasks, key=lambda task: -task.partition.size_in_bytes)
    return in_processes(largest_first, rebuild_partition, workers, _died_rebuilding)


def _died_rebuilding(task: RebuildTask) -> RebuildResult:
    return RebuildResult(
        topic=task.partition.topic_partition.topic,
        partition=task.partition.topic_partition.partition,
        path=task.partition.path,
        log_dir=task.partition.log_dir,
        status=FAILED,
        reason="a worker process died: run it again",
    )
