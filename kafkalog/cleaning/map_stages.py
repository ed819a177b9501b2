"""The key map of a partition made across tasks: the first two of its four stages.

    map      a few consecutive segments: keys hashed, runs combined, entries by bucket; flags
    merge    a range of buckets: which records are superseded, a bitmap a group
    rewrite  a group of segments     } see rewrite_stages
    swap     a partition             }

Kernels and buckets are those of the map within a task; what goes to disk there goes to another task
here. The hashes' secret is the run's, since tasks must agree on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.arena import Arena
from kafkalog.cleaning.batch_roles import BatchRoles
from kafkalog.cleaning.checked_chunks import checked_areas
from kafkalog.cleaning.key_map import MOST_BUCKET_BITS, KeyMap, KeySecret
from kafkalog.cleaning.sequential_state import SegmentState
from kafkalog.cleaning.shuffle_rows import (
    COUNTS,
    ENTRIES,
    FLAGS,
    MARKS,
    pack_entries,
    parse_entries,
)
from kafkalog.cleaning.source_map import SpilledRuns
from kafkalog.errors import CorruptRecordError
from kafkalog.format.compression import compress
from kafkalog.format.constants import CompressionType
from kafkalog.kernels.hash_keys import ENTRY_WORDS, LOOKUP_BIT
from kafkalog.log.aborted_transactions import AbortedTransactions
from kafkalog.log.segment_file import ChunkBuffers
from kafkalog.planning.compaction_plan import CompactionPlan
from kafkalog.resources.memory import MemoryBudget
from kafkalog.resources.spilled_array import SpilledArray
from kafkalog.resources.staged_tasks import BLOB_BYTES, ShuffleRow, facts_row

_FLAGS_PER_ROW = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the records of a partition's sources are numbered, and which tasks are whose.

    number: of the plan; first_group, first_record: of the group and of each source; groups: which
    group each source is in; mergers: how many tasks share the buckets.
    """

    number: int
    first_group: int
    groups: tuple[int, ...]
    first_records: tuple[int, ...]
    mergers: int

    def merger_of(self, bucket: int) -> int:
        """The task that merges a bucket."""
        # Buckets are a power of two and tasks any number: this gives each task consecutive buckets,
        # as many as the others or one more.
        return (bucket * self.mergers) >> MOST_BUCKET_BITS

    def group_target(self, group: int) -> int:
        """The task that rewrites a group."""
        return self.first_group + group

    def records_of_group(self, group: int) -> tuple[int, int]:
        """[first, end) of the numbers set aside for a group."""
        sources = [s for s, g in enumerate(self.groups) if g == group]
        return self.first_records[sources[0]], self.first_records[sources[-1] + 1]


def layout_of(plan: CompactionPlan, number: int, first_group: int, mergers: int) -> Layout:
    """The layout of a plan of status `clean`."""
    groups = [g for g, group in enumerate(plan.groups) for _ in group.sources]
    # Numbers are set aside by the plan's counts, so each task knows those of its own segments
    # without asking the others, and all agree on which of two records is later.
    firsts = np.concatenate([[0], np.cumsum(plan.source_records, dtype=np.int64)])
    return Layout(number, first_group, tuple(groups), tuple(firsts.tolist()), mergers)


@dataclass(slots=True)
class _Buffer:
    """A `RunSink` whose rows wait on disk until they are handed out."""

    layout: Layout
    group: int = 0
    _data: SpilledArray = field(default_factory=lambda: SpilledArray(np.uint8, BLOB_BYTES))
    _rows: list[tuple[ShuffleRow, int]] = field(default_factory=list)
    _merger: int = -1
    _buckets: list[int] = field(default_factory=list)
    _parts: list[bytes] = field(default_factory=list)
    _size: int = 0

    def add_entries(self, bucket: int, entries: NDArray[np.uint64]) -> None:
        """See `RunSink`."""
        # Buckets come in their order when a run is closed, so that those of one task come together:
        # a blob ends where the next task's begin.
        merger = self.layout.merger_of(bucket)
        step = BLOB_BYTES // 24 * 3
        for start in range(0, entries.size, step):
            if merger != self._merger or self._size >= BLOB_BYTES:
                self._end_blob()
            part = entries[start : start + step].tobytes()
            self._merger = merger
            self._buckets.append(bucket)
            self._parts.append(part)
            self._size += len(part)

    def end_run(self, first_index: int, flags: NDArray[np.uint8]) -> None:
        """See `RunSink`."""
        self._end_blob()
        number = self.layout.number
        for start in range(0, flags.size, _FLAGS_PER_ROW):
            payload = compress(CompressionType.ZSTD, flags[start : start + _FLAGS_PER_ROW])
            # Flags are for the rewrite and go by way of a merger only because a shuffle has one
            # stage at a time: any of them will do, so they are spread.
            target = self.group % self.layout.mergers
            self._put(
                ShuffleRow(target, number, FLAGS, self.group, first_index + start, b""), payload
            )

    def take(self) -> Iterator[ShuffleRow]:
        """The rows so far; they are forgotten."""
        at = 0
        for row, size in self._rows:
            payload = self._data.read(at, at + size).tobytes()
            at += size
            yield ShuffleRow(row.target, row.plan, row.kind, row.number, row.first, payload)
        if self._rows:
            self._rows = []
            self._data.close()
            self._data = SpilledArray(np.uint8, BLOB_BYTES)

    def _end_blob(self) -> None:
        if self._parts:
            row = ShuffleRow(self._merger, self.layout.number, ENTRIES, 0, 0, b"")
            self._put(row, pack_entries(self._buckets, self._parts))
        self._buckets, self._parts, self._size = [], [], 0

    def _put(self, row: ShuffleRow, payload: bytes) -> None:
        self._rows.append((row, len(payload)))
        self._data.append(np.frombuffer(payload, np.uint8))


