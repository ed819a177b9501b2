"""A restore into a cluster that is formatted and was never started: topics are made with it.

    1  every partition beside its place, compared with the source
    2  all of them get their names
    3  checkpoints in each log dir, then bootstrap.checkpoint with the topics

Until 3 the cluster has none of it: what is staged a broker deletes when it starts, what has its
name it renames to -stray. All or nothing: if one partition fails nothing gets its name.

Source: Kafka LogManager.loadLogs, LogLoader.recoverLog.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from kafkalog.errors import InvalidConfigError, LogCleaningRefusedError, describe_error, fault_text
from kafkalog.format.checkpoints import (
    CLEANER_OFFSET_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    RECOVERY_POINT_FILE,
    pack_offset_checkpoint,
)
from kafkalog.format.topics import CLUSTER_METADATA_TOPIC
from kafkalog.log.metadata_names import BOOTSTRAP_FILE
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.messages.metadata_snapshot import pack_metadata_snapshot
from kafkalog.operations.frame import results_of
from kafkalog.operations.run_frame import Run
from kafkalog.operations.run_steps import Tell, lock_log_dirs
from kafkalog.planning.statuses import FAILED, REFUSED
from kafkalog.requests.run_request import RunRequest
from kafkalog.restoring.attach_records import check_values, metadata_values
from kafkalog.restoring.execute import RestoreExecutor
from kafkalog.restoring.fresh import FreshDirs, read_fresh_dirs
from kafkalog.restoring.fresh_plan import FreshPlan, plan_fresh
from kafkalog.restoring.groups import GroupScript
from kafkalog.restoring.metadata_place import MetadataPlace, replace_in_all
from kafkalog.restoring.new_directory import discard, put_in_place, work_directory
from kafkalog.restoring.place_run import resolve_left
from kafkalog.restoring.plan import RestorePlan
from kafkalog.restoring.request import RestoreRequest
from kafkalog.restoring.restore import RESTORED, RestoreResult, RestoreTask, cleaner_lines
from kafkalog.restoring.source import open_source
from kafkalog.runs.run_dir import command_for, new_run_id
from kafkalog.swap.journal import RESTORE, begin_journal
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.replacement import drop_undo
from kafkalog.swap.scratch import Scratch
from kafkalog.swap.staged_directories import discard_staged

_METADATA = TopicPartition(CLUSTER_METADATA_TOPIC, 0)


# Without slots: it is of a generic class.
@dataclass(frozen=True)
class FreshRun(Run[RestorePlan, RestoreResult]):
    """A run that makes topics; groups: whose offsets are in the new `__consumer_offsets`."""

    groups: tuple[GroupScript, ...] = ()


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A plan, and the files that each log dir gets for it."""

    plan: FreshPlan
    target: FreshDirs
    places: tuple[MetadataPlace, ...]
    problems: tuple[str, ...]


def plan_fresh_restore(request: RunRequest, restore: RestoreRequest) -> FreshRun:
    """A dry run; errors as of `open_log_dir`, `read_fresh_dirs` and `group_scripts`."""
    with TemporaryDirectory() as work_dir:
        return _run_of(_prepare(request, restore, Path(work_dir)), new_run_id(), request)


def apply_fresh_restore(
    request: RunRequest,
    restore: RestoreRequest,
    execute: RestoreExecutor,
    tell: Tell,
    files: LocalFiles,
) -> FreshRun:
    """Plan and carry out, holding the lock of every log dir.

    LogDirLockedError if one is locked, LogCleaningRefusedError where nothing could be restored or
    no journal can be kept: then nothing was changed.
    """
    if not restore.topics:
        raise InvalidConfigError("--apply needs --topic; --topic '*' takes all")
    target = read_fresh_dirs(request.log_dirs)
    log_dirs, run_id = [each.path for each in target.dirs], new_run_id()
    with lock_log_dirs(log_dirs, []):
        resolved = [*resolve_left(log_dirs, files)]
        removed = discard_staged(log_dirs, files)
        resolved += (f"{path}: removed, of a run that died" for path in removed)
        work_dir = work_directory(log_dirs[0], run_id)
        try:
            prepared = _prepare(request, restore, work_dir)
            results, problems = _apply(prepared, request, run_id, resolved, execute, tell, files)
        finally:
            files.remove_directory(str(work_dir.parent))
    for line in (*prepared.problems, *problems):
        tell(line)
    run = _run_of(prepared, run_id, request)
    faults = tuple(f"{each.path}: {each.fault}" for each in results if each.fault)
    if any(each.status != RESTORED for each in results):
        run = replace(run, notes=(), groups=())  # nothing is made
    return replace(
        run, applied=True, results=tuple(results), recovered=tuple(resolved), faults=faults,
        problems=(*run.problems, *problems),
    )  # fmt: skip


