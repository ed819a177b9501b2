"""A comparison as the JSON document of `compare --json`, and as tables."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable
from typing import Any

from kafkalog.comparing.compare_kinds import COMPARE_KIND
from kafkalog.comparing.difference import ComparedPartition, Difference, ReplicaResult
from kafkalog.comparing.run import CompareRun
from kafkalog.format.redaction import redacted
from kafkalog.texts import format_count

Row = dict[str, Any]


def compare_document(run: CompareRun, seconds: float, *, redact: bool) -> Row:
    """`seconds`, an entry a partition with one a copy, one a difference, what each kind means."""
    return {
        "seconds": round(seconds, 3),
        "bytesRead": run.bytes_read,
        "partitions": [_partition(each) for each in run.partitions],
        "findings": [difference_row(each, redact=redact) for each in run.differences],
        "kinds": {
            kind: {
                "means": COMPARE_KIND[kind].means,
                "broker": COMPARE_KIND[kind].broker,
                "remedy": COMPARE_KIND[kind].remedy,
            }
            for kind in sorted({each.kind for each in run.differences})
        },
    }


def _partition(each: ComparedPartition) -> Row:
    return {
        "topic": each.topic_partition.topic,
        "partition": each.topic_partition.partition,
        "status": each.status,
        "reason": each.reason or None,
        "bestReplica": each.best,
        "findings": sum(1 + difference.more for difference in each.differences),
        "replicas": [_replica(own) for own in each.replicas],
    }


def _replica(own: ReplicaResult) -> Row:
    return {
        "name": own.name,
        "nodeId": own.node_id,
        "directoryId": own.directory_id,
        "path": own.place,
        "logStartOffset": own.log_start_offset,
        "logEndOffset": own.log_end_offset,
        "highWatermark": own.high_watermark,
        "cleanedEndOffset": own.cleaned_end_offset,
        "leaderEpochs": [
            {"leaderEpoch": epoch, "startOffset": start} for epoch, start in own.leader_epochs
        ],
        "recordsCount": own.records,
        "sizeInBytes": own.size_in_bytes,
        "behindRecords": own.behind_records,
        "behindBytes": own.behind_bytes,
        "lostRecordsAsLeader": own.lost_records,
        "lostBytesAsLeader": own.lost_bytes,
        "findings": own.wrong,
    }


def difference_row(each: Difference, *, redact: bool) -> Row:
    """A difference; its key as UTF-8 with escapes and as base64, with `redact` as a digest; of
    digests of replicas the hash they have of it."""
    return {
        "id": each.kind,
        "severity": str(each.severity),
        "topic": each.topic_partition.topic,
        "partition": each.topic_partition.partition,
        "offset": each.offset,
        "lastOffset": each.last_offset,
        "recordsCount": each.records,
        "sizeInBytes": each.size_in_bytes,
        "key": _key_text(each, redact=redact),
        "keyBytes": None if redact else each.key,
        "producerId": each.producer_id,
        "wrong": list(each.wrong),
        "right": list(each.right),
        "isProvable": each.is_proven,
        "path": each.path,
        "position": each.position,
        "text": each.text,
        "more": each.more,
    }


def difference_table(differences: Iterable[Difference], *, redact: bool) -> list[Row]:
    """The same for people."""
    return [
        {
            "severity": str(each.severity),
            "id": each.kind,
            "topic": each.topic_partition.topic,
            "partition": each.topic_partition.partition,
            "offset": each.offset,
            "key": _key_text(each, redact=redact),
            "wrong": ", ".join(each.wrong),
            "right": ", ".join(each.right) or None,
            "text": each.text + (f" (and {each.more} more)" if each.more else ""),
        }
        for each in differences
    ]


def replica_table(run: CompareRun) -> list[Row]:
    """A row a copy of the partitions that have more than one."""
    return [
        {
            "topic": each.topic_partition.topic,
            "partition": each.topic_partition.partition,
            "replica": own.name,
            "logStartOffset": own.log_start_offset,
            "logEndOffset": own.log_end_offset,
            "highWatermark": own.high_watermark,
            "leaderEpoch": own.leader_epochs[-1][0] if own.leader_epochs else None,
            "cleanedEndOffset": own.cleaned_end_offset,
            "behindRecords": own.behind_records,
            "lostRecordsAsLeader": own.lost_records,
            "lostBytesAsLeader": own.lost_bytes,
            "findings": own.wrong,
            "best": own.name == each.best,
        }
        for each in run.partitions
        for own in each.replicas
    ]


def explanations(differences: Iterable[Difference]) -> list[str]:
    """A line for each kind among the differences: what a broker makes of it, and what to do."""
    kinds = (COMPARE_KIND[kind] for kind in dict.fromkeys(each.kind for each in differences))
    return [f"{k.id}: {k.means}. A broker {k.broker}. To do: {k.remedy}." for k in kinds]


def summary(run: CompareRun, seconds: float) -> str:
    """One line: what was looked at, what was found."""
    statuses = Counter(each.status for each in run.partitions)
    looked = ", ".join(f"{count} {status}" for status, count in sorted(statuses.items()))
    count = sum(1 + each.more for each in run.differences)
    found = format_count(count, "difference") if count else "no difference"
    return f"partitions: {looked}; {run.bytes_read} bytes read in {seconds:.1f} s: {found}"


def failures(run: CompareRun) -> list[str]:
    """A line for each partition that could not be compared."""
    return [f"{each.topic_partition}: not compared: {each.reason}" for each in run.failed]


def _key_text(each: Difference, *, redact: bool) -> str | None:
    if each.key is None:
        return None if each.key_hash is None else f"siphash:{each.key_hash}"
    key = base64.b64decode(each.key)
    return redacted(key) if redact else _printable(key)


def _printable(key: bytes) -> str:
    text = key.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
