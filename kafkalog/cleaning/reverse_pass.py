"""The sources of a round from their last chunk to the first, each read, checked and decompressed
once.

Strategy: what supersedes a record has a higher offset, so of a chunk that is entered into the map
behind all that follow it everything is known, and what becomes of it is made at once, while its
bytes are in the processor's cache. Parts of which little stays are kept in memory until the output
comes to them (`finished_parts`); of the others there are flags, as of any record, and they are read
again. Where it cannot go on (the map is full, legacy entries, an index with too few entries) what
is left in front is mapped in its order, by `source_map`.

Only for partitions where nothing else depends on what comes first: without transactions and
markers, and without corrupt batches that are kept. Whatever is damaged is left to the pass in
order, which tells the first place.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.arena import Arena
from kafkalog.batches.batch_table import codecs
from kafkalog.batches.record_areas import RecordAreas, iterate_record_areas
from kafkalog.cleaning.batch_roles import BatchRoles
from kafkalog.cleaning.checked_chunks import CLEANER_ARENA_BYTES, check_checksums
from kafkalog.cleaning.finished_parts import FinishedParts
from kafkalog.cleaning.indexed_chunks import end_of, indexed_chunks, read_ahead, read_between
from kafkalog.cleaning.key_map import KeySecret
from kafkalog.cleaning.record_flags import RecordFlags
from kafkalog.cleaning.reverse_map import ReverseMap
from kafkalog.cleaning.rewrite import GroupRewriter
from kafkalog.cleaning.source_map import BehindSources, expected_records, map_sources
from kafkalog.errors import CorruptRecordError, KafkaLogError
from kafkalog.format.constants import (
    CONTROL_FLAG_MASK,
    MAGIC_VALUE_V2,
    MAX_INT64,
    TRANSACTIONAL_FLAG_MASK,
    CompressionType,
)
from kafkalog.kernels.hash_keys import SUPERSEDED
from kafkalog.log.aborted_transactions import AbortedTransactions
from kafkalog.log.inventory import SegmentInfo
from kafkalog.log.segment_file import Chunk, ChunkBuffers
from kafkalog.planning.compaction_plan import CompactionPlan
from kafkalog.resources.memory import MemoryBudget
from kafkalog.resources.spilled_array import SpilledArray

_OF_TRANSACTIONS = TRANSACTIONAL_FLAG_MASK | CONTROL_FLAG_MASK


class ReversePass:
    """Goes over some sources once."""

    def __init__(
        self,
        plan: CompactionPlan,
        sources: Sequence[SegmentInfo],
        latest_offset: int,
        aborted: AbortedTransactions,
        rewriter: GroupRewriter,
        buffers: ChunkBuffers,
        budget: MemoryBudget,
    ) -> None:
        """`rewriter`: to make the parts with."""
        self._plan = plan
        self._sources = sources
        self._latest_offset = latest_offset
        self._aborted = aborted
        self._rewriter = rewriter
        self._buffers = buffers
        self._budget = budget
        self._roles_of = BatchRoles(sources, plan.first_dirty_offset, plan.end_offset, aborted)
        self._arena = Arena()
        self._secret = KeySecret()
        self._map: ReverseMap | None = None
        # From the last part to the first, and how many there are of each.
        self._flags = SpilledArray(np.uint8, budget.kept_bytes)
        self._counts: list[int] = []
        self._left_bytes = sum(segment.size_in_bytes for segment in sources)
        # Where what was done begins.
        self._next_offset = MAX_INT64
        self._expansion = 4.0
        self.finished = FinishedParts(budget.finished_bytes)

    def run(self) -> RecordFlags | None:
        """What the map says of all records; None where the pass in order has to say it."""
        try:
            rest = self._go()
        except (KafkaLogError, OSError):
            # The pass in order needs the memory.
            self._map, self.finished = None, FinishedParts(0)
            self._flags.close()
            return None
        return self._all_flags(*rest)

    def _go(self) -> tuple[int, int]:
        """(how many sources are left in front, the position where the last of them ends)."""
        for number in range(len(self._sources) - 1, -1, -1):
            segment = self._sources[number]
            chunks = indexed_chunks(segment)
            if chunks is None:
                return number + 1, segment.size_in_bytes
            for start, end in reversed(chunks):
                read_ahead(segment, start)
                chunk = read_between(
                    segment, start, end, self._buffers, self._budget.max_batch_bytes
                )
                stopped = self._add_chunk(segment, chunk)
                if stopped:
                    return number + 1, stopped
        return 0, 0

    def _add_chunk(self, segment: SegmentInfo, chunk: Chunk) -> int:
        """The position where what it cannot go on with ends; 0 if it can."""
        rows = chunk.rows
        stop = rows.size
        if rows["magic"].min() < MAGIC_VALUE_V2:
            return end_of(rows[-1])
        if np.bitwise_or.reduce(rows["attributes"]) & _OF_TRANSACTIONS:
            raise CorruptRecordError("a transaction that was not there", path=segment.path)
        check_checksums(chunk, segment.path)
        roles = self._roles_of.batches(chunk, segment)
        if self._map is None:
            self._map = self._new_map(rows)
        while stop:
            first, areas = self._open_last(chunk, stop, segment.path)
            part = slice(first, stop)
            records = int(rows["records_count"][part].sum(dtype=np.int64))
            if not self._map.has_room(records):
                return end_of(rows[stop - 1])
            if rows["last_offset"][stop - 1] >= self._next_offset:
                raise CorruptRecordError("offsets do not rise", path=segment.path)
            flags = self._map.flags_of(rows[part], areas, segment.path, roles[part])
            self._next_offset = int(rows["base_offset"][first])
            self._flags.append(flags)
            self._counts.append(flags.size)
            self._finish(segment, chunk, part, areas, flags)
            stop = first
        return 0

    def _new_map(self, rows: NDArray[np.void]) -> ReverseMap:
        return ReverseMap(
            self._plan.first_dirty_offset,
            self._latest_offset,
            self._budget.pool_bytes,
            expected_records(rows, self._sources),
            self._secret,
        )

    def _finish(
        self,
        segment: SegmentInfo,
        chunk: Chunk,
        part: slice,
        areas: RecordAreas,
        flags: NDArray[np.uint8],
    ) -> None:
        """Make what becomes of a part, if it is kept."""
        assert self._map is not None, "the part is in it"  # noqa: S101
        rows = chunk.rows[part]
        start, end = int(rows["position"][0]), end_of(rows[-1])
        self.finished.limit(self._budget.pool_bytes - self._map.used_bytes)
        size = end - start
        staying = flags.size - int(np.count_nonzero(flags & SUPERSEDED))
        out_bytes = size * staying // max(flags.size, 1)
        if self.finished.takes(out_bytes, size, self._left_bytes):
            buf = chunk.buf[start - chunk.position : end - chunk.position]
            self._rewriter.finish(segment, Chunk(buf, start, rows), areas, flags, self.finished)
        self._left_bytes -= size

    def _open_last(self, chunk: Chunk, stop: int, path: str) -> tuple[int, RecordAreas]:
        """The records of the last batches in front of `stop`, as many as there is memory for: (the
        first one, the areas of all).
        """
        rows = chunk.rows[:stop]
        count = stop
        is_compressed = bool((codecs(rows) != CompressionType.NONE).any())
        if is_compressed:
            sizes = np.cumsum(rows["size_in_bytes"][::-1]) * self._expansion
            count = max(int(np.searchsorted(sizes, CLEANER_ARENA_BYTES)), 1)
        while True:
            first = stop - count
            opened, areas = next(
                iterate_record_areas(
                    chunk.buf, chunk.position, rows[first:], self._arena,
                    path=path,
                    max_bytes=self._budget.max_batch_bytes,
                    arena_bytes=2 * CLEANER_ARENA_BYTES,
                )
            )  # fmt: skip
            if opened.stop == count:
                break
            # They decompress to more than was thought.
            count = max(opened.stop // 2, 1)
        if is_compressed:
            stored = int(rows["size_in_bytes"][first:].sum(dtype=np.int64))
            self._expansion = max(int((areas.ends - areas.starts).sum()) / stored, 1.0)
        return first, areas

    def _all_flags(self, sources: int, end: int) -> RecordFlags:
        """Of what is left in front, and of the parts behind it."""
        # Nobody else holds the map: its memory is to be free when its entries are handed over.
        behind, self._map = BehindSources(self._map, self._secret, end), None
        keyless = behind.map.keyless if behind.map is not None else 0
        if sources:
            # The other half is the map's, however full the first one was.
            self.finished.limit(self._budget.pool_bytes // 2)
            all_flags = map_sources(
                self._sources[:sources],
                self._plan.first_dirty_offset,
                self._plan.end_offset,
                self._aborted,
                self._buffers,
                self._budget.beside(self.finished.held_bytes),
                self._latest_offset,
                behind=behind,
            )
        else:
            distinct_keys = behind.map.distinct_keys if behind.map is not None else 0
            # Before the output is written, which needs its own memory.
            behind.map = None
            flags = SpilledArray(np.uint8, self._budget.kept_bytes)
            all_flags = RecordFlags(flags, distinct_keys=distinct_keys, keyless=0)
        stop = self._flags.size
        for count in reversed(self._counts):
            all_flags.append(self._flags.read(stop - count, stop))
            stop -= count
        self._flags.close()
        all_flags.keyless += keyless
        return all_flags