def _apply(
    prepared: _Prepared,
    request: RunRequest,
    run_id: str,
    resolved: Sequence[str],
    execute: RestoreExecutor,
    tell: Tell,
    files: LocalFiles,
) -> tuple[list[RestoreResult], list[str]]:
    """Results, and problems of the journal."""
    log_dirs = [each.path for each in prepared.target.dirs]
    chosen = [plan for plan in prepared.plan.plans if plan.status != REFUSED]
    if not chosen:
        reasons = [f"{plan.topic_partition}: {plan.reason}" for plan in prepared.plan.plans]
        raise LogCleaningRefusedError("; ".join(reasons) or "the source has nothing of it")
    journal = begin_journal(request, run_id, RESTORE, log_dirs)
    journal.resolved(resolved)
    journal.planned((_METADATA, each.path, each.log_dir, 0) for each in prepared.places)
    journal.planned(
        (p.topic_partition, p.path, p.log_dir, p.cut.size_in_bytes if p.cut else 0) for p in chosen
    )
    results = _carry_out(prepared, chosen, request, run_id, execute, files)
    for result in results:
        name = TopicPartition(result.topic, result.partition)
        journal.ended(name, result.path, result.status, result.reason, result.replaced)
        tell(f"{result.path}: {result.status}{': ' * bool(result.reason)}{result.reason}")
    journal.settled()
    journal.finish(results)
    return results, journal.problems


def _prepare(request: RunRequest, restore: RestoreRequest, work_dir: Path) -> _Prepared:
    opened = open_source(restore)
    source = opened.found
    restore.check(source)
    target = read_fresh_dirs(request.log_dirs)
    limits = request.now_ms, request.max_batch_bytes
    plan = plan_fresh(restore, source, target, work_dir, limits)
    plan = replace(plan, plans=tuple(opened.noted(plan.plans)))
    places: tuple[MetadataPlace, ...] = ()
    if plan.metadata.partitions:
        places = tuple(_places(plan, target, request.now_ms))
    return _Prepared(plan, target, places, (*source.problems, *target.problems))


def _places(plan: FreshPlan, target: FreshDirs, now_ms: int) -> Iterator[MetadataPlace]:
    values = metadata_values(plan.metadata, None, target.dirs)
    check_values(values, plan.metadata)
    for each in target.dirs:
        own = [p for p in plan.plans if p.log_dir == each.path and p.status != REFUSED]
        starts, ends = {}, {}
        for p in own:
            if p.cut is None:
                continue
            key = p.topic_partition.topic, p.topic_partition.partition
            # All of it is on the disk: a start without a clean stop looks at the last segment only.
            ends[key] = p.cut.end_offset + len(p.cut.open)
            if p.cut.start_offset > p.cut.segments[0].base_offset:
                starts[key] = p.cut.start_offset
        # Every replica in sync has all of it: that is what a high watermark says.
        writes = dict.fromkeys(
            (RECOVERY_POINT_FILE, HIGH_WATERMARK_FILE), pack_offset_checkpoint(ends)
        )
        if starts:
            writes[LOG_START_OFFSET_FILE] = pack_offset_checkpoint(starts)
        data = pack_metadata_snapshot([*values, *target.others.get(each.path, ())], now_ms)
        yield MetadataPlace(each.path, each.path, {**writes, BOOTSTRAP_FILE: data})


