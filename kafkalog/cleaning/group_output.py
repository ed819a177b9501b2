"""One group of a plan rewritten, verified, and ready to be swapped in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kafkalog.cleaning.checked_chunks import CorruptBatches
from kafkalog.cleaning.cleaner_stats import CleanerStats
from kafkalog.cleaning.decisions import Decider
from kafkalog.cleaning.finished_group import FinishedGroup, fingerprint
from kafkalog.cleaning.finished_parts import FinishedParts
from kafkalog.cleaning.joined_sources import JoinedSources
from kafkalog.cleaning.new_files import NewFiles, owner_of
from kafkalog.cleaning.output_segment import OutputSegment
from kafkalog.cleaning.producers import BatchRetention
from kafkalog.cleaning.record_flags import RecordFlags
from kafkalog.cleaning.reverse_pass import ReversePass
from kafkalog.cleaning.rewrite import GroupRewriter
from kafkalog.cleaning.transactions import CleanedTransactionMetadata
from kafkalog.cleaning.verify import verify_index, verify_segment
from kafkalog.format.file_names import (
    log_file_name,
    offset_index_file_name,
    time_index_file_name,
    transaction_index_file_name,
)
from kafkalog.format.record import wrap_64
from kafkalog.log.aborted_transactions import AbortedTransactions
from kafkalog.log.inventory import SegmentInfo
from kafkalog.log.segment_file import ChunkBuffers
from kafkalog.planning.compaction_plan import CompactionPlan, SegmentGroup
from kafkalog.resources.memory import MemoryBudget
from kafkalog.resources.spilled_array import SpilledArray


@dataclass(frozen=True, slots=True)
class GroupWriting:
    """What all groups of an attempt share. `path_of`: where a new file of this name is written."""

    plan: CompactionPlan
    files: NewFiles
    path_of: Callable[[str], str]
    buffers: ChunkBuffers
    budget: MemoryBudget


def new_rewriter(
    writing: GroupWriting,
    flags: RecordFlags,
    aborted: AbortedTransactions,
    transactions: CleanedTransactionMetadata | None = None,
    kept_corrupt: CorruptBatches | None = None,
    joined: JoinedSources | None = None,
    finished: FinishedParts | None = None,
) -> GroupRewriter:
    """For consecutive groups of the plan; `transactions` in front of the first one; `kept_corrupt`
    where corrupt batches are kept; `joined`: the sources of its only group, where they are;
    `finished`: what is ready of its sources.
    """
    decider = decider_of(
        writing.plan, flags, aborted, writing.buffers, writing.budget, transactions, kept_corrupt,
        joined,
    )  # fmt: skip
    return GroupRewriter(decider, writing.budget, writing.plan.source_bytes, finished)


def new_reverse_pass(
    writing: GroupWriting,
    sources: Sequence[SegmentInfo],
    aborted: AbortedTransactions,
    latest_offset: int,
) -> ReversePass:
    """Over all sources of the round; the map ends at `latest_offset`."""
    # Flags come with each part.
    none = RecordFlags(SpilledArray(np.uint8, 0), distinct_keys=0, keyless=0)
    return ReversePass(
        writing.plan,
        sources,
        latest_offset,
        aborted,
        new_rewriter(writing, none, aborted),
        writing.buffers,
        writing.budget,
    )


def decider_of(
    plan: CompactionPlan,
    flags: RecordFlags,
    aborted: AbortedTransactions,
    buffers: ChunkBuffers,
    budget: MemoryBudget,
    transactions: CleanedTransactionMetadata | None = None,
    kept_corrupt: CorruptBatches | None = None,
    joined: JoinedSources | None = None,
) -> Decider:
    """The same without a place for output."""
    return Decider(
        flags,
        BatchRetention(plan.active_producers, plan.retained_end_offset),
        aborted,
        now_ms=plan.now_ms,
        # Java's sum: delete.retention.ms may be the largest long, and a negative horizon is none.
        new_horizon_ms=wrap_64(plan.now_ms + plan.config.delete_retention_ms),
        legacy_horizon_ms=legacy_horizon_ms(plan),
        record_limit=plan.record_limit,
        replicated_end_offset=plan.replicated_end_offset,
        buffers=buffers,
        budget=budget,
        transactions=transactions,
        kept_corrupt=kept_corrupt,
        joined=joined,
    )


def rewrite_group(
    writing: GroupWriting, group: SegmentGroup, rewriter: GroupRewriter, stats: CleanerStats
) -> FinishedGroup:
    """The new segment under scratch names; its counts are added to `stats`."""
    names = (
        log_file_name(group.base_offset),
        offset_index_file_name(group.base_offset),
        time_index_file_name(group.base_offset),
        transaction_index_file_name(group.base_offset),
    )
    # Names that a broker does not look at: until the swap nothing of this is a part of the log.
    scratch_paths = {name: writing.path_of(name) for name in names}
    output = OutputSegment(
        group.base_offset,
        writing.plan.config,
        writing.files,
        scratch_paths,
        writing.budget.kept_bytes,
    )
    try:
        group_stats, rebuilt = rewriter.rewrite(group.sources, output)
        # The time is that of the last source, as in Kafka: retention may go by it.
        outputs = output.close(
            owner_of(group.sources[0].path), group.sources[-1].modification_time_ms
        )
    finally:
        # Whether it went well or not: after `close` there is nothing left to be closed.
        output.abandon()
    # Verified as read back from the file, not from memory, and before anything live is touched.
    log, *indexes = outputs
    verify_segment(log, output.written_rows, rebuilt, writing.buffers)
    for index in indexes:
        verify_index(index)
    stats.add(group_stats)
    return FinishedGroup(
        base_offset=group.base_offset,
        next_offset=output.next_offset,
        sources=tuple(segment.base_offset for segment in group.sources),
        fingerprint=fingerprint(output.written_rows.blocks()),
        outputs=tuple(outputs),
        checksums=rewriter.take_source_checksums(),
    )


def legacy_horizon_ms(plan: CompactionPlan) -> int:
    """Segments last modified then or before lose their tombstones of magic 0 and 1: the time of the
    last segment that begins in the clean part, less `delete.retention.ms`; 0 without one.
    """
    clean = [s for s in plan.sources if s.base_offset < plan.first_dirty_offset]
    return clean[-1].modification_time_ms - plan.config.delete_retention_ms if clean else 0
