"""Clean one partition: map, rewrite, verify, swap. What a Spark task or a worker process runs.

Nothing raised here is lost on the way: whatever stops a partition is its result's reason, and the
partition is then as it was, or as the swap's recovery left it. A second execution of the same task
(a retry, speculation) is safe: attempts write under names of their own and take turns at the swap;
the one that comes second returns the first one's result, or resolves what it died over.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kafkalog.cleaning.bounded_map import bounded_end_offset
from kafkalog.cleaning.checked_chunks import PassedOver
from kafkalog.cleaning.cleaner_stats import (
    DONE,
    FAILED,
    REFUSED,
    WRITTEN,
    CleanerStats,
    CleanResult,
)
from kafkalog.cleaning.dry_run import check_keyless, check_ownership
from kafkalog.cleaning.group_output import GroupWriting, new_rewriter, rewrite_group
from kafkalog.cleaning.source_map import map_sources
from kafkalog.clock import has_passed
from kafkalog.errors import (
    LogChangedError,
    LogCleaningAbortedError,
    LogCleaningRefusedError,
    LogSegmentOffsetOverflowError,
)
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.log.aborted_transactions import AbortedTransactions
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.json_facts import JsonFacts
from kafkalog.log.log_dir import reopen_partition
from kafkalog.log.segment_file import ChunkBuffers
from kafkalog.planning.compaction_plan import LEFT, CompactionPlan, SegmentGroup
from kafkalog.planning.segment_groups import group_again, group_segments
from kafkalog.resources.memory import DEFAULT_MEMORY_BYTES, memory_budget
from kafkalog.swap.interrupted_swap import recover_partition
from kafkalog.swap.journal import COMPACT
from kafkalog.swap.local_files import LocalFiles, path_in
from kafkalog.swap.log_dir_lock import check_lock_holder
from kafkalog.swap.output_dir import OutputFiles, WrittenGroup, put_out, written_group
from kafkalog.swap.partition_lock import partition_turn
from kafkalog.swap.plan_check import check_unchanged, describe_error, fault_text
from kafkalog.swap.replacement import (
    Replacement,
    end_replacement,
    left_by_broker,
    merged,
    read_earlier,
    read_record,
    write_record,
)
from kafkalog.swap.scratch import Scratch, new_attempt_id
from kafkalog.swap.segment_split import Splitting, split_segment
from kafkalog.swap.swap import FinishedGroup, remove_attempt, swap_groups

if TYPE_CHECKING:
    from kafkalog.cleaning.deep_verify import DeepVerification


@dataclass(frozen=True, slots=True)
class CleanRun:
    """What all partitions of a run share. `lock_holder` is the process that holds the log dirs'
    locks; `end_s` the time, in seconds since 1970, from which on no further partition is begun: the
    clocks of all hosts that run tasks must agree on it; `keeps_undo` whether replaced files are
    kept; `swap_per_group` whether each group is swapped in before the next one is written;
    `memory_bytes` what a worker may use; `output` where new segments go instead of into the log
    dirs; `bytes_per_second` what this worker may read and write; `verify_deep` whether every record
    is compared; `keeps_corrupt` whether corrupt batches are kept as they are; `max_batch_bytes`: no
    larger batch is read, if memory allows so much.
    """

    run_id: str
    lock_holder: int
    force: frozenset[str] = frozenset()
    end_s: float | None = None
    keeps_undo: bool = True
    swap_per_group: bool = False
    memory_bytes: int = DEFAULT_MEMORY_BYTES
    output: str | None = None
    bytes_per_second: float | None = None
    verify_deep: bool = False
    keeps_corrupt: bool = False
    max_batch_bytes: int = MAX_BATCH_BYTES

    def scratch_of(self, plan: CompactionPlan) -> Scratch:
        """Where the new files of a plan are written: beside those they replace, or elsewhere."""
        if self.output is None:
            return Scratch(plan.path, self.run_id)
        return Scratch(path_in(self.output, Path(plan.path).name), self.run_id)

    @property
    def done_status(self) -> str:
        """How a partition ends that ends well."""
        return DONE if self.output is None else WRITTEN

    def shared_by(self, workers: int) -> CleanRun:
        """The run as each of so many workers sees it that are at work at once."""
        if self.bytes_per_second is None or workers <= 1:
            return self
        return replace(self, bytes_per_second=self.bytes_per_second / workers)

    def make_place(self, plan: CompactionPlan) -> None:
        """Make the directory of a plan's new files, if they go elsewhere."""
        if self.output is not None:
            Path(self.scratch_of(plan).directory).mkdir(parents=True, exist_ok=True)

    def new_files(self) -> LocalFiles:
        """What new files are made with."""
        return LocalFiles() if self.output is None else OutputFiles()


