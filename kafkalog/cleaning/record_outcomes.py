"""What the next round makes of single records, decided by the cleaner itself: the map is made and
every batch decided on as in a round, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.arena import Arena
from kafkalog.batches.record_areas import open_record_areas
from kafkalog.batches.spans import decode_spans
from kafkalog.cleaning.cleaner_stats import CleanerStats
from kafkalog.cleaning.group_output import decider_of
from kafkalog.cleaning.source_map import map_sources
from kafkalog.cleaning.transactions import expired_horizons
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.kernels.decide_batches import CONTROL, DISCARD, LEGACY_EXPIRED, NO_HORIZON
from kafkalog.kernels.hash_keys import KEYLESS, SUPERSEDED, TOMBSTONE
from kafkalog.log.aborted_transactions import AbortedTransactions
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.segment_file import ChunkBuffers
from kafkalog.planning.compaction_plan import CompactionPlan
from kafkalog.resources.memory import DEFAULT_MEMORY_BYTES, memory_budget

STAYS = "stays"
NO_KEY = "no-key"
REPLACED = "superseded"
EXPIRED = "tombstone"
ABORTED = "aborted"
MARKER = "marker"


@dataclass(frozen=True, slots=True)
class RecordOutcome:
    """Of one record in the round. `is_tombstone` and `horizon_ms`: the delete horizon its batch has
    after the round, None without one.
    """

    offset: int
    outcome: str
    is_tombstone: bool
    is_control: bool
    horizon_ms: int | None


def record_outcomes(
    plan: CompactionPlan,
    partition: PartitionInventory,
    first_offset: int = 0,
    end_offset: int | None = None,
    max_batch_bytes: int = MAX_BATCH_BYTES,
) -> Iterator[RecordOutcome]:
    """Of the records at these offsets that the plan's round would read, in offset order.

    Only batches that reach into the range are decompressed twice. The errors of a round:
    CorruptRecordError, RecordTooLargeError, LogCleaningRefusedError, OSError.
    """
    buffers, budget = ChunkBuffers(), memory_budget(DEFAULT_MEMORY_BYTES, max_batch_bytes)
    aborted = AbortedTransactions(partition.segments, plan.log_start_offset)
    # The very map and decisions of a round, without a place for output: what is explained here
    # cannot differ from what a round does.
    flags = map_sources(
        plan.sources, plan.first_dirty_offset, plan.end_offset, aborted, buffers, budget
    )
    decider = decider_of(plan, flags, aborted, buffers, budget)
    arena = Arena()
    end = plan.end_offset if end_offset is None else end_offset
    for group in plan.groups:
        for segment, chunk, decisions in decider.decide(group.sources, CleanerStats()):
            rows = chunk.rows
            expired = expired_horizons(rows, plan.now_ms)
            wanted = (rows["last_offset"] >= first_offset) & (rows["base_offset"] < end)
            for b in np.flatnonzero(wanted & (rows["records_count"] > 0)).tolist():
                areas = open_record_areas(
                    chunk.buf,
                    chunk.position,
                    rows[b : b + 1],
                    arena,
                    path=segment.path,
                    max_bytes=budget.max_batch_bytes,
                )
                offsets = decode_spans(areas, areas.rows, segment.path).offsets
                # Flags are by record within the chunk, offsets are not known until the batch is
                # decoded.
                first = int(decisions.first_records[b])
                own = decisions.flags[first : first + offsets.size]
                horizon = int(decisions.horizons[b])
                rules = int(decisions.rules[b])
                is_expired = bool(expired[b]) or bool(rules & LEGACY_EXPIRED)
                for outcome in _of_batch(offsets, own, rules, horizon, is_expired=is_expired):
                    if first_offset <= outcome.offset < end:
                        yield outcome


def _of_batch(
    offsets: NDArray[np.int64],
    flags: NDArray[np.uint8],
    rules: int,
    horizon: int,
    *,
    is_expired: bool,
) -> Iterator[RecordOutcome]:
    is_control = bool(rules & CONTROL)
    for offset, flag in zip(offsets.tolist(), flags.tolist(), strict=True):
        # The order of these questions is that of `decide_batches`: a discarded batch goes whatever
        # its records are, and SUPERSEDED is set on each record that goes, so the reason is found
        # from the rest.
        is_tombstone = bool(flag & TOMBSTONE)
        if rules & DISCARD:
            outcome = MARKER if is_control else ABORTED
        elif not flag & SUPERSEDED or is_control:
            outcome = STAYS
        elif flag & KEYLESS:
            outcome = NO_KEY
        else:
            outcome = EXPIRED if is_tombstone and is_expired else REPLACED
        yield RecordOutcome(
            int(offset),
            outcome,
            is_tombstone,
            is_control,
            None if horizon == NO_HORIZON else horizon,
        )
