"""Compaction of many partitions: plans, and what is its own in the frame of all verbs.

The command line and Spark do the same and differ in one thing, how plans become results: by
processes here, by Spark tasks there (`Executor`). A dry run is the planning alone: it takes no lock
and changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from kafkalog.cleaning.dry_run import refuse_by_owners, refuse_by_records
from kafkalog.clock import seconds_in
from kafkalog.errors import KafkaLogError
from kafkalog.format.checkpoints import CLEANER_OFFSET_FILE
from kafkalog.log.inventory import (
    LogInventory,
    PartitionInventory,
)
from kafkalog.log.pace import paced
from kafkalog.operations.clean_result import CleanResult, failed_result
from kafkalog.operations.clean_run import CleanRun
from kafkalog.operations.compact_plan import may_be_changed, plan_partition
from kafkalog.operations.estimates import choose_strategies, estimate_plans
from kafkalog.operations.frame import Verb, apply
from kafkalog.operations.run_frame import Run
from kafkalog.operations.run_steps import Problems, Tell, plan_each
from kafkalog.operations.space import refuse_without_space
from kafkalog.planning.compaction_plan import CLEAN, CompactionPlan
from kafkalog.planning.run_order import dirtiest_first, largest_first, limit_bytes
from kafkalog.planning.statuses import FAILED
from kafkalog.requests.replicas import BY_TIME_ALONE, ReplicaLogs
from kafkalog.requests.run_request import CompactionRequest
from kafkalog.requests.run_settings import RunSettings
from kafkalog.runs.run_dir import new_run_id
from kafkalog.swap.checkpoint import CheckpointFile
from kafkalog.swap.interrupted_swap import clear_run
from kafkalog.swap.journal import COMPACT, RunJournal
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.plan_check import planned_here
from kafkalog.swap.scratch import Scratch

# Takes plans in the order they are to be begun.
Executor = Callable[[Sequence[CompactionPlan], CleanRun], Iterable[CleanResult]]


CompactionRun = Run[CompactionPlan, CleanResult]


def plan_run(request: CompactionRequest) -> CompactionRun:
    """Plan every selected partition, within `max_bytes`; nothing is locked or changed.

    Raises InvalidConfigError for paths that do not exist and partitions that are named but not
    there.
    """
    with paced(request.max_bytes_per_second):
        found = request.open_all()
        settings = request.read_settings(found)
        return plan_all(request, new_run_id(), request.select(found), settings, is_dry=True)


def plan_all(
    request: CompactionRequest,
    run_id: str,
    found: LogInventory,
    settings: RunSettings,
    *,
    is_dry: bool = False,
) -> CompactionRun:
    """A plan for each of these partitions. `is_dry`: nobody carries it out, so that it has to tell
    what would be refused on the way, with `estimates` also what only records tell.
    """

    replicas = ReplicaLogs.of(found.partitions, request.replicas)

    def plan(partition: PartitionInventory) -> tuple[CompactionPlan, bool]:
        """The plan, and whether it goes by time alone."""
        replicated = replicas.replicated_end(partition, settings.replicas(partition))
        planned = plan_partition(partition, request, settings, replicated)
        by_time_alone = planned.status == CLEAN and not replicated.is_complete
        if is_dry:
            planned = refuse_by_owners(planned)
        if is_dry and request.estimates:
            planned = refuse_by_records(
                planned, partition, force=request.force, memory=request.memory,
                keeps_corrupt=request.keeps_corrupt,
            )  # fmt: skip
        return planned, by_time_alone

    problems = Problems(found.problems)
    planned = plan_each(found, plan, problems, request.processes)
    limited = limit_bytes([each for each, _ in planned], request.max_bytes)
    notes = [*settings.notes]
    if any(by_time_alone for _, by_time_alone in planned):
        notes.append(BY_TIME_ALONE)
    plans = refuse_without_space(
        choose_strategies(limited, request),
        keeps_undo=request.keeps_undo,
        swap_per_group=request.swap_per_group,
        output=request.output,
    )
    return CompactionRun(
        run_id,
        applied=False,
        plans=plans,
        problems=tuple(problems.texts),
        notes=tuple(notes),
        faults=tuple(problems.faults),
        keeps_undo=request.keeps_undo,
        run_dir=request.run_dir,
        estimate=estimate_plans(plans, request),
    )


def apply_run(
    request: CompactionRequest,
    execute: Executor,
    tell: Tell = lambda _: None,
    files: LocalFiles | None = None,
) -> CompactionRun:
    """Plan and carry out; see `frame.apply`. `files` is what the run itself changes log dirs
    with.
    """
    with paced(request.max_bytes_per_second):
        return apply(Compact(request, execute, files or LocalFiles()), tell)


class Compact(Verb[CompactionPlan, CleanResult]):
    """A run of compaction in the frame."""

    kind = COMPACT

    def __init__(self, request: CompactionRequest, execute: Executor, files: LocalFiles) -> None:
        super().__init__(request, new_run_id(), files)
        self._compaction = request
        self._execute = execute
        self._run = new_clean_run(request, self.run_id)
        self._found: dict[str, PartitionInventory] = {}

    def may_be_changed(self, partition: PartitionInventory, settings: RunSettings) -> bool:
        """Whether its settings allow anything: where they do not, nothing is resolved either."""
        return may_be_changed(partition, settings)

    def plan(self, found: LogInventory, settings: RunSettings) -> CompactionRun:
        """The plans of these partitions."""
        self._found = {partition.path: partition for partition in found}
        return plan_all(self._compaction, self.run_id, found, settings)

    def chosen(self, plans: Sequence[CompactionPlan]) -> list[CompactionPlan]:
        """Those to carry out, as they are to be begun."""
        return in_order(plans, self._compaction)

    def peak_bytes(self, plan: CompactionPlan) -> int:
        """Bytes the run may write for a plan before it gives any back."""
        return plan.peak_bytes

    def execute(
        self, plans: Sequence[CompactionPlan], journal: RunJournal
    ) -> Iterator[CleanResult]:
        """Carry them out."""
        with planned_here((self._found[plan.path], plan.token) for plan in plans):
            yield from self._execute(plans, self._run)

    def failed(self, plan: CompactionPlan, reason: str) -> CleanResult:
        """The result of a plan that could not be carried out."""
        return failed_result(plan, reason)

    def describe(self, plan: CompactionPlan, result: CleanResult) -> str:
        """How one partition ended, in a line."""
        return describe_result(result)

    def settle(
        self,
        plans: Sequence[CompactionPlan],
        results: Sequence[CleanResult],
        journal: RunJournal,
        problems: Problems,
    ) -> list[CleanResult]:
        """Checkpoints, and what tasks left; a partition whose checkpoint was not written has not
        ended well.
        """
        unwritten = _write_checkpoints(plans, results, self.files, journal)
        problems.texts += [f"{log_dir}: {why}" for log_dir, why in unwritten.items()]
        for plan in self.chosen(plans):
            problems.texts += _clear(plan, self.run_id, self.files, problems)
        problems.texts += corrupt_kept(results)
        return [_with_checkpoint_failure(result, unwritten) for result in results]


def new_clean_run(request: CompactionRequest, run_id: str) -> CleanRun:
    """What the tasks of a run need to know of its request; this process holds the locks."""
    minutes = request.max_minutes
    return CleanRun(
        run_id,
        os.getpid(),
        request.force,
        None if minutes is None else seconds_in(minutes),
        request.keeps_undo,
        request.swap_per_group,
        request.memory,
        bytes_per_second=request.max_bytes_per_second,
        verify_deep=request.verify_deep,
        keeps_corrupt=request.keeps_corrupt,
        max_batch_bytes=request.max_batch_bytes,
    )


def corrupt_kept(results: Sequence[CleanResult]) -> list[str]:
    """The partitions in which corrupt batches were kept: done, but something to look at."""
    return [
        f"{result.topic}-{result.partition}: {result.reason}"
        for result in results
        if result.stats.corrupt_batches
    ]


def in_order(plans: Sequence[CompactionPlan], request: CompactionRequest) -> list[CompactionPlan]:
    """The plans to carry out, as they are to be begun."""
    chosen = [plan for plan in plans if plan.status == CLEAN]
    is_limited = request.max_bytes is not None or request.max_minutes is not None
    return dirtiest_first(chosen) if is_limited else largest_first(chosen)


def _write_checkpoints(
    plans: Sequence[CompactionPlan],
    results: Sequence[CleanResult],
    files: LocalFiles,
    journal: RunJournal,
) -> dict[str, str]:
    """Write each log dir's checkpoint; why not, for those where it failed."""
    failures: dict[str, str] = {}
    for log_dir, entries in checkpoint_lines(plans, results).items():
        try:
            CheckpointFile(
                log_dir, CLEANER_OFFSET_FILE, files, journal.keep_for, journal.checkpoint
            ).update(entries)
        except (KafkaLogError, OSError) as error:
            failures[log_dir] = f"the cleaner checkpoint was not written: {error}"
    return failures


