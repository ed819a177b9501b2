"""Retention of many partitions: plans, and what is its own in the frame of all verbs.

There are no workers: deleting a segment is a few renames,
which whoever holds the locks does by itself, one partition after the other, on Spark the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kafkalog.errors import InvalidConfigError, KafkaLogError
from kafkalog.format.checkpoints import LOG_START_OFFSET_FILE
from kafkalog.log.header_facts import PartitionFacts
from kafkalog.log.inventory import LogInventory, PartitionInventory, PartitionKind
from kafkalog.log.retention_facts import scan_retention_facts
from kafkalog.operations.frame import Verb, apply
from kafkalog.operations.remote_part import with_remote_part, with_remote_start
from kafkalog.operations.run_frame import Run
from kafkalog.operations.run_steps import Problems, Tell, plan_each
from kafkalog.operations.uploads import Uploads
from kafkalog.planning.local_retention import is_tiered
from kafkalog.planning.plan_by_settings import retention_by_settings
from kafkalog.planning.policy_evidence import why_not_deleted_from
from kafkalog.planning.retention_plan import DELETE, RetentionPlan
from kafkalog.planning.statuses import FAILED, REFUSED
from kafkalog.remote.paths import NO_REMOTE_STORAGE, RemoteStorage
from kafkalog.requests.run_request import RunRequest
from kafkalog.requests.run_settings import RunSettings
from kafkalog.runs.run_dir import new_run_id
from kafkalog.swap.checkpoint import CheckpointFile
from kafkalog.swap.journal import RETAIN, RunJournal
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.segment_deletion import (
    DELETED,
    RetentionResult,
    refuse_by_owners,
    retain_partition,
)

RetentionRun = Run[RetentionPlan, RetentionResult]


def plan_retention_run(
    request: RunRequest, *, of_gone_cluster: RemoteStorage = NO_REMOTE_STORAGE
) -> RetentionRun:
    """Plan every selected partition; nothing is locked or changed.

    Whose settings count is as for compaction, with the same refusals. `retention.ms` is a week by
    default, which is no reason to delete: a partition whose segments would go by it is refused. So
    is one whose `cleanup.policy` is not known, or not beyond doubt: see `policy_evidence`.
    `of_gone_cluster`: the remote storage of a cluster without brokers: what is not there is not
    planned, whatever `__remote_log_metadata` says.

    Raises InvalidConfigError for paths that do not exist and partitions that are named but not
    there.
    """
    found = request.open_all()
    settings = request.read_settings(found)
    uploads = Uploads(request, of_gone_cluster)
    return _plan_all(request, new_run_id(), request.select(found), settings, uploads)


def _plan_all(
    request: RunRequest, run_id: str, found: LogInventory, settings: RunSettings, uploads: Uploads
) -> RetentionRun:
    problems = Problems(found.problems)
    plans = plan_each(
        found, lambda partition: _plan(partition, request, settings, uploads), problems
    )
    return RetentionRun(
        run_id,
        applied=False,
        plans=plans,
        problems=tuple(problems.texts),
        notes=settings.notes,
        faults=tuple(problems.faults),
        keeps_undo=request.keeps_undo,
        run_dir=request.run_dir,
    )


def apply_retention_run(
    request: RunRequest,
    tell: Tell = lambda _: None,
    files: LocalFiles | None = None,
    *,
    of_gone_cluster: RemoteStorage = NO_REMOTE_STORAGE,
) -> RetentionRun:
    """Plan and carry out; see `frame.apply`. With `of_gone_cluster` logs of tiered topics begin
    where the remote part of their plans lets them, for the caller deletes its segments."""
    verb = Retain(request, new_run_id(), files or LocalFiles())
    verb.of_gone_cluster = of_gone_cluster
    return apply(verb, tell)


class Retain(Verb[RetentionPlan, RetentionResult]):
    """A run of retention in the frame."""

    kind = RETAIN
    of_gone_cluster = NO_REMOTE_STORAGE

    def may_be_changed(self, partition: PartitionInventory, settings: RunSettings) -> bool:
        """Whether its settings allow anything: where they do not, nothing is resolved either."""
        return _may_be_changed(partition, settings)

    def plan(self, found: LogInventory, settings: RunSettings) -> RetentionRun:
        """The plans of these partitions."""
        uploads = Uploads(self.request, self.of_gone_cluster)
        run = _plan_all(self.request, self.run_id, found, settings, uploads)
        if not self.of_gone_cluster.places:
            return run
        return replace(run, plans=tuple(map(with_remote_start, run.plans)))

    def chosen(self, plans: Sequence[RetentionPlan]) -> list[RetentionPlan]:
        """Those that delete anything."""
        return [plan for plan in plans if plan.status == DELETE]

    def execute(
        self, plans: Sequence[RetentionPlan], journal: RunJournal
    ) -> Iterator[RetentionResult]:
        """One partition after the other: a deletion is a few renames."""
        return (retain_partition(plan, journal, self.files) for plan in plans)

    def failed(self, plan: RetentionPlan, reason: str) -> RetentionResult:
        """The result of a plan that could not be carried out."""
        name = plan.topic_partition
        return RetentionResult(name.topic, name.partition, plan.log_dir, FAILED, reason)

    def describe(self, plan: RetentionPlan, result: RetentionResult) -> str:
        """How one partition ended, in a line."""
        if result.status == DELETED:
            return plan.explain()
        return f"{plan.topic_partition}: {result.status}: {result.reason}"

    def settle(
        self,
        plans: Sequence[RetentionPlan],
        results: Sequence[RetentionResult],
        journal: RunJournal,
        problems: Problems,
    ) -> Sequence[RetentionResult]:
        """The log start offsets of what was done."""
        problems.texts += _settle_checkpoints(plans, results, journal, self.files)
        return results


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
    partition: PartitionInventory, request: RunRequest, settings: RunSettings, uploads: Uploads
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
    inputs = request.plan_inputs(partition, settings, resolved, facts)
    if resolved.config.remote_storage_enable:
        inputs = replace(inputs, uploaded_offset=uploads.of(partition))
    plan = refuse_by_owners(retention_by_settings(inputs))
    if plan.status == REFUSED or not is_tiered(plan.config):
        return plan
    return with_remote_part(plan, uploads.log(partition), inputs.why_not_at_this_time)


def _settle_checkpoints(
    plans: Sequence[RetentionPlan],
    results: Sequence[RetentionResult],
    journal: RunJournal,
    files: LocalFiles,
) -> list[str]:
    """Write the log start offsets as a broker does: a partition whose log starts where its first
    segment does has no line (LogManager.checkpointLogStartOffsetsInDir). What went wrong, in words.
    """
    deleted = {
        (result.log_dir, result.topic, result.partition)
        for result in results
        if result.status == DELETED
    }
    offsets: dict[str, dict[tuple[str, int], int | None]] = {}
    for plan in plans:
        key = plan.topic_partition.topic, plan.topic_partition.partition
        # Where it was not deleted the line that was set before stays: a log start never goes back.
        if plan.status == DELETE and (plan.log_dir, *key) not in deleted:
            continue
        if plan.status == REFUSED:
            continue
        first_offset = plan.kept[0].base_offset if plan.kept else plan.roll_offset
        is_inside = plan.log_start_offset != first_offset
        # Of a tiered topic there is always one: nothing else says where its log begins.
        keeps_line = is_inside or plan.config.remote_storage_enable
        line = plan.log_start_offset if keeps_line else None
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
