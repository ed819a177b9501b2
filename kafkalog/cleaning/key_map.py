"""Which records of the cleanable range a later record of the same key supersedes.

Strategy: one pass over the sources hashes every key (kernels.hash_keys), and what was hashed enters
the map of a run (`run_map`), which notes what records of the run supersede each other. If all keys
have room in it that is all. Else the run is closed: the latest entry of each key, and the entries
that are looked up, go to a `RunSink` bucket by bucket: to local disk (`SpilledRuns`) or to other
tasks, where the buckets of all runs are merged. The answer is one byte per record in record order,
so the rewrite never hashes a key. Every batch's CRC is checked on the way, and every record's
structure.

Source: Kafka Cleaner.buildOffsetMap.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.record_areas import RecordAreas
from kafkalog.cleaning.run_map import RunMap
from kafkalog.errors import CorruptRecordError
from kafkalog.format.constants import MAX_INT64
from kafkalog.kernels.hash_keys import (
    DONE_OF_BATCH,
    ENTRIES,
    ENTRY_WORDS,
    KEYLESS,
    MAP_STATE_SIZE,
    NEXT_INDEX,
    PREVIOUS_OFFSET,
    SUPERSEDED,
    map_records,
)
from kafkalog.kernels.status import OUTPUT_FULL, STATUS_TEXT
from kafkalog.resources.memory import MemoryBudget

# So many entries to a bucket that they and their table (4 bytes a slot) stay in a processor's
# cache.
_ENTRIES_PER_BUCKET = 8192
MOST_BUCKET_BITS = 10
# A run is closed at so many records even if few of them have keys: their flags are in memory.
_RUN_RECORDS = 16 * 1024 * 1024
# So many keys are hashed before they enter the map: they stay in the cache meanwhile.
STAGED_ENTRIES = 32 * 1024
# What the table of the map is made for, in time and memory: more keys make it grow.
RECORDS_PER_KEY = 3
# Flags are marked so many at a time.
_MARKED_FLAGS = 1024 * 1024


class RunSink(Protocol):
    """Where runs go."""

    def add_entries(self, bucket: int, entries: NDArray[np.uint64]) -> None:
        """Entries of the run being closed, uint64[3 * n], to be copied."""

    def end_run(self, first_index: int, flags: NDArray[np.uint8]) -> None:
        """The flags of the run's records, SUPERSEDED where one of the same run supersedes them."""


class KeySecret:
    """The secret a job's keys are hashed with: nobody can craft two keys whose hashes match."""

    def __init__(self, data: bytes | None = None) -> None:
        self.data = secrets.token_bytes(16) if data is None else data
        self.words: NDArray[np.uint64] = np.frombuffer(self.data, np.uint64)


class KeyHasher:
    """Hashes the keys of some batches after others, as many at a time as it has room for."""

    def __init__(
        self,
        first_dirty_offset: int,
        latest_offset: int,
        staged_entries: int,
        secret: KeySecret | None = None,
    ) -> None:
        self._first_dirty_offset = first_dirty_offset
        self._latest_offset = latest_offset
        self._k0, self._k1 = (secret or KeySecret()).words
        self._staged = np.empty(staged_entries * ENTRY_WORDS, np.uint64)
        self._state = np.zeros(MAP_STATE_SIZE, np.int64)
        self.begin_at(0)

    @property
    def next_index(self) -> int:
        """The number the next record gets."""
        return int(self._state[NEXT_INDEX])

    def go_on_at(self, index: int) -> None:
        """The next record gets this number."""
        self._state[NEXT_INDEX] = index

    def begin_at(self, index: int) -> None:
        """The next record gets this number, and may have any offset."""
        self._state[[NEXT_INDEX, PREVIOUS_OFFSET]] = index, -1

    def hash(
        self,
        rows: NDArray[np.void],
        areas: RecordAreas,
        path: str,
        roles: NDArray[np.uint8] | None = None,
    ) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint8]]]:
        """The entries of some records, valid until the next ones are asked for, with the flags of
        these records. `roles` uint8[b] is 0 for batches whose records never meet the map; all of
        them do without it.
        """
        if roles is None:
            roles = np.ones(rows.size, np.uint8)
        counts = rows["records_count"].astype(np.int64)
        # Changed below, where there is no more room within a batch: the rest of it begins later.
        starts = areas.starts.copy()
        # Counts were held against the bytes of their batches when the areas were opened: none of
        # them can ask for more memory than its records have bytes.
        flags = np.empty(int(counts.sum()), np.uint8)
        first_batch, done = 0, 0
        self._state[DONE_OF_BATCH] = 0
        while True:
            # The kernel stops when it has hashed as many keys as there is room for, within a batch
            # if it must, and goes on there when they have been taken.
            part = slice(first_batch, rows.size)
            found, status, position, b = map_records(
                areas.buf, rows[part], starts[part], areas.ends[part], roles[part],
                self._k0, self._k1, self._first_dirty_offset, self._latest_offset,
                self._state, self._staged, flags[done:],
            )  # fmt: skip
            b += first_batch
            entries = self._staged[: int(self._state[ENTRIES]) * ENTRY_WORDS]
            yield entries, flags[done : done + found]
            done += found
            # How many records of the batch it stopped in are done.
            in_batch = done - int(counts[:b].sum())
            if not status:
                break
            if status != OUTPUT_FULL:
                raise CorruptRecordError(
                    f"{STATUS_TEXT[status]}, in record {in_batch} of the batch, "
                    f"{position - int(areas.starts[b])} bytes into its records",
                    path=path,
                    position=int(rows["position"][b]),
                    offset=int(rows["base_offset"][b]),
                )
            first_batch, self._state[DONE_OF_BATCH], starts[b] = b, in_batch, position


