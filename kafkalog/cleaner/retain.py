"""Carry out one retention plan: delete the segments it names, in Kafka's order.

    1  the log start offset goes into its checkpoint   it never goes back, whatever happens next
    2  where all segments go: an empty one at the log's end, indexes first, the `.log` last
    3  leader epochs are trimmed to the log start offset
    4  files of the segments → `.deleted`, ascending, the `.log` first; then their snapshots
       directory synced
    5  `.deleted` removed

Dying anywhere leaves a log a broker loads: it removes `.deleted` files, indexes without a log and
snapshots below the first segment. What is still there below the new log start offset goes by that
rule, in a broker's or our next pass. A broker keeps `.deleted` files for file.delete.delay.ms, for
readers that have them open; here nobody has.

A snapshot at the log's end, which a clean stop leaves, is kept for the new segment. Where there is
none, none is made: a broker drops those that are not above the log start offset when it loads.

Source: Kafka UnifiedLog.deleteSegments, UnifiedLog.roll, LocalLog.removeAndDeleteSegments,
LeaderEpochFileCache.truncateFromStart.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kafkalog.cleaner.checkpoint import update_checkpoint
from kafkalog.cleaner.local_files import LocalFiles, can_give_ownership, path_in
from kafkalog.cleaner.plan_check import check_unchanged, describe_error, fault_text
from kafkalog.cleaner.stats import FAILED, REFUSED
from kafkalog.cleaner.swap import SEGMENT_KINDS, existing_files
from kafkalog.errors import LogCleaningRefusedError
from kafkalog.format.checkpoints import (
    LOG_START_OFFSET_FILE,
    EpochEntry,
    pack_leader_epoch_checkpoint,
)
from kafkalog.format.file_names import (
    DELETED_SUFFIX,
    LEADER_EPOCH_CHECKPOINT_FILE,
    LogFileKind,
    log_file_name,
    offset_index_file_name,
    time_index_file_name,
)
from kafkalog.log.retention_facts import read_leader_epochs
from kafkalog.planning.retention_plan import RetentionPlan

DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class RetentionResult:
    """How one partition's retention ended: `deleted`, `refused` or `failed`, and why; `fault` as in
    CleanResult.
    """

    topic: str
    partition: int
    log_dir: str
    status: str
    reason: str = ""
    fault: str = ""


def retain_partition(plan: RetentionPlan, files: LocalFiles) -> RetentionResult:
    """Carry out one plan of status `delete`; every way to end is a RetentionResult.

    The caller holds the log dir's lock.
    """
    status, reason, fault = DELETED, "", ""
    try:
        _retain(plan, files)
    except LogCleaningRefusedError as error:
        status, reason = REFUSED, str(error)
    except Exception as error:
        status, reason, fault = FAILED, describe_error(error, plan.path), fault_text(error)
    name = plan.topic_partition
    return RetentionResult(name.topic, name.partition, plan.log_dir, status, reason, fault)


def trimmed_leader_epochs(entries: Sequence[EpochEntry], start_offset: int) -> list[EpochEntry]:
    """Epochs that reach to or past `start_offset`; the one it lies in starts there."""
    passed = [entry for entry in entries if entry[1] <= start_offset]
    later = [entry for entry in entries if entry[1] > start_offset]
    return [(passed[-1][0], start_offset), *later] if passed else later


def _retain(plan: RetentionPlan, files: LocalFiles) -> None:
    check_unchanged(plan.path, plan.token)
    key = plan.topic_partition.topic, plan.topic_partition.partition
    active = path_in(plan.path, log_file_name(plan.deleted[-1].base_offset))
    if plan.roll_offset is not None:
        _check_ownership(active)
    epochs = read_leader_epochs(plan.path)
    update_checkpoint(plan.log_dir, LOG_START_OFFSET_FILE, {key: plan.log_start_offset}, files)
    if plan.roll_offset is not None:
        _make_empty_segment(plan.path, plan.roll_offset, active, files)
    if epochs is not None:
        _trim_leader_epochs(plan.path, epochs, plan.log_start_offset, files)
    _delete(plan.path, [segment.base_offset for segment in plan.deleted], files)


def _check_ownership(active: str) -> None:
    owner = Path(active).stat()
    if not can_give_ownership(owner):
        raise LogCleaningRefusedError(
            f"the new segment must belong to user {owner.st_uid}, group {owner.st_gid}, which "
            "this process may not give: run it as that user or as root",
            path=active,
        )


def _make_empty_segment(directory: str, base_offset: int, active: str, files: LocalFiles) -> None:
    # A broker removes indexes without a log, and makes missing ones anew: so the log comes last.
    for name in (
        offset_index_file_name(base_offset),
        time_index_file_name(base_offset),
        log_file_name(base_offset),
    ):
        path = path_in(directory, name)
        files.remove(path)
        fd = files.create(path)
        try:
            files.set_owner(fd, Path(active).stat())
            files.sync_file(fd)
        finally:
            os.close(fd)
    files.sync_directory(directory)


def _trim_leader_epochs(
    directory: str, entries: Sequence[EpochEntry], start_offset: int, files: LocalFiles
) -> None:
    trimmed = trimmed_leader_epochs(entries, start_offset)
    if trimmed != list(entries):
        path = path_in(directory, LEADER_EPOCH_CHECKPOINT_FILE)
        files.replace_contents(path, pack_leader_epoch_checkpoint(trimmed), f"{path}.tmp")


def _delete(directory: str, base_offsets: Sequence[int], files: LocalFiles) -> None:
    names = [
        *existing_files(directory, base_offsets, SEGMENT_KINDS),
        *existing_files(directory, base_offsets, (LogFileKind.PRODUCER_SNAPSHOT,)),
    ]
    for name in names:
        files.rename(path_in(directory, name), path_in(directory, name + DELETED_SUFFIX))
    files.sync_directory(directory)
    for name in names:
        files.remove(path_in(directory, name + DELETED_SUFFIX))
