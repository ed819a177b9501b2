"""The sources of a small partition as one chunk, read once for both passes.

What a pass does to a chunk costs some hundred microseconds of Python whatever it holds, and a small
partition is a few segments of a few batches. So where nothing depends on which segment a batch is
in, they are read one behind the other and worked on together. That is so for sound batches of magic
2 without transactions and markers. Whatever else is met, damage above all, is left to the ordinary
way, segment by segment, which tells its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.arena import Arena
from kafkalog.batches.batch_table import verify_checksums
from kafkalog.batches.record_areas import iterate_record_areas
from kafkalog.cleaning.checked_chunks import CLEANER_ARENA_BYTES
from kafkalog.cleaning.key_map import KeyMap, bucket_bits
from kafkalog.cleaning.record_flags import RecordFlags
from kafkalog.cleaning.run_map import KEY_BYTES
from kafkalog.cleaning.source_map import SpilledRuns
from kafkalog.errors import KafkaLogError
from kafkalog.format.batch_rows import copy_rows
from kafkalog.format.constants import (
    CONTROL_FLAG_MASK,
    MAGIC_VALUE_V2,
    MAX_INT32,
    TRANSACTIONAL_FLAG_MASK,
)
from kafkalog.kernels.hash_keys import DATA
from kafkalog.kernels.header_sums import (
    ATTRIBUTES,
    LARGEST_BATCH,
    LAST_OFFSET,
    MAGICS,
    SUMS_SIZE,
    header_sums,
)
from kafkalog.kernels.status import OK
from kafkalog.log.inventory import SegmentInfo
from kafkalog.log.segment_file import Chunk, ChunkBuffers
from kafkalog.log.storage import open_file
from kafkalog.planning.compaction_plan import SegmentGroup
from kafkalog.resources.memory import MemoryBudget

# Of all sources of a partition together; larger ones are read in chunks of their own.
JOINED_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class JoinedSources:
    """The chunk, positions from the start of its bytes, and where in these each source starts, with
    the end of the last one behind."""

    sources: tuple[SegmentInfo, ...]
    chunk: Chunk
    starts: tuple[int, ...]

    def by_source(self) -> Iterator[tuple[SegmentInfo, NDArray[np.uint8], NDArray[np.void]]]:
        """Each source, its bytes and its batches."""
        chunk, edges = self.chunk, np.searchsorted(self.chunk.rows["position"], self.starts)
        for number, source in enumerate(self.sources):
            start, end = self.starts[number : number + 2]
            yield source, chunk.buf[start:end], chunk.rows[edges[number] : edges[number + 1]]

    def locate(self, error: KafkaLogError) -> None:
        """Give an error of the chunk, whose path is the first source's, the place in the file that
        it is about.
        """
        if error.position is None or error.path != self.sources[0].path:
            return
        number = int(np.searchsorted(self.starts[1:-1], error.position, side="right"))
        error.path = self.sources[number].path
        error.position -= self.starts[number]


def join_sources(
    groups: Sequence[SegmentGroup], buffers: ChunkBuffers, budget: MemoryBudget
) -> JoinedSources | None:
    """The sources of the only group, joined; None where they are too large, or where it matters
    which source a batch is in. OSError, LogChangedError as from reading them.
    """
    if len(groups) != 1:
        return None
    sources = groups[0].sources
    sizes = [segment.size_in_bytes for segment in sources]
    total = sum(sizes)
    if not 0 < total <= JOINED_BYTES:
        return None
    starts = (0, *np.cumsum(sizes).tolist())
    # In the memory of the walk: it is the only group, so that nothing else is read into it before
    # the new segment is written.
    data = buffers.reserve(total)
    for segment, start, size in zip(sources, starts, sizes, strict=False):
        with open_file(segment.path) as file:
            if file.size != size:
                return None
            file.read_into(data[start:], 0, size)
    count, status, end = buffers.scan(data, total, 0, 0)
    rows = copy_rows(buffers.rows[:count])
    if status != OK or end != total or not _may_be_joined(rows, sources, starts, budget):
        return None
    if not verify_checksums(data, 0, rows).all():
        return None
    return JoinedSources(tuple(sources), Chunk(data, 0, rows), starts)


def _may_be_joined(
    rows: NDArray[np.void],
    sources: Sequence[SegmentInfo],
    starts: Sequence[int],
    budget: MemoryBudget,
) -> bool:
    # A batch that is cut off at the end of its file would go on in the next one.
    positions = rows["position"]
    begun = np.searchsorted(positions, starts[:-1])
    if begun[-1] >= rows.size or positions[begun].tolist() != [*starts[:-1]]:
        return False
    sums = np.zeros(SUMS_SIZE, np.int64)
    header_sums(rows, sources[0].base_offset, sums)
    return bool(
        sums[MAGICS] == 1 << MAGIC_VALUE_V2
        and not sums[ATTRIBUTES] & _OF_TRANSACTIONS
        and sums[LARGEST_BATCH] <= budget.max_batch_bytes
        # Else the group has to be split, in front of the segment that does not fit.
        and sums[LAST_OFFSET] - sources[0].base_offset <= MAX_INT32
    )


_OF_TRANSACTIONS = TRANSACTIONAL_FLAG_MASK | CONTROL_FLAG_MASK


def map_joined(
    joined: JoinedSources, first_dirty_offset: int, budget: MemoryBudget, latest_offset: int
) -> RecordFlags | None:
    """As `source_map.map_sources`; None where the records are not sound."""
    chunk, runs = joined.chunk, SpilledRuns(budget)
    roles = np.full(chunk.rows.size, DATA, np.uint8)
    key_map: KeyMap | None = None
    try:
        for part, areas in iterate_record_areas(
            chunk.buf,
            0,
            chunk.rows,
            Arena(),
            max_bytes=budget.max_batch_bytes,
            arena_bytes=CLEANER_ARENA_BYTES,
        ):
            if key_map is None:
                # Only now: the counts of these batches were held against their bytes.
                records = int(areas.rows["records_count"].sum(dtype=np.int64))
                expected = records * chunk.rows.size // areas.rows.size
                key_map = KeyMap(
                    first_dirty_offset,
                    bucket_bits(expected),
                    _with_small_pool(budget, expected),
                    runs,
                    latest_offset=latest_offset,
                )
            key_map.add(areas.rows, areas, "", roles[part])
    except KafkaLogError:
        return None
    assert key_map is not None, "there is a batch at least"  # noqa: S101
    return runs.record_flags(key_map)


def _with_small_pool(budget: MemoryBudget, records: int) -> MemoryBudget:
    """The budget with a pool that holds so many keys, and some more: a pool of its usual size has
    huge pages, each of which is cleared when it is first written to.
    """
    keys = records + records // 8
    return replace(budget, pool_bytes=min(budget.pool_bytes, keys * KEY_BYTES))
