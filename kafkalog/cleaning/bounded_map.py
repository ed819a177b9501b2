"""The end of a round whose key map is bounded as a broker's is (`--dedupe-buffer-size`).

An extra pass over the dirty segments, only on request: it finds the offset where Kafka's map is
full, and the round then does what a broker's round does, records past that offset left for the next
one.

Source: Kafka Cleaner.buildOffsetMap.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import numpy as np

from kafkalog.batches.arena import Arena
from kafkalog.batches.record_areas import iterate_record_areas
from kafkalog.cleaning.batch_roles import BatchRoles
from kafkalog.errors import CorruptRecordError
from kafkalog.kernels.status import OUTPUT_FULL, STATUS_TEXT
from kafkalog.log.aborted_transactions import AbortedTransactions
from kafkalog.log.inventory import SegmentInfo
from kafkalog.log.segment_file import CHUNK_BYTES, ChunkBuffers, read_chunks
from kafkalog.planning.compaction_plan import CompactionPlan


def bounded_end_offset(
    plan: CompactionPlan, aborted: AbortedTransactions, buffers: ChunkBuffers
) -> int:
    """One past the last offset the map of `plan.map_entries` keys covers; the plan's end offset if
    all keys fit.

    CorruptRecordError for a batch on the way that cannot be read.
    """
    if plan.map_entries is None:
        return plan.end_offset
    # Late: loading a kernel takes some milliseconds, and hardly any round is bounded.
    from kafkalog.kernels.bounded_map import LATEST_OFFSET, STATE_SIZE, find_map_end

    dirty = _dirty_segments(plan)
    roles_of = BatchRoles(dirty, plan.first_dirty_offset, plan.end_offset, aborted)
    seed = np.frombuffer(secrets.token_bytes(16), np.uint64)
    # A power of two, so that a hash is cut to a slot by a mask; larger than the keys it may hold,
    # so that a probe ends.
    keys = np.zeros(2 << max(plan.map_entries, 1).bit_length(), np.uint64)
    state = np.full(STATE_SIZE, 0, np.int64)
    state[LATEST_OFFSET] = -1
    arena = Arena()
    next_bases = [*(segment.base_offset for segment in dirty[1:]), plan.end_offset]
    for segment, next_base in zip(dirty, next_bases, strict=True):
        for chunk in read_chunks(segment.path, chunk_bytes=CHUNK_BYTES, buffers=buffers):
            roles = roles_of.batches(chunk, segment)
            for part, areas in iterate_record_areas(
                chunk.buf, chunk.position, chunk.rows, arena, path=segment.path
            ):
                status, b = find_map_end(
                    areas.buf,
                    areas.rows,
                    areas.starts,
                    areas.ends,
                    roles[part],
                    seed[0],
                    seed[1],
                    plan.first_dirty_offset,
                    plan.map_entries,
                    keys,
                    state,
                )
                # The key that found no room is the first that the map does not cover; what lies in
                # front of its record is covered in full, and the round ends there, as Kafka's does.
                if status == OUTPUT_FULL:
                    return int(state[LATEST_OFFSET]) + 1
                if status:
                    row = areas.rows[b]
                    raise CorruptRecordError(
                        STATUS_TEXT[status],
                        path=segment.path,
                        position=int(row["position"]),
                        offset=int(row["base_offset"]),
                    )
        # Behind the last batch of a segment there may be offsets without records: they are covered,
        # too.
        state[LATEST_OFFSET] = max(int(state[LATEST_OFFSET]), next_base - 1)
    return int(state[LATEST_OFFSET]) + 1


def _dirty_segments(plan: CompactionPlan) -> Sequence[SegmentInfo]:
    """The sources from the one that holds the first dirty offset on."""
    at_or_below = [s.base_offset for s in plan.sources if s.base_offset <= plan.first_dirty_offset]
    first = max(at_or_below, default=-1)
    return [segment for segment in plan.sources if segment.base_offset >= first]
