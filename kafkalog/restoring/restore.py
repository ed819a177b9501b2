"""One partition restored: staged beside the target's files, compared with the source, swapped in.

    1  segments up to the cut, ABORT markers, indexes and snapshots     kafkalog-RUN-restoring.tmp/
    2  compared, record by record; what was planned from is unchanged
    3  record and second names of what goes; segments get their names as `.cleaned`
    4  producer snapshots and leader epochs in place     of an empty log a loader drops them
    5  `.cleaned` → `.swap` → final names, the target's empty segment goes, as in `swap.swap`

Until the last `.cleaned` is a `.swap` a loader goes back to the empty log, from then on it goes on
to the restored one.

Source: Kafka LogLoader, ProducerStateManager.truncateAndReload, LeaderEpochFileCache.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kafkalog.cleaning.finished_group import FinishedGroup, fingerprint
from kafkalog.cleaning.output_segment import OutputFile
from kafkalog.errors import LogChangedError
from kafkalog.format.file_names import LEADER_EPOCH_CHECKPOINT_FILE, LogFileKind
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.json_facts import JsonFacts
from kafkalog.log.segment_headers import iterate_headers
from kafkalog.operations.run_frame import Run
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.statuses import FAILED, ended_by
from kafkalog.restoring.plan import RestorePlan
from kafkalog.restoring.segments import Identity
from kafkalog.restoring.source import source_of
from kafkalog.restoring.stage import staged
from kafkalog.swap.file_facts import checksum_of, facts_of, facts_with_checksum, file_facts
from kafkalog.swap.interrupted_swap import resolve_interrupted_swap
from kafkalog.swap.journal import RESTORE
from kafkalog.swap.local_files import LocalFiles, list_names, path_in
from kafkalog.swap.partition_lock import locked_partition
from kafkalog.swap.plan_check import check_unchanged
from kafkalog.swap.replacement import (
    Replacement,
    SwappedFiles,
    begin_replacement,
    end_replacement,
    left_by_broker,
    read_record,
    remove_left_by_broker,
)
from kafkalog.swap.scratch import Scratch, new_attempt_id
from kafkalog.swap.steps import swap_steps
from kafkalog.swap.swap import SEGMENT_KINDS, cleaned_names, existing_files, swap_group, take_steps

RESTORED = "restored"


@dataclass(frozen=True, slots=True)
class RestoreTask:
    """A plan to carry out; new_topic_id: of a topic that is made with it, None for one that is
    there; see RunRequest for the rest.
    """

    plan: RestorePlan
    config: LogConfig
    now_ms: int
    run_id: str
    keeps_undo: bool
    max_batch_bytes: int
    new_topic_id: str | None = None

    @property
    def size_in_bytes(self) -> int:
        """Bytes that are copied."""
        return 0 if self.plan.cut is None else self.plan.cut.size_in_bytes


@dataclass(frozen=True, slots=True)
class RestoreResult(JsonFacts):
    """How it ended; records: how many are equal in source and target; next_dirty_offset: what the
    cleaner's checkpoint gets, None where nothing was compacted; `fault` and `replaced` as in
    CleanResult.
    """

    topic: str
    partition: int
    path: str
    log_dir: str
    status: str
    reason: str = ""
    end_offset: int = 0
    records: int = 0
    bytes_after: int = 0
    seconds: float = 0.0
    fault: str = ""
    replaced: Replacement | None = None
    next_dirty_offset: int | None = None


RestoreRun = Run[RestorePlan, RestoreResult]


def cleaner_lines(results: Iterable[RestoreResult]) -> dict[str, dict[tuple[str, int], int]]:
    """By log dir, what its cleaner checkpoint is to say of the partitions that were compacted."""
    lines: dict[str, dict[tuple[str, int], int]] = {}
    for each in results:
        if each.status == RESTORED and each.next_dirty_offset is not None:
            own = lines.setdefault(each.log_dir, {})
            own[each.topic, each.partition] = each.next_dirty_offset
    return lines


def restore_partition(task: RestoreTask, files: LocalFiles) -> RestoreResult:
    """Carry out one plan; every way to end is a RestoreResult."""
    return ended(task, lambda result: _restore(task, result, files))


def ended(task: RestoreTask, work: Callable[[RestoreResult], RestoreResult]) -> RestoreResult:
    """What `work` makes of a result that has not begun; of an error a result as well."""
    started = time.monotonic()
    name = task.plan.topic_partition
    result = RestoreResult(name.topic, name.partition, task.plan.path, task.plan.log_dir, FAILED)
    try:
        result = work(result)
    except Exception as error:
        status, reason, fault = ended_by(error, task.plan.path)
        result = replace(result, status=status, reason=reason, fault=fault)
    return replace(result, seconds=round(time.monotonic() - started, 3))


def _restore(task: RestoreTask, result: RestoreResult, files: LocalFiles) -> RestoreResult:
    plan, cut, identity = task.plan, task.plan.cut, Identity(is_kept=False)
    if cut is None:
        raise LogChangedError("a plan without a cut is not carried out", path=plan.path)
    mtime_ns = Path(plan.path).stat().st_mtime_ns
    source = source_of(plan)
    options = (task.run_id, task.config, task.now_ms, task.max_batch_bytes)
    built = staged(source, cut, plan.path, identity, options, files, compacts=plan.compacts)
    with built as restored:
        groups = _groups(restored.log, plan.path)
        scratch = Scratch(plan.path, task.run_id)
        record = Replacement(
            task.run_id, RESTORE, new_attempt_id(), task.keeps_undo, mtime_ns,
            groups=tuple(swap_group(group) for group in groups),
        )  # fmt: skip
        with locked_partition(scratch):
            source_of(plan)
            check_unchanged(plan.path, plan.token)
            record = _swap(scratch, record, groups, restored.log, files)
    return replace(
        result, status=RESTORED, end_offset=cut.end_offset + len(cut.open),
        records=restored.records, bytes_after=restored.log.size_in_bytes, replaced=record,
        reason=restored.note, next_dirty_offset=restored.next_dirty_offset,
    )  # fmt: skip


def _groups(restored: PartitionInventory, target: str) -> list[FinishedGroup]:
    """The restored segments as a swap takes them: the first takes the place of all there is."""
    live = [name for name in list_names(target) if name.endswith(LogFileKind.LOG)]
    replaced = tuple(int(name.split(".")[0]) for name in live)
    checksums = tuple((base, checksum_of(path_in(target, live[n]))) for n, base in
                      enumerate(replaced))  # fmt: skip
    groups = []
    for number, segment in enumerate(restored.segments):
        outputs = []
        for name in existing_files(restored.path, [segment.base_offset], SEGMENT_KINDS):
            path = path_in(restored.path, name)
            outputs.append(OutputFile(path, name, Path(path).stat().st_size, checksum_of(path)))
        blocks = [scan.rows for scan in iterate_headers(segment.path)]
        ends = [int(rows["last_offset"][-1]) + 1 for rows in blocks if rows.size]
        end = max([segment.base_offset + 1, *ends])
        is_first = number == 0
        groups.append(
            FinishedGroup(
                segment.base_offset, end, replaced if is_first else (), fingerprint(blocks),
                tuple(outputs), checksums if is_first else (),
            )
        )  # fmt: skip
    return groups


def _swap(
    scratch: Scratch,
    record: Replacement,
    groups: Sequence[FinishedGroup],
    restored: PartitionInventory,
    files: LocalFiles,
) -> Replacement:
    directory = scratch.directory
    beside = [
        name
        for name in list_names(restored.path)
        if name.endswith(LogFileKind.PRODUCER_SNAPSHOT) or name == LEADER_EPOCH_CHECKPOINT_FILE
    ]
    outputs = {name: scratch.output(record.attempt_id, name) for name in beside}
    for name, output in outputs.items():
        files.rename(path_in(restored.path, name), output)
    whole = _recorded(directory, record, groups, outputs)
    try:
        begin_replacement(scratch, whole, files, cleaned_names(directory, groups))
        remove_left_by_broker(scratch, whole, files)
        # Snapshots and epochs that the empty log has, and those of the restored one: a loader of an
        # empty log removes what lies behind its end.
        for old in whole.kept:
            if old.name.endswith(LogFileKind.PRODUCER_SNAPSHOT) and old.name not in outputs:
                files.remove(path_in(directory, old.name))
        for name, output in outputs.items():
            files.rename(output, path_in(directory, name))
        files.sync_directory(directory)
        _take_place(directory, groups, files)
        end_replacement(scratch, whole, files)
        files.sync_directory(directory)
    except Exception:
        if read_record(scratch.swap_record) is not None:
            resolve_interrupted_swap(directory, files)
        raise
    return whole


def _recorded(
    directory: str,
    record: Replacement,
    groups: Sequence[FinishedGroup],
    outputs: dict[str, str],
) -> Replacement:
    sources = [source for group in groups for source in group.sources]
    replaced = [*existing_files(directory, sources, SEGMENT_KINDS)]
    others = [
        name
        for name in list_names(directory)
        if name.endswith(LogFileKind.PRODUCER_SNAPSHOT) or name == LEADER_EPOCH_CHECKPOINT_FILE
    ]
    swapped = SwappedFiles(
        kept=tuple(facts_with_checksum(path_in(directory, name), name) for name in replaced),
        made=tuple(
            file_facts(file.path, file.name, file.checksum)
            for group in groups
            for file in group.outputs
        ),
    )
    return replace(
        record,
        swapped=(swapped,),
        kept=(*left_by_broker(directory), *facts_of(directory, others)),
        made=tuple(facts_with_checksum(path, name) for name, path in outputs.items()),
    )


def _take_place(directory: str, groups: Sequence[FinishedGroup], files: LocalFiles) -> None:
    sources = [source for group in groups for source in group.sources]
    steps = swap_steps(
        [output.name for group in reversed(groups) for output in group.outputs],
        list(existing_files(directory, sources, SEGMENT_KINDS)),
        max(group.next_offset for group in groups),
    )
    take_steps(directory, steps, files)
