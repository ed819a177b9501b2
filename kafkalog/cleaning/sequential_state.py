"""The state of transactions in front of each source segment of a round.

Which data is of an aborted transaction, and which markers have nothing left to mark, is decided in
offset order over the whole partition. Tasks that begin in its middle go on from here: one pass that
looks at transactional and control batches only.

Source: Kafka CleanedTransactionMetadata, shared over the groups of a round (KAFKA-8351).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kafkalog.cleaning.batch_roles import BatchRoles
from kafkalog.cleaning.checked_chunks import read_whole
from kafkalog.cleaning.decisions import add_aborted
from kafkalog.cleaning.transactions import CleanedTransactionMetadata
from kafkalog.log.aborted_transactions import AbortedTransactions
from kafkalog.log.json_facts import JsonFacts
from kafkalog.log.segment_file import ChunkBuffers
from kafkalog.planning.compaction_plan import CompactionPlan
from kafkalog.resources.memory import MemoryBudget


@dataclass(frozen=True, slots=True)
class SegmentState(JsonFacts):
    """In front of a segment: of the map's pass and of the rewrite's, as JSON."""

    mapping: dict[str, Any]
    rewriting: dict[str, Any]

    def for_mapping(self) -> CleanedTransactionMetadata:
        """To go on mapping from."""
        return CleanedTransactionMetadata.from_json(self.mapping)

    def for_rewriting(self) -> CleanedTransactionMetadata:
        """To go on rewriting from, at the start of a group."""
        return CleanedTransactionMetadata.from_json(self.rewriting)


def states_of(
    plan: CompactionPlan, aborted: AbortedTransactions, budget: MemoryBudget
) -> list[SegmentState] | None:
    """The state in front of each of `plan.sources`; None where there is nothing to follow."""
    if not plan.has_transactions:
        return None
    roles = BatchRoles(plan.sources, plan.first_dirty_offset, plan.end_offset, aborted)
    rewriting = CleanedTransactionMetadata()
    buffers = ChunkBuffers()
    states = []
    for group in plan.groups:
        for number, segment in enumerate(group.sources):
            # Two passes over the same batches with a state each: the map's pass begins at the first
            # dirty offset and knows all its aborted transactions at once, the rewrite's begins with
            # the first source.
            states.append(SegmentState(roles.transactions.to_json(), rewriting.to_json()))
            add_aborted(rewriting, aborted, group.sources, number)
            for chunk in read_whole(segment.path, buffers, budget.max_batch_bytes):
                roles.batches(chunk, segment)
                rewriting.discardable(chunk, segment.path)
    return states
