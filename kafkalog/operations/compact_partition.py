"""Clean one partition: map, rewrite, verify, swap. What a Spark task or a worker process runs.

Nothing raised here is lost on the way: whatever stops a partition is its result's reason, and the
partition is then as it was, or as the swap's recovery left it. A second execution of the same task
(a retry, speculation) is safe: attempts write under names of their own and swap one at a time;
the one that comes second returns the first one's result, or resolves what it died over.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from kafkalog.cleaning.bounded_map import bounded_end_offset
from kafkalog.cleaning.checked_chunks import CorruptBatches
from kafkalog.cleaning.cleaner_stats import CleanerStats
from kafkalog.cleaning.dry_run import check_keyless, check_owners
from kafkalog.cleaning.finished_group import FinishedGroup
from kafkalog.cleaning.finished_parts import FinishedParts
from kafkalog.cleaning.group_output import (
    GroupWriting,
    new_reverse_pass,
    new_rewriter,
    rewrite_group,
)
from kafkalog.cleaning.joined_sources import JoinedSources, join_sources, map_joined
from kafkalog.cleaning.record_flags import RecordFlags
from kafkalog.cleaning.rewrite import GroupRewriter
from kafkalog.cleaning.source_map import map_sources
from kafkalog.clock import has_passed
from kafkalog.errors import (
    LogChangedError,
    LogCleaningAbortedError,
    LogCleaningRefusedError,
    LogSegmentOffsetOverflowError,
    describe_error,
    fault_text,
)
from kafkalog.log.aborted_transactions import AbortedTransactions
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.log_dir import reopen_partition
from kafkalog.log.segment_file import ChunkBuffers
from kafkalog.operations.clean_result import COMPACTED, WRITTEN, CleanResult
from kafkalog.operations.clean_run import CleanRun, Done
from kafkalog.operations.compact_swap import PartitionSwap
from kafkalog.planning.compaction_plan import CompactionPlan, SegmentGroup
from kafkalog.planning.segment_groups import group_again, group_segments
from kafkalog.planning.statuses import LEFT, ended_by
from kafkalog.resources.memory import memory_budget
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.scratch import new_attempt_id
from kafkalog.swap.segment_split import Splitting, split_segment
from kafkalog.swap.swap import remove_attempt

if TYPE_CHECKING:
    from kafkalog.cleaning.deep_verify import DeepVerification


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
        reason = "left for the next run: --max-minutes had passed before it began"
        return _result(plan, LEFT, reason, started)
    cleaning = Cleaning(plan, run, files or run.new_files())
    try:
        done = work(cleaning)
    except Exception as error:
        status, reason, fault = ended_by(error, plan.path)
    else:
        kept = done.stats.corrupt_batches
        note = f"{kept} corrupt batches were kept as they are, the first: {cleaning.first_corrupt}"
        return _result(plan, run.done_status, note if kept else "", started, done)
    try:
        # It failed: another attempt of the same task may have done the work all the same, and then
        # the partition is done, with that one's result.
        earlier, resolved = cleaning.swap.give_up()
    except Exception as error:
        earlier = None
        resolved = f"; cleaning up failed as well: {describe_error(error, plan.path)}"
        fault = fault or fault_text(error)
    if earlier is not None:
        by_us = f"{run.done_status}, but then: {reason}"
        who = by_us if cleaning.swap.is_swapped else "by another attempt of the same task"
        return _result(plan, run.done_status, who, started, earlier, fault=fault)
    return _result(plan, status, reason + resolved, started, fault=fault)


class Cleaning:
    """One attempt to carry out a plan."""

    def __init__(self, plan: CompactionPlan, run: CleanRun, files: LocalFiles) -> None:
        self.swap = PartitionSwap(plan, run, files, new_attempt_id())
        self._run = run
        self._files = files
        self._buffers = ChunkBuffers()
        self._budget = memory_budget(run.memory_bytes, run.max_batch_bytes)
        self._writing = GroupWriting(
            plan,
            files,
            partial(self.swap.scratch.output, self.swap.attempt_id),
            self._buffers,
            self._budget,
        )
        self.first_corrupt = ""

    def run_all(self) -> Done:
        """All stages; what it raises left no live file touched, unless the swap had begun."""
        partition = self._begin()
        plan = self.swap.plan
        aborted = AbortedTransactions(partition.segments, plan.log_start_offset)
        # A bounded map may end before the range does: the round is then of the segments it covers,
        # grouped as Kafka groups them.
        end_offset = bounded_end_offset(plan, aborted, self._buffers)
        groups = plan.groups
        if end_offset < plan.end_offset:
            sources = [s for s in plan.sources if s.base_offset < end_offset]
            groups = group_segments(sources, plan.end_offset, plan.config)
        kept_corrupt = CorruptBatches() if self._run.keeps_corrupt else None
        # Mapped once, whatever is split: records keep their order, so their flags hold.
        mapped, joined, finished_parts = self._map(groups, aborted, end_offset, kept_corrupt)
        survivors = self._survivors(groups, aborted, end_offset, finished_parts)
        splits = 0
        while True:
            stats = CleanerStats(
                distinct_keys=mapped.distinct_keys, end_offset=end_offset, segments_split=splits
            )
            # After a split the decisions begin with the first record again, and so does what is
            # compared.
            mapped.rewind()
            if survivors is not None:
                survivors.rewind(aborted)
            rewriter = new_rewriter(
                self._writing, mapped, aborted, kept_corrupt=kept_corrupt, joined=joined,
                finished=finished_parts,
            )  # fmt: skip
            finished: list[FinishedGroup] = []
            try:
                self._rewrite(groups, rewriter, survivors, stats, finished)
            except LogSegmentOffsetOverflowError as error:
                # What stays of a segment lies too far apart for one. The key map holds for its
                # parts as well: their records are the same, in the same order.
                overflowing = groups[len(finished)]
                partition = self._split(overflowing, error)
                start_offset = overflowing.base_offset
                rest = [s for s in partition.segments if start_offset <= s.base_offset < end_offset]
                done = list(zip(groups, map(_sizes, finished), strict=False))
                groups = group_again(done, rest, plan.end_offset, plan.config)
                aborted = AbortedTransactions(partition.segments, plan.log_start_offset)
                splits += 1
                # Parts are of files as they were.
                finished_parts = None
            else:
                return self.swap.swap([] if self._run.swap_per_group else finished, stats)

    def _begin(self) -> PartitionInventory:
        """The partition, if it may be changed as planned."""
        plan = self.swap.plan
        partition = self.swap.check_at_start()
        self._check_ownership()
        self.swap.dir_mtime_ns = os.stat(plan.path).st_mtime_ns  # noqa: PTH116 - as `path_in`
        self._run.make_place(plan)
        return partition

    def _map(
        self,
        groups: Sequence[SegmentGroup],
        aborted: AbortedTransactions,
        end_offset: int,
        kept_corrupt: CorruptBatches | None,
    ) -> tuple[RecordFlags, JoinedSources | None, FinishedParts | None]:
        """Which records a later one of their key supersedes; the sources, if they are joined; what
        is ready of them.
        """
        plan = self.swap.plan
        joined = None
        if kept_corrupt is None and aborted.is_empty:
            joined = join_sources(groups, self._buffers, self._budget)
        if joined is not None:
            found = map_joined(joined, plan.first_dirty_offset, self._budget, end_offset - 1)
            if found is not None:
                self._check_keyless(found.keyless)
                return found, joined, None
        sources = [segment for group in groups for segment in group.sources]
        if kept_corrupt is None and not plan.has_transactions and aborted.is_empty:
            reverse = new_reverse_pass(self._writing, sources, aborted, end_offset - 1)
            found = reverse.run()
            if found is not None:
                self._check_keyless(found.keyless)
                return found, None, reverse.finished
        mapped = map_sources(
            sources,
            plan.first_dirty_offset,
            plan.end_offset,
            aborted,
            self._buffers,
            self._budget,
            end_offset - 1,
            kept_corrupt,
        )
        self.first_corrupt = "" if kept_corrupt is None else kept_corrupt.first
        self._check_keyless(mapped.keyless)
        return mapped, None, None

    def _rewrite(
        self,
        groups: Sequence[SegmentGroup],
        rewriter: GroupRewriter,
        survivors: DeepVerification | None,
        stats: CleanerStats,
        finished: list[FinishedGroup],
    ) -> None:
        """Each group written and verified, with `swap_per_group` in place; `finished` has those
        that are, whatever is raised.
        """
        for group in groups:
            finished.append(rewrite_group(self._writing, group, rewriter, stats))
            if survivors is not None:
                survivors.verify(group, finished[-1])
            if self._run.swap_per_group:
                self.swap.swap_one(finished[-1])

    def _survivors(
        self,
        groups: Sequence[SegmentGroup],
        aborted: AbortedTransactions,
        end_offset: int,
        finished_parts: FinishedParts | None = None,
    ) -> DeepVerification | None:
        """What is to be compared with, if that is asked for; beside the parts that are ready."""
        if not self._run.verify_deep:
            return None
        # Late: pyarrow is 24 MiB of each worker's memory, and nobody else here needs it.
        from kafkalog.cleaning.deep_verify import DeepVerification

        held_bytes = 0 if finished_parts is None else finished_parts.held_bytes
        budget = self._budget.beside(held_bytes)
        return DeepVerification(self.swap.plan, groups, aborted, end_offset, budget)

    def _split(
        self, group: SegmentGroup, error: LogSegmentOffsetOverflowError
    ) -> PartitionInventory:
        """Split the source that the error names, whose offsets do not fit into one segment, and
        begin anew: what Kafka's cleaner does. The partition as it is then.
        """
        path = error.path
        if self._run.swap_per_group:
            raise LogCleaningAbortedError(
                f"{error.reason}: splitting it needs a run without --swap-per-group; "
                "the groups before it are compacted",
                path=path,
            ) from error
        if self._run.output is not None:
            raise LogCleaningRefusedError(
                "its offsets lie too far apart for one segment and it must be split first, which "
                "--output cannot: --apply does",
                path=path,
            )
        # What was written so far is of groups that may be others after the split.
        remove_attempt(self.swap.scratch, self.swap.attempt_id, self._files)
        (segment,) = [source for source in group.sources if source.path == path]
        split_segment(
            segment,
            Splitting(
                self.swap.scratch,
                self.swap.attempt_id,
                self.swap.plan.config,
                self._files,
                self._buffers,
                self.swap.check_before_swap,
                self.swap.nothing_replaced(),
            ),
        )
        partition = reopen_partition(self.swap.plan.path)
        if partition is None:
            raise LogChangedError("cannot be read any more", path=self.swap.plan.path)
        # The plan's token names the files; these are new ones, of the same records.
        self.swap.plan = replace(self.swap.plan, token=partition.token)
        return partition

    def _check_ownership(self) -> None:
        if self._run.output is not None:
            return
        check_owners(self.swap.plan)

    def _check_keyless(self, keyless: int) -> None:
        check_keyless(keyless, self._run.force, self.swap.plan.path)

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
        partition = self.swap.check_at_start()
        self._check_ownership()
        self.swap.dir_mtime_ns = dir_mtime_ns
        self._check_keyless(keyless)
        aborted = AbortedTransactions(partition.segments, self.swap.plan.log_start_offset)
        survivors = self._survivors(self.swap.plan.groups, aborted, self.swap.plan.end_offset)
        if survivors is not None:
            for group, written in zip(self.swap.plan.groups, finished, strict=True):
                survivors.verify(group, written)
        return self.swap.swap(finished, stats)


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
        next_dirty_offset=stats.end_offset if status in (COMPACTED, WRITTEN) else None,
        seconds=time.monotonic() - started,
        stats=stats,
        fault=fault,
        replaced=None if done is None else done.replaced,
        written=() if done is None else done.written,
    )
