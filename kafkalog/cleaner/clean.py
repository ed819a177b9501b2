"""Clean one partition: map, rewrite, verify, swap. What a Spark task or a worker process runs.

Nothing raised here is lost on the way: whatever stops a partition is its result's reason, and the
partition is then as it was, or as the swap's recovery left it. A second execution of the same task
(a retry, speculation) is safe: attempts write under names of their own and take turns at the swap,
and the one that comes second returns the first one's result.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kafkalog.cleaner.key_map import map_sources
from kafkalog.cleaner.local_files import LocalFiles, can_give_ownership, list_names, path_in
from kafkalog.cleaner.log_dir_lock import check_lock_holder
from kafkalog.cleaner.output_segment import OutputFile, OutputSegment, owner_of
from kafkalog.cleaner.producers import BatchRetention
from kafkalog.cleaner.recovery import recover_partition
from kafkalog.cleaner.rewrite import GroupRewriter
from kafkalog.cleaner.scratch import Scratch, new_attempt_id
from kafkalog.cleaner.stats import DONE, FAILED, REFUSED, CleanerStats, CleanResult
from kafkalog.cleaner.swap import (
    FinishedGroup,
    SwapGroup,
    partition_turn,
    swap_groups,
    write_record,
)
from kafkalog.cleaner.verify import verify_segment
from kafkalog.errors import (
    KafkaLogError,
    LogChangedError,
    LogCleaningAbortedError,
    LogCleaningRefusedError,
)
from kafkalog.format.file_names import log_file_name, offset_index_file_name, time_index_file_name
from kafkalog.kernels.hash_keys import KEYLESS
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.segment_file import ChunkBuffers
from kafkalog.planning.compaction_plan import CompactionPlan, SegmentGroup

FORCE_NULL_KEYS = "null-keys"


@dataclass(frozen=True, slots=True)
class CleanRun:
    """What all partitions of a run share. `lock_holder` is the process that holds the log dirs'
    locks.
    """

    run_id: str
    lock_holder: int
    force: frozenset[str] = frozenset()


def clean_partition(
    plan: CompactionPlan, run: CleanRun, files: LocalFiles | None = None
) -> CleanResult:
    """Carry out one plan of status `clean`; every way to end is a CleanResult."""
    started = time.monotonic()
    files = files or LocalFiles()
    cleaning = _Cleaning(plan, run, files)
    try:
        stats = cleaning.run_all()
    except LogCleaningRefusedError as error:
        status, reason = REFUSED, str(error)
    except (KafkaLogError, OSError) as error:
        status, reason = FAILED, _describe(error)
    else:
        return _result(plan, DONE, "", started, stats)
    earlier = cleaning.finished_by_another_attempt()
    if earlier is not None:
        cleaning.remove_own_files()
        return _result(plan, DONE, "by another attempt of the same task", started, earlier)
    try:
        reason += cleaning.give_up()
    except (KafkaLogError, OSError) as error:
        reason += f"; cleaning up failed as well: {_describe(error)}"
    return _result(plan, status, reason, started, CleanerStats())


class _Cleaning:
    def __init__(self, plan: CompactionPlan, run: CleanRun, files: LocalFiles) -> None:
        self._plan = plan
        self._run = run
        self._files = files
        self._scratch = Scratch(plan.path, run.run_id)
        self._attempt_id = new_attempt_id()
        self._buffers = ChunkBuffers()
        self._swapping = False

    def run_all(self) -> CleanerStats:
        """All stages; what it raises left no live file touched, unless the swap had begun."""
        self._check_unchanged()
        self._check_ownership()
        plan = self._plan
        mapped = map_sources(plan.sources, plan.first_dirty_offset, self._buffers)
        self._check_keyless(mapped.flags)
        rewriter = GroupRewriter(
            mapped.flags,
            BatchRetention(plan.active_producers, plan.retained_end_offset),
            now_ms=plan.now_ms,
            new_horizon_ms=_wrapped(plan.now_ms + plan.config.delete_retention_ms),
            buffers=self._buffers,
        )
        stats = CleanerStats(distinct_keys=mapped.distinct_keys)
        finished = [self._rewrite_group(group, rewriter, stats) for group in plan.groups]
        self._swap(finished, stats)
        return stats

    def finished_by_another_attempt(self) -> CleanerStats | None:
        """The counts of the attempt that swapped first, if one did."""
        try:
            values = json.loads(Path(self._scratch.done_record).read_bytes())
        except (OSError, ValueError):
            return None
        return CleanerStats.from_json(values)

    def give_up(self) -> str:
        """Leave the partition without a trace of this attempt; what had to be said about it."""
        if self._swapping:
            with partition_turn(self._scratch):
                done = recover_partition(self._plan.path, self._files)
            return f" (during the swap: {'; '.join(done) or 'nothing was changed'})"
        self.remove_own_files()
        return ""

    def remove_own_files(self) -> None:
        """Remove the outputs of this attempt."""
        own = Path(self._scratch.output(self._attempt_id, "")).stem
        for name in list_names(self._plan.path):
            if name.startswith(own):
                self._files.remove(path_in(self._plan.path, name))

    def _check_unchanged(self) -> None:
        """The plan is for these very files on this very disk, or it is for nothing."""
        found = open_log_dir(self._plan.path).partitions
        if len(found) != 1 or found[0].token != self._plan.token:
            raise LogChangedError(
                "files, checkpoints or log dir are not those the plan was made from: another "
                "host's disk under the same path, or somebody wrote meanwhile",
                path=self._plan.path,
            )

    def _check_ownership(self) -> None:
        for group in self._plan.groups:
            owner = owner_of(group.sources[0].path)
            if not can_give_ownership(owner):
                raise LogCleaningRefusedError(
                    f"new files must belong to user {owner.st_uid}, group {owner.st_gid}, which "
                    "this process may not give: run it as that user or as root",
                    path=group.sources[0].path,
                )

    def _check_keyless(self, flags: NDArray[np.uint8]) -> None:
        keyless = int(np.count_nonzero(flags & KEYLESS))
        if keyless and FORCE_NULL_KEYS not in self._run.force:
            raise LogCleaningRefusedError(
                f"{keyless} records have no key, compaction would drop them: "
                f"--force {FORCE_NULL_KEYS} lets it",
                path=self._plan.path,
            )

    def _rewrite_group(
        self, group: SegmentGroup, rewriter: GroupRewriter, stats: CleanerStats
    ) -> FinishedGroup:
        names = (
            log_file_name(group.base_offset),
            offset_index_file_name(group.base_offset),
            time_index_file_name(group.base_offset),
        )
        scratch_paths = {name: self._scratch.output(self._attempt_id, name) for name in names}
        output = OutputSegment(group.base_offset, self._plan.config, self._files, scratch_paths)
        try:
            group_stats, rebuilt = rewriter.rewrite(
                [segment.path for segment in group.sources], output
            )
            outputs = output.close(
                owner_of(group.sources[0].path), group.sources[-1].modification_time_ms
            )
        finally:
            output.abandon()
        log: OutputFile = outputs[0]
        verify_segment(log, output.written_rows, rebuilt, self._buffers)
        stats.add(group_stats)
        sources = tuple(segment.base_offset for segment in group.sources)
        return FinishedGroup(SwapGroup(group.base_offset, sources), tuple(outputs))

    def _swap(self, finished: list[FinishedGroup], stats: CleanerStats) -> None:
        with partition_turn(self._scratch):
            if Path(self._scratch.swap_record).exists():
                done = recover_partition(self._plan.path, self._files)
                raise LogCleaningAbortedError(
                    f"another attempt died while it swapped ({'; '.join(done)}): run again",
                    path=self._plan.path,
                )
            self._check_unchanged()
            check_lock_holder(self._plan.log_dir, self._run.lock_holder)
            self._swapping = True
            swap_groups(self._scratch, self._attempt_id, finished, self._files)
            write_record(self._scratch.done_record, stats, self._files)
            self._files.remove(self._scratch.swap_record)
            self._swapping = False


def remove_run_files(plan: CompactionPlan, run: CleanRun, files: LocalFiles) -> None:
    """Remove what a run that is over left in a partition: done record, turn, outputs of attempts
    nobody waits for.
    """
    scratch = Scratch(plan.path, run.run_id)
    for name in list_names(plan.path):
        if scratch.owns(name):
            files.remove(path_in(plan.path, name))


def _wrapped(value: int) -> int:
    """A sum as Java's long has it: delete.retention.ms may be its largest value."""
    return (value + 2**63) % 2**64 - 2**63


def _describe(error: KafkaLogError | OSError) -> str:
    if isinstance(error, OSError):
        return f"{error.filename or 'file'}: {error.strerror or error}"
    return str(error)


def _result(
    plan: CompactionPlan, status: str, reason: str, started: float, stats: CleanerStats
) -> CleanResult:
    return CleanResult(
        topic=plan.topic_partition.topic,
        partition=plan.topic_partition.partition,
        log_dir=plan.log_dir,
        status=status,
        reason=reason,
        next_dirty_offset=plan.end_offset if status == DONE else None,
        seconds=time.monotonic() - started,
        stats=stats,
    )