@dataclass(frozen=True, slots=True)
class Done(JsonFacts):
    """What a finished swap did, for other attempts of the same task; or what was `written`."""

    stats: CleanerStats
    replaced: Replacement | None
    written: tuple[WrittenGroup, ...] = ()


def clean_partition(
    plan: CompactionPlan, run: CleanRun, files: LocalFiles | None = None
) -> CleanResult:
    """Carry out one plan of status `clean`; every way to end is a CleanResult.

    An error that only a fault of ours can raise fails its partition like any other, with its
    traceback in the result: the others are no worse for it.
    """
    return carry_out(plan, run, lambda cleaning: cleaning.run_all(), files)


def carry_out(
    plan: CompactionPlan,
    run: CleanRun,
    work: Callable[[Cleaning], Done],
    files: LocalFiles | None = None,
) -> CleanResult:
    """Do some work on a plan that ends with its swap; every way to end is a CleanResult."""
    started = time.monotonic()
    if has_passed(run.end_s):
        reason = "left for the next run: --max-minutes had passed when its turn came"
        return _result(plan, LEFT, reason, started)
    cleaning = Cleaning(plan, run, files or run.new_files())
    try:
        done = work(cleaning)
    except LogCleaningRefusedError as error:
        status, reason, fault = REFUSED, str(error), ""
    except Exception as error:
        status, reason, fault = FAILED, describe_error(error, plan.path), fault_text(error)
    else:
        kept = done.stats.corrupt_batches
        told = f"{kept} corrupt batches were kept as they are, the first: {cleaning.first_corrupt}"
        return _result(plan, run.done_status, told if kept else "", started, done)
    try:
        earlier, resolved = cleaning.give_up()
    except Exception as error:
        earlier = None
        resolved = f"; cleaning up failed as well: {describe_error(error, plan.path)}"
        fault = fault or fault_text(error)
    if earlier is not None:
        by_us = f"{run.done_status}, but then: {reason}"
        who = by_us if cleaning.is_swapped else "by another attempt of the same task"
        return _result(plan, run.done_status, who, started, earlier, fault=fault)
    return _result(plan, status, reason + resolved, started, fault=fault)