def map_segments(
    plan: CompactionPlan,
    layout: Layout,
    sources: range,
    state: SegmentState | None,
    secret: bytes,
    budget: MemoryBudget,
    aborted: AbortedTransactions,
) -> Iterator[ShuffleRow]:
    """The rows of some consecutive sources, by their numbers in `plan.sources`. `state`: of the
    transactions in front of them, None if the partition has none.

    CorruptRecordError and RecordTooLargeError as in `source_map.map_sources`.
    """
    buffer = _Buffer(layout)
    segments = plan.sources
    key_map = KeyMap(
        plan.first_dirty_offset,
        MOST_BUCKET_BITS,
        budget,
        buffer,
        secret=KeySecret(secret),
        first_index=layout.first_records[sources.start],
    )
    roles_of = BatchRoles(segments, plan.first_dirty_offset, plan.end_offset, aborted)
    if state is not None:
        roles_of.go_on_from(state.for_mapping())
    buffers, arena = ChunkBuffers(), Arena()
    for number in sources:
        segment = segments[number]
        group = layout.groups[number]
        if number == 0 or layout.groups[number - 1] != group:
            # Its task has to hear of a group without records, too.
            first = layout.first_records[number]
            yield ShuffleRow(group % layout.mergers, layout.number, MARKS, group, first, b"")
        for areas, roles in checked_areas(
            segment, roles_of, buffers, arena, budget.max_batch_bytes
        ):
            buffer.group = group
            key_map.add(areas.rows, areas, segment.path, roles)
            yield from buffer.take()
        next_record = layout.first_records[number + 1]
        # Numbers of the next segment's would be given twice: one record would then be marked for
        # another.
        if key_map.records > next_record:
            raise CorruptRecordError("has more records than when it was planned", path=segment.path)
        # Flags travel by group, and numbers begin anew where fewer were needed than set aside.
        if number == sources[-1]:
            key_map.close(is_whole=False)
        elif key_map.records < next_record or layout.groups[number + 1] != group:
            key_map.go_on_at(next_record)
        yield from buffer.take()
    facts = {"keyless": key_map.keyless, "distinctKeys": 0}
    yield facts_row(sources.start % layout.mergers, layout.number, COUNTS, 0, facts)


def merge_buckets(
    rows: Iterable[ShuffleRow], layouts: dict[int, Layout], budget: MemoryBudget
) -> Iterator[ShuffleRow]:
    """Rows of the map stage for one task, of any partitions and in any order, to those of the
    rewrite stage. What is not for this stage is passed on.
    """
    runs: dict[int, SpilledRuns] = {}
    # Wrappers leave wide gaps between numbers, so windows without a record are skipped.
    windows: dict[int, set[int]] = {}
    for row in rows:
        layout = layouts[row.plan]
        if row.kind == ENTRIES:
            store = runs.setdefault(row.plan, SpilledRuns(budget))
            occupied = windows.setdefault(row.plan, set())
            for bucket, entries in parse_entries(row.payload):
                store.add_entries(bucket, entries)
                occupied |= _windows_of(entries, budget.window_records)
        elif row.kind in (FLAGS, MARKS):
            yield row.to(layout.group_target(row.number))
        else:
            yield row.to(layout.group_target(0))
    # Marks are wanted by record and entries lie by bucket: each window of records reads all the
    # entries once and is as many bits as memory has room for.
    for number, store in runs.items():
        layout = layouts[number]
        distinct = 0
        for window in sorted(windows[number]):
            first = window * budget.window_records
            end = min(first + budget.window_records, layout.first_records[-1])
            marks, distinct = store.merge(first, end - first)
            yield from _marks_rows(layout, first, end, marks)
        facts = {"keyless": 0, "distinctKeys": distinct}
        yield facts_row(layout.group_target(0), number, COUNTS, 0, facts)


def _windows_of(entries: NDArray[np.uint64], window_records: int) -> set[int]:
    """The windows these entries' records are in."""
    numbers = entries[ENTRY_WORDS - 1 :: ENTRY_WORDS] & np.uint64(LOOKUP_BIT - 1)
    first, last = int(numbers.min()) // window_records, int(numbers.max()) // window_records
    if first == last:
        return {first}
    return set(np.unique(numbers // np.uint64(window_records)).tolist())


def _marks_rows(
    layout: Layout, first: int, end: int, marks: NDArray[np.uint8]
) -> Iterator[ShuffleRow]:
    """The marks of records [first, end), group by group, from a whole byte on."""
    for group in range(layout.groups[-1] + 1):
        group_first, group_end = layout.records_of_group(group)
        start, stop = max(first, group_first), min(end, group_end)
        if start >= stop:
            continue
        # Groups do not begin at whole bytes: the byte is sent with the bits of the group before it,
        # and the number says which record its first bit is.
        at = (start - first) // 8
        bits = marks[at : (stop - first + 7) // 8]
        if bits.any():
            payload = compress(CompressionType.ZSTD, bits)
            target = layout.group_target(group)
            yield ShuffleRow(target, layout.number, MARKS, group, first + 8 * at, payload)
