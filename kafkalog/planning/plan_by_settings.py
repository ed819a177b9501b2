"""What `retain` and `compact` make of one partition by its topic's settings, as soon as all that
has to be read of it is: the plan of a run, and what an audit tries before it advises the run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kafkalog.log.header_facts import PartitionFacts
from kafkalog.log.inventory import CLUSTER_METADATA_TOPIC, PartitionInventory, PartitionKind
from kafkalog.planning.compaction import plan_compaction
from kafkalog.planning.compaction_plan import CLEAN, CompactionPlan
from kafkalog.planning.config_sources import ResolvedConfig
from kafkalog.planning.force_rules import FORCE_CLOCK_DIFFERS, FORCE_NOTHING_DIRTY
from kafkalog.planning.local_retention import time_limit_key
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.policy_evidence import PolicyStanding, compaction_evidence
from kafkalog.planning.retention import DELETE, RetentionPlan, RetentionRule, plan_retention
from kafkalog.planning.statuses import REFUSED, SKIP
from kafkalog.planning.time_evidence import why_time_is_ahead


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """What a plan of one partition is made from.

    facts: for retention those of `scan_retention_facts`, for compaction of `scan_partition_facts`.
    high_watermark: the option's. clock_ms: this machine's clock, None where nobody asked it. force:
    the rules that are lifted. uploaded_offset: the last one in remote storage, None if not known.
    """

    partition: PartitionInventory
    resolved: ResolvedConfig
    facts: PartitionFacts
    now_ms: int
    high_watermark: int | None
    kafka_version: str
    clock_ms: int | None = None
    force: frozenset[str] = frozenset()
    uploaded_offset: int | None = None

    @property
    def why_not_at_this_time(self) -> str | None:
        """Why nothing may be deleted by the time of the run; None where it may."""
        if FORCE_CLOCK_DIFFERS in self.force:
            return None
        return why_time_is_ahead(self.partition, self.now_ms, self.clock_ms)


def retention_by_settings(inputs: PlanInputs, *, with_token: bool = True) -> RetentionPlan:
    """The plan of `retain`. InvalidConfigError as of `plan_retention`."""
    resolved = inputs.resolved
    plan = plan_retention(
        inputs.partition,
        resolved.config,
        inputs.facts,
        now_ms=inputs.now_ms,
        high_watermark=inputs.high_watermark,
        kafka_version=inputs.kafka_version,
        # What contradicts the cluster's own word is refused with that word.
        standing=resolved.standing if resolved.refusal is None else PolicyStanding.IN_FORCE,
        is_forced=resolved.is_forced,
        with_token=with_token,
        uploaded_offset=inputs.uploaded_offset,
    )
    if plan.status == REFUSED:
        return plan
    refusal = resolved.refusal
    if refusal is None and plan.status == DELETE:
        refusal = inputs.why_not_at_this_time or _why_not_by_default(plan)
    return plan if refusal is None else plan.refused(refusal)


def _why_not_by_default(plan: RetentionPlan) -> str | None:
    """Why what Kafka's default of a week alone would delete is not deleted; None where it does
    not.
    """
    rules = {segment.rule for segment in plan.deleted}
    is_by_time = RetentionRule.RETENTION_MS in rules
    return why_not_by_default(plan.config, plan.reason) if is_by_time else None


def why_not_by_default(config: LogConfig, reason: str) -> str | None:
    """The same of segments that time deletes, whose plan has this reason."""
    if config.source(time_limit_key(config)) != LogConfig.DEFAULT:
        return None
    return (
        f"{reason}, but no setting says how long to keep, it is Kafka's default of "
        f"{config.retention_ms} ms: --config retention.ms=MS (-1 for ever) sets it, or a file"
    )


def compaction_by_settings(
    inputs: PlanInputs,
    *,
    dedupe_buffer_size: int | None = None,
    strategy: str | None = None,
    with_token: bool = True,
) -> CompactionPlan:
    """The plan of `compact`. Where nothing is dirty, and that is forced, nothing counts as
    cleaned.
    """
    resolved = inputs.resolved
    standing = resolved.standing
    # Asked of the directory as it is: `as_never_cleaned` takes the evidence away.
    if standing is PolicyStanding.UNKNOWN and compaction_evidence(inputs.partition, inputs.facts):
        standing = PolicyStanding.SAID

    def planned(partition: PartitionInventory) -> CompactionPlan:
        return plan_compaction(
            partition,
            resolved.config,
            inputs.facts,
            now_ms=inputs.now_ms,
            high_watermark=inputs.high_watermark,
            kafka_version=inputs.kafka_version,
            dedupe_buffer_size=dedupe_buffer_size,
            strategy=strategy,
            standing=standing,
            is_forced=resolved.is_forced,
            with_token=with_token,
        )

    plan = planned(inputs.partition)
    cleans_again = FORCE_NOTHING_DIRTY in inputs.force
    if cleans_again and plan.status == SKIP and resolved.config.is_compacted:
        again = planned(inputs.partition.as_never_cleaned())
        reason = f"{again.reason}, as nothing counts as cleaned (--force {FORCE_NOTHING_DIRTY})"
        if again.status == CLEAN:
            plan = replace(again, token=plan.token, reason=reason)
    refusal = None if is_never_cleaned(inputs.partition) else resolved.refusal
    if refusal is None and plan.status == CLEAN:
        refusal = inputs.why_not_at_this_time
    return plan if refusal is None else plan.refused(refusal)


def is_never_cleaned(partition: PartitionInventory) -> bool:
    """Whether it is not a live partition of a topic."""
    is_metadata = partition.topic_partition.topic == CLUSTER_METADATA_TOPIC
    return partition.kind is not PartitionKind.LIVE or is_metadata
