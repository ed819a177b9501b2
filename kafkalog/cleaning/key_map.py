"""Which records of the cleanable range a later record of the same key supersedes.

Strategy: one pass over the sources hashes every key (kernels.hash_keys) into the buckets of a pool
in memory. When the pool is full, or at the end, a run is closed: each bucket is merged by itself
(kernels.buckets), which says what records of the run supersede each other. If there is one run
only, that is all. Else the latest entry of each key, and the entries that are looked up, go to a
`RunSink`: to local disk (`SpilledRuns`) or to other tasks, and the runs' buckets are merged in the
same way. The answer is one byte per record in record order, so the rewrite never hashes a key.
Every batch's CRC is checked on the way, and every record's structure.

Source: Kafka Cleaner.buildOffsetMap.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.record_areas import RecordAreas
from kafkalog.cleaning.bucket_map import BucketMap, Marks, Piece
from kafkalog.errors import CorruptRecordError
from kafkalog.format.constants import MAX_INT64
from kafkalog.kernels.hash_keys import (
    BLOCK_ENTRIES,
    DONE_OF_BATCH,
    ENTRY_WORDS,
    FREE_BLOCK,
    KEYLESS,
    LOOKUP_BIT,
    MAP_STATE_SIZE,
    NEXT_INDEX,
    PREVIOUS_OFFSET,
    SUPERSEDED,
    map_records,
)
from kafkalog.kernels.status import OUTPUT_FULL, STATUS_TEXT
from kafkalog.resources.memory import MemoryBudget

# So many entries to a bucket that they and their table (4 bytes a slot) stay in a processor's
# cache, and so few buckets that a pass over the records writes to each without missing a page.
_ENTRIES_PER_BUCKET = 16 * BLOCK_ENTRIES
MOST_BUCKET_BITS = 10
# A run is closed at so many records even if few of them have keys: their flags are in memory.
_RUN_RECORDS = 16 * 1024 * 1024
# Entries that are looked up are copied so many blocks at a time.
_COPY_BLOCKS = 256
BLOCK_BYTES = BLOCK_ENTRIES * ENTRY_WORDS * 8


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
        self._first_dirty_offset = first_dirty_offset
        self._latest_offset = latest_offset
        self._sink = sink
        self._tails = np.zeros(1 << bucket_bits, np.int64)
        self._k0, self._k1 = (secret or KeySecret()).words
        # Memory costs nothing until it is written to. Two blocks a bucket at least: each begins a
        # block with its first entry, and a pool that was full by then would close runs of a few
        # records.
        blocks = max(budget.pool_bytes // BLOCK_BYTES, 2 * self._tails.size)
        self._pool = np.empty(blocks * BLOCK_ENTRIES * ENTRY_WORDS, np.uint64)
        self._block_bucket = np.empty(blocks, np.int32)
        self._state = np.zeros(MAP_STATE_SIZE, np.int64)
        self._state[[NEXT_INDEX, PREVIOUS_OFFSET]] = first_index, -1
        self._map = BucketMap(budget.most_keys)
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
        if roles is None:
            roles = np.ones(rows.size, np.uint8)
        counts = rows["records_count"].astype(np.int64)
        # Changed below, where the pool is full within a batch: the rest of it begins later then.
        starts = areas.starts.copy()
        # Counts were held against the bytes of their batches when the areas were opened: none of
        # them can ask for more memory than its records have bytes.
        flags = np.empty(int(counts.sum()), np.uint8)
        first_batch, done = 0, 0
        self._state[DONE_OF_BATCH] = 0
        while True:
            # One call for all of the chunk, and one more for each time the pool is full: then the
            # run is closed, which empties the pool, and the kernel goes on in the middle of the
            # batch it stopped in.
            part = slice(first_batch, rows.size)
            found, status, position, b = map_records(
                areas.buf, rows[part], starts[part], areas.ends[part], roles[part],
                self._k0, self._k1, self._first_dirty_offset, self._latest_offset,
                self._pool, self._block_bucket, self._tails, self._state, flags[done:],
            )  # fmt: skip
            b += first_batch
            self._flags.append(flags[done : done + found])
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
            self._close_run(self._sink)
            first_batch, self._state[DONE_OF_BATCH], starts[b] = b, in_batch, position
        self.keyless += int(np.count_nonzero(flags & KEYLESS))
        if self.records - self._run_first > _RUN_RECORDS:
            self._close_run(self._sink)

    @property
    def records(self) -> int:
        """The number the next record gets."""
        return int(self._state[NEXT_INDEX])

    def go_on_at(self, index: int) -> None:
        """End the run here; the next record gets this number."""
        self._close_run(self._sink)
        # Numbers may leave a gap, never go back: an index says which record is later.
        self._state[NEXT_INDEX] = self._run_first = index

    def close(self, *, is_whole: bool) -> NDArray[np.uint8] | None:
        """Close the last run. If it is the only one and the map `is_whole`, nothing has gone to the
        sink and the flags of all records are the answer; else None.
        """
        # The common case: all entries were in the pool at once, so what is marked now is all there
        # is, and nothing was written to disk.
        if is_whole and not self.runs:
            return self._close_run(None)
        if self._flags:
            self._close_run(self._sink)
        self._pool = np.empty(0, np.uint64)
        return None

    def _close_run(self, sink: RunSink | None) -> NDArray[np.uint8]:
        # Within the run every bucket is merged at once, so that of each key about one entry goes on
        # to the sink, however often it came: a log with few keys leaves little behind, whatever its
        # size.
        flags = np.concatenate(self._flags) if self._flags else np.empty(0, np.uint8)
        self._flags = []
        marks = Marks(self._run_first, np.zeros(-(-flags.size // 8), np.uint8))
        for bucket, piece in self._buckets():
            keep = None if sink is None else partial(sink.add_entries, bucket)
            self.distinct_keys += self._map.merge(lambda p=piece: (p,), piece.count, marks, keep)  # type: ignore[misc]
            # Clean records go on, too: a later run may hold the dirty record that supersedes them.
            if keep is not None and self._map.has_lookups:
                _keep_lookups(piece, keep)
        superseded = np.unpackbits(marks.bits, count=flags.size, bitorder="little")
        flags |= superseded * np.uint8(SUPERSEDED)
        if sink is not None:
            sink.end_run(self._run_first, flags)
        self._run_first = self.records
        self._tails[:] = 0
        self._state[FREE_BLOCK] = 0
        self.runs += 1
        return flags

    def _buckets(self) -> Iterator[tuple[int, Piece]]:
        """The buckets that have entries."""
        # Blocks were given out in the order in which buckets asked. A stable sort by owner puts
        # those of a bucket together and leaves them in the order they were filled: all but the last
        # are full.
        owners = self._block_bucket[: int(self._state[FREE_BLOCK])]
        order = np.argsort(owners, kind="stable").astype(np.int32)
        edges = np.searchsorted(owners[order], np.arange(self._tails.size + 1))
        for bucket in np.flatnonzero(np.diff(edges)).tolist():
            blocks = order[edges[bucket] : edges[bucket + 1]]
            in_last = int(self._tails[bucket]) - int(blocks[-1]) * BLOCK_ENTRIES
            count = (blocks.size - 1) * BLOCK_ENTRIES + in_last
            yield bucket, Piece(self._pool, blocks, count)


def _keep_lookups(piece: Piece, keep: Callable[[NDArray[np.uint64]], None]) -> None:
    """The entries of a piece that do not enter the map."""
    by_block = piece.entries.reshape(-1, BLOCK_ENTRIES * ENTRY_WORDS)
    for first in range(0, piece.blocks.size, _COPY_BLOCKS):
        blocks = piece.blocks[first : first + _COPY_BLOCKS]
        entries = by_block[blocks].reshape(-1, ENTRY_WORDS)[: piece.count - first * BLOCK_ENTRIES]
        lookups = entries[entries[:, 2] >= np.uint64(LOOKUP_BIT)]
        if lookups.size:
            keep(lookups.reshape(-1))


def bucket_bits(expected_records: int) -> int:
    """How many buckets, as bits of their number: `expected_records` sizes them; more or fewer are
    fine.
    """
    wanted_bits = (expected_records // _ENTRIES_PER_BUCKET).bit_length()
    return min(max(wanted_bits, 1), MOST_BUCKET_BITS)
