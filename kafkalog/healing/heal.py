"""One wrong copy put right: staged, compared, swapped in as a compaction swaps, and what lies
beside the segments rebuilt. One record for all of it, so that undo takes all of it back.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kafkalog.cleaning.finished_group import FinishedGroup, fingerprint
from kafkalog.cleaning.output_segment import OutputFile
from kafkalog.errors import (
    LogChangedError,
    LogCleaningRefusedError,
)
from kafkalog.healing.plan import HealPlan
from kafkalog.healing.splice import Splice, start_of
from kafkalog.healing.stage import check_equal, staged
from kafkalog.log.inventory import PartitionInventory, SegmentInfo
from kafkalog.log.json_facts import JsonFacts
from kafkalog.log.log_dir import reopen_partition
from kafkalog.log.segment_headers import iterate_headers, scan_headers
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.statuses import FAILED, ended_by
from kafkalog.repair.recover import recover_partition
from kafkalog.repair.recover_result import DONE, SOUND, RecoverTask
from kafkalog.swap.file_facts import checksum_of
from kafkalog.swap.interrupted_swap import resolve_interrupted_swap
from kafkalog.swap.journal import HEAL
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.log_dir_lock import check_lock_holder
from kafkalog.swap.merged_replacement import merged
from kafkalog.swap.partition_lock import locked_partition
from kafkalog.swap.plan_check import check_unchanged
from kafkalog.swap.replacement import (
    Replacement,
    end_replacement,
    left_by_broker,
    read_earlier,
    read_record,
)
from kafkalog.swap.scratch import Scratch, new_attempt_id
from kafkalog.swap.swap import SEGMENT_KINDS, existing_files, swap_group, swap_groups, swapped_files

HEALED = "healed"


@dataclass(frozen=True, slots=True)
class HealTask:
    """A plan to carry out; see RunRequest for the rest. lock_holder: the process that has the lock
    of the log dirs; size_in_bytes: of the wrong copy's log.
    """

    plan: HealPlan
    config: LogConfig
    now_ms: int
    run_id: str
    keeps_undo: bool
    max_batch_bytes: int
    lock_holder: int
    size_in_bytes: int = 0


@dataclass(frozen=True, slots=True)
class HealResult(JsonFacts):
    """How it ended; `fault` and `replaced` as in CleanResult."""

    topic: str
    partition: int
    path: str
    log_dir: str
    status: str
    reason: str = ""
    segments: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    seconds: float = 0.0
    fault: str = ""
    replaced: Replacement | None = None


def heal_partition(task: HealTask, files: LocalFiles | None = None) -> HealResult:
    """Carry out one plan, in any process; every way to end is a HealResult."""
    started = time.monotonic()
    name = task.plan.topic_partition
    result = HealResult(name.topic, name.partition, task.plan.path, task.plan.log_dir, FAILED)
    try:
        result = _heal(task, result, files or LocalFiles())
    except Exception as error:
        status, reason, fault = ended_by(error, task.plan.path)
        result = replace(result, status=status, reason=reason, fault=fault)
    return replace(result, seconds=round(time.monotonic() - started, 3))


def _heal(task: HealTask, result: HealResult, files: LocalFiles) -> HealResult:
    mtime_ns = Path(task.plan.path).stat().st_mtime_ns
    wrong, right = _opened(task.plan.path), _opened(task.plan.source)
    splice = Splice(
        wrong, right, start_of(wrong, right), task.plan.cut_offset, task.max_batch_bytes
    )
    segments = [segment for segment, _ in splice.rewritten]
    _refuse_torn_tail(wrong, segments)
    scratch = Scratch(task.plan.path, task.run_id)
    with staged(splice, task.run_id, task.config, task.now_ms, files) as healed:
        check_equal(healed, right, task.max_batch_bytes)
        groups = [_group(segment, healed) for segment in segments]
        record = Replacement(task.run_id, HEAL, new_attempt_id(), task.keeps_undo, mtime_ns)
        with locked_partition(scratch):
            check_lock_holder(task.plan.log_dir, task.lock_holder)
            check_unchanged(wrong.path, wrong.token)
            check_unchanged(right.path, right.token)
            record = _swap(scratch, record, groups, files)
    before = sum(segment.size_in_bytes for segment in segments)
    after = sum(Path(segment.path).stat().st_size for segment in segments)
    rebuilt = _rebuilt(task, record, files)
    return replace(
        result,
        status=HEALED,
        segments=len(segments),
        bytes_before=before,
        bytes_after=after,
        replaced=rebuilt,
    )


def _refuse_torn_tail(wrong: PartitionInventory, anew: Sequence[SegmentInfo]) -> None:
    """A segment that stays is the live one by another name: nothing of it can be cut."""
    active = wrong.active_segment
    if active is not None and active not in anew:
        torn = scan_headers(active.path).trailing_bytes
        if torn:
            raise LogCleaningRefusedError(
                f"{torn} bytes behind its last whole batch, as a crash leaves them: "
                "kafkalog recover --apply cuts them, then it can be healed",
                path=active.path,
            )


def _opened(path: str) -> PartitionInventory:
    found = reopen_partition(path)
    if found is None:
        raise LogChangedError("cannot be read any more", path=path)
    if found.problems:
        raise LogCleaningRefusedError("; ".join(found.problems), path=path)
    return found


def _group(segment: SegmentInfo, healed: PartitionInventory) -> FinishedGroup:
    """A healed segment as a swap takes it."""
    base = segment.base_offset
    new = next(each for each in healed.segments if each.base_offset == base)
    outputs, end = [], base
    for name in existing_files(healed.path, [base], SEGMENT_KINDS):
        path = str(Path(healed.path, name))
        outputs.append(OutputFile(path, name, Path(path).stat().st_size, checksum_of(path)))
    blocks = []
    for scan in iterate_headers(new.path):
        blocks.append(scan.rows)
        end = int(scan.rows["last_offset"][-1]) + 1 if scan.rows.size else end
    checksum = checksum_of(segment.path)
    return FinishedGroup(
        base, max(end, base + 1), (base,), fingerprint(blocks), tuple(outputs), ((base, checksum),)
    )


def _swap(
    scratch: Scratch, record: Replacement, groups: Sequence[FinishedGroup], files: LocalFiles
) -> Replacement:
    directory = scratch.directory
    new = replace(
        record,
        groups=tuple(swap_group(group) for group in groups),
        swapped=tuple(swapped_files(group, directory) for group in groups),
        # Their names are needed on the way.
        kept=left_by_broker(directory),
    )
    whole = merged(read_earlier(scratch), new)
    try:
        swap_groups(scratch, whole, groups, files)
        end_replacement(scratch, whole, files)
    except Exception:
        if read_record(scratch.swap_record) is not None:
            resolve_interrupted_swap(directory, files)
        raise
    return whole


def _rebuilt(task: HealTask, record: Replacement, files: LocalFiles) -> Replacement:
    """What lies beside the segments, put right for what is in them now."""
    result = recover_partition(
        RecoverTask(
            _opened(task.plan.path), task.config, task.now_ms, task.run_id, apply=True,
            lock_holder=task.lock_holder, keeps_undo=task.keeps_undo,
            max_batch_bytes=task.max_batch_bytes,
        ),
        files,
    )  # fmt: skip
    if result.status not in (DONE, SOUND):
        raise LogChangedError(
            "its segments are healed, and its snapshots are not rebuilt (kafkalog recover does): "
            f"{result.reason}",
            path=task.plan.path,
        )
    return result.replaced or record
