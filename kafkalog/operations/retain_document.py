"""A retention run as the JSON document of `retain --json`, as a table, and as statuses.

The frame is that of `compact --json`; a partition has the segments that go and those that stay,
each with its rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafkalog.operations.retain import RetentionRun
from kafkalog.operations.run_frame import config_sources, is_never_changed, removed_files, run_frame
from kafkalog.planning.compaction_plan import describe_deleted_files
from kafkalog.planning.remote_retention import RemoteRetentionPlan, RemoteVerdict
from kafkalog.planning.retention_plan import DELETE, RetentionPlan, SegmentVerdict
from kafkalog.planning.statuses import REFUSED
from kafkalog.swap.segment_deletion import DELETED, RetentionResult

Pair = tuple[RetentionPlan, RetentionResult | None]


def retention_document(run: RetentionRun, seconds: float) -> dict[str, Any]:
    """The whole document, ready for `json.dumps`."""
    return run_frame(run, seconds, [_partition(*pair) for pair in _pairs(run)])


def retention_statuses(run: RetentionRun, named_topics: Sequence[str]) -> list[str]:
    """One status per partition; what is never deleted from counts only if its topic was named."""
    return [
        _status(plan, result)
        for plan, result in _pairs(run)
        if plan.topic_partition.topic in named_topics
        or not is_never_changed(plan.path, plan.topic_partition)
    ]


def retention_table(run: RetentionRun) -> list[dict[str, Any]]:
    """One row per partition for people; of remote storage where a topic is tiered."""
    has_remote = any(plan.remote is not None for plan in run.plans)
    return [
        {
            "partition": str(plan.topic_partition),
            "status": _status(plan, result),
            **(_NO_COUNTS | (_counts(plan) if _is_counted(plan, result) else {})),
            "reason": _reason(plan, result),
            "keptBy": _kept_by(plan),
            **(_remote_counts(plan) if has_remote else {}),
        }
        for plan, result in _pairs(run)
    ]


def _remote_counts(plan: RetentionPlan) -> dict[str, Any]:
    remote = plan.remote
    return {
        "remoteDue": None if remote is None else len(remote.deleted),
        "remoteDueBytes": None if remote is None else remote.deleted_bytes,
    }


_NO_COUNTS = dict.fromkeys(
    ("segments", "deleted", "deletedBytes", "keptBytes", "logStartOffset"), None
)


def _counts(plan: RetentionPlan) -> dict[str, Any]:
    return {
        "segments": len(plan.deleted) + len(plan.kept),
        "deleted": len(plan.deleted),
        "deletedBytes": plan.deleted_bytes,
        "keptBytes": plan.kept_bytes,
        "logStartOffset": plan.log_start_offset,
    }


def _is_counted(plan: RetentionPlan, result: RetentionResult | None) -> bool:
    """Not of a plan that was refused before any segment was judged, nor of one that was not carried
    out to its end.
    """
    if result is not None:
        return result.status == DELETED
    return plan.status != REFUSED or bool(plan.deleted or plan.kept)


def _kept_by(plan: RetentionPlan) -> str | None:
    """What keeps the first segment that stays, where others go; else the reason says it."""
    if not plan.deleted or not plan.kept:
        return None
    return f"{plan.kept[0].rule}: {plan.kept[0].reason}"


def _pairs(run: RetentionRun) -> list[Pair]:
    """Results come in the order of the plans they carry out."""
    results = iter(run.results)
    return [
        (plan, next(results) if run.applied and plan.status == DELETE else None)
        for plan in run.plans
    ]


def _status(plan: RetentionPlan, result: RetentionResult | None) -> str:
    return plan.status if result is None else result.status


def _reason(plan: RetentionPlan, result: RetentionResult | None) -> str:
    if result is not None and result.reason:
        return result.reason
    return plan.reason + describe_deleted_files(plan.deleted_files)


def _partition(plan: RetentionPlan, result: RetentionResult | None) -> dict[str, Any]:
    """Of a partition that failed or was refused midway this is the plan, with the reason."""
    return {
        "topic": plan.topic_partition.topic,
        "partition": plan.topic_partition.partition,
        "path": plan.path,
        "status": _status(plan, result),
        "reason": _reason(plan, result),
        "deletedBaseOffsets": [segment.base_offset for segment in plan.deleted],
        "deletedBytes": plan.deleted_bytes if _is_counted(plan, result) else None,
        "logStartOffset": plan.log_start_offset,
        "logEndOffset": plan.log_end_offset,
        "highWatermark": plan.high_watermark,
        "rollOffset": plan.roll_offset,
        "deleted": [_segment(segment) for segment in plan.deleted],
        "kept": [_segment(segment) for segment in plan.kept],
        "remote": None if plan.remote is None else _remote(plan.remote),
        "leftovers": list(plan.leftovers),
        **removed_files(plan.deleted_files),
        "configSources": config_sources(plan.config, plan.kafka_version),
    }


def _remote(plan: RemoteRetentionPlan) -> dict[str, Any]:
    return {
        "deletedBytes": plan.deleted_bytes,
        "logStartOffset": plan.log_start_offset,
        "nextDueMs": plan.next_due_ms,
        "deleted": [_remote_segment(each) for each in plan.deleted],
        "kept": [_remote_segment(each) for each in plan.kept],
    }


def _remote_segment(verdict: RemoteVerdict) -> dict[str, Any]:
    segment = verdict.segment
    return {
        "segmentId": segment.segment_id,
        "baseOffset": segment.start_offset,
        "endOffset": segment.end_offset,
        "sizeInBytes": segment.size_in_bytes,
        "timestampMs": segment.max_timestamp_ms,
        "rule": str(verdict.rule),
        "reason": verdict.reason,
    }


def _segment(segment: SegmentVerdict) -> dict[str, Any]:
    return {
        "baseOffset": segment.base_offset,
        "sizeInBytes": segment.size_in_bytes,
        "timestampMs": segment.timestamp_ms,
        "timestampSource": "file" if segment.is_file_time else "records",
        "rule": str(segment.rule),
        "reason": segment.reason,
    }