class KeyMap:
    """Add records in offset order, then `close`."""

    def __init__(
        self,
        first_dirty_offset: int,
        bucket_bits: int,
        budget: MemoryBudget,
        sink: RunSink,
        *,
        latest_offset: int = MAX_INT64,
        secret: KeySecret | None = None,
        first_index: int = 0,
    ) -> None:
        """Records past `latest_offset` do not meet the map and stay. `first_index` is that of the
        first record.
        """
        self._sink = sink
        self._bucket_bits = bucket_bits
        expected_records = _ENTRIES_PER_BUCKET << bucket_bits
        self._map = RunMap(budget.pool_bytes, expected_records // RECORDS_PER_KEY)
        # A run ends when the map may have no room for all of these.
        staged = min(STAGED_ENTRIES, self._map.most_keys)
        self._hasher = KeyHasher(first_dirty_offset, latest_offset, staged, secret)
        self._hasher.begin_at(first_index)
        self._map.begin(first_index)
        self._flags: list[NDArray[np.uint8]] = []
        self._run_first = first_index
        self.runs = 0
        self.keyless = 0
        self.distinct_keys = 0
        """Of the only run; of several the sum."""

    def add(
        self,
        rows: NDArray[np.void],
        areas: RecordAreas,
        path: str,
        roles: NDArray[np.uint8] | None = None,
    ) -> None:
        """Add batches of one chunk, in offset order after all that were added before. `roles`
        uint8[b] is 0 for batches whose records never meet the map; all of them do without it.
        """
        for entries, flags in self._hasher.hash(rows, areas, path, roles):
            self._enter(entries)
            self._flags.append(flags)
            self.keyless += int(np.count_nonzero(flags & KEYLESS))
        if self.records - self._run_first > _RUN_RECORDS:
            self._close_run(self._sink)

    @property
    def records(self) -> int:
        """The number the next record gets."""
        return self._hasher.next_index

    def go_on_at(self, index: int) -> None:
        """End the run here; the next record gets this number."""
        self._close_run(self._sink)
        # Numbers may leave a gap, never go back: an index says which record is later.
        self._hasher.go_on_at(index)
        self._run_first = index
        self._map.begin(index)

    def close(self, *, is_whole: bool) -> NDArray[np.uint8] | None:
        """Close the last run. If it is the only one and the map `is_whole`, nothing has gone to the
        sink and the flags of all records are the answer; else None.
        """
        # The common case: all entries were in the pool at once, so what is marked now is all there
        # is, and nothing was written to disk.
        flags = None
        if is_whole and not self.runs:
            flags = self._close_run(None)
        elif self._flags:
            self._close_run(self._sink)
        # Its memory goes back: what comes next needs its own.
        self._map = RunMap(0)
        return flags

    def _enter(self, entries: NDArray[np.uint64]) -> None:
        """Enter what was hashed; the flags of its records are not among the run's yet."""
        if not self._map.has_room(entries.size // ENTRY_WORDS):
            self._close_run(self._sink)
        self._map.enter(entries, self.records)

    def _close_run(self, sink: RunSink | None) -> NDArray[np.uint8]:
        # Of each key one entry goes on to the sink, however often it came: a log with few keys
        # leaves little behind, whatever its size.
        flags = np.concatenate(self._flags) if self._flags else np.empty(0, np.uint8)
        self._flags = []
        self._map.end()
        self.distinct_keys += self._map.distinct_keys
        mark_superseded(flags, self._map.marks.bits)
        if sink is not None:
            # Clean records go on, too: a later run may hold the dirty record that supersedes them.
            for bucket, entries in self._map.buckets(self._bucket_bits):
                sink.add_entries(bucket, entries)
            sink.end_run(self._run_first, flags)
        self._run_first += flags.size
        self._map.begin(self._run_first)
        self.runs += 1
        return flags


def mark_superseded(flags: NDArray[np.uint8], marks: NDArray[np.uint8]) -> None:
    """Set SUPERSEDED in the flags whose bit is set; records without a bit are not."""
    for start in range(0, min(flags.size, 8 * marks.size), _MARKED_FLAGS):
        part = flags[start : start + _MARKED_FLAGS]
        bits = np.unpackbits(
            marks[start // 8 : (start + part.size + 7) // 8], count=part.size, bitorder="little"
        )
        part |= bits * np.uint8(SUPERSEDED)


def bucket_bits(expected_records: int) -> int:
    """How many buckets, as bits of their number: `expected_records` sizes them; more or fewer are
    fine.
    """
    wanted_bits = (expected_records // _ENTRIES_PER_BUCKET).bit_length()
    return min(max(wanted_bits, 1), MOST_BUCKET_BITS)
