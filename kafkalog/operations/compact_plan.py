"""The plan of one partition's compaction in a run, by settings and by what its segments say."""

from __future__ import annotations

from dataclasses import replace

from kafkalog.errors import InvalidConfigError, KafkaLogError
from kafkalog.log.compaction_signs import FIRST_BATCHES, compaction_mark
from kafkalog.log.header_facts import PartitionFacts
from kafkalog.log.inventory import PartitionInventory, PartitionKind
from kafkalog.log.segment_facts import scan_partition_facts
from kafkalog.planning.compaction_plan import CLEAN, WITHIN_TASK, CompactionPlan
from kafkalog.planning.config_sources import ResolvedConfig
from kafkalog.planning.plan_by_settings import compaction_by_settings, is_never_cleaned
from kafkalog.planning.policy_evidence import PolicyStanding, why_not_compacted
from kafkalog.reading.negative_timestamps import find_negative_timestamp
from kafkalog.requests.replicas import ReplicatedEnd
from kafkalog.requests.run_request import CompactionRequest
from kafkalog.requests.run_settings import RunSettings


def plan_partition(
    partition: PartitionInventory,
    request: CompactionRequest,
    settings: RunSettings,
    replicated: ReplicatedEnd,
) -> CompactionPlan:
    """The plan; `replicated`: what is known of the partition's other replicas."""
    resolved = settings.resolve_for_change(partition)
    if resolved.is_local:
        partition = partition.as_local_log()
    if request.output is not None:
        partition = replace(partition, deleted_files=())  # nothing is removed from the log dir
    facts = PartitionFacts(())
    config = resolved.config
    is_live = partition.kind is PartitionKind.LIVE
    if is_live and _may_be_cleaned(resolved) and not partition.problems:
        try:
            facts = scan_partition_facts(
                partition,
                now_ms=request.now_ms,
                expiration_ms=config.producer_id_expiration_ms,
            )
            mark = _mark(partition, resolved)
            facts = facts if mark is None else replace(facts, compaction_mark=mark)
        except (KafkaLogError, OSError) as error:
            partition = replace(partition, problems=(f"cannot be read: {error}",))

    plan = compaction_by_settings(
        request.plan_inputs(partition, settings, resolved, facts),
        dedupe_buffer_size=request.dedupe_buffer_size,
        strategy=WITHIN_TASK
        if request.swap_per_group or request.keeps_corrupt
        else request.strategy,
    )
    plan = _with_replicas(plan, replicated, is_required=request.requires_replicas)
    return _beyond_the_brokers(plan, facts)


def _with_replicas(
    plan: CompactionPlan, replicated: ReplicatedEnd, *, is_required: bool
) -> CompactionPlan:
    """The plan, which keeps what some replica has not got; refused where that cannot be told."""
    if plan.status != CLEAN:
        return plan
    if replicated.problem is not None:
        return plan.refused(replicated.problem)
    if is_required and not replicated.is_complete:
        return plan.refused(f"{replicated.why_incomplete}, and --require-replicas asks for all")
    if replicated.offset is None:
        return plan
    reason = plan.reason
    if replicated.offset < plan.end_offset:
        reason += (
            f"; tombstones and markers from offset {replicated.offset} on stay: "
            f"{replicated.where} has this log up to there"
        )
    return replace(plan, reason=reason, replicated_end_offset=replicated.offset)


def _beyond_the_brokers(plan: CompactionPlan, facts: PartitionFacts) -> CompactionPlan:
    """The plan, which says so if a broker's cleaner would stop where ours goes on."""
    negative = find_negative_timestamp(plan.sources, facts.segments)
    if negative is None:
        return plan
    reason = (
        f"{plan.reason}; goes further than a broker's cleaner, which stops where it has to write "
        f"such a batch anew: {negative}"
    )
    return replace(plan, reason=reason)


def may_be_changed(partition: PartitionInventory, settings: RunSettings) -> bool:
    try:
        resolved = settings.resolve_for_change(partition)
        if is_never_cleaned(partition) or not _may_be_cleaned(resolved):
            return False
        seen = PartitionFacts((), compaction_mark=_mark(partition, resolved))
        doubt = why_not_compacted(partition, seen, resolved.standing, is_forced=resolved.is_forced)
        return doubt is None
    except InvalidConfigError:
        raise
    except Exception:
        return False  # its plan meets the same fault, and tells


def _mark(partition: PartitionInventory, resolved: ResolvedConfig) -> str | None:
    """What shows that the log was compacted before, where its policy is not known."""
    if resolved.standing is not PolicyStanding.UNKNOWN:
        return None
    return compaction_mark(partition.segments[:1], FIRST_BATCHES)


def _may_be_cleaned(resolved: ResolvedConfig) -> bool:
    return resolved.refusal is None and resolved.config.is_compacted
