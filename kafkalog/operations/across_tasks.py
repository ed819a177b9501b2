"""Partitions whose key map is made across tasks: four stages, each a function from rows to rows.

Who runs them (`resources.staged_tasks`, or Spark's shuffle) brings every row to the task it is for.
A stage may run again, or twice at once: map and merge give the same rows again, a rewrite writes
under names of its own attempt, and of what it wrote counts what its row names. Errors travel as
rows too, so a stage never fails; the swap then leaves the partition as it was.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kafkalog.cleaning import map_stages
from kafkalog.cleaning.cleaner_stats import CleanerStats
from kafkalog.cleaning.finished_group import FinishedGroup
from kafkalog.cleaning.group_output import GroupWriting, new_rewriter, rewrite_group
from kafkalog.cleaning.key_map import KeySecret
from kafkalog.cleaning.map_stages import Layout, layout_of, map_segments
from kafkalog.cleaning.record_flags import RecordFlags
from kafkalog.cleaning.sequential_state import SegmentState, states_of
from kafkalog.cleaning.shuffle_rows import COUNTS, FAILED, FINISHED, FLAGS, MARKS
from kafkalog.clock import has_passed
from kafkalog.errors import (
    LogCleaningAbortedError,
    LogCleaningRefusedError,
    LogSegmentOffsetOverflowError,
    describe_error,
    fault_text,
)
from kafkalog.format.compression import decompress
from kafkalog.format.constants import MAX_INT32, CompressionType
from kafkalog.kernels.hash_keys import SUPERSEDED
from kafkalog.log.aborted_transactions import AbortedTransactions
from kafkalog.log.log_dir import reopen_partition
from kafkalog.log.pace import paced
from kafkalog.log.segment_file import ChunkBuffers
from kafkalog.operations.clean_result import CleanResult
from kafkalog.operations.clean_run import CleanRun, Done
from kafkalog.operations.compact_partition import carry_out
from kafkalog.planning.compaction_plan import CompactionPlan
from kafkalog.planning.statuses import FAILED as FAILED_STATUS
from kafkalog.planning.statuses import LEFT, REFUSED
from kafkalog.resources.memory import MemoryBudget, memory_budget
from kafkalog.resources.spilled_array import SpilledArray
from kafkalog.resources.staged_tasks import ShuffleRow, facts_row
from kafkalog.swap.plan_check import check_unchanged
from kafkalog.swap.scratch import new_attempt_id

# A map task is worth its start from so many bytes on.
_MAP_TASK_BYTES = 128 * 1024 * 1024
_RECORDS_PER_MERGER = 8 * 1024 * 1024
_MOST_MERGERS = 256
# A partition whose result begins with this has to be done within a task: its segments are split.
OVERFLOW = "across tasks: "


@dataclass(frozen=True, slots=True)
class AcrossTasks:
    """Everything a task needs to know, of all partitions of a run that are done this way."""

    plans: tuple[CompactionPlan, ...]
    layouts: tuple[Layout, ...]
    states: tuple[tuple[SegmentState, ...] | None, ...]
    map_tasks: tuple[tuple[int, int, int], ...]
    """(plan, first source, end)"""
    mergers: int
    dir_mtimes_ns: tuple[int, ...]
    run: CleanRun
    secret: bytes

    @property
    def rewrites(self) -> int:
        """How many groups there are."""
        return sum(len(plan.groups) for plan in self.plans)

    def shared_by(self, workers: int) -> AcrossTasks:
        """The same as each of so many workers sees it."""
        return replace(self, run=self.run.shared_by(workers))

    def map(self, task: int) -> Iterator[ShuffleRow]:
        """Rows of map task `task`, for the mergers."""
        with paced(self.run.bytes_per_second):
            yield from self._map(task)

    def _map(self, task: int) -> Iterator[ShuffleRow]:
        number, first, end = self.map_tasks[task]
        plan, layout, states = self.plans[number], self.layouts[number], self.states[number]
        try:
            if has_passed(self.run.end_s):
                yield facts_row(0, number, FAILED, 0, {"status": LEFT, "reason": _LEFT_REASON})
                return
            aborted = _checked(plan)
            yield from map_segments(
                plan,
                layout,
                range(first, end),
                states[first] if states is not None else None,
                self.secret,
                self._budget(),
                aborted,
            )
        except Exception as error:
            yield _failure(0, number, plan, error)

    def merge(self, rows: Iterable[ShuffleRow]) -> Iterator[ShuffleRow]:
        """Rows of one merger, for the rewrites."""
        yield from map_stages.merge_buckets(rows, dict(enumerate(self.layouts)), self._budget())

    def rewrite(self, rows: Iterable[ShuffleRow]) -> Iterator[ShuffleRow]:
        """Rows of one or more groups, for the swaps."""
        with paced(self.run.bytes_per_second):
            yield from self._rewrite(rows)

    def _rewrite(self, rows: Iterable[ShuffleRow]) -> Iterator[ShuffleRow]:
        by_group: dict[tuple[int, int], list[ShuffleRow]] = defaultdict(list)
        for row in rows:
            # Others are counts and failures of the map: on to the swap, which decides by them.
            if row.kind in (FLAGS, MARKS):
                by_group[row.plan, row.number].append(row)
            else:
                yield row.to(row.plan)
        for (number, group), of_group in sorted(by_group.items()):
            plan = self.plans[number]
            try:
                yield self._rewrite_group(number, group, of_group)
            except Exception as error:
                yield _failure(number, number, plan, error)

    def swap(self, rows: Iterable[ShuffleRow]) -> Iterator[CleanResult]:
        """The results of the partitions that rows are there for."""
        by_plan: dict[int, list[ShuffleRow]] = defaultdict(list)
        for row in rows:
            by_plan[row.plan].append(row)
        with paced(self.run.bytes_per_second):
            for number, of_plan in sorted(by_plan.items()):
                yield self._swap(number, of_plan)

    def _rewrite_group(self, number: int, group: int, rows: Sequence[ShuffleRow]) -> ShuffleRow:
        plan, layout, states = self.plans[number], self.layouts[number], self.states[number]
        budget = self._budget()
        aborted = _checked(plan)
        flags = _flags_of_group(layout, group, rows, budget)
        self.run.make_place(plan)
        writing = GroupWriting(
            plan,
            self.run.new_files(),
            partial(self.run.scratch_of(plan).output, new_attempt_id()),
            ChunkBuffers(),
            budget,
        )
        source = layout.groups.index(group)
        # The transactions that are open or aborted in front of the group: another task has the
        # groups before it, so their state was found beforehand.
        transactions = states[source].for_rewriting() if states is not None else None
        rewriter = new_rewriter(writing, flags, aborted, transactions)
        stats = CleanerStats()
        finished = rewrite_group(writing, plan.groups[group], rewriter, stats)
        # Once more behind the work: a segment that was replaced meanwhile was not what was read.
        _checked(plan)
        facts = {
            "group": finished.to_json(),
            "stats": stats.to_json(),
        }
        return facts_row(number, number, FINISHED, group, facts)

    def _swap(self, number: int, rows: Sequence[ShuffleRow]) -> CleanResult:
        plan = self.plans[number]
        stats, keyless = CleanerStats(), 0
        finished: dict[int, FinishedGroup] = {}
        failures: list[dict[str, Any]] = []
        for row in rows:
            facts = row.facts
            if row.kind == COUNTS:
                keyless += facts["keyless"]
                stats.distinct_keys += facts["distinctKeys"]
            elif row.kind == FAILED:
                failures.append(facts)
            # Of a group that was rewritten twice (a retry, speculation) the first row counts; each
            # attempt wrote under names of its own.
            elif row.number not in finished:
                finished[row.number] = FinishedGroup.from_json(facts["group"])
                stats.add(CleanerStats.from_json(facts["stats"]))
        # A task that died left no row: without all groups nothing is swapped in.
        missing = [g for g in range(len(plan.groups)) if g not in finished]
        if missing and not failures:
            failures = [{"status": FAILED_STATUS, "reason": f"groups {missing} were not rewritten"}]
        stats.end_offset = plan.end_offset
        ordered = [finished[group] for group in sorted(finished)]
        mtime_ns = self.dir_mtimes_ns[number]
        if not failures:
            return carry_out(
                plan,
                self.run,
                lambda cleaning: cleaning.swap_rewritten(ordered, stats, keyless, mtime_ns),
            )
        first = failures[0]
        result = carry_out(plan, self.run, lambda _: _give_up(first))
        if result.status == self.run.done_status:
            return result
        return replace(result, status=first["status"], fault=first.get("fault", ""))

    def _budget(self) -> MemoryBudget:
        return memory_budget(self.run.memory_bytes, self.run.max_batch_bytes)


def _give_up(failure: dict[str, Any]) -> Done:
    prefix = OVERFLOW if failure.get("overflow") else ""
    raise LogCleaningAbortedError(prefix + failure["reason"])


_LEFT_REASON = "left for the next run: --max-minutes had passed before it began"


def across_tasks(plans: Sequence[CompactionPlan], run: CleanRun) -> AcrossTasks:
    """Prepare these plans of status `clean`: the state of transactions in front of each segment,
    and who does what.
    """
    records = sum(sum(plan.source_records) for plan in plans)
    # By the records of all plans: a merger holds the keys of its buckets in memory.
    mergers = min(max(2, -(-records // _RECORDS_PER_MERGER)), _MOST_MERGERS)
    layouts, states, first_group = [], [], 0
    map_tasks: list[tuple[int, int, int]] = []
    for number, plan in enumerate(plans):
        layouts.append(layout_of(plan, number, first_group, mergers))
        first_group += len(plan.groups)
        map_tasks += [(number, first, end) for first, end in _portions(plan)]
        found = reopen_partition(plan.path)
        segments = found.segments if found is not None else ()
        aborted = AbortedTransactions(segments, plan.log_start_offset)
        budget = memory_budget(run.memory_bytes, run.max_batch_bytes)
        states.append(_states(plan, aborted, budget))
    return AcrossTasks(
        tuple(plans),
        tuple(layouts),
        tuple(states),
        tuple(map_tasks),
        mergers,
        tuple(Path(plan.path).stat().st_mtime_ns for plan in plans),
        run,
        KeySecret().data,
    )


def _states(
    plan: CompactionPlan, aborted: AbortedTransactions, budget: MemoryBudget
) -> tuple[SegmentState, ...] | None:
    found = states_of(plan, aborted, budget)
    return None if found is None else tuple(found)


def _portions(plan: CompactionPlan) -> Iterator[tuple[int, int]]:
    """[first, end) of the sources of each map task."""
    first, size = 0, 0
    for number, source in enumerate(plan.sources):
        size += source.size_in_bytes
        if size >= _MAP_TASK_BYTES:
            yield first, number + 1
            first, size = number + 1, 0
    if first < len(plan.sources):
        yield first, len(plan.sources)


def _checked(plan: CompactionPlan) -> AbortedTransactions:
    """LogChangedError unless this is the disk the plan was made from, unchanged."""
    partition = check_unchanged(plan.path, plan.token)
    return AbortedTransactions(partition.segments, plan.log_start_offset)


def _failure(target: int, number: int, plan: CompactionPlan, error: Exception) -> ShuffleRow:
    refused = isinstance(error, LogCleaningRefusedError)
    facts = {
        "status": REFUSED if refused else FAILED_STATUS,
        "reason": describe_error(error, plan.path),
        "fault": fault_text(error),
        "overflow": isinstance(error, LogSegmentOffsetOverflowError),
    }
    return facts_row(target, number, FAILED, 0, facts)


def _flags_of_group(
    layout: Layout, group: int, rows: Sequence[ShuffleRow], budget: MemoryBudget
) -> RecordFlags:
    """The flags of a group's records, with the marks of all mergers in them."""
    first, end = layout.records_of_group(group)
    # Marks are bits from a multiple of eight on, so that the mergers' bytes can be combined by or.
    origin = first // 8 * 8
    bits = np.zeros((end - origin + 7) // 8, np.uint8)
    for row in rows:
        if row.kind == MARKS and row.payload:
            marks = np.frombuffer(_unpacked(row.payload), np.uint8)
            at = (row.first - origin) // 8
            bits[at : at + marks.size] |= marks
    flags = SpilledArray(np.uint8, budget.kept_bytes)
    # Of a map task that ran twice both may have come.
    pieces = {row.first: row for row in rows if row.kind == FLAGS}
    for start in sorted(pieces):
        piece = np.frombuffer(_unpacked(pieces[start].payload), np.uint8).copy()
        at = start - origin
        superseded = np.unpackbits(bits[at // 8 : (at + piece.size + 7) // 8], bitorder="little")[
            at % 8 : at % 8 + piece.size
        ]
        piece |= superseded * np.uint8(SUPERSEDED)
        flags.append(piece)
    return RecordFlags(flags, distinct_keys=0, keyless=0)


def _unpacked(payload: bytes) -> bytes | memoryview:
    return decompress(CompressionType.ZSTD, payload, max_bytes=MAX_INT32)
