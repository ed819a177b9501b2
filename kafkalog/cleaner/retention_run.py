"""Retention over many partitions: lock, resolve leftovers, plan, delete, settle the checkpoint.

The same frame as a compaction's (`run`), without workers: deleting a segment is a few renames,
which whoever holds the locks does by itself, one partition after the other, on Spark the driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kafkalog.cleaner.checkpoint import update_checkpoint
from kafkalog.cleaner.local_files import LocalFiles
from kafkalog.cleaner.retain import DELETED, RetentionResult, retain_partition
from kafkalog.cleaner.run_request import (
    CompactionRequest,
    Tell,
    locked_log_dirs,
    new_run_id,
    recover_partitions,
)
from kafkalog.cleaner.settings import RunSettings
from kafkalog.errors import InvalidConfigError, KafkaLogError
from kafkalog.format.checkpoints import LOG_START_OFFSET_FILE
from kafkalog.log.inventory import PartitionFacts, PartitionInventory, PartitionKind
from kafkalog.log.retention_facts import scan_retention_facts
from kafkalog.planning.retention import DELETE, REFUSED, RetentionPlan, plan_retention


@dataclass(frozen=True, slots=True)
class RetentionRun:
    """What a run planned and did: one plan per selected partition, one result per plan that was
    carried out. `recovered`, `problems` and `notes` as in CompactionRun.
    """

    run_id: str
    applied: bool
    plans: tuple[RetentionPlan, ...]
    results: tuple[RetentionResult, ...] = ()
    recovered: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def plan_retention_run(request: CompactionRequest) -> RetentionRun:
    """Plan every selected partition; nothing is locked or changed.

    Where the cluster's metadata log is on the disk its word counts, as for compaction: a setting
    that contradicts it, above all a policy that does not delete, refuses the partition.

    Raises InvalidConfigError for paths that do not exist and partitions that are named but not
    there.
    """
    found = request.open()
    settings = request.read_settings()
    plans = tuple(_plan(partition, request, settings) for partition in found)
    return RetentionRun(new_run_id(), applied=False, plans=plans, problems=found.problems)


def apply_retention_run(
    request: CompactionRequest, tell: Tell = lambda _: None, files: LocalFiles | None = None
) -> RetentionRun:
    """Plan and carry out, holding the lock of every log dir to the end.

    Raises InvalidConfigError without topics, and where nobody said how long to keep: Kafka's
    default is a week, which is no reason to delete. LogDirLockedError if a log dir is locked. Then
    nothing was changed.
    """
    config = request.config
    if "delete" in config.cleanup_policy and config.source("retention.ms") == config.DEFAULT:
        raise InvalidConfigError(
            "--apply needs to know how long to keep: --config retention.ms=MS (-1 for ever)"
        )
    files = files or LocalFiles()
    with locked_log_dirs(request):
        recovered = tuple(recover_partitions(request.open(), files))
        for line in recovered:
            tell(line)
        planned = plan_retention_run(request)
        results = []
        for plan in planned.plans:
            if plan.status == DELETE:
                results.append(retain_partition(plan, files))
                tell(_told(plan, results[-1]))
        problems = [*planned.problems, *_settle_checkpoints(planned.plans, results, files)]
        for line in problems:
            tell(line)
    return RetentionRun(
        planned.run_id,
        applied=True,
        plans=planned.plans,
        results=tuple(results),
        recovered=recovered,
        problems=tuple(problems),
    )


def _plan(
    partition: PartitionInventory, request: CompactionRequest, settings: RunSettings
) -> RetentionPlan:
    config, refusal = request.config, None
    if settings.has_metadata(partition):
        resolved = settings.resolve(partition)
        config, refusal = resolved.config, resolved.refusal
    facts = PartitionFacts(())
    if partition.kind is PartitionKind.LIVE and not partition.problems:
        try:
            facts = scan_retention_facts(partition)
        except (KafkaLogError, OSError) as error:
            partition = replace(partition, problems=(f"cannot be read: {error}",))
    plan = plan_retention(
        partition,
        config,
        facts,
        now_ms=request.now_ms,
        high_watermark=request.high_watermark,
        kafka_version=settings.kafka_version(partition),
    )
    return plan if refusal is None or plan.status == REFUSED else plan.refused(refusal)


def _settle_checkpoints(
    plans: Sequence[RetentionPlan], results: Sequence[RetentionResult], files: LocalFiles
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
            update_checkpoint(log_dir, LOG_START_OFFSET_FILE, entries, files)
        except (KafkaLogError, OSError) as error:
            problems.append(f"{log_dir}: {LOG_START_OFFSET_FILE} was not settled: {error}")
    return problems


def _told(plan: RetentionPlan, result: RetentionResult) -> str:
    if result.status == DELETED:
        return plan.explain()
    return f"{plan.topic_partition}: {result.status}: {result.reason}"
