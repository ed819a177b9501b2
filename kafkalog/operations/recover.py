"""Recovery of many partitions: what to look at, and what is its own in the frame of all verbs.

As in compaction the command line and Spark differ in how
tasks become results (`RecoverExecutor`). A dry run reads every log as well, takes no lock and
changes nothing. Settings decide how dense an index is and when a producer expires, never whether
the files are valid, so doubts about them are noted and stop nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace

from kafkalog.log.inventory import (
    CLUSTER_METADATA_TOPIC,
    LogInventory,
    PartitionInventory,
    PartitionKind,
)
from kafkalog.operations.frame import Verb, apply, results_of
from kafkalog.operations.run_frame import Run
from kafkalog.operations.run_steps import Problems, Tell, plan_each
from kafkalog.planning.statuses import FAILED, REFUSED
from kafkalog.repair.recover import recover_partition
from kafkalog.repair.recover_result import DONE, REBUILD, SOUND, RecoverResult, RecoverTask
from kafkalog.requests.run_request import RunRequest
from kafkalog.requests.run_settings import RunSettings
from kafkalog.resources.process_pool import in_processes
from kafkalog.runs.run_dir import new_run_id
from kafkalog.swap.journal import RECOVER, RunJournal
from kafkalog.swap.local_files import LocalFiles

RecoverExecutor = Callable[[Sequence[RecoverTask]], Iterable[RecoverResult]]


RecoverRun = Run[RecoverTask, RecoverResult]


def look_run(
    request: RunRequest, execute: RecoverExecutor, tell: Tell = lambda _: None
) -> RecoverRun:
    """Look at every selected partition; nothing is locked or changed.

    Raises InvalidConfigError for paths that do not exist and partitions that are named but not
    there.
    """
    found = request.open_all()
    verb = Recover(request, execute, LocalFiles(), apply=False)
    planned = verb.plan(request.select(found), request.read_settings(found))
    problems, results = Problems(), list[RecoverResult]()
    problems.add(planned)
    chosen = verb.chosen(planned.plans)
    with closing(results_of(chosen, execute(chosen), verb.failed)) as coming:
        for task, result in coming:
            results.append(result)
            if line := verb.describe(task, result):
                tell(line)
    every = _with_those_not_read(planned.plans, results)
    problems.add_faults((f"{r.topic}-{r.partition}", r.fault) for r in every)
    return replace(planned, results=every, faults=tuple(problems.faults))


def recover_run(
    request: RunRequest,
    execute: RecoverExecutor,
    tell: Tell = lambda _: None,
    files: LocalFiles | None = None,
) -> RecoverRun:
    """Look, and put right what is not; see `frame.apply`."""
    return apply(Recover(request, execute, files or LocalFiles(), apply=True), tell)


class Recover(Verb[RecoverTask, RecoverResult]):
    """A run of recovery in the frame; its plans are what tasks have to look at."""

    kind = RECOVER

    def __init__(
        self, request: RunRequest, execute: RecoverExecutor, files: LocalFiles, *, apply: bool
    ) -> None:
        super().__init__(request, new_run_id(), files)
        self._execute = execute
        self._apply = apply

    def may_be_changed(self, partition: PartitionInventory, settings: RunSettings) -> bool:
        """Whether it is ever rebuilt."""
        return _never_recovered(partition) is None

    def plan(self, found: LogInventory, settings: RunSettings) -> RecoverRun:
        """What there is to look at."""
        problems = Problems(found.problems)
        tasks = plan_each(
            found,
            lambda p: _task(p, self.request, settings, self.run_id, apply=self._apply),
            problems,
        )
        return RecoverRun(
            self.run_id,
            applied=False,
            plans=tasks,
            problems=tuple(problems.texts),
            notes=settings.notes,
            faults=tuple(problems.faults),
            keeps_undo=self.request.keeps_undo,
            run_dir=self.request.run_dir,
        )

    def chosen(self, plans: Sequence[RecoverTask]) -> list[RecoverTask]:
        """Those whose log has to be read."""
        return [task for task in plans if _without_reading(task) is None]

    def execute(self, plans: Sequence[RecoverTask], journal: RunJournal) -> Iterable[RecoverResult]:
        """Look at them."""
        return self._execute(plans)

    def failed(self, plan: RecoverTask, reason: str) -> RecoverResult:
        """The result of a task that came to no end."""
        name = plan.topic_partition
        return RecoverResult(
            name.topic, name.partition, plan.path, plan.log_dir, status=FAILED, reason=reason
        )

    def describe(self, plan: RecoverTask, result: RecoverResult) -> str:
        """How one partition ended, in a line; nothing of a sound one."""
        return "" if result.status == SOUND else describe_result(result)

    def settle(
        self,
        plans: Sequence[RecoverTask],
        results: Sequence[RecoverResult],
        journal: RunJournal,
        problems: Problems,
    ) -> Sequence[RecoverResult]:
        """With those that were not read."""
        return _with_those_not_read(plans, results)


def _with_those_not_read(
    tasks: Sequence[RecoverTask], results: Sequence[RecoverResult]
) -> tuple[RecoverResult, ...]:
    """In the order of the tasks."""
    known = {result.path: result for result in results}
    every = [known.get(task.path) or _without_reading(task) for task in tasks]
    return tuple(result for result in every if result is not None)


def _task(
    partition: PartitionInventory,
    request: RunRequest,
    settings: RunSettings,
    run_id: str,
    *,
    apply: bool,
) -> RecoverTask:
    resolved = settings.resolve(partition)
    note = resolved.refusal if settings.has_metadata(partition) else None
    return RecoverTask(
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


def _without_reading(task: RecoverTask) -> RecoverResult | None:
    """The result of a partition whose log need not, or cannot yet, be read."""
    partition = task.partition
    status, reason = REFUSED, _never_recovered(partition)
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
    return RecoverResult(
        name.topic, name.partition, partition.path, partition.log_dir, status, reason
    )


def _never_recovered(partition: PartitionInventory) -> str | None:
    if partition.kind is not PartitionKind.LIVE:
        return f"a -{partition.kind} directory is never rebuilt"
    if partition.topic_partition.topic == CLUSTER_METADATA_TOPIC:
        return f"{CLUSTER_METADATA_TOPIC} is recovered by its node at every start"
    return None


def describe_result(result: RecoverResult) -> str:
    """One line about a partition for people."""
    name = f"{result.topic}-{result.partition}"
    if result.status in (DONE, REBUILD) and result.files:
        what = "files rebuilt" if result.status == DONE else "files to rebuild"
        return f"{name}: {len(result.files)} {what}"
    return f"{name}: {result.status}: {result.reason}" if result.reason else name


def recover_in_processes(tasks: Sequence[RecoverTask], workers: int) -> Iterator[RecoverResult]:
    """An executor of this machine, the largest partitions first; see `in_processes`."""
    largest_first = sorted(tasks, key=lambda task: -task.partition.size_in_bytes)
    for results in in_processes(largest_first, _recover, workers, lambda _: []):
        yield from results


def _recover(task: RecoverTask) -> list[RecoverResult]:
    return [recover_partition(task)]
