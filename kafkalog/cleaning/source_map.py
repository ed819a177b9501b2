"""The key map of a round within one task: the sources read once, runs spilled to local disk.

A run's entries lie in the file bucket by bucket. When the last run is closed the pool is given
back, and each bucket is merged from its piece in each run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.arena import Arena
from kafkalog.cleaning.batch_roles import BatchRoles
from kafkalog.cleaning.bucket_map import BucketMap, Marks, pieces_of
from kafkalog.cleaning.checked_chunks import CorruptBatches, checked_areas
from kafkalog.cleaning.key_map import KeyMap, KeySecret, RunSink, bucket_bits
from kafkalog.cleaning.record_flags import RecordFlags
from kafkalog.cleaning.reverse_map import ReverseMap
from kafkalog.format.constants import MAX_INT64
from kafkalog.kernels.hash_keys import ENTRY_WORDS
from kafkalog.log.aborted_transactions import AbortedTransactions
from kafkalog.log.inventory import SegmentInfo
from kafkalog.log.segment_file import ChunkBuffers
from kafkalog.resources.memory import MemoryBudget
from kafkalog.resources.spilled_array import SpilledArray


@dataclass(slots=True)
class BehindSources:
    """What was mapped before, of sources and parts behind some: their map, its secret, and the
    position where the last of these sources ends.
    """

    map: ReverseMap | None
    secret: KeySecret
    position: int

    def give_to(self, sink: RunSink, bits: int) -> int:
        """Hand the map's entries over, and give its memory back; how many distinct keys it had."""
        if self.map is None:
            return 0
        self.map.give_to(sink, bits)
        distinct_keys, self.map = self.map.distinct_keys, None
        return distinct_keys


class SpilledRuns:
    """Runs of a key map on local disk, and their flags: a `RunSink`."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._entries = SpilledArray(np.uint64, 0)
        self._ranges: dict[int, list[tuple[int, int]]] = {}
        self.flags = SpilledArray(np.uint8, budget.kept_bytes)

    def add_entries(self, bucket: int, entries: NDArray[np.uint64]) -> None:
        """See `RunSink`."""
        first = self._entries.size // ENTRY_WORDS
        self._entries.append(entries)
        self._ranges.setdefault(bucket, []).append((first, self._entries.size // ENTRY_WORDS))

    def end_run(self, first_index: int, flags: NDArray[np.uint8]) -> None:
        """See `RunSink`."""
        assert first_index == self.flags.size, "runs follow each other"  # noqa: S101
        self.flags.append(flags)

    def merge(self, first_index: int, records: int) -> tuple[NDArray[np.uint8], int]:
        """The marks of so many records from there on, and the distinct dirty keys of all."""
        # Each window reads all entries again: the memory is then that of one window's bits, and
        # windows are so large that there are few of them.
        marks = Marks(first_index, np.zeros(-(-records // 8), np.uint8))
        merging = BucketMap(self._budget.most_keys)
        distinct = 0
        for ranges in self._ranges.values():
            count = sum(end - first for first, end in ranges)
            distinct += merging.merge(
                lambda r=ranges: pieces_of(self._entries.read, r),  # type: ignore[misc]
                count,
                marks,
            )
        return marks.bits, distinct

    def record_flags(self, key_map: KeyMap, *, is_whole: bool = True) -> RecordFlags:
        """The answer, when all records were added to the map, whose sink this is; it `is_whole`
        where no others come here.
        """
        # None: several runs. What supersedes across them is known only from here on, when the
        # pool's memory is free again.
        flags = key_map.close(is_whole=is_whole)
        if flags is not None:
            self.flags.append(flags)
            return RecordFlags(
                self.flags, distinct_keys=key_map.distinct_keys, keyless=key_map.keyless
            )
        marks, distinct = self._window(0)
        return RecordFlags(
            self.flags,
            distinct_keys=distinct,
            keyless=key_map.keyless,
            marks=marks,
            load_marks=lambda first: self._window(first)[0],
            window_records=self._budget.window_records,
        )

    def _window(self, first_index: int) -> tuple[NDArray[np.uint8], int]:
        left = self.flags.size - first_index
        return self.merge(first_index, min(left, self._budget.window_records))


def map_sources(
    sources: Sequence[SegmentInfo],
    first_dirty_offset: int,
    end_offset: int,
    aborted: AbortedTransactions,
    buffers: ChunkBuffers,
    budget: MemoryBudget,
    latest_offset: int = MAX_INT64,
    kept_corrupt: CorruptBatches | None = None,
    *,
    behind: BehindSources | None = None,
) -> RecordFlags:
    """Read the sources once. The map ends at `latest_offset`, the round at `end_offset`. With
    `kept_corrupt` corrupt batches are left out and noted there. `behind`: what was mapped before,
    of the sources behind these.

    CorruptRecordError for a batch that is not sound, RecordTooLargeError for one that does not fit
    the budget, so that nothing is built on it.
    """
    runs = SpilledRuns(budget)
    key_map: KeyMap | None = None
    secret, last_end = KeySecret(), None
    if behind is not None:
        secret, last_end = behind.secret, behind.position
    # Every source is read, clean ones as well: their records are looked up, for a dirty one of the
    # same key removes them.
    roles_of = BatchRoles(sources, first_dirty_offset, end_offset, aborted)
    arena = Arena()
    for segment in sources:
        for areas, roles in checked_areas(
            segment, roles_of, buffers, arena, budget.max_batch_bytes, kept_corrupt,
            end=last_end if segment is sources[-1] else None,
        ):  # fmt: skip
            if key_map is None:
                # Only now: these records counts were held against the bytes that hold them.
                bits = bucket_bits(expected_records(areas.rows, sources))
                if behind is not None:
                    behind.give_to(runs, bits)
                key_map = KeyMap(
                    first_dirty_offset, bits, budget, runs,
                    latest_offset=latest_offset, secret=secret,
                )  # fmt: skip
            key_map.add(areas.rows, areas, segment.path, roles)
    if key_map is None:
        distinct_keys = 0 if behind is None else behind.give_to(runs, 1)
        return RecordFlags(runs.flags, distinct_keys=distinct_keys, keyless=0)
    return runs.record_flags(key_map, is_whole=behind is None)


def expected_records(rows: NDArray[np.void], sources: Sequence[SegmentInfo]) -> int:
    """As many as there would be if all bytes were like these batches, and a tenth more."""
    records = int(rows["records_count"].sum(dtype=np.int64))
    stored_bytes = int(rows["size_in_bytes"].sum(dtype=np.int64))
    source_bytes = sum(segment.size_in_bytes for segment in sources)
    return records * source_bytes * 11 // (10 * stored_bytes)
