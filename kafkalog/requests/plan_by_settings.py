"""What `retain` and `compact` make of one partition by its topic's settings, as soon as all that
has to be read of it is: the plan of a run, and what an audit tries before it advises the run.
"""

from __future__ import annotations

from dataclasses import replace

from kafkalog.log.inventory import (
    CLUSTER_METADATA_TOPIC,
    PartitionFacts,
    PartitionInventory,
    PartitionKind,
)
from kafkalog.planning.compaction import plan_compaction
from kafkalog.planning.compaction_plan import CLEAN, REFUSED, SKIP, CompactionPlan
from kafkalog.planning.config_sources import ResolvedConfig
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.policy_evidence import PolicyStanding
from kafkalog.planning.retention import RetentionPlan, RetentionRule, plan_retention
from kafkalog.requests.run_request import FORCE_NOTHING_DIRTY


def retention_by_settings(
    partition: PartitionInventory,
    resolved: ResolvedConfig,
    facts: PartitionFacts,
    *,
    now_ms: int,
    high_watermark: int | None,
    kafka_version: str,
) -> RetentionPlan:
    """The plan of `retain`; `facts` are those of `scan_retention_facts`, `high_watermark` is the
    option's. InvalidConfigError as of `plan_retention`.
    """
    plan = plan_retention(
        partition,
        resolved.config,
        facts,
        now_ms=now_ms,
        high_watermark=high_watermark,
        kafka_version=kafka_version,
        # What contradicts the cluster's own word is refused with that word.
        standing=resolved.standing if resolved.refusal is None else PolicyStanding.IN_FORCE,
        is_forced=resolved.is_forced,
    )
    refusal = resolved.refusal or _why_not_by_default(plan)
    return plan if refusal is None or plan.status == REFUSED else plan.refused(refusal)


def _why_not_by_default(plan: RetentionPlan) -> str | None:
    """Why what Kafka's default of a week alone would delete is not deleted; None where it does
    not.
    """
    rules = {segment.rule for segment in plan.deleted}
    config = plan.config
    if RetentionRule.RETENTION_MS in rules and config.source("retention.ms") == LogConfig.DEFAULT:
        return (
            f"{plan.reason}, but nobody says how long to keep, it is Kafka's default of "
            f"{config.retention_ms} ms: --config retention.ms=MS (-1 for ever) says it, or a file"
        )
    return None


def compaction_by_settings(
    partition: PartitionInventory,
    resolved: ResolvedConfig,
    facts: PartitionFacts,
    *,
    now_ms: int,
    high_watermark: int | None,
    kafka_version: str,
    dedupe_buffer_size: int | None = None,
    strategy: str | None = None,
    cleans_again: bool = False,
    with_token: bool = True,
) -> CompactionPlan:
    """The plan of `compact`; `facts` are those of `scan_partition_facts`, `high_watermark` is the
    option's. `cleans_again`: where nothing is dirty, nothing counts as cleaned.
    """

    def planned(partition: PartitionInventory) -> CompactionPlan:
        return plan_compaction(
            partition,
            resolved.config,
            facts,
            now_ms=now_ms,
            high_watermark=high_watermark,
            kafka_version=kafka_version,
            dedupe_buffer_size=dedupe_buffer_size,
            strategy=strategy,
            standing=resolved.standing,
            is_forced=resolved.is_forced,
            with_token=with_token,
        )

    plan = planned(partition)
    if cleans_again and plan.status == SKIP and resolved.config.is_compacted:
        again = planned(partition.as_never_cleaned())
        reason = f"{again.reason}, as nothing counts as cleaned (--force {FORCE_NOTHING_DIRTY})"
        if again.status == CLEAN:
            plan = replace(again, token=plan.token, reason=reason)
    if resolved.refusal is None or is_never_cleaned(partition):
        return plan
    return plan.refused(resolved.refusal)


def is_never_cleaned(partition: PartitionInventory) -> bool:
    """Whether it is not a live partition of a topic."""
    is_metadata = partition.topic_partition.topic == CLUSTER_METADATA_TOPIC
    return partition.kind is not PartitionKind.LIVE or is_metadata
