"""A restore in the frame of all verbs that change logs: a dry run plans, `apply` carries out. The
plan that counts is made while the target's log dirs are locked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from kafkalog.errors import LogCleaningRefusedError, describe_error, fault_text
from kafkalog.format.checkpoints import LOG_START_OFFSET_FILE
from kafkalog.log.inventory import (
    CLUSTER_METADATA_TOPIC,
    LogInventory,
    PartitionInventory,
    PartitionKind,
)
from kafkalog.log.log_dir import expand_paths, open_log_dir, reopen_partition
from kafkalog.operations.frame import Verb, apply
from kafkalog.operations.run_frame import Run
from kafkalog.operations.run_steps import Tell
from kafkalog.operations.space import free_bytes
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.statuses import FAILED, REFUSED
from kafkalog.requests.run_request import RunRequest
from kafkalog.requests.run_settings import RunSettings
from kafkalog.restoring.plan import RESTORE as TO_RESTORE
from kafkalog.restoring.plan import RestorePlan, Target, plan_restores
from kafkalog.restoring.request import RestoreRequest
from kafkalog.restoring.restore import RESTORED, RestoreResult, RestoreTask, restore_partition
from kafkalog.runs.run_dir import new_run_id
from kafkalog.swap.checkpoint import CheckpointFile
from kafkalog.swap.journal import RESTORE, RunJournal
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.plan_check import check_unchanged

RestoreRun = Run[RestorePlan, RestoreResult]
# Indexes and snapshots of a log: a few thousandths of it; more where batches are tiny.
_BESIDE = 1.02


def plan_restore(request: RunRequest, restore: RestoreRequest) -> RestoreRun:
    """Plan; nothing is locked or changed. `request` is of the target's log dirs.

    InvalidConfigError for names that are not there.
    """
    verb = Restore(request, restore, LocalFiles())
    found = request.open_all()
    return verb.plan(found, request.read_settings(found))


def apply_restore(
    request: RunRequest, restore: RestoreRequest, tell: Tell, files: LocalFiles | None = None
) -> RestoreRun:
    """The same carried out; see `frame.apply`. LogCleaningRefusedError where nothing of the target
    could be restored into.
    """
    planned = plan_restore(request, restore)
    topics = sorted({each.topic_partition.topic for each in planned.plans if each.path})
    if not topics:
        reasons = [f"{each.topic_partition}: {each.reason}" for each in planned.plans]
        raise LogCleaningRefusedError("; ".join(reasons) or "the source has nothing of that name")
    verb = Restore(replace(request, topics=tuple(topics)), restore, files or LocalFiles())
    return apply(verb, tell)


class Restore(Verb[RestorePlan, RestoreResult]):
    """A run of a restore in the frame."""

    kind = RESTORE

    def __init__(self, request: RunRequest, restore: RestoreRequest, files: LocalFiles) -> None:
        super().__init__(request, new_run_id(), files)
        self._restore = restore
        self._configs: dict[str, LogConfig] = {}
        self._copies: dict[str, PartitionInventory] = {}

    def may_be_changed(self, partition: PartitionInventory, settings: RunSettings) -> bool:
        """Whether it is a partition of a topic."""
        is_metadata = partition.topic_partition.topic == CLUSTER_METADATA_TOPIC
        return partition.kind is PartitionKind.LIVE and not is_metadata

    def plan(self, found: LogInventory, settings: RunSettings) -> RestoreRun:
        """A plan for each directory of the target."""
        source = open_log_dir(*self._restore.sources, reads_buckets=False)
        self._restore.check(source)
        log_dirs = [str(path) for path in expand_paths(self.request.log_dirs, reads_buckets=False)]
        target = Target.of(found, settings, log_dirs)
        self._copies = {each.path: each for each in found}
        plans = plan_restores(self._restore, source, target, self.request.max_batch_bytes)
        chosen = tuple(_refuse_without_space(plans))
        self._configs = {
            each.path: settings.resolve(self._copies[each.path], needs_policy=False).config
            for each in chosen
            if each.path
        }
        return RestoreRun(
            self.run_id,
            applied=False,
            plans=chosen,
            problems=(*source.problems, *found.problems),
            keeps_undo=self.request.keeps_undo,
        )

    def chosen(self, plans: Sequence[RestorePlan]) -> list[RestorePlan]:
        """Those that are not refused; where one replica is, the others are as well."""
        refused = {plan.topic_partition for plan in plans if plan.status == REFUSED}
        return [plan for plan in plans if plan.topic_partition not in refused]

    def peak_bytes(self, plan: RestorePlan) -> int:
        """Bytes of the restored log."""
        return needed_bytes(plan)

    def execute(self, plans: Sequence[RestorePlan], journal: RunJournal) -> Iterator[RestoreResult]:
        """One after the other."""
        for plan in plans:
            asked = self.request
            task = RestoreTask(
                plan, self._configs[plan.path], asked.now_ms, self.run_id, asked.keeps_undo,
                asked.max_batch_bytes,
            )  # fmt: skip
            yield self._restored(task, journal)

    def _restored(self, task: RestoreTask, journal: RunJournal) -> RestoreResult:
        plan = task.plan
        try:
            check_unchanged(plan.path, plan.token)
            self._set_log_start(plan, journal, is_back=False)
            # The checkpoint is in the token: what else changes is still seen.
            now = reopen_partition(plan.path)
            token = plan.token if now is None else now.token
            task = replace(task, plan=replace(plan, token=token))
            result = restore_partition(task, self.files)
            if result.status != RESTORED:
                self._set_log_start(plan, journal, is_back=True)
        except Exception as error:
            failed = self.failed(plan, describe_error(error, plan.path))
            result = replace(failed, fault=fault_text(error))
        return result

    def _set_log_start(self, plan: RestorePlan, journal: RunJournal, *, is_back: bool) -> None:
        """The checkpoint of a log that starts inside its first segment: before there is anything in
        front of it that a consumer could get.
        """
        if plan.cut is None or plan.cut.start_offset <= plan.cut.segments[0].base_offset:
            return
        name = plan.topic_partition
        checkpoint = CheckpointFile(
            plan.log_dir, LOG_START_OFFSET_FILE, self.files, journal.keep_for, journal.checkpoint
        )
        before = self._copies[plan.path].checkpoints.log_start
        offset = before if is_back else plan.cut.start_offset
        checkpoint.update({(name.topic, name.partition): offset})

    def failed(self, plan: RestorePlan, reason: str) -> RestoreResult:
        """The result of a plan that could not be carried out."""
        name = plan.topic_partition
        return RestoreResult(name.topic, name.partition, plan.path, plan.log_dir, FAILED, reason)

    def describe(self, plan: RestorePlan, result: RestoreResult) -> str:
        """How one directory ended."""
        if result.status == RESTORED:
            return (
                f"{plan.path}: restored from {plan.source}, {result.records} records compared, to "
                f"offset {result.end_offset}"
            )
        return f"{plan.path}: {result.status}: {result.reason}"


def needed_bytes(plan: RestorePlan) -> int:
    """Bytes that a plan writes."""
    return 0 if plan.cut is None else int(plan.cut.size_in_bytes * _BESIDE)


def _refuse_without_space(plans: Iterable[RestorePlan]) -> Iterator[RestorePlan]:
    left: dict[int, int] = {}
    for plan in plans:
        if plan.status == REFUSED or plan.cut is None:
            yield plan
            continue
        device = Path(plan.log_dir).stat().st_dev
        if device not in left:
            left[device] = free_bytes(plan.log_dir)
        needed = needed_bytes(plan)
        if needed > left[device]:
            yield plan.refused(
                f"no space: it takes {needed} bytes, the disk of {plan.log_dir} has {left[device]} "
                "left"
            )
            continue
        left[device] -= needed
        yield plan


def restore_statuses(run: RestoreRun) -> list[str]:
    """One a directory."""
    done = {result.path: result.status for result in run.results}
    return [done.get(plan.path, _left_out(plan, run)) for plan in run.plans]


def _left_out(plan: RestorePlan, run: RestoreRun) -> str:
    """A plan that was not carried out because another replica of its partition was refused."""
    return REFUSED if run.applied and plan.status == TO_RESTORE else plan.status
