"""What Kafka's cleaner manager makes of a log now, and when it first would clean it.

The verdict is the plan's (`planning.compaction`). If nothing is appended, a log only becomes more
cleanable with time: segments grow older than min.compaction.lag.ms, and a dirty one older than
max.compaction.lag.ms. So the first moment of a round is found by bisection over the few moments at
which something changes.

Source: Kafka LogCleanerManager.grabFilthiestCompactedLog.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kafkalog.auditing.advice import nothing_to_compact
from kafkalog.auditing.audited_partition import CompactionVerdict
from kafkalog.format.constants import MAX_INT64
from kafkalog.log.header_facts import PartitionFacts
from kafkalog.log.inventory import PartitionInventory
from kafkalog.planning.compaction import CLEAN, SKIP, CompactionPlan, plan_compaction
from kafkalog.planning.log_config import LogConfig

NOT_COMPACTED = "not-compacted"
NEVER = -1


@dataclass(frozen=True, slots=True)
class _Log:
    partition: PartitionInventory
    config: LogConfig
    facts: PartitionFacts
    high_watermark: int
    kafka_version: str

    def plan(self, now_ms: int) -> CompactionPlan:
        return plan_compaction(
            self.partition,
            self.config,
            self.facts,
            now_ms=now_ms,
            high_watermark=self.high_watermark,
            kafka_version=self.kafka_version,
            with_token=False,
        )


def judge_compaction(
    partition: PartitionInventory,
    config: LogConfig,
    facts: PartitionFacts,
    *,
    now_ms: int,
    high_watermark: int,
    kafka_version: str,
) -> CompactionVerdict:
    """The verdict; where a round would begin, or could again, its advice is the caller's. `facts`
    as for `plan_compaction`.
    """
    log = _Log(partition, config, facts, high_watermark, kafka_version)
    plan = log.plan(now_ms)
    dirty = [s for s in facts.segments if s.next_offset > plan.first_dirty_offset]
    clean = [s for s in facts.segments if s.next_offset <= plan.first_dirty_offset]
    return CompactionVerdict(
        status=plan.status if config.is_compacted else NOT_COMPACTED,
        reason=plan.reason,
        first_dirty_offset=plan.first_dirty_offset,
        first_uncleanable_offset=plan.first_uncleanable_offset,
        uncleanable_reason=plan.uncleanable_reason,
        clean_bytes=plan.clean_bytes,
        dirty_bytes=sum(
            segment.size_in_bytes
            for segment in partition.segments[_first_dirty(partition, plan.first_dirty_offset) :]
        ),
        cleanable_bytes=plan.cleanable_bytes,
        cleanable_ratio=plan.cleanable_ratio,
        must_compact=plan.must_compact,
        cleanable_at_ms=_cleanable_at(log, plan),
        cleaned_up_to_ms=max((s.max_timestamp_ms for s in clean), default=NEVER),
        dirty_since_ms=min(
            (s.min_timestamp_ms for s in dirty if s.min_timestamp_ms >= 0), default=NEVER
        ),
        can_clean_again=plan.status == SKIP
        and config.is_compacted
        and partition.checkpoints.cleaner is not None
        and replace(log, partition=partition.as_never_cleaned()).plan(now_ms).status == CLEAN,
        advice=nothing_to_compact(plan.reason),
    )


def _first_dirty(partition: PartitionInventory, first_dirty_offset: int) -> int:
    """Index of the segment that the first dirty offset lies in."""
    bases = [segment.base_offset for segment in partition.segments]
    below = sum(base <= first_dirty_offset for base in bases)
    return max(below - 1, 0)


def _cleanable_at(log: _Log, plan: CompactionPlan) -> int:
    if plan.status == CLEAN:
        return plan.now_ms
    moments = sorted({m for m in _moments(log) if plan.now_ms < m <= MAX_INT64})
    if not moments or log.plan(moments[-1]).status != CLEAN:
        return NEVER
    # Waiting makes a log no less cleanable: once the plan is to clean it stays so, and the first
    # such moment is found by bisection, with the planner itself as the judge.
    low, high = 0, len(moments) - 1
    while low < high:
        middle = (low + high) // 2
        if log.plan(moments[middle]).status == CLEAN:
            high = middle
        else:
            low = middle + 1
    return moments[low]


def _moments(log: _Log) -> Iterator[int]:
    """When a segment stops being too young, or has waited too long."""
    if log.config.is_compacted:
        for segment in log.partition.segments:
            yield segment.effective_timestamp_ms + log.config.min_compaction_lag_ms
        for facts in log.facts.segments:
            first = facts.first_batch_max_timestamp_ms or 0
            if first > 0:
                yield first + log.config.max_compaction_lag_ms + 1
