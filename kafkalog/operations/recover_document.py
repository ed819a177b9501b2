"""A run of `recover` as the JSON document of `--json`, as a table, and as statuses.

The frame is that of `compact --json`; a partition has the files that are not as a rebuild gives
them, each with what is, or would be, done and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafkalog.operations.recover import RecoverRun
from kafkalog.operations.run_frame import config_sources, is_never_changed, run_frame
from kafkalog.planning.kafka_version import DEFAULT_KAFKA_VERSION
from kafkalog.planning.statuses import FAILED, REFUSED
from kafkalog.repair.recover_result import DONE, SOUND, RecoverResult, RecoverTask

# What the files depend on.
_SETTINGS = ("index.interval.bytes", "segment.index.bytes", "producer.id.expiration.ms")


def recover_document(run: RecoverRun, seconds: float) -> dict[str, Any]:
    """The whole document, ready for `json.dumps`."""
    pairs = zip(run.plans, run.results, strict=True)
    return run_frame(run, seconds, [_partition(task, result) for task, result in pairs])


def recover_statuses(run: RecoverRun, named_topics: Sequence[str]) -> list[str]:
    """One status per partition; what is never rebuilt counts only if its topic was named."""
    return [
        result.status
        for task, result in zip(run.plans, run.results, strict=True)
        if result.topic in named_topics
        or not is_never_changed(task.partition.path, task.partition.topic_partition)
    ]


def is_well(status: str) -> bool:
    """Whether nothing about this partition is left to do."""
    return status in (SOUND, DONE)


def recover_table(run: RecoverRun) -> list[dict[str, Any]]:
    """One row per file that is not right; for a partition without any one row that says so."""
    rows: list[dict[str, Any]] = []
    for task, result in zip(run.plans, run.results, strict=True):
        name = str(task.partition.topic_partition)
        head: dict[str, Any] = {"partition": name, "status": result.status}
        rows += [
            {**head, "file": file.name, "action": file.action, "reason": file.reason}
            for file in result.files
        ]
        if not result.files or result.reason:
            rows.append({**head, "file": None, "action": None, "reason": result.reason or None})
    return rows


def _partition(task: RecoverTask, result: RecoverResult) -> dict[str, Any]:
    is_counted = result.status not in (FAILED, REFUSED)
    sources = config_sources(task.config, DEFAULT_KAFKA_VERSION)
    return {
        "topic": result.topic,
        "partition": result.partition,
        "path": result.path,
        "status": result.status,
        "reason": result.reason,
        "files": [
            {"name": file.name, "action": file.action, "reason": file.reason}
            for file in result.files
        ],
        "segmentsCount": result.segments_count if is_counted else None,
        "batchesCount": result.batches_count if is_counted else None,
        "bytesRead": result.bytes_read if is_counted else None,
        "logStartOffset": task.partition.log_start_offset,
        "logEndOffset": result.log_end_offset,
        "leftovers": list(task.partition.leftovers),
        "seconds": result.seconds,
        "settingsNote": task.settings_note,
        "configSources": {key: sources[key] for key in _SETTINGS},
    }
