"""The swap at the end of a partition's compaction: attempts of one task take turns at it, and the
one that comes second returns the first one's result, or resolves what it died over.
"""

from __future__ import annotations

import json
import os
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from kafkalog.cleaning.cleaner_stats import CleanerStats
from kafkalog.cleaning.finished_group import FinishedGroup
from kafkalog.errors import (
    LogChangedError,
    LogCleaningAbortedError,
)
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.log_dir import reopen_partition
from kafkalog.operations.clean_run import CleanRun, Done
from kafkalog.planning.compaction_plan import CompactionPlan
from kafkalog.swap.interrupted_swap import resolve_interrupted_swap
from kafkalog.swap.journal import COMPACT
from kafkalog.swap.local_files import LocalFiles, list_names
from kafkalog.swap.log_dir_lock import check_lock_holder
from kafkalog.swap.merged_replacement import merged
from kafkalog.swap.output_dir import put_out, written_group
from kafkalog.swap.partition_lock import locked_partition
from kafkalog.swap.plan_check import FileStates, check_at_start, check_unchanged, file_states
from kafkalog.swap.replacement import (
    Replacement,
    end_replacement,
    left_by_broker,
    read_earlier,
    read_record,
    write_record,
)
from kafkalog.swap.swap import remove_attempt, swap_group, swap_groups, swapped_files


class PartitionSwap:
    """What one attempt does to the partition itself; `plan` holds for what is there now."""

    def __init__(
        self, plan: CompactionPlan, run: CleanRun, files: LocalFiles, attempt_id: str
    ) -> None:
        self.plan = plan
        self.scratch = run.scratch_of(plan)
        self.attempt_id = attempt_id
        self.dir_mtime_ns = 0
        self.is_swapped = False
        self._run = run
        self._files = files
        self._done: Done | None = None
        self._replaced: Replacement | None = None
        self._seen: FileStates | None = None

    def give_up(self) -> tuple[Done | None, str]:
        """Leave the partition without a trace of this attempt. What the attempt that finished the
        task did, if one did, and what was done about one that died, in words.
        """
        # Without a swap to wait for make no file here: this may be another disk.
        swaps = any(map(os.path.exists, (self.scratch.lock, self.scratch.swap_record)))
        with locked_partition(self.scratch) if swaps else nullcontext():
            earlier = self._done or self._finished_by_another_attempt()
            resolved = ""
            if earlier is not None:
                if (left := read_record(self.scratch.swap_record)) is not None:
                    end_replacement(self.scratch, left, self._files)
            elif Path(self.scratch.swap_record).exists():
                done = resolve_interrupted_swap(self.plan.path, self._files)
                resolved = f" (interrupted while swapping: {'; '.join(done)})"
        remove_attempt(self.scratch, self.attempt_id, self._files)
        return earlier, resolved

    def _finished_by_another_attempt(self) -> Done | None:
        try:
            values = json.loads(Path(self.scratch.done_record).read_bytes())
        except FileNotFoundError:
            return None
        return Done.from_json(values)

    def check_alone(self) -> None:
        """Another attempt that got as far as the swap has done the work, or died over it."""
        for path in (self.scratch.done_record, self.scratch.swap_record):
            if os.path.exists(path):  # noqa: PTH110 - as `path_in`
                raise LogCleaningAbortedError(
                    "another attempt of the same task did not end well: run again",
                    path=self.plan.path,
                )

    def nothing_replaced(self) -> Replacement:
        """The record of this attempt, still empty."""
        return Replacement(
            self._run.run_id,
            COMPACT,
            self.attempt_id,
            self._run.keeps_undo,
            self.dir_mtime_ns,
        )

    def check_at_start(self) -> PartitionInventory:
        """The partition, if nobody else is at work on it and it is as planned."""
        self.check_alone()
        partition, self._seen = check_at_start(self.plan.path, self.plan.token)
        return partition

    def check_before_swap(self) -> None:
        """That it is so still, right before files are given their names."""
        self.check_alone()
        # Where stat tells of no change the files are not opened again: of a small partition that
        # is a tenth of its work.
        if self._seen is None or self._seen != file_states(self.plan.path):
            check_unchanged(self.plan.path, self.plan.token)
        self._check_holder()

    def _check_holder(self) -> None:
        if self._run.output is None:
            check_lock_holder(self.plan.log_dir, self._run.lock_holder)

    def _write_out(self, finished: list[FinishedGroup], stats: CleanerStats) -> Done:
        """Give the new files their names in the output; the log dir stays as it is."""
        written = tuple(written_group(group, self.plan.path) for group in finished)
        with locked_partition(self.scratch):
            self.check_before_swap()
            put_out(finished, self.scratch.directory, self._files)
            done = Done(stats, None, written)
            write_record(self.scratch.done_record, done, self._files)
        return done

    def swap(self, finished: list[FinishedGroup], stats: CleanerStats) -> Done:
        if self._run.output is not None:
            return self._write_out(finished, stats)
        with locked_partition(self.scratch):
            self.check_before_swap()
            record = self._replacement(finished)
            if finished:
                swap_groups(self.scratch, record, finished, self._files)
            # From here on the new segments are live: what fails now leaves a partition that is
            # done.
            self.is_swapped = True
            done = Done(stats, record)
            # The result before the swap record goes: an attempt that comes now finds that it is
            # done, and with what result.
            if self._run.may_repeat:
                write_record(self.scratch.done_record, done, self._files)
            self._done = done
            if finished:
                end_replacement(self.scratch, record, self._files)
        return done

    def swap_one(self, group: FinishedGroup) -> None:
        """Swap a group in before the next one is written; the plan then holds for what is there."""
        with locked_partition(self.scratch):
            self.check_alone()
            before = check_unchanged(self.plan.path, self.plan.token)
            self._check_holder()
            # One record for all groups of the run, grown by each: undo takes all of them back, or
            # none.
            self._replaced = self._replacement([group])
            swap_groups(self.scratch, self._replaced, [group], self._files)
            end_replacement(self.scratch, self._replaced, self._files)
            after = reopen_partition(self.plan.path)
            if after is None or _others(after, group) != _others(before, group):
                raise LogChangedError(
                    "segments behind the swapped group are not those that were planned for",
                    path=self.plan.path,
                )
            self.plan = replace(self.plan, token=after.token)

    def _replacement(self, finished: list[FinishedGroup]) -> Replacement:
        """The record of this swap and those of the same run before it."""
        present = set(list_names(self.plan.path))
        new = replace(
            self.nothing_replaced(),
            groups=tuple(swap_group(group) for group in finished),
            swapped=tuple(swapped_files(group, self.plan.path, present) for group in finished),
            kept=left_by_broker(self.plan.path, present),
        )
        return merged(self._replaced or read_earlier(self.scratch, present), new)


def _others(partition: PartitionInventory, group: FinishedGroup) -> list[object]:
    """Which files the segments are that a swap of this group leaves alone."""
    return [
        (segment.base_offset, segment.identity)
        for segment in partition.segments
        if segment.base_offset not in group.sources
    ]