def checkpoint_lines(
    plans: Sequence[CompactionPlan], results: Sequence[CleanResult]
) -> dict[str, dict[tuple[str, int], int]]:
    """By log dir, what its cleaner checkpoint is to say of these partitions."""
    offsets: dict[str, dict[tuple[str, int], int]] = {}
    for plan in plans:
        if plan.checkpoint_reset is not None:
            key = (plan.topic_partition.topic, plan.topic_partition.partition)
            offsets.setdefault(plan.log_dir, {})[key] = plan.checkpoint_reset
    for result in results:
        if result.next_dirty_offset is not None:
            key = (result.topic, result.partition)
            offsets.setdefault(result.log_dir, {})[key] = result.next_dirty_offset
    return offsets


def _with_checkpoint_failure(result: CleanResult, unwritten: dict[str, str]) -> CleanResult:
    """A partition that is compacted but will be compacted again has not ended well."""
    why = unwritten.get(result.log_dir)
    if why is None or result.next_dirty_offset is None:
        return result
    reason = f"compacted, but {why}"
    return replace(result, status=FAILED, reason=reason, next_dirty_offset=None)


def _clear(plan: CompactionPlan, run_id: str, files: LocalFiles, problems: Problems) -> list[str]:
    """Take the run's own files out of a partition; what stays is resolved by the next run."""
    try:
        done = clear_run(Scratch(plan.path, run_id), files)
    except Exception as error:
        return [problems.note(plan.topic_partition, error, plan.path, "cleaning up failed: ")]
    return [f"{plan.topic_partition}: {line}" for line in done]


def describe_result(result: CleanResult) -> str:
    """How one partition ended, in a line."""
    name = f"{result.topic}-{result.partition}"
    if result.next_dirty_offset is None:
        return f"{name}: {result.status}: {result.reason}"
    stats = result.stats
    split = f", {stats.segments_split} segments split first" if stats.segments_split else ""
    kept = f"; {result.reason}" if stats.corrupt_batches else ""
    return (
        f"{name}: {stats.records_read} records to {stats.records_retained}, "
        f"{stats.bytes_before} bytes to {stats.bytes_after}, {result.seconds:.1f} s{split}{kept}"
    )
