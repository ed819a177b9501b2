"""A run over many partitions: lock, resolve leftovers, plan, carry out, checkpoint.

The command line and Spark do the same and differ in one thing, how plans become results: by
processes here, by Spark tasks there (`Executor`). A dry run is the planning alone: it takes no lock
and changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace

from kafkalog.cleaning.cleaner_stats import FAILED, CleanResult
from kafkalog.cleaning.dry_run import refuse_by_owners, refuse_by_records
from kafkalog.clock import seconds_in
from kafkalog.errors import InvalidConfigError, KafkaLogError
from kafkalog.format.checkpoints import CLEANER_OFFSET_FILE
from kafkalog.log.compaction_signs import FIRST_BATCHES, compaction_mark
from kafkalog.log.inventory import (
    LogInventory,
    PartitionFacts,
    PartitionInventory,
    PartitionKind,
    TopicPartition,
)
from kafkalog.log.pace import paced
from kafkalog.log.segment_facts import scan_partition_facts
from kafkalog.operations.compact_partition import CleanRun, clean_partition
from kafkalog.operations.run_frame import Run
from kafkalog.operations.run_steps import (
    Tell,
    Troubles,
    locked_log_dirs,
    new_run_id,
    plan_each,
    recover_partitions,
)
from kafkalog.operations.space import refuse_without_space
from kafkalog.planning.compaction_plan import CLEAN, WITHIN_TASK, CompactionPlan
from kafkalog.planning.config_sources import ResolvedConfig
from kafkalog.planning.plan_by_settings import PlanInputs, compaction_by_settings, is_never_cleaned
from kafkalog.planning.policy_evidence import PolicyStanding, why_not_compacted
from kafkalog.planning.run_order import dirtiest_first, largest_first, limit_bytes
from kafkalog.reading.negative_timestamps import find_negative_timestamp
from kafkalog.requests.run_request import CompactionRequest
from kafkalog.requests.run_settings import RunSettings
from kafkalog.swap.checkpoint import CheckpointFile
from kafkalog.swap.interrupted_swap import clear_run
from kafkalog.swap.journal import COMPACT, RunJournal, begin_journal
from kafkalog.swap.local_files import LocalFiles, path_in
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

    def plan(partition: PartitionInventory) -> CompactionPlan:
        planned = _plan(partition, request, settings)
        if not is_dry:
            return planned
        planned = refuse_by_owners(planned)
        if not request.estimates:
            return planned
        return refuse_by_records(
            planned, partition, force=request.force, memory=request.memory,
            keeps_corrupt=request.keeps_corrupt,
        )  # fmt: skip

    troubles = Troubles(found.problems)
    plans = plan_each(found, plan, troubles)
    return CompactionRun(
        run_id,
        applied=False,
        plans=refuse_without_space(
            limit_bytes(plans, request.max_bytes),
            keeps_undo=request.keeps_undo,
            swap_per_group=request.swap_per_group,
            output=request.output,
        ),
        problems=tuple(troubles.problems),
        notes=settings.notes,
        faults=tuple(troubles.faults),
        keeps_undo=request.keeps_undo,
    )


def apply_run(
    request: CompactionRequest,
    execute: Executor,
    tell: Tell = lambda _: None,
    files: LocalFiles | None = None,
) -> CompactionRun:
    """Plan and carry out, holding the lock of every log dir to the end. `files` is what the run
    itself changes log dirs with.

    Raises InvalidConfigError without topics, LogDirLockedError if a log dir is locked,
    LogCleaningRefusedError if no journal can be kept: then nothing was changed.
    """
    files = files or LocalFiles()
    run = new_clean_run(request, new_run_id())
    with paced(request.max_bytes_per_second), locked_log_dirs(request) as log_dirs:
        journal = begin_journal(request, run.run_id, COMPACT, log_dirs)
        found = request.open_all()
        settings = request.read_settings(found)
        troubles = Troubles()
        may_be_changed = [p for p in request.select(found) if _may_be_changed(p, settings)]
        recovered = tuple(recover_partitions(may_be_changed, files, troubles))
        if recovered:
            found = request.open_all()
        for line in recovered:
            tell(line)
        journal.resolved(recovered)
        planned = plan_all(request, run.run_id, request.select(found), settings)
        troubles.problems += planned.problems
        troubles.faults += planned.faults
        chosen = in_order(planned.plans, request)
        journal.planned(
            (plan.topic_partition, plan.path, plan.log_dir, plan.peak_bytes) for plan in chosen
        )
        results = list[CleanResult]()
        coming = execute(chosen, run)
        try:
            for result in coming:
                results.append(result)
                _note_end(journal, result)
                tell(told(result))
        finally:
            # Nobody may be at work any more when checkpoints are written and the locks given up.
            if isinstance(coming, Generator):
                coming.close()
            unwritten = _write_checkpoints(planned.plans, results, files, journal)
            troubles.problems += [f"{log_dir}: {why}" for log_dir, why in unwritten.items()]
            for plan in chosen:
                troubles.problems += _clear(plan, run, files, troubles)
            troubles.problems += journal.problems + corrupt_kept(results)
            for line in troubles.problems:
                tell(line)
        journal.finish(results)
    troubles.add_faults((f"{result.topic}-{result.partition}", result.fault) for result in results)
    return replace(
        planned,
        applied=True,
        results=tuple(_with_checkpoint_failure(result, unwritten) for result in results),
        recovered=recovered,
        problems=tuple(troubles.problems),
        faults=tuple(troubles.faults),
    )


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


def _note_end(journal: RunJournal, result: CleanResult) -> None:
    path = path_in(result.log_dir, f"{result.topic}-{result.partition}")
    name = TopicPartition(result.topic, result.partition)
    journal.ended(name, path, result.status, result.reason, result.replaced)


def clean_one_by_one(plans: Sequence[CompactionPlan], run: CleanRun) -> Iterator[CleanResult]:
    """The simplest executor: in this process, one after the other."""
    with paced(run.bytes_per_second):
        for plan in plans:
            yield clean_partition(plan, run)


def in_order(plans: Sequence[CompactionPlan], request: CompactionRequest) -> list[CompactionPlan]:
    """The plans to carry out, as they are to be begun."""
    chosen = [plan for plan in plans if plan.status == CLEAN]
    is_limited = request.max_bytes is not None or request.max_minutes is not None
    return dirtiest_first(chosen) if is_limited else largest_first(chosen)


def _plan(
    partition: PartitionInventory, request: CompactionRequest, settings: RunSettings
) -> CompactionPlan:
    resolved = settings.resolve_for_change(partition)
    if resolved.is_local:
        partition = partition.as_local_log()
    if request.output is not None:
        partition = replace(partition, deleted_files=())  # nothing is removed from the log dir
    facts = PartitionFacts(())
    config = resolved.config
    is_live = partition.kind is PartitionKind.LIVE
    if is_live and _may_be_cleaned(resolved) and not partition.problems:
        try:
            facts = scan_partition_facts(
                partition,
                now_ms=request.now_ms,
                expiration_ms=config.producer_id_expiration_ms,
            )
            facts = replace(facts, compaction_mark=_mark(partition, resolved))
        except (KafkaLogError, OSError) as error:
            partition = replace(partition, problems=(f"cannot be read: {error}",))

    inputs = PlanInputs(
        partition,
        resolved,
        facts,
        now_ms=request.now_ms,
        high_watermark=request.high_watermark,
        kafka_version=settings.kafka_version(partition),
        clock_ms=request.clock_ms,
        force=request.force,
    )
    plan = compaction_by_settings(
        inputs,
        dedupe_buffer_size=request.dedupe_buffer_size,
        strategy=WITHIN_TASK
        if request.swap_per_group or request.keeps_corrupt
        else request.strategy,
    )
    return _beyond_the_brokers(plan, facts)


def _beyond_the_brokers(plan: CompactionPlan, facts: PartitionFacts) -> CompactionPlan:
    """The plan, which says so if a broker's cleaner would stop where ours goes on."""
    negative = find_negative_timestamp(plan.sources, facts.segments)
    if negative is None:
        return plan
    reason = (
        f"{plan.reason}; goes further than a broker's cleaner, which stops where it has to write "
        f"such a batch anew: {negative}"
    )
    return replace(plan, reason=reason)


