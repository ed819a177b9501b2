"""A partition that the target does not have yet: its whole directory is made beside, compared with
the source, and gets its name once all of a run are there.

    orders-0.<32 digits>-delete/        a broker that starts deletes it, as a topic that is gone
      kafkalog-RUN-restoring.tmp/
        orders-0/                       the partition, compared, with a record for undo
    orders-0/                           by one rename

Source: Kafka LogManager.loadLogs, UnifiedLog.logDeleteDirName.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path

from kafkalog.errors import LogChangedError
from kafkalog.format.file_names import PARTITION_METADATA_FILE
from kafkalog.format.meta_properties import META_PROPERTIES_FILE
from kafkalog.format.partition_metadata import pack_partition_metadata
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.restoring.restore import RESTORED, RestoreResult, RestoreTask, ended
from kafkalog.restoring.segments import Identity
from kafkalog.restoring.source import source_of
from kafkalog.restoring.stage import build_restored
from kafkalog.swap.file_facts import facts_of
from kafkalog.swap.journal import RESTORE
from kafkalog.swap.local_files import LocalFiles, give_to_owner_of, list_names, path_in
from kafkalog.swap.replacement import Replacement, write_record
from kafkalog.swap.scratch import Scratch, new_attempt_id

_MOST_NAME = 255  # of a file name


def stage_directory(task: RestoreTask, files: LocalFiles) -> RestoreResult:
    """Make one partition beside its place, compared; `put_in_place` gives it its name. Every way to
    end is a RestoreResult.
    """
    return ended(task, lambda result: _stage(task, result, files))


def _stage(task: RestoreTask, result: RestoreResult, files: LocalFiles) -> RestoreResult:
    plan, cut, identity = task.plan, task.plan.cut, Identity(is_kept=True)
    if cut is None or task.new_topic_id is None:
        raise LogChangedError("a plan without a cut is not carried out", path=plan.path)
    source = source_of(plan)
    staged = _staged_path(plan.log_dir, plan.topic_partition, task.run_id)
    discard(plan.log_dir, plan.topic_partition, task.run_id, files)
    like = Path(plan.log_dir, META_PROPERTIES_FILE).stat()
    options = (task.run_id, task.config, task.now_ms, task.max_batch_bytes)
    built = build_restored(
        source, cut, staged, like, identity, options, files, compacts=plan.compacts
    )
    source_of(plan)
    metadata = pack_partition_metadata(task.new_topic_id)
    files.write_new(str(staged / PARTITION_METADATA_FILE), metadata, like)
    record = Replacement(
        task.run_id, RESTORE, new_attempt_id(), task.keeps_undo, staged.stat().st_mtime_ns,
        made=facts_of(str(staged), list_names(str(staged))),
    )  # fmt: skip
    write_record(Scratch(str(staged), task.run_id).undo_record, record, files)
    _give_to_owner(staged)
    files.sync_directory(str(staged))
    return replace(
        result, status=RESTORED, end_offset=cut.end_offset + len(cut.open), records=built.records,
        bytes_after=built.log.size_in_bytes, replaced=record, reason=built.note,
        next_dirty_offset=built.next_dirty_offset,
    )  # fmt: skip


def put_in_place(log_dir: str, name: TopicPartition, run_id: str, files: LocalFiles) -> None:
    """Give a staged partition its name. OSError where there is something of that name."""
    staged = _staged_path(log_dir, name, run_id)
    files.rename(str(staged), path_in(log_dir, str(name)))
    files.sync_directory(log_dir)


def discard(log_dir: str, name: TopicPartition, run_id: str, files: LocalFiles) -> None:
    """Remove what a run has beside the partition's place."""
    files.remove_directory(str(_staged_path(log_dir, name, run_id).parents[1]))


def work_directory(log_dir: str, run_id: str) -> Path:
    """A place of a run's own in a log dir, removed as what is staged is."""
    digits = hashlib.sha256(run_id.encode()).hexdigest()[:32]
    outer = path_in(log_dir, f"kafkalog-0.{digits}-delete")
    return Path(Scratch(outer, run_id).restoring)


def _staged_path(log_dir: str, name: TopicPartition, run_id: str) -> Path:
    digits = hashlib.sha256(f"{run_id} {name}".encode()).hexdigest()[:32]
    ending = f"-{name.partition}.{digits}-delete"
    outer = f"{name.topic[: _MOST_NAME - len(ending)]}{ending}"
    return Path(Scratch(path_in(log_dir, outer), run_id).restoring, str(name))


def _give_to_owner(directory: Path) -> None:
    """The directory itself is the log dir's owner's."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        give_to_owner_of(fd, str(directory.parents[2]))
    finally:
        os.close(fd)