class Cleaning:
    """One attempt to carry out a plan."""

    def __init__(self, plan: CompactionPlan, run: CleanRun, files: LocalFiles) -> None:
        self._plan = plan
        self._run = run
        self._files = files
        self._scratch = run.scratch_of(plan)
        self._attempt_id = new_attempt_id()
        self._dir_mtime_ns = 0
        self._buffers = ChunkBuffers()
        self._replaced: Replacement | None = None
        self._budget = memory_budget(run.memory_bytes, run.max_batch_bytes)
        self._writing = GroupWriting(
            plan, self._scratch, self._attempt_id, files, self._buffers, self._budget
        )
        self.is_swapped = False
        self.first_corrupt = ""

    def run_all(self) -> Done:
        """All stages; what it raises left no live file touched, unless the swap had begun."""
        self._check_alone()
        partition = check_unchanged(self._plan.path, self._plan.token)
        self._check_ownership()
        self._dir_mtime_ns = Path(self._plan.path).stat().st_mtime_ns
        self._run.make_place(self._plan)
        plan = self._plan
        aborted = AbortedTransactions(partition.segments, plan.log_start_offset)
        end_offset = bounded_end_offset(plan, aborted, self._buffers)
        groups = plan.groups
        if end_offset < plan.end_offset:
            sources = [s for s in plan.sources if s.base_offset < end_offset]
            groups = group_segments(sources, plan.end_offset, plan.config)
        passed_over = PassedOver() if self._run.keeps_corrupt else None
        mapped = map_sources(
            [segment for group in groups for segment in group.sources],
            plan.first_dirty_offset,
            plan.end_offset,
            aborted,
            self._buffers,
            self._budget,
            end_offset - 1,
            passed_over,
        )
        self.first_corrupt = "" if passed_over is None else passed_over.first
        self._check_keyless(mapped.keyless)
        survivors = self._survivors(groups, aborted, end_offset)
        splits = 0
        while True:
            stats = CleanerStats(
                distinct_keys=mapped.distinct_keys, end_offset=end_offset, segments_split=splits
            )
            mapped.rewind()
            if survivors is not None:
                survivors.rewind(aborted)
            rewriter = new_rewriter(self._writing, mapped, aborted, passed_over=passed_over)
            finished: list[FinishedGroup] = []
            try:
                for group in groups:
                    finished.append(rewrite_group(self._writing, group, rewriter, stats))
                    if survivors is not None:
                        survivors.verify(group, finished[-1])
                    if self._run.swap_per_group:
                        self._swap_one(finished[-1])
            except LogSegmentOffsetOverflowError as error:
                if self._run.swap_per_group:
                    raise LogCleaningAbortedError(
                        f"{error.reason}: splitting it needs a run without --swap-per-group; "
                        "the groups before it are compacted",
                        path=error.path,
                    ) from error
                overflowing = groups[len(finished)]
                partition = self._split(overflowing, error.path)
                start_offset = overflowing.base_offset
                rest = [s for s in partition.segments if start_offset <= s.base_offset < end_offset]
                done = list(zip(groups, map(_sizes, finished), strict=False))
                groups = group_again(done, rest, plan.end_offset, plan.config)
                aborted = AbortedTransactions(partition.segments, plan.log_start_offset)
                splits += 1
            else:
                return self._swap([] if self._run.swap_per_group else finished, stats)

    def _survivors(
        self, groups: Sequence[SegmentGroup], aborted: AbortedTransactions, end_offset: int
    ) -> DeepVerification | None:
        """What is to be compared with, if that is asked for."""
        if not self._run.verify_deep:
            return None
        # Late: pyarrow is 24 MiB of each worker's memory, and nobody else here needs it.
        from kafkalog.cleaning.deep_verify import DeepVerification

        return DeepVerification(self._plan, groups, aborted, end_offset, self._budget)

    def _split(self, group: SegmentGroup, path: str | None) -> PartitionInventory:
        """Split the source at `path`, whose offsets do not fit into one segment, and begin anew:
        what Kafka's cleaner does. The partition as it is then.
        """
        if self._run.output is not None:
            raise LogCleaningRefusedError(
                "its offsets lie too far apart for one segment and it must be split first, which "
                "--output cannot: --apply does",
                path=path,
            )
        remove_attempt(self._scratch, self._attempt_id, self._files)
        (segment,) = [source for source in group.sources if source.path == path]
        split_segment(
            segment,
            Splitting(
                self._scratch,
                self._attempt_id,
                self._plan.config,
                self._files,
                self._buffers,
                self._check_before_swap,
                self._nothing_replaced(),
            ),
        )
        partition = reopen_partition(self._plan.path)
        if partition is None:
            raise LogChangedError("cannot be read any more", path=self._plan.path)
        self._plan = replace(self._plan, token=partition.token)
        return partition

    def give_up(self) -> tuple[Done | None, str]:
        """Leave the partition without a trace of this attempt. What the attempt that finished the
        task did, if one did, and what was done about one that died, in words.
        """
        # Without a swap to wait for make no file here: this may be another disk.
        swaps = any(Path(p).exists() for p in (self._scratch.turn, self._scratch.swap_record))
        with partition_turn(self._scratch) if swaps else nullcontext():
            earlier = self._finished_by_another_attempt()
            resolved = ""
            if earlier is not None:
                if (left := read_record(self._scratch.swap_record)) is not None:
                    end_replacement(self._scratch, left, self._files)
            elif Path(self._scratch.swap_record).exists():
                done = recover_partition(self._plan.path, self._files)
                resolved = f" (interrupted while swapping: {'; '.join(done)})"
        remove_attempt(self._scratch, self._attempt_id, self._files)
        return earlier, resolved

    def _finished_by_another_attempt(self) -> Done | None:
        try:
            values = json.loads(Path(self._scratch.done_record).read_bytes())
        except FileNotFoundError:
            return None
        return Done.from_json(values)

    def _check_alone(self) -> None:
        """Another attempt that got as far as the swap has done the work, or died over it."""
        for path in (self._scratch.done_record, self._scratch.swap_record):
            if Path(path).exists():
                raise LogCleaningAbortedError(
                    "another attempt of the same task did not end well: run again",
                    path=self._plan.path,
                )

    def _nothing_replaced(self) -> Replacement:
        """The record of this attempt, still empty."""
        return Replacement(
            self._run.run_id,
            COMPACT,
            self._attempt_id,
            self._run.keeps_undo,
            self._dir_mtime_ns,
        )

    def _check_before_swap(self) -> PartitionInventory:
        self._check_alone()
        partition = check_unchanged(self._plan.path, self._plan.token)
        if self._run.output is None:
            check_lock_holder(self._plan.log_dir, self._run.lock_holder)
        return partition

    def _check_ownership(self) -> None:
        if self._run.output is not None:
            return
        check_ownership(self._plan)

    def _check_keyless(self, keyless: int) -> None:
        check_keyless(keyless, self._run.force, self._plan.path)

    def swap_rewritten(
        self,
        finished: list[FinishedGroup],
        stats: CleanerStats,
        keyless: int,
        dir_mtime_ns: int,
    ) -> Done:
        """Put in place what other tasks wrote: all groups of the plan. `dir_mtime_ns` is the
        directory's modification time from before.
        """
        self._check_alone()
        partition = check_unchanged(self._plan.path, self._plan.token)
        self._check_ownership()
        self._dir_mtime_ns = dir_mtime_ns
        self._check_keyless(keyless)
        aborted = AbortedTransactions(partition.segments, self._plan.log_start_offset)
        survivors = self._survivors(self._plan.groups, aborted, self._plan.end_offset)
        if survivors is not None:
            for group, written in zip(self._plan.groups, finished, strict=True):
                survivors.verify(group, written)
        return self._swap(finished, stats)

    def _write_out(self, finished: list[FinishedGroup], stats: CleanerStats) -> Done:
        """Give the new files their names in the output; the log dir stays as it is."""
        written = tuple(written_group(group, self._plan.path) for group in finished)
        with partition_turn(self._scratch):
            self._check_before_swap()
            put_out(finished, self._scratch.directory, self._files)
            done = Done(stats, None, written)
            write_record(self._scratch.done_record, done, self._files)
        return done

    def _swap(self, finished: list[FinishedGroup], stats: CleanerStats) -> Done:
        if self._run.output is not None:
            return self._write_out(finished, stats)
        with partition_turn(self._scratch):
            self._check_before_swap()
            record = self._replacement(finished)
            if finished:
                swap_groups(self._scratch, record, finished, self._files)
            self.is_swapped = True
            done = Done(stats, record)
            write_record(self._scratch.done_record, done, self._files)
            if finished:
                end_replacement(self._scratch, record, self._files)
        return done

    def _swap_one(self, group: FinishedGroup) -> None:
        """Swap a group in before the next one is written; the plan then holds for what is there."""
        with partition_turn(self._scratch):
            before = self._check_before_swap()
            self._replaced = self._replacement([group])
            swap_groups(self._scratch, self._replaced, [group], self._files)
            end_replacement(self._scratch, self._replaced, self._files)
            after = reopen_partition(self._plan.path)
            if after is None or _others(after, group) != _others(before, group):
                raise LogChangedError(
                    "segments behind the swapped group are not those that were planned for",
                    path=self._plan.path,
                )
            self._plan = replace(self._plan, token=after.token)

    def _replacement(self, finished: list[FinishedGroup]) -> Replacement:
        """The record of this swap and those of the same run before it."""
        new = replace(
            self._nothing_replaced(),
            groups=tuple(group.group for group in finished),
            swapped=tuple(group.swapped(self._plan.path) for group in finished),
            kept=left_by_broker(self._plan.path),
        )
        return merged(self._replaced or read_earlier(self._scratch), new)


def _others(partition: PartitionInventory, group: FinishedGroup) -> list[object]:
    """Which files the segments are that a swap of this group leaves alone."""
    return [
        (segment.base_offset, segment.identity)
        for segment in partition.segments
        if segment.base_offset not in group.sources
    ]


def _sizes(finished: FinishedGroup) -> tuple[int, int, int]:
    """Bytes of the new segment, its offset index and its time index."""
    log, index, time_index = (output.size_in_bytes for output in finished.outputs[:3])
    return log, index, time_index


def _result(
    plan: CompactionPlan,
    status: str,
    reason: str,
    started: float,
    done: Done | None = None,
    fault: str = "",
) -> CleanResult:
    stats = CleanerStats() if done is None else done.stats
    return CleanResult(
        topic=plan.topic_partition.topic,
        partition=plan.topic_partition.partition,
        log_dir=plan.log_dir,
        status=status,
        reason=reason,
        next_dirty_offset=stats.end_offset if status in (DONE, WRITTEN) else None,
        seconds=time.monotonic() - started,
        stats=stats,
        fault=fault,
        replaced=None if done is None else done.replaced,
        written=() if done is None else done.written,
    )
