"""A run as the JSON document of `compact --json`, one entry per selected partition; and how it
counts as a whole.

Names and shape are those of the public interface; counts of what was removed are null in a dry run,
which decodes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafkalog.operations.clean_result import COMPACTED, WRITTEN, CleanResult
from kafkalog.operations.compact import CompactionRun
from kafkalog.operations.run_frame import config_sources, is_never_changed, removed_files, run_frame
from kafkalog.planning.compaction_plan import CLEAN, CompactionPlan, describe_deleted_files
from kafkalog.planning.statuses import REFUSED


def run_document(run: CompactionRun, seconds: float) -> dict[str, Any]:
    """The whole document, ready for `json.dumps`."""
    document = run_frame(run, seconds, [_partition(plan, result) for plan, result in _pairs(run)])
    document["estimate"] = run.estimate and run.estimate.document()
    return document if run.output is None else {**document, "output": run.output}


def partition_statuses(run: CompactionRun, named_topics: Sequence[str]) -> list[str]:
    """One status per partition; what can never be compacted counts only if a topic was named, not
    matched by a glob.
    """
    return [
        plan.status if result is None else result.status
        for plan, result in _pairs(run)
        if plan.topic_partition.topic in named_topics
        or not is_never_changed(plan.path, plan.topic_partition)
    ]


def status_table(run: CompactionRun) -> list[dict[str, Any]]:
    """One row per partition for people."""
    rows = []
    for plan, result in _pairs(run):
        done = result is not None and result.status in (COMPACTED, WRITTEN)
        rows.append(
            {
                "partition": str(plan.topic_partition),
                "status": plan.status if result is None else result.status,
                "dirty": f"{plan.cleanable_ratio:.1%}" if _is_weighed(plan) else None,
                "offsets": f"{plan.first_dirty_offset}-{plan.end_offset}"
                if _is_weighed(plan)
                else None,
                "segments": len(plan.sources) if _is_weighed(plan) else None,
                "into": len(plan.groups) if _is_weighed(plan) else None,
                "bytesBefore": result.stats.bytes_before if done and result else _bytes(plan),
                "bytesAfter": result.stats.bytes_after if done and result else None,
                "records": result.stats.records_read if done and result else None,
                "retained": result.stats.records_retained if done and result else None,
                "reason": _reason(plan, result),
            }
        )
    return rows


def _pairs(run: CompactionRun) -> list[tuple[CompactionPlan, CleanResult | None]]:
    results = {(result.log_dir, result.topic, result.partition): result for result in run.results}
    return [
        (
            plan,
            results.get((plan.log_dir, plan.topic_partition.topic, plan.topic_partition.partition))
            if plan.status == CLEAN
            else None,
        )
        for plan in run.plans
    ]


def _reason(plan: CompactionPlan, result: CleanResult | None) -> str:
    if result and result.reason:
        return result.reason
    return plan.reason + (
        describe_deleted_files(plan.deleted_files) if plan.status == CLEAN else ""
    )


def _is_weighed(plan: CompactionPlan) -> bool:
    """Whether its numbers were made; of what is refused before that they are none, not 0."""
    return plan.status != REFUSED or bool(plan.clean_bytes + plan.cleanable_bytes)


def _bytes(plan: CompactionPlan) -> int | None:
    """Bytes of the segments a round would rewrite; where there is none, of those it weighed."""
    if not _is_weighed(plan):
        return None
    return plan.source_bytes or plan.clean_bytes + plan.cleanable_bytes


def _partition(plan: CompactionPlan, result: CleanResult | None) -> dict[str, Any]:
    stats = result.stats if result is not None and result.status in (COMPACTED, WRITTEN) else None
    return {
        "topic": plan.topic_partition.topic,
        "partition": plan.topic_partition.partition,
        "path": plan.path,
        "status": plan.status if result is None else result.status,
        "reason": result.reason if result and result.reason else plan.reason,
        "firstDirtyOffset": plan.first_dirty_offset,
        "firstUncleanableOffset": plan.first_uncleanable_offset,
        "uncleanableReason": plan.uncleanable_reason,
        "endOffset": stats.end_offset if stats else plan.end_offset,
        "logStartOffset": plan.log_start_offset,
        "logEndOffset": plan.log_end_offset,
        "highWatermark": plan.high_watermark,
        "replicatedEndOffset": plan.replicated_end_offset,
        "kafkaVersion": plan.kafka_version,
        "cleanableRatio": plan.cleanable_ratio if _is_weighed(plan) else None,
        "checkpointReset": plan.checkpoint_reset,
        "peakBytes": plan.peak_bytes,
        "peakBytesPerGroup": plan.peak_bytes_per_group,
        "strategy": plan.strategy,
        "recordsRead": stats and stats.records_read,
        "recordsRetained": stats and stats.records_retained,
        "segmentsSplit": stats and stats.segments_split,
        "corruptBatches": stats and stats.corrupt_batches,
        "bytesBefore": stats.bytes_before if stats else _bytes(plan),
        "bytesAfter": stats and stats.bytes_after,
        "removed": stats
        and {
            "superseded": stats.superseded,
            "tombstone": stats.tombstone,
            "aborted": stats.aborted,
            "marker": stats.marker,
            "noKey": stats.no_key,
        },
        "groups": [
            {
                "baseOffset": group.base_offset,
                "sources": [segment.base_offset for segment in group.sources],
                "sizeInBytes": group.size_in_bytes,
            }
            for group in plan.groups
        ],
        "leftovers": list(plan.leftovers),
        **removed_files(plan.deleted_files if plan.status == CLEAN else ()),
        "configSources": config_sources(plan.config, plan.kafka_version),
    }
