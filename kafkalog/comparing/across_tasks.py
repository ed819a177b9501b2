"""One large partition compared by many tasks, in stages from rows to rows:

    read      a range of offsets of all copies     all that is found without the other ranges
    judge     keys by their hashes                 which records are the latest of their key where
    conclude  the partition                        the ranges put together in order, and judged

Each byte is read once. What needs more than a range at a time travels: keys by their hashes, ends
of transactions and missing ranges in order; see `range_rows`. A range that does not stand alone (a
batch that cannot be read, one with offsets of another range, a place that no batch begins at) makes
the partition one for a single task (`IN_ONE_PIECE`), which knows what was read in front of it. So
what is found is the same. Who runs the stages: `resources.staged_tasks`, or Spark's shuffle.
"""

from __future__ import annotations

import pickle
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from kafkalog.comparing import range_rows
from kafkalog.comparing.comparison import FAILED, conclude, with_keys
from kafkalog.comparing.difference import ComparedPartition
from kafkalog.comparing.evidence import Evidence, RowSource, begin, walk
from kafkalog.comparing.key_entries import Candidates, KeyEntries, bucket_bits, entries_by_bucket
from kafkalog.comparing.offset_ranges import RANGE_BYTES, OffsetRange, offset_ranges
from kafkalog.comparing.range_rows import EntryRows, KeptRows, RangeFacts, number_rows, pickled_row
from kafkalog.comparing.record_stream import Facts, RecordStream
from kafkalog.comparing.request import CompareTask
from kafkalog.comparing.transactions import EVENT_FIELDS, TransactionEnds, transaction_events
from kafkalog.errors import KafkaLogError
from kafkalog.log.remote_segments import REMOTE
from kafkalog.replicas.copies import why_unlike
from kafkalog.replicas.hash_key import SECRET_BYTES
from kafkalog.replicas.replica import Replica, ReplicaFacts, replica_facts
from kafkalog.resources.memory import MemoryBudget, memory_budget
from kafkalog.resources.spilled_array import SpilledArray
from kafkalog.resources.staged_tasks import ShuffleRow, facts_row

# Copies of so many bytes together are worth the stages.
ACROSS_TASKS_BYTES = 2 * 1024 * 1024 * 1024
IN_ONE_PIECE = "across tasks: "

Judged = tuple[Candidates, int]


class _NotAloneError(KafkaLogError):
    """A range that only who reads all ranges in front of it can judge."""


