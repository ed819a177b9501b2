"""What an audit says of a partition's segments in remote storage. Replicas share them: of the
copies of a partition the one whose log ends last stands for all, as its broker would lead.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.auditing.findings_across import furthest
from kafkalog.errors import KafkaLogError
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.retention_facts import read_leader_epochs
from kafkalog.planning.remote_retention import (
    NEVER,
    CopyStage,
    RemoteLog,
    RemoteRule,
    RemoteSegment,
    RemoteVerdict,
    cost_per_month,
)

Row = dict[str, Any]


def remote_log(
    audited: AuditedPartition, partition: PartitionInventory, segments: tuple[RemoteSegment, ...]
) -> RemoteLog:
    """What decides about a partition's segments in remote storage; leader epochs that cannot be
    read are none, and nothing goes by them."""
    try:
        epochs = tuple(read_leader_epochs(partition.path) or ())
    except (KafkaLogError, OSError):
        epochs = ()
    own = audited.retention.segments
    return RemoteLog(
        segments,
        epochs,
        audited.log_start_offset,
        audited.log_end_offset,
        sum(s.size_in_bytes for s in own if s.base_offset >= audited.uploaded_offset),
    )


def with_remote_parts(partitions: Iterable[AuditedPartition]) -> list[AuditedPartition]:
    """Those that stand for what is in remote storage, each part once."""
    return [each for each in furthest(partitions).values() if each.remote is not None]


def remote_sums(parts: Iterable[AuditedPartition], price: float | None) -> Row:
    """Sums over what is in remote storage; the cost a month where there is a price of a GiB."""
    segments = size = due = billed = stored = 0
    is_looked_at = True
    for part in parts:
        plan = part.remote_plan()
        if part.remote is None or plan is None:
            continue
        there = [s for s in part.remote.segments if s.stage is CopyStage.FINISHED]
        segments += len(there)
        size += part.remote.finished_bytes
        billed += sum(s.billed_bytes for s in there)
        stored += sum(s.stored_bytes for s in there)
        is_looked_at &= all(s.stored_bytes >= 0 for s in there)
        due += plan.deleted_bytes
    return {
        "remoteSegments": segments,
        "remoteBytes": size,
        "remoteDueBytes": due,
        "remoteStoredBytes": stored if segments and is_looked_at else None,
        "remoteCostPerMonth": cost_per_month(billed, price),
    }


def sums_by_topic(partitions: Iterable[AuditedPartition], price: float | None) -> Mapping[str, Row]:
    """The same of each topic that has something there."""
    by_topic: dict[str, list[AuditedPartition]] = defaultdict(list)
    for part in with_remote_parts(partitions):
        by_topic[part.topic].append(part)
    return {topic: remote_sums(own, price) for topic, own in by_topic.items()}


def remote_verdict(audited: AuditedPartition, offset: int) -> tuple[RemoteVerdict, int] | None:
    """Of the segment in remote storage that has an offset: what lets it go or keeps it, and when it
    goes, -1 for never. None where none has it."""
    plan = audited.remote_plan()
    if plan is None:
        return None
    for verdict in plan.deleted:
        if verdict.segment.start_offset <= offset <= verdict.segment.end_offset:
            return verdict, audited.retention.now_ms
    due_ms = NEVER
    for verdict in plan.kept:
        if verdict.rule is RemoteRule.OTHER_EPOCHS:
            continue
        by_time = verdict.segment.max_timestamp_ms + audited.config.retention_ms + 1
        # None goes before those in front of it.
        due_ms = max(due_ms, by_time) if audited.config.retention_ms >= 0 else NEVER
        if verdict.segment.start_offset <= offset <= verdict.segment.end_offset:
            return verdict, NEVER if verdict.rule is RemoteRule.NOT_TIERED else due_ms
    return None


def remote_row(audited: AuditedPartition) -> Row | None:
    """Of one partition directory; None of those that have nothing there."""
    plan = audited.remote_plan()
    if audited.remote is None or plan is None:
        return None
    first = plan.deleted[0] if plan.deleted else plan.kept[0] if plan.kept else None
    return {
        "segments": len(audited.remote.segments),
        "bytes": audited.remote.finished_bytes,
        "dueSegments": len(plan.deleted),
        "dueBytes": plan.deleted_bytes,
        "nextDueMs": plan.next_due_ms,
        "logStartOffset": plan.log_start_offset,
        "reason": "" if first is None else f"segment {first.segment.start_offset}: {first.reason}",
    }
