"""What a plan's round would stop at: the reading of a round, and nothing written.

The map is made and every batch decided on as in the round itself, so that what this raises is what
the round would raise: records without a key, a checksum that is wrong, what cannot be decoded, a
batch that is above a limit.
"""

from __future__ import annotations

from collections.abc import Collection

from kafkalog.cleaning.checked_chunks import CorruptBatches
from kafkalog.cleaning.cleaner_stats import CleanerStats
from kafkalog.cleaning.group_output import decider_of
from kafkalog.cleaning.new_files import check_ownership, owner_of
from kafkalog.cleaning.source_map import map_sources
from kafkalog.errors import KafkaLogError, LogCleaningRefusedError
from kafkalog.log.aborted_transactions import AbortedTransactions
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.segment_file import ChunkBuffers
from kafkalog.planning.compaction_plan import CLEAN, CompactionPlan
from kafkalog.planning.force_rules import FORCE_NULL_KEYS
from kafkalog.resources.memory import memory_budget


def refuse_by_records(
    plan: CompactionPlan,
    partition: PartitionInventory,
    *,
    force: Collection[str],
    memory: int,
    keeps_corrupt: bool,
) -> CompactionPlan:
    """The plan, refused where its round would stop; all its records are read."""
    if plan.status != CLEAN:
        return plan
    try:
        keyless = _keyless(plan, partition, memory, keeps_corrupt=keeps_corrupt)
        check_keyless(keyless, force, plan.path)
    except (KafkaLogError, OSError) as error:
        return plan.refused(str(error))
    return plan


def refuse_by_owners(plan: CompactionPlan) -> CompactionPlan:
    """The plan, refused where this process may not make files of the same owners."""
    if plan.status != CLEAN:
        return plan
    try:
        check_owners(plan)
    except (LogCleaningRefusedError, OSError) as error:
        return plan.refused(str(error))
    return plan


def check_keyless(keyless: int, force: Collection[str], path: str) -> None:
    """LogCleaningRefusedError for records without a key, unless that is allowed."""
    if keyless and FORCE_NULL_KEYS not in force:
        raise LogCleaningRefusedError(
            f"{keyless} records have no key, compaction would drop them: "
            f"--force {FORCE_NULL_KEYS} lets it",
            path=path,
        )


def check_owners(plan: CompactionPlan) -> None:
    """LogCleaningRefusedError where new files would belong to somebody else than the old ones."""
    for group in plan.groups:
        path = group.sources[0].path
        check_ownership(owner_of(path), path)


def _keyless(
    plan: CompactionPlan, partition: PartitionInventory, memory: int, *, keeps_corrupt: bool
) -> int:
    buffers, budget = ChunkBuffers(), memory_budget(memory)
    kept_corrupt = CorruptBatches() if keeps_corrupt else None
    aborted = AbortedTransactions(partition.segments, plan.log_start_offset)
    mapped = map_sources(
        plan.sources, plan.first_dirty_offset, plan.end_offset, aborted, buffers, budget,
        kept_corrupt=kept_corrupt,
    )  # fmt: skip
    decider = decider_of(plan, mapped, aborted, buffers, budget, kept_corrupt=kept_corrupt)
    for group in plan.groups:
        # Nothing is done with the decisions: what matters is what is raised on the way.
        for _ in decider.decide(group.sources, CleanerStats()):
            pass
    return mapped.keyless
