"""A restore in the frame of all verbs that change logs: a dry run plans, `apply` carries out. The
plan that counts is made while the target's log dirs are locked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kafkalog.errors import (
    InvalidConfigError,
    KafkaLogError,
    LogCleaningRefusedError,
    describe_error,
    fault_text,
)
from kafkalog.format.checkpoints import CLEANER_OFFSET_FILE, LOG_START_OFFSET_FILE
from kafkalog.format.file_names import SWAP_SUFFIX
from kafkalog.log.inventory import (
    CLUSTER_METADATA_TOPIC,
    LogInventory,
    PartitionInventory,
    PartitionKind,
)
from kafkalog.log.log_dir import expand_paths, reopen_partition
from kafkalog.operations.frame import Verb, apply
from kafkalog.operations.run_steps import Problems, Tell
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.statuses import FAILED, REFUSED
from kafkalog.requests.run_request import RunRequest
from kafkalog.requests.run_settings import RunSettings
from kafkalog.restoring.execute import RestoreExecutor, in_this_process
from kafkalog.restoring.fresh import is_fresh
from kafkalog.restoring.fresh_run import apply_fresh_restore, plan_fresh_restore
from kafkalog.restoring.plan import RESTORE as TO_RESTORE
from kafkalog.restoring.plan import RestorePlan, plan_restores
from kafkalog.restoring.request import RestoreRequest
from kafkalog.restoring.restore import (
    RESTORED,
    RestoreResult,
    RestoreRun,
    RestoreTask,
    cleaner_lines,
)
from kafkalog.restoring.source import open_source
from kafkalog.restoring.space import needed_bytes, refuse_without_space
from kafkalog.restoring.target import Target
from kafkalog.runs.run_dir import new_run_id
from kafkalog.swap.checkpoint import CheckpointFile
from kafkalog.swap.journal import RESTORE, RunJournal
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.plan_check import check_unchanged


def plan_restore(request: RunRequest, restore: RestoreRequest) -> RestoreRun:
    """Plan; nothing is locked or changed. `request` is of the target's log dirs.

    InvalidConfigError for names that are not there.
    """
    if is_fresh(request.log_dirs):
        return plan_fresh_restore(request, restore)
    _refuse_options_of_new_topics(restore)
    files = LocalFiles()
    verb = Restore(request, restore, files, in_this_process(files))
    found = request.open_all()
    return verb.plan(found, request.read_settings(found))


def apply_restore(
    request: RunRequest,
    restore: RestoreRequest,
    tell: Tell,
    files: LocalFiles | None = None,
    execute: RestoreExecutor | None = None,
) -> RestoreRun:
    """The same carried out; see `frame.apply`. Without `execute` in this process.
    LogCleaningRefusedError where nothing of the target could be restored into.
    """
    files = files or LocalFiles()
    execute = execute or in_this_process(files)
    if is_fresh(request.log_dirs):
        return apply_fresh_restore(request, restore, execute, tell, files)
    planned = plan_restore(request, restore)
    topics = sorted({each.topic_partition.topic for each in planned.plans if each.path})
    if not topics:
        reasons = [f"{each.topic_partition}: {each.reason}" for each in planned.plans]
        raise LogCleaningRefusedError("; ".join(reasons) or "the source has nothing of that name")
    verb = Restore(replace(request, topics=tuple(topics)), restore, files, execute)
    return apply(verb, tell)


def _refuse_options_of_new_topics(restore: RestoreRequest) -> None:
    is_given = restore.replication_factor or restore.offsets_partitions
    if is_given or restore.leaves_followers_empty:
        raise InvalidConfigError(
            "--replication-factor, --empty-followers and --offsets-partitions are for topics that "
            "are made: the target's cluster was started before and has its own topics"
        )


class Restore(Verb[RestorePlan, RestoreResult]):
    """A run of a restore in the frame."""

    kind = RESTORE

    def __init__(
        self,
        request: RunRequest,
        restore: RestoreRequest,
        files: LocalFiles,
        execute: RestoreExecutor,
    ) -> None:
        super().__init__(request, new_run_id(), files)
        self._restore, self._execute = restore, execute
        self._configs: dict[str, LogConfig] = {}
        self._copies: dict[str, PartitionInventory] = {}

    def may_be_changed(self, partition: PartitionInventory, settings: RunSettings) -> bool:
        """Whether it is a partition of a topic."""
        is_metadata = partition.topic_partition.topic == CLUSTER_METADATA_TOPIC
        return partition.kind is PartitionKind.LIVE and not is_metadata

    def plan(self, found: LogInventory, settings: RunSettings) -> RestoreRun:
        """A plan for each directory of the target."""
        opened = open_source(self._restore)
        source = opened.found
        self._restore.check(source)
        log_dirs = [str(path) for path in expand_paths(self.request.log_dirs, reads_buckets=False)]
        target = Target.of(found, settings, log_dirs)
        self._copies = {each.path: each for each in found}
        plans = plan_restores(self._restore, source, target, self.request.max_batch_bytes)
        chosen = tuple(refuse_without_space(opened.noted(plans)))
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
            notes=tuple(
                target.what_stays_empty(p.topic_partition for p in chosen if p.status != REFUSED)
            ),
            keeps_undo=self.request.keeps_undo,
            run_dir=self.request.run_dir,
        )

    def chosen(self, plans: Sequence[RestorePlan]) -> list[RestorePlan]:
        """Those that are not refused; where one replica is, the others are as well."""
        refused = {plan.topic_partition for plan in plans if plan.status == REFUSED}
        return [plan for plan in plans if plan.topic_partition not in refused]

    def peak_bytes(self, plan: RestorePlan) -> int:
        """Bytes of the restored log."""
        return needed_bytes(plan)

    def execute(self, plans: Sequence[RestorePlan], journal: RunJournal) -> Iterator[RestoreResult]:
        """Log starts first; those of partitions that end otherwise go back."""
        tasks = []
        for plan in plans:
            try:
                tasks.append(self._task(plan, journal))
            except Exception as error:
                failed = self.failed(plan, describe_error(error, plan.path))
                yield replace(failed, fault=fault_text(error))
        by_path = {task.plan.path: task.plan for task in tasks}
        for result in self._execute(tasks):
            if result.status == RESTORED:
                yield result
                continue
            try:
                if _is_empty_still(result.path):
                    self._set_log_start(by_path[result.path], journal, is_back=True)
                yield result
            except Exception as error:
                reason = f"{result.reason}; {describe_error(error, result.path)}"
                yield replace(result, reason=reason, fault=fault_text(error))

    def settle(
        self,
        plans: Sequence[RestorePlan],
        results: Sequence[RestoreResult],
        journal: RunJournal,
        problems: Problems,
    ) -> list[RestoreResult]:
        """Where a cleaner goes on in what was compacted. Without it a cleaner begins anew."""
        for log_dir, lines in cleaner_lines(results).items():
            checkpoint = CheckpointFile(
                log_dir, CLEANER_OFFSET_FILE, self.files, journal.keep_for, journal.checkpoint
            )
            try:
                checkpoint.update(lines)
            except (KafkaLogError, OSError) as error:
                problems.texts.append(f"{log_dir}: the cleaner checkpoint is as it was: {error}")
        return list(results)

    def _task(self, plan: RestorePlan, journal: RunJournal) -> RestoreTask:
        check_unchanged(plan.path, plan.token)
        self._set_log_start(plan, journal, is_back=False)
        # The checkpoint is in the token: what else changes is still seen.
        now = reopen_partition(plan.path)
        token = plan.token if now is None else now.token
        asked = self.request
        return RestoreTask(
            replace(plan, token=token), self._configs[plan.path], asked.now_ms, self.run_id,
            asked.keeps_undo, asked.max_batch_bytes,
        )  # fmt: skip

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
                f"offset {result.end_offset}{'; ' * bool(result.reason)}{result.reason}"
            )
        return f"{plan.path}: {result.status}: {result.reason}"


def _is_empty_still(path: str) -> bool:
    """Whether neither the restored log is there, nor what the next run or start makes it of: a swap
    that failed behind its point of no return is finished.
    """
    found = reopen_partition(path)
    if found is None or any(name.endswith(SWAP_SUFFIX) for name in found.leftovers):
        return False
    return not found.size_in_bytes


def restore_statuses(run: RestoreRun) -> list[str]:
    """One a directory."""
    done = {result.path: result.status for result in run.results}
    return [done.get(plan.path, _left_out(plan, run)) for plan in run.plans]


def _left_out(plan: RestorePlan, run: RestoreRun) -> str:
    """A plan that was not carried out because another replica of its partition was refused."""
    return REFUSED if run.applied and plan.status == TO_RESTORE else plan.status