def _may_be_changed(partition: PartitionInventory, settings: RunSettings) -> bool:
    try:
        resolved = settings.resolve_for_change(partition)
        if is_never_cleaned(partition) or not _may_be_cleaned(resolved):
            return False
        seen = PartitionFacts((), compaction_mark=_mark(partition, resolved))
        doubt = why_not_compacted(partition, seen, resolved.standing, is_forced=resolved.is_forced)
        return doubt is None
    except InvalidConfigError:
        raise
    except Exception:
        return False  # its plan meets the same fault, and tells


def _mark(partition: PartitionInventory, resolved: ResolvedConfig) -> str | None:
    """What shows that the log was compacted before, where nobody says its policy."""
    if resolved.standing is not PolicyStanding.UNKNOWN:
        return None
    return compaction_mark(partition.segments[:1], FIRST_BATCHES)


def _may_be_cleaned(resolved: ResolvedConfig) -> bool:
    return resolved.refusal is None and resolved.config.is_compacted


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


def _clear(plan: CompactionPlan, run: CleanRun, files: LocalFiles, troubles: Troubles) -> list[str]:
    """Take the run's own files out of a partition; what stays is resolved by the next run."""
    try:
        done = clear_run(Scratch(plan.path, run.run_id), files)
    except Exception as error:
        return [troubles.note(plan.topic_partition, error, plan.path, "cleaning up failed: ")]
    return [f"{plan.topic_partition}: {line}" for line in done]


def told(result: CleanResult) -> str:
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