def _run_of(prepared: _Prepared, run_id: str, request: RunRequest) -> FreshRun:
    plan = prepared.plan
    notes = [*plan.notes]
    if prepared.places:
        notes.append(
            f"leader epoch {plan.metadata.leader_epoch} and producer ids from "
            f"{plan.metadata.next_producer_id} on: above all that is restored"
        )
        notes.append(
            "before any node starts: a controller whose log dirs are not given needs the same "
            f"{BOOTSTRAP_FILE} in its metadata log dir; then start all nodes, in any order"
        )
    return FreshRun(
        run_id, applied=False, plans=plan.plans, notes=tuple(notes), problems=prepared.problems,
        keeps_undo=request.keeps_undo, run_dir=request.run_dir, groups=plan.groups,
    )  # fmt: skip


def _carry_out(
    prepared: _Prepared,
    plans: Sequence[RestorePlan],
    request: RunRequest,
    run_id: str,
    execute: RestoreExecutor,
    files: LocalFiles,
) -> list[RestoreResult]:
    ids = {
        (each.topic, each.partition): each.topic_id for each in prepared.plan.metadata.partitions
    }
    tasks = [
        RestoreTask(
            plan, prepared.plan.configs[plan.topic_partition.topic], request.now_ms, run_id,
            request.keeps_undo, request.max_batch_bytes,
            ids[plan.topic_partition.topic, plan.topic_partition.partition],
        )
        for plan in plans
    ]  # fmt: skip
    try:
        coming = results_of(plans, execute(tasks), _failed)
        results = [result for _, result in coming]
        if all(each.status == RESTORED for each in results):
            results = _put_all_in_place(prepared, plans, results, run_id, request, files)
        else:
            results = [_without_the_others(each) for each in results]
    finally:
        for plan in plans:
            discard(plan.log_dir, plan.topic_partition, run_id, files)
    return results


def _put_all_in_place(
    prepared: _Prepared,
    plans: Sequence[RestorePlan],
    results: Sequence[RestoreResult],
    run_id: str,
    request: RunRequest,
    files: LocalFiles,
) -> list[RestoreResult]:
    """Names first, metadata last. An error leaves what undo takes back."""
    path = ""
    try:
        for plan in plans:
            path = plan.path
            put_in_place(plan.log_dir, plan.topic_partition, run_id, files)
        # Kept until the end in any case: a run that dies here must be taken back.
        replace_in_all(_with_cleaner(prepared.places, results), run_id, files)
    except Exception as error:
        undo = f"`{command_for('undo', run_id, request.run_dir)}` takes all of it back"
        why = f"{describe_error(error, path)}: {undo}, before any broker starts"
        failed = [replace(each, status=FAILED, reason=why) for each in results]
        return [replace(failed[0], fault=fault_text(error)), *failed[1:]]
    if not request.keeps_undo:
        for directory in (*(p.path for p in plans), *(p.path for p in prepared.places)):
            drop_undo(Scratch(directory, run_id), files)
    return list(results)


def _with_cleaner(
    places: Sequence[MetadataPlace], results: Sequence[RestoreResult]
) -> list[MetadataPlace]:
    """The places, with the cleaner's checkpoint where partitions were compacted."""
    lines = cleaner_lines(results)
    return [
        replace(each, writes={CLEANER_OFFSET_FILE: pack_offset_checkpoint(own), **each.writes})
        if (own := lines.get(each.path))
        else each
        for each in places
    ]


def _failed(plan: RestorePlan, reason: str) -> RestoreResult:
    name = plan.topic_partition
    return RestoreResult(name.topic, name.partition, plan.path, plan.log_dir, FAILED, reason)


def _without_the_others(result: RestoreResult) -> RestoreResult:
    if result.status != RESTORED:
        return result
    return replace(
        result, status=FAILED, replaced=None, records=0, bytes_after=0,
        reason="another partition failed: nothing of the run was put in place",
    )  # fmt: skip
