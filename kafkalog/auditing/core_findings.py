"""Everything the core of an audit finds in one partition directory: settings, retention,
compaction, and directories that are nobody's.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkalog.auditing.advised_steps import put_setting_right, remove_stray
from kafkalog.auditing.compaction_findings import find_compaction
from kafkalog.auditing.finding_context import FindingContext
from kafkalog.auditing.missing_findings import find_missing
from kafkalog.auditing.retention_findings import find_retention
from kafkalog.auditing.segment_findings import find_small_segments
from kafkalog.checking.finding import Finding
from kafkalog.log.inventory import CLUSTER_METADATA_TOPIC, PartitionKind
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.policy_evidence import POLICY, SUGGESTED
from kafkalog.texts import format_bytes


def find_core(context: FindingContext) -> Iterator[Finding]:
    """The findings, with their partition's name."""
    audited = context.audited
    for problem in audited.problems:
        yield context.say("audit-incomplete", f"{audited.name}: {problem}")
    if audited.topic == CLUSTER_METADATA_TOPIC:
        return
    if audited.kind is PartitionKind.FUTURE:
        yield from _moving(context)
    elif audited.kind is PartitionKind.DELETE:
        return  # waits for its removal: what it holds are leftovers
    elif audited.kind is PartitionKind.STRAY or context.task.is_stray:
        yield _stray(context)
    elif audited.kind is PartitionKind.LIVE:
        yield from _settings(context)
        yield from find_missing(context)
        yield from find_retention(context)
        yield from find_compaction(context)
        yield from find_small_segments(context)


def _settings(context: FindingContext) -> Iterator[Finding]:
    audited, resolved = context.audited, context.task.resolved
    for difference in (*resolved.differences, *resolved.undeclared):
        yield context.say(
            "policy-drift",
            f"{audited.topic}: {difference}",
            fix=put_setting_right(context, difference),
        )
    if resolved.unreliable is not None:
        yield context.say("settings-unknown", resolved.unreliable)
    elif context.task.has_no_metadata and audited.config.source(POLICY) in SUGGESTED:
        yield context.say(
            "settings-unknown",
            f"{audited.topic}: no cluster metadata beside the log dir, and {POLICY} is not given"
            f"{_suggested(audited.config)}",
        )
    if not context.is_high_watermark_known and audited.segments:
        yield context.say(
            "high-watermark-unknown",
            f"{audited.name}: no high watermark is checkpointed; {audited.high_watermark}, the "
            "log's end, is assumed",
        )


def _suggested(config: LogConfig) -> str:
    """What the disk suggests instead."""
    if not config.cleanup_policy:
        return ": nothing is known to go by it"
    return f"; {','.join(config.cleanup_policy)} is supposed ({config.source(POLICY)})"


def _moving(context: FindingContext) -> Iterator[Finding]:
    audited = context.audited
    current = context.task.current_path
    other = f"the current one is {current}" if current else "there is no other in these log dirs"
    yield context.say(
        "replica-moving",
        f"{audited.name}: a future replica of {format_bytes(audited.size_in_bytes)}, up to offset "
        f"{audited.log_end_offset}; {other}",
    )


def _stray(context: FindingContext) -> Finding:
    audited, task = context.audited, context.task
    own = task.partition.topic_id or "none"
    theirs = task.cluster_topic_id or "none"
    return context.say(
        "stray-replica",
        f"{audited.name}: {format_bytes(audited.size_in_bytes)}; topic id in partition.metadata "
        f"{own}, in the cluster {theirs}; {task.resolved.unreliable or 'renamed by a broker'}",
        fix=remove_stray(context),
    )
