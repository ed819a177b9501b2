"""Carry out one retention plan: delete the segments it names, in Kafka's order.

    0  new files under scratch names; the swap record; second names for what goes, where the run can
       be undone (replacement.py)
    1  the log start offset goes into its checkpoint   it never goes back, whatever happens next
    2  where all segments go: an empty one at the log's end, indexes first, the `.log` last
    3  leader epochs are trimmed to the log start offset
    4  what a broker left as `.deleted` goes: the names are needed
       files of the segments → `.deleted`, ascending, the `.log` first; then their snapshots
       directory synced
    5  `.deleted` removed
    6  the swap record becomes the record of what is kept, or goes

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

from kafkalog.cleaning.new_files import check_ownership
from kafkalog.errors import KafkaLogError, describe_error, fault_text
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
from kafkalog.planning.retention_plan import DELETE, RetentionPlan
from kafkalog.planning.statuses import ended_by
from kafkalog.swap.checkpoint import CheckpointFile
from kafkalog.swap.file_facts import facts_with_checksum, file_facts
from kafkalog.swap.interrupted_swap import clear_run
from kafkalog.swap.journal import RETAIN, RunJournal
from kafkalog.swap.local_files import LocalFiles, path_in
from kafkalog.swap.plan_check import check_unchanged
from kafkalog.swap.replacement import (
    Replacement,
    begin_replacement,
    end_replacement,
    left_by_broker,
    remove_left_by_broker,
)
from kafkalog.swap.scratch import Scratch
from kafkalog.swap.swap import SEGMENT_KINDS, existing_files

DELETED = "deleted"
# Whoever holds the locks deletes by itself: there is one attempt.
_ATTEMPT = "0"

# The name of a file that is made, its bytes, and the path of the file whose owner it gets.
NewFile = tuple[str, bytes, str]


@dataclass(frozen=True, slots=True)
class RetentionResult:
    """How one partition's retention ended: `deleted`, `refused` or `failed`, and why; `fault` and
    `replaced` as in CleanResult.
    """

    topic: str
    partition: int
    log_dir: str
    status: str
    reason: str = ""
    fault: str = ""
    replaced: Replacement | None = None


def retain_partition(
    plan: RetentionPlan, journal: RunJournal, files: LocalFiles
) -> RetentionResult:
    """Carry out one plan of status `delete`; every way to end is a RetentionResult.

    The caller holds the log dir's lock.
    """
    status, reason, fault = DELETED, "", ""
    scratch = Scratch(plan.path, journal.run_id)
    replaced = None
    try:
        replaced = _retain(plan, journal, scratch, files)
    except Exception as error:
        status, reason, fault = ended_by(error, plan.path)
    # Nothing is left in between: what was begun is finished or undone at once.
    if status != DELETED:
        try:
            resolved = clear_run(scratch, files)
            reason += f" (interrupted: {'; '.join(resolved)})" if resolved else ""
        except Exception as error:
            reason += f"; cleaning up failed as well: {describe_error(error, plan.path)}"
            fault = fault or fault_text(error)
    name = plan.topic_partition
    return RetentionResult(
        name.topic, name.partition, plan.log_dir, status, reason, fault, replaced
    )


def trimmed_leader_epochs(entries: Sequence[EpochEntry], start_offset: int) -> list[EpochEntry]:
    """Epochs that reach to or past `start_offset`; the one it lies in starts there."""
    # As LeaderEpochFileCache.truncateFromStart: the epoch in force at the new start is kept, and
    # begins there.
    passed = [entry for entry in entries if entry[1] <= start_offset]
    later = [entry for entry in entries if entry[1] > start_offset]
    return [(passed[-1][0], start_offset), *later] if passed else later


def _retain(
    plan: RetentionPlan, journal: RunJournal, scratch: Scratch, files: LocalFiles
) -> Replacement:
    # The plan holds for the files it was made from: if one has another size, time or inode, stop.
    check_unchanged(plan.path, plan.token)
    key = plan.topic_partition.topic, plan.topic_partition.partition
    new_files = _new_files(plan)
    _check_ownership(new_files)
    dir_mtime_ns = Path(plan.path).stat().st_mtime_ns
    made = _write_new_files(new_files, scratch, files)
    bases = [segment.base_offset for segment in plan.deleted]
    deleted = [
        *existing_files(plan.path, bases, SEGMENT_KINDS),
        *existing_files(plan.path, bases, (LogFileKind.PRODUCER_SNAPSHOT,)),
    ]
    replaced = [name for name in made if os.path.lexists(path_in(plan.path, name))]
    # Before anything changes: what goes, by its facts, and a second name for each file, so that
    # undo finds the very same ones.
    record = Replacement(
        journal.run_id,
        RETAIN,
        _ATTEMPT,
        journal.keeps_undo,
        dir_mtime_ns,
        kept=(
            *(file_facts(path_in(plan.path, name), name) for name in (*deleted, *replaced)),
            *left_by_broker(plan.path),
        ),
        made=tuple(facts_with_checksum(scratch.output(_ATTEMPT, name), name) for name in made),
        first_offset=plan.kept[0].base_offset if plan.kept else plan.roll_offset,
    )
    begin_replacement(scratch, record, files)
    # The log start first: a broker that starts from here on deletes by itself what is below it, so
    # each state on the way is one it may have made itself.
    CheckpointFile(
        plan.log_dir, LOG_START_OFFSET_FILE, files, journal.keep_for, journal.checkpoint
    ).update({key: plan.log_start_offset})
    # The new active segment, where all others go, and the trimmed leader epochs.
    for name in made:
        files.rename(scratch.output(_ATTEMPT, name), path_in(plan.path, name))
    if made:
        files.sync_directory(plan.path)
    remove_left_by_broker(scratch, record, files)
    _delete(plan.path, deleted, files)
    end_replacement(scratch, record, files)
    return record


def refuse_by_owners(plan: RetentionPlan) -> RetentionPlan:
    """The plan, refused where this process may not make files of the same owners."""
    if plan.status != DELETE:
        return plan
    try:
        _check_ownership(_new_files(plan))
    except (KafkaLogError, OSError) as error:
        return plan.refused(describe_error(error, plan.path))
    return plan


def _check_ownership(new_files: Sequence[NewFile]) -> None:
    for _, _, old in new_files:
        check_ownership(Path(old).stat(), old)


def _new_files(plan: RetentionPlan) -> list[NewFile]:
    """What will be new, in the order it comes into place."""
    made: list[NewFile] = []
    if (base_offset := plan.roll_offset) is not None:
        active = path_in(plan.path, log_file_name(plan.deleted[-1].base_offset))
        # A broker removes indexes without a log, and makes missing ones anew: the log comes last.
        made += [
            (offset_index_file_name(base_offset), b"", active),
            (time_index_file_name(base_offset), b"", active),
            (log_file_name(base_offset), b"", active),
        ]
    epochs = read_leader_epochs(plan.path)
    if epochs is not None:
        trimmed = trimmed_leader_epochs(epochs, plan.log_start_offset)
        if trimmed != list(epochs):
            path = path_in(plan.path, LEADER_EPOCH_CHECKPOINT_FILE)
            data = pack_leader_epoch_checkpoint(trimmed)
            made.append((LEADER_EPOCH_CHECKPOINT_FILE, data, path))
    return made


def _write_new_files(
    new_files: Sequence[NewFile], scratch: Scratch, files: LocalFiles
) -> list[str]:
    """Write what will be new under scratch names; the names in the order they come into place."""
    for name, data, old in new_files:
        files.write_new(scratch.output(_ATTEMPT, name), data, Path(old).stat())
    return [name for name, _, _ in new_files]


def _delete(directory: str, names: Sequence[str], files: LocalFiles) -> None:
    for name in names:
        files.rename(path_in(directory, name), path_in(directory, name + DELETED_SUFFIX))
    # All names are marked for good before the first file goes: a loader takes none of them for a
    # segment.
    files.sync_directory(directory)
    for name in names:
        files.remove(path_in(directory, name + DELETED_SUFFIX))
