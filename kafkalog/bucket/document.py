"""A look at remote storage as the JSON document of `bucket --json`, and as tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafkalog.bucket.deletion_run import DeletionRun
from kafkalog.bucket.finding import BucketFinding, kind_named
from kafkalog.bucket.judgement import Deletion
from kafkalog.bucket.run import BucketRun
from kafkalog.checking.finding_kind import count_found
from kafkalog.runs.run_dir import command_for
from kafkalog.texts import format_bytes, format_count

Row = dict[str, Any]


def bucket_document(run: BucketRun, deleted: DeletionRun | None, seconds: float) -> Row:
    """`seconds`, what was looked at, an entry a partition of `__remote_log_metadata`, one a
    finding, one an object of the delete list and one a segment that was to be deleted, what each
    kind means."""
    return {
        "runId": run.run_id,
        "seconds": round(seconds, 3),
        "clusterId": run.known.cluster_id,
        "nowMs": run.request.now_ms,
        "minAgeMs": run.request.min_age_ms,
        "isDeep": run.request.is_deep,
        "segmentsCount": len(run.segments),
        "sizeInBytes": sum(segment.size_in_bytes for segment in run.segments),
        "segmentsRead": sum(r.report is not None and not r.is_carried for r in run.looked),
        "segmentsCarried": sum(result.is_carried for result in run.looked),
        "bytesRead": run.bytes_read,
        "metadataPartitions": [
            {
                "partition": number,
                "path": own.path,
                "segmentsCount": len(own.copies),
                "newestMs": own.newest_ms,
                "incomplete": own.incomplete,
            }
            for number, own in run.known.metadata.items()
        ],
        "findings": [finding_row(finding) for finding in run.findings],
        "deletable": {
            "sizeInBytes": sum(each.segment.size_in_bytes for each in run.deletions),
            "objects": deletion_rows(run.deletions),
        },
        "deleted": None
        if deleted is None
        else {
            "runId": deleted.run_id,
            "keepsUndo": deleted.keeps_undo,
            "sizeInBytes": sum(result.size_in_bytes for result in deleted.results),
            "segments": result_rows(deleted),
        },
        "kinds": {
            kind: {
                "means": kind_named(kind).means,
                "broker": kind_named(kind).broker,
                "remedy": kind_named(kind).remedy,
            }
            for kind in sorted({finding.kind for finding in run.findings})
        },
    }


def finding_row(finding: BucketFinding) -> Row:
    """A finding as an object."""
    return {
        "id": finding.kind,
        "severity": str(finding.severity),
        "topic": finding.topic,
        "partition": finding.partition,
        "topicId": finding.topic_id,
        "segmentId": finding.segment_id,
        "offset": finding.offset,
        "segmentsCount": finding.segments,
        "sizeInBytes": finding.size_in_bytes,
        "path": finding.path,
        "position": finding.position,
        "text": finding.text,
        "more": finding.more,
    }


def finding_table(findings: Iterable[BucketFinding]) -> list[Row]:
    """The same for people."""
    rows = []
    for finding in findings:
        row = finding_row(finding)
        more = row.pop("more")
        row["text"] += f" (and {more} more)" if more else ""
        row["segments"] = row.pop("segmentsCount")
        rows.append(row)
    return rows


def deletion_rows(deletions: Iterable[Deletion]) -> list[Row]:
    """The delete list: a row an object."""
    return [
        {
            "id": each.kind,
            "topic": each.topic,
            "partition": each.segment.partition,
            "segmentId": each.segment.segment_id,
            "path": stored.path,
            "sizeInBytes": stored.size,
            "modifiedMs": stored.mtime_ns // 1_000_000,
        }
        for each in deletions
        for _, stored in each.segment.objects
    ]


def result_rows(deleted: DeletionRun) -> list[Row]:
    """What became of the delete list: a row a segment."""
    return [
        {
            "status": result.status,
            "id": result.deletion.kind,
            "topic": result.deletion.topic,
            "partition": result.deletion.segment.partition,
            "segmentId": result.deletion.segment.segment_id,
            "objectsCount": result.objects_count,
            "sizeInBytes": result.size_in_bytes,
            "path": result.deletion.segment.place,
            "reason": result.reason or None,
        }
        for result in deleted.results
    ]


def explanations(findings: Iterable[BucketFinding]) -> list[str]:
    """A line for each kind among the findings: what a broker makes of it, and what to do."""
    kinds = (kind_named(kind) for kind in dict.fromkeys(finding.kind for finding in findings))
    return [f"{k.id}: {k.means}. A broker {k.broker}. To do: {k.remedy}." for k in kinds]


def summary(run: BucketRun, deleted: DeletionRun | None, seconds: float) -> str:
    """One line: what was looked at, what was found, what may be deleted or was."""
    size = sum(segment.size_in_bytes for segment in run.segments)
    found = count_found(finding.severity for finding in run.findings)
    looked = f"{format_count(len(run.segments), 'segment')} of {format_bytes(size)}"
    if run.request.is_deep:
        carried = sum(result.is_carried for result in run.looked)
        since = f", {carried} unchanged since run {run.request.since}" if run.request.since else ""
        looked += f", {format_bytes(run.bytes_read)} read{since}"
    deletable = sum(each.segment.size_in_bytes for each in run.deletions)
    objects = sum(len(each.segment.objects) for each in run.deletions)
    to_delete = (
        f"; {format_count(objects, 'object')} of {format_bytes(deletable)} to delete"
        if objects
        else ""
    )
    if deleted is not None and deleted.run_id is not None:
        to_delete += _of_deletions(deleted)
    name = f" (run {run.run_id})" if run.run_id is not None else ""
    return f"{looked} in {seconds:.1f} s: {found}{to_delete}{name}"


def _of_deletions(deleted: DeletionRun) -> str:
    objects = sum(result.objects_count for result in deleted.results)
    size = format_bytes(sum(result.size_in_bytes for result in deleted.results))
    undo = ""
    if deleted.keeps_undo and deleted.run_id is not None:
        undo = f", {command_for('undo', deleted.run_id, deleted.run_dir)} puts them back"
    return f", {objects} of {size} deleted{undo}"
