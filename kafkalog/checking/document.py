"""A verify run as the JSON document of `verify --json`, and as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kafkalog.checking.finding import Finding
from kafkalog.checking.finding_kind import FindingKind, count_found
from kafkalog.checking.finding_kinds import KIND
from kafkalog.checking.run import VerifyRun
from kafkalog.texts import format_count

Row = dict[str, Any]


def verify_document(run: VerifyRun, seconds: float) -> Row:
    """`runId`, `since`, `seconds`, an entry a partition, one a finding, what each kind means."""
    per_partition = Counter((f.log_dir, f.topic, f.partition) for f in run.findings)
    return {
        "runId": run.run_id if run.is_kept else None,
        "since": run.since,
        "seconds": round(seconds, 3),
        "partitions": [
            {
                "topic": each.partition.topic_partition.topic,
                "partition": each.partition.topic_partition.partition,
                "kind": str(each.partition.kind),
                "path": each.partition.path,
                "segmentsRead": each.segments_read,
                "segmentsCarried": each.segments_carried,
                "bytesRead": each.bytes_read,
                "findings": per_partition[
                    each.partition.log_dir,
                    each.partition.topic_partition.topic,
                    each.partition.topic_partition.partition,
                ],
            }
            for each in run.partitions
        ],
        "findings": [finding_row(finding) for finding in run.findings],
        "kinds": kinds_of(run.findings),
    }


def kinds_of(findings: Iterable[Finding], table: Mapping[str, FindingKind] = KIND) -> Row:
    """What each kind among the findings means, by its id in the table."""
    return {
        kind: {
            "means": table[kind].means,
            "broker": table[kind].broker,
            "remedy": table[kind].remedy,
        }
        for kind in sorted({finding.kind for finding in findings})
    }


def finding_row(finding: Finding) -> Row:
    """A finding by the names of the view's columns."""
    return {
        "id": finding.kind,
        "severity": str(finding.severity),
        "logDir": finding.log_dir,
        "topic": finding.topic,
        "partition": finding.partition,
        "segmentBaseOffset": finding.segment_base_offset,
        "path": finding.path,
        "position": finding.position,
        "offset": finding.offset,
        "text": finding.text,
        "more": finding.more,
    }


def finding_table(findings: Iterable[Finding]) -> list[Row]:
    """The same for people: a path from its log dir on."""
    return [
        {
            "severity": str(finding.severity),
            "id": finding.kind,
            "file": _short(finding),
            "position": finding.position,
            "offset": finding.offset,
            "text": finding.text + (f" (and {finding.more} more)" if finding.more else ""),
        }
        for finding in findings
    ]


def explanations(findings: Iterable[Finding]) -> list[str]:
    """A line for each kind among the findings: what a broker makes of it, and what to do."""
    kinds = dict.fromkeys(finding.kind for finding in findings)
    return [
        f"{kind}: {KIND[kind].means}. A broker {KIND[kind].broker}. To do: {KIND[kind].remedy}."
        for kind in kinds
    ]


def summary(run: VerifyRun, seconds: float) -> str:
    """One line: how much was read, what was found."""
    read = sum(each.segments_read for each in run.partitions)
    carried = sum(each.segments_carried for each in run.partitions)
    size = sum(each.bytes_read for each in run.partitions)
    found = count_found(finding.severity for finding in run.findings)
    unchanged = f", {carried} unchanged since run {run.since}" if run.since else ""
    name = f" (run {run.run_id})" if run.is_kept else ""
    return (
        f"{format_count(len(run.partitions), 'partition')}, {format_count(read, 'segment')} of "
        f"{size} bytes read{unchanged} in {seconds:.1f} s: {found}{name}"
    )


def _short(finding: Finding) -> str:
    path = Path(finding.path)
    is_below = finding.log_dir and path.is_relative_to(finding.log_dir)
    return str(path.relative_to(finding.log_dir)) if is_below else finding.path
