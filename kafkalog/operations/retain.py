"""Retention over many partitions: lock, resolve leftovers, plan, delete, settle the checkpoint.

The same frame as a compaction's (`run`), without workers: deleting a segment is a few renames,
which whoever holds the locks does by itself, one partition after the other, on Spark the driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kafkalog.errors import InvalidConfigError, KafkaLogError
from kafkalog.format.checkpoints import LOG_START_OFFSET_FILE
from kafkalog.log.inventory import (
    LogInventory,
    PartitionFacts,
    PartitionInventory,
    PartitionKind,
)
from kafkalog.log.retention_facts import scan_retention_facts
from kafkalog.operations.run_frame import Run
from kafkalog.operations.run_steps import (
    Tell,
    Troubles,
    locked_log_dirs,
    new_run_id,
    plan_each,
    recover_partitions,
)
from kafkalog.planning.compaction_plan import REFUSED
from kafkalog.planning.plan_by_settings import PlanInputs, retention_by_settings
from kafkalog.planning.policy_evidence import why_not_deleted_from
from kafkalog.planning.retention_plan import DELETE, RetentionPlan
from kafkalog.requests.run_request import RunRequest
from kafkalog.requests.run_settings import RunSettings
from kafkalog.swap.checkpoint import CheckpointFile
from kafkalog.swap.journal import RETAIN, RunJournal, begin_journal
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.segment_deletion import (
    DELETED,
    RetentionResult,
    refuse_by_owners,
    retain_partition,
)

RetentionRun = Run[RetentionPlan, RetentionResult]


def plan_retention_run(request: RunRequest) -> RetentionRun:
    """Plan every selected partition; nothing is locked or changed.

    Whose settings count is as for compaction, with the same refusals. `retention.ms` is a week by
    default, which is no reason to delete: a partition whose segments would go by it is refused. So
    is one whose `cleanup.policy` is not known, or not beyond doubt: see `policy_evidence`.

    Raises InvalidConfigError for paths that do not exist and partitions that are named but not
    there.
    """
    found = request.open_all()
    return _plan_all(request, new_run_id(), found)


def _plan_all(request: RunRequest, run_id: str, everything: LogInventory) -> RetentionRun:
    found, settings = request.select(everything), request.read_settings(everything)
    troubles = Troubles(found.problems)
    plans = plan_each(found, lambda partition: _plan(partition, request, settings), troubles)
    return RetentionRun(
        run_id,
        applied=False,
        plans=plans,
        problems=tuple(troubles.problems),
        notes=settings.notes,
        faults=tuple(troubles.faults),
        keeps_undo=request.keeps_undo,
    )


def apply_retention_run(
    request: RunRequest, tell: Tell = lambda _: None, files: LocalFiles | None = None
) -> RetentionRun:
    """Plan and carry out, holding the lock of every log dir to the end.

    Raises InvalidConfigError without topics, LogDirLockedError if a log dir is locked,
    LogCleaningRefusedError if no journal can be kept. Then nothing was changed.
    """
    files = files or LocalFiles()
    troubles = Troubles()
    with locked_log_dirs(request) as log_dirs:
        journal = begin_journal(request, new_run_id(), RETAIN, log_dirs)
        found = request.open_all()
        settings = request.read_settings(found)
        may_be_changed = [p for p in request.select(found) if _may_be_changed(p, settings)]
        recovered = tuple(recover_partitions(may_be_changed, files, troubles))
        if recovered:
            found = request.open_all()
        for line in recovered:
            tell(line)
        journal.resolved(recovered)
        planned = _plan_all(request, journal.run_id, found)
        troubles.problems += planned.problems
        troubles.faults += planned.faults
        chosen = [plan for plan in planned.plans if plan.status == DELETE]
        journal.planned((plan.topic_partition, plan.path, plan.log_dir, 0) for plan in chosen)
        results = []
        for plan in chosen:
            result = retain_partition(plan, journal, files)
            results.append(result)
            journal.ended(
                plan.topic_partition, plan.path, result.status, result.reason, result.replaced
            )
            tell(_told(plan, result))
        troubles.problems += _settle_checkpoints(planned.plans, results, journal, files)
        troubles.problems += journal.problems
        for line in troubles.problems:
            tell(line)
        journal.finish(results)
    troubles.add_faults((f"{result.topic}-{result.partition}", result.fault) for result in results)
    return replace(
        planned,
        applied=True,
        results=tuple(results),
        recovered=recovered,
        problems=tuple(troubles.problems),
        faults=tuple(troubles.faults),
    )


def _may_be_changed(partition: PartitionInventory, settings: RunSettings) -> bool:
    """Whether its settings allow anything: where they do not, nothing is resolved either."""
    try:
        resolved = settings.resolve_for_change(partition, needs_policy=False)
        doubt = why_not_deleted_from(
            partition,
            resolved.config,
            PartitionFacts(()),
            resolved.standing,
            is_forced=resolved.is_forced,
        )
    except InvalidConfigError:
        raise
    except Exception:
        return False  # its plan meets the same fault, and tells
    return resolved.refusal is None and doubt is None


def _plan(
    partition: PartitionInventory, request: RunRequest, settings: RunSettings
) -> RetentionPlan:
    resolved = settings.resolve_for_change(partition, needs_policy=False)
    if resolved.is_local:
        partition = partition.as_local_log()
    facts = PartitionFacts(())
    if partition.kind is PartitionKind.LIVE and not partition.problems:
        try:
            facts = scan_retention_facts(partition)
        except (KafkaLogError, OSError) as error:
            partition = replace(partition, problems=(f"cannot be read: {error}",))
    plan = retention_by_settings(
        PlanInputs(
            partition,
            resolved,
            facts,
            now_ms=request.now_ms,
            high_watermark=request.high_watermark,
            kafka_version=settings.kafka_version(partition),
            clock_ms=request.clock_ms,
            force=request.force,
        )
    )
    return refuse_by_owners(plan)


def _settle_checkpoints(
    plans: Sequence[RetentionPlan],
    results: Sequence[RetentionResult],
    journal: RunJournal,
    files: LocalFiles,
) -> list[str]:
    """Write the log start offsets as a broker does: a partition whose log starts where its first
    segment does has no line (LogManager.checkpointLogStartOffsetsInDir). What went wrong, in words.
    """
    failed = {
        (result.log_dir, result.topic, result.partition)
        for result in results
        if result.status != DELETED
    }
    offsets: dict[str, dict[tuple[str, int], int | None]] = {}
    for plan in plans:
        key = plan.topic_partition.topic, plan.topic_partition.partition
        if plan.status == REFUSED or (plan.log_dir, *key) in failed:
            continue
        first_offset = plan.kept[0].base_offset if plan.kept else plan.roll_offset
        is_inside = plan.log_start_offset != first_offset
        line = plan.log_start_offset if is_inside else None
        offsets.setdefault(plan.log_dir, {})[key] = line
    problems = []
    for log_dir, entries in offsets.items():
        try:
            CheckpointFile(
                log_dir, LOG_START_OFFSET_FILE, files, journal.keep_for, journal.checkpoint
            ).update(entries)
        except (KafkaLogError, OSError) as error:
            problems.append(f"{log_dir}: {LOG_START_OFFSET_FILE} was not settled: {error}")
    return problems


def _told(plan: RetentionPlan, result: RetentionResult) -> str:
    if result.status == DELETED:
        return plan.explain()
    return f"{plan.topic_partition}: {result.status}: {result.reason}"