@dataclass(frozen=True, slots=True)
class CompareAcross:
    """Everything a task of any stage needs to know. bits: of a key's hash that choose its bucket;
    judges: how many tasks share the buckets.
    """

    task: CompareTask
    copies: tuple[Replica, ...]
    facts: tuple[ReplicaFacts, ...]
    ranges: tuple[OffsetRange, ...]
    bits: int
    judges: int
    secret: bytes = field(repr=False)

    def read(self, number: int) -> Iterator[ShuffleRow]:
        """The rows of a range."""
        target = number % self.judges
        try:
            yield from self._read(number, target)
        except (KafkaLogError, OSError) as error:
            prefix = IN_ONE_PIECE if isinstance(error, _NotAloneError) else ""
            facts = {"reason": prefix + str(error)}
            yield facts_row(target, 0, range_rows.FAILED, number, facts)

    def _read(self, number: int, target: int) -> Iterator[ShuffleRow]:
        budget, span = self._budget(), self.ranges[number]
        words = np.frombuffer(self.secret, np.uint64)
        sources: list[RowSource] = [
            _RangeRows(
                RecordStream(
                    copy.partition, own.log_end_offset, words, budget.max_batch_bytes, slices
                ),
                span,
            )
            for copy, own, slices in zip(self.copies, self.facts, span.slices, strict=True)
        ]
        found = begin(self.facts)
        entries = EntryRows(self.bits, self.judges, budget.pool_bytes // 4)
        events = SpilledArray(np.int64, budget.kept_bytes)
        for part, absent, blind in walk(self.facts, sources, found):
            for bucket, own in entries_by_bucket(part, absent, blind, self.bits):
                yield from entries.add(bucket, own)
            events.append(transaction_events(part, blind).ravel())
        yield from entries.rest()
        yield from number_rows(target, range_rows.EVENTS, number, _wholes(events, EVENT_FIELDS))
        yield from number_rows(target, range_rows.MARKERS, number, found.markers.blocks())
        facts = RangeFacts.of(found)
        for copy, runs in enumerate(found.missing):
            yield from number_rows(target, range_rows.MISSING, number, runs.blocks(), copy)
        for judge in range(self.judges):
            yield pickled_row(judge, range_rows.FACTS, number, facts)

    def judge(self, rows: Iterable[ShuffleRow]) -> Iterator[ShuffleRow]:
        """The rows of some buckets' keys, and those that are on their way, for the conclusion."""
        pool_bytes = self._budget().pool_bytes // 2
        keys = KeyEntries(len(self.facts), self.bits, pool_bytes)
        found, judge, known = begin(self.facts), 0, set[int]()
        for row in rows:
            judge = row.target
            if row.kind == range_rows.ENTRIES:
                # Where all copies have all records, no key is asked for.
                if found.has_absent or len(known) < len(self.ranges):
                    keys.append(row.number, np.frombuffer(row.payload, np.uint64))
                continue
            if row.kind == range_rows.FACTS:
                facts: RangeFacts = pickle.loads(row.payload)
                facts.add_to(found)
                known.add(row.number)
            if row.kind != range_rows.FACTS or row.number % self.judges == judge:
                yield row.to(0)
        if found.has_absent:
            for more in keys.candidates(found.cleaned_end_offset):
                found.list_candidates(more)
        judged: Judged = found.candidates, found.more_candidates
        yield pickled_row(0, range_rows.JUDGED, judge, judged)

    def conclude(self, rows: Iterable[ShuffleRow]) -> Iterator[ComparedPartition]:
        """The partition's result."""
        kept = KeptRows(self._budget().pool_bytes // 4)
        facts: dict[int, RangeFacts] = {}
        judged: dict[int, Judged] = {}
        failed: dict[int, str] = {}
        for row in rows:
            if row.kind == range_rows.FACTS:
                facts[row.number] = pickle.loads(row.payload)
            elif row.kind == range_rows.JUDGED:
                judged[row.number] = pickle.loads(row.payload)
            elif row.kind == range_rows.FAILED:
                failed[row.number] = row.facts["reason"]
            else:
                kept.add(row)
        if not failed and (len(facts), len(judged)) != (len(self.ranges), self.judges):
            failed[0] = "a worker process died (killed, or out of memory)"
        if failed:
            whole = [each for each in failed.values() if each.startswith(IN_ONE_PIECE)]
            reason = whole[0] if whole else failed[min(failed)]
            yield ComparedPartition(self.task.topic_partition, FAILED, reason)
            return
        found = self._put_together([facts[number] for number in range(len(facts))], kept)
        for candidates, more in judged.values():
            found.list_candidates(candidates)
            found.more_candidates += more
        compared = conclude(self.facts, [()] * len(self.facts), found)
        yield with_keys(compared, self.copies)

    def _put_together(self, facts: Sequence[RangeFacts], kept: KeptRows) -> Evidence:
        found = begin(self.facts)
        ends = TransactionEnds(found.limits, [each.log_start_offset for each in self.facts])
        for number, own in enumerate(facts):
            own.add_to(found)
            for markers in kept.blocks(range_rows.MARKERS, number):
                found.markers.append(markers)
            for copy, runs in enumerate(found.missing):
                runs.extend(kept.blocks(range_rows.MISSING, number, copy), own.edges[copy])
            for events in kept.blocks(range_rows.EVENTS, number):
                for wrong in ends.add(events.reshape(-1, EVENT_FIELDS)):
                    found.list_wrong_end(wrong)
        for wrong in ends.open_at_end(found.cleaned):
            found.list_wrong_end(wrong)
        return found

    def _budget(self) -> MemoryBudget:
        return memory_budget(self.task.memory_bytes, self.task.max_batch_bytes)


class _RangeRows:
    """The rows of a copy in a range; _NotAloneError for what is not plain."""

    def __init__(self, stream: RecordStream, span: OffsetRange) -> None:
        self._stream, self._span = stream, span
        self.corrupt = stream.corrupt

    @property
    def cleaned_end_offset(self) -> int:
        return self._stream.cleaned_end_offset

    def __iter__(self) -> Iterator[Facts]:
        for rows in self._stream:
            self._check()
            if rows.size and rows["offset"][0] < self._span.start:
                raise _NotAloneError(f"an offset below {self._span.start}, where a range begins")
            yield rows
        self._check()

    def _check(self) -> None:
        for each in self.corrupt:
            raise _NotAloneError(each.reason, path=each.path, position=each.position)
        if self._stream.last_offset >= self._span.end:
            raise _NotAloneError(f"an offset behind {self._span.end}, where a range ends")


def _wholes(words: SpilledArray, fields: int) -> Iterator[range_rows.Numbers]:
    """All of an array, whole rows of so many fields at a time."""
    step = 16 * 1024 * fields
    for start in range(0, words.size, step):
        yield words.read(start, min(start + step, words.size))


def compare_across(task: CompareTask, range_bytes: int = RANGE_BYTES) -> CompareAcross | None:
    """How to compare a task's copies across tasks; None for one that is to be done in one: a copy
    in a digest or in part in remote storage, copies that are not alike, nothing to cut, what cannot
    be read.
    """
    copies = tuple(each for each in task.replicas if isinstance(each, Replica))
    unlike = any(why_unlike(*pair) for pair in combinations(task.replicas, 2))
    if len(copies) < len(task.replicas) or len(copies) < 2 or unlike:
        return None
    # What remote storage and the disk both have is cut by who reads them one after the other.
    if any(segment.state == REMOTE for each in copies for segment in each.partition.segments):
        return None
    try:
        ranges = offset_ranges([each.partition for each in copies], range_bytes)
        facts = tuple(replica_facts(each) for each in copies) if len(ranges) > 1 else ()
    except (KafkaLogError, OSError):
        return None
    if not facts:
        return None
    pool_bytes = memory_budget(task.memory_bytes, task.max_batch_bytes).pool_bytes // 2
    bits = bucket_bits(max(each.size_in_bytes for each in facts), pool_bytes)
    secret = task.secret or secrets.token_bytes(SECRET_BYTES)
    return CompareAcross(task, copies, facts, ranges, bits, min(1 << bits, len(ranges)), secret)


def execute_by_size(
    tasks: Sequence[CompareTask],
    run_across: Callable[[CompareAcross], Iterable[ComparedPartition]],
    run_within: Callable[[Sequence[CompareTask]], Iterable[ComparedPartition]],
    least_bytes: int = ACROSS_TASKS_BYTES,
    range_bytes: int = RANGE_BYTES,
) -> Iterator[ComparedPartition]:
    """Large partitions one after the other, each with all workers; then all others side by side,
    and with them those that are for one task."""
    within = []
    for task in tasks:
        across = compare_across(task, range_bytes) if task.size_in_bytes >= least_bytes else None
        results = [] if across is None else list(run_across(across))
        if across is None or any(each.reason.startswith(IN_ONE_PIECE) for each in results):
            within.append(task)
        elif results:
            yield from results
        else:
            reason = "the worker processes died (killed, or out of memory)"
            yield ComparedPartition(task.topic_partition, FAILED, reason)
    yield from run_within(within)
