"""How compacting one partition ended."""

from __future__ import annotations

from dataclasses import dataclass, field

from kafkalog.cleaning.cleaner_stats import CleanerStats
from kafkalog.log.json_facts import JsonFacts
from kafkalog.planning.compaction_plan import CompactionPlan
from kafkalog.planning.statuses import FAILED
from kafkalog.swap.output_dir import WrittenGroup
from kafkalog.swap.replacement import Replacement

COMPACTED = "compacted"
WRITTEN = "written"  # beside the log dirs: nothing there was changed


@dataclass(frozen=True, slots=True)
class CleanResult(JsonFacts):
    """How cleaning one partition ended; `next_dirty_offset` goes into the cleaner checkpoint, None
    if nothing was done. `fault` is the traceback of an error that only a fault of ours can raise;
    `replaced` what was replaced in the partition, None if nothing was; `written` what was written
    for it elsewhere.
    """

    topic: str
    partition: int
    log_dir: str
    status: str
    reason: str
    next_dirty_offset: int | None
    seconds: float
    stats: CleanerStats = field(default_factory=CleanerStats)
    fault: str = ""
    replaced: Replacement | None = None
    written: tuple[WrittenGroup, ...] = ()


def place_of(result: CleanResult) -> tuple[str, str]:
    """The log dir, and the partition's name in it."""
    return result.log_dir, f"{result.topic}-{result.partition}"


def failed_result(plan: CompactionPlan, reason: str, fault: str = "") -> CleanResult:
    """Of a plan that could not be carried out."""
    return CleanResult(
        topic=plan.topic_partition.topic,
        partition=plan.topic_partition.partition,
        log_dir=plan.log_dir,
        status=FAILED,
        reason=reason,
        next_dirty_offset=None,
        seconds=0.0,
        fault=fault,
    )
