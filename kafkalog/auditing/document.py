"""An audit as the JSON document of `audit --json`; audit.schema.json says what is in it.

Sections are made from the audited partitions alone, each by a function of its own. Bytes and times
are plain numbers, times in ms; -1 stands for "none" and "never".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from kafkalog.auditing.audit_kinds import ALL_KINDS
from kafkalog.auditing.audit_run import AuditRun
from kafkalog.auditing.audited_partition import BYTE_KINDS, AuditedPartition
from kafkalog.auditing.contents_document import (
    age_histogram,
    contents_rows,
    leftover_rows,
    simulated_log,
)
from kafkalog.auditing.findings_across import live, safe_delete_rows
from kafkalog.auditing.remote_part import (
    remote_row,
    remote_sums,
    sums_by_topic,
    with_remote_parts,
)
from kafkalog.auditing.sound_partitions import PartitionSums, in_groups, with_sums
from kafkalog.auditing.sound_sections import sound_timeline
from kafkalog.auditing.sound_texts import (
    contents_texts,
    finding_texts,
    partition_texts,
    segment_texts,
)
from kafkalog.auditing.what_if import SimulatedLog, ceiling_bytes, simulate
from kafkalog.checking.document import finding_row, kinds_of
from kafkalog.checking.finding import Finding
from kafkalog.log.inventory import PartitionKind
from kafkalog.planning.retention_forecast import NEVER, SegmentForecast

Row = dict[str, Any]
SCHEMA_VERSION = 1
_DAY_MS = 86_400_000


class RowsAnew(Iterable[Row]):
    """Rows that are made each time they are asked for, in place of a list: of many partitions they
    would take as much memory as all that is known of these. `texts`: the same rows, of which some
    come as they stand in JSON, where a line of the row begins with the text it is given.
    """

    def __init__(
        self,
        make: Callable[[], Iterable[Row]],
        texts: Callable[[str], Iterable[Row | str]] | None = None,
    ) -> None:
        self._make = make
        self._texts = texts

    def __iter__(self) -> Iterator[Row]:
        return iter(self._make())

    def with_texts(self, newline: str) -> Iterator[Row | str]:
        """For who writes them as JSON."""
        return iter(self if self._texts is None else self._texts(newline))


def audit_document(
    run: AuditRun,
    seconds: float,
    growth: Mapping[str, int] | None = None,
    *,
    makes_rows_anew: bool = False,
) -> Row:
    """The whole document. `growth`: bytes a day of each topic, as a history of audits tells.
    `makes_rows_anew`: of the longest sections, for a caller that goes over them once.
    """
    rows = RowsAnew if makes_rows_anew else _listed
    partitions = run.partitions
    served, findings = live(run.partitions), run.findings
    groups, others = in_groups(served)
    return {
        "schemaVersion": SCHEMA_VERSION,
        "nowMs": run.now_ms,
        "seconds": round(seconds, 3),
        "kafkaVersion": ",".join(sorted({p.kafka_version for p in run.partitions})),
        "totals": totals(run.partitions)
        | remote_sums(with_remote_parts(run.partitions), run.price),
        "topics": topic_rows(run.partitions, run.price),
        "partitions": rows(
            partial(map, partition_row, partitions),
            partial(partition_texts, lambda each: [partition_row(each)], partitions),
        ),
        "segments": rows(
            partial(_segments, partitions), partial(segment_texts, segment_rows, partitions)
        ),
        "timeline": timeline(run),
        "ageHistogram": age_histogram(served, run.now_ms),
        "contents": rows(
            partial(contents_rows, served, run.now_ms),
            partial(contents_texts, lambda each: contents_rows([each], run.now_ms), served),
        ),
        "leftovers": leftover_rows(run.partitions),
        "whatIf": simulate(
            _simulated(others, run.now_ms),
            run.scenarios,
            run.times_ms,
            growth,
            run.price,
            groups=[(*each, partial(simulated_log, now_ms=run.now_ms)) for each in groups],
        ),
        "safeDeleteOffsets": safe_delete_rows(served),
        "findings": rows(
            partial(map, audit_finding_row, findings),
            partial(finding_texts, audit_finding_row, findings),
        ),
        "kinds": kinds_of(findings, ALL_KINDS),
    }


def _listed(make: Callable[[], Iterable[Row]], _texts: object = None) -> list[Row]:
    return list(make())


def _segments(partitions: Sequence[AuditedPartition]) -> Iterator[Row]:
    for partition in partitions:
        yield from segment_rows(partition)


def _simulated(served: Sequence[AuditedPartition], now_ms: int) -> Iterator[SimulatedLog]:
    """What is in remote storage once for all replicas."""
    parts = {each.path for each in with_remote_parts(served)}
    for each in served:
        log = simulated_log(each, now_ms)
        yield replace(log, remote=each.remote) if each.path in parts else log


def totals(partitions: Iterable[AuditedPartition]) -> Row:
    """Sums over all partition directories."""
    topics, own = set(), []
    for partition, sums in with_sums(partitions):
        topics.add(partition.topic)
        own.append(sums)
    return {"bytes": sum(sum(each.bytes_by_kind) for each in own), "topics": len(topics)} | (
        _totals(own)
    )


_LEFT = [place for place, kind in enumerate(BYTE_KINDS) if kind in ("leftover", "undo")]


def _totals(own: Sequence[PartitionSums]) -> Row:
    return {
        "partitions": len(own),
        "segments": sum(each.segments for each in own),
        "records": sum(each.records for each in own),
        "dueBytes": sum(each.due_bytes for each in own),
        "blockedBytes": sum(each.blocked_bytes for each in own),
        "leftoverBytes": sum(each.bytes_by_kind[place] for each in own for place in _LEFT),
    }


def topic_rows(partitions: Sequence[AuditedPartition], price: float | None = None) -> list[Row]:
    """An entry a topic, by name; settings are those of its first directory. `price`: what a GiB in
    remote storage costs a month."""
    remote, nothing = sums_by_topic(partitions, price), remote_sums((), price)
    by_topic: dict[str, list[tuple[AuditedPartition, PartitionSums]]] = defaultdict(list)
    for partition, sums in with_sums(partitions):
        by_topic[partition.topic].append((partition, sums))
    return [
        _topic_row(topic, own) | remote.get(topic, nothing)
        for topic, own in sorted(by_topic.items())
    ]


def _topic_row(topic: str, own: Sequence[tuple[AuditedPartition, PartitionSums]]) -> Row:
    config = own[0][0].config
    all_sums = [sums for _, sums in own]
    sums = _totals(all_sums)
    ceiling = ceiling_bytes(
        (partition.config, sums.largest_segment_bytes)
        for partition, sums in own
        if partition.kind is PartitionKind.LIVE
    )
    kinds = [sum(numbers) for numbers in zip(*(s.bytes_by_kind for s in all_sums), strict=True)]
    return {
        "topic": topic,
        **{name: sums[name] for name in ("partitions", "segments", "records")},
        "bytes": sum(kinds),
        "bytesByKind": dict(zip(BYTE_KINDS, kinds, strict=True)),
        "cleanupPolicy": ",".join(config.cleanup_policy),
        "retentionMs": config.retention_ms,
        "retentionBytes": config.retention_bytes,
        "segmentBytes": config.segment_bytes,
        "segmentMs": config.segment_ms,
        "configSources": dict(config.sources),
        "oldestTimestampMs": min(
            (each.oldest_ms for each in all_sums if each.oldest_ms >= 0), default=NEVER
        ),
        "newestTimestampMs": max((each.newest_ms for each in all_sums), default=NEVER),
        "dueBytes": sums["dueBytes"],
        "blockedBytes": sums["blockedBytes"],
        "retentionCeilingBytes": NEVER if ceiling is None else ceiling,
        "localRetentionMs": config.local_retention_ms,
        "localRetentionBytes": config.local_retention_bytes,
    }


def partition_row(partition: AuditedPartition) -> Row:
    """One partition directory."""
    forecast = partition.retention
    blockers = dict.fromkeys(s.blocked_by for s in forecast.segments if s.blocked_by)
    due = [s for s in forecast.segments if NEVER < s.due_ms <= forecast.now_ms]
    return {
        "logDir": partition.log_dir,
        "topic": partition.topic,
        "partition": partition.partition,
        "kind": str(partition.kind),
        "path": partition.path,
        "bytes": partition.size_in_bytes,
        "segments": len(forecast.segments),
        "records": partition.records_count,
        "logStartOffset": partition.log_start_offset,
        "logEndOffset": partition.log_end_offset,
        "highWatermark": partition.high_watermark,
        "lastStableOffset": partition.last_stable_offset,
        "retention": {
            "status": forecast.status,
            "reason": forecast.reason,
            "dueBytes": forecast.due_bytes,
            "dueSegments": len(due),
            "nextDueMs": forecast.next_due_ms,
            "blockedBy": next(iter(blockers), ""),
            "blockedBytes": forecast.blocked_bytes,
        },
        "compaction": {
            camel_case(name): value
            for name, value in partition.compaction.to_json().items()
            if name != "advice"  # findings have it, in words
        },
        "remote": remote_row(partition),
    }


@cache
def camel_case(name: str) -> str:
    """`first_dirty_offset` → `firstDirtyOffset`."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def segment_rows(partition: AuditedPartition) -> list[Row]:
    """An entry a live segment: what is in it, and when it goes."""
    known = {segment.base_offset: segment for segment in partition.segments}
    return [
        _segment_row(partition, f, known.get(f.base_offset)) for f in partition.retention.segments
    ]


def _segment_row(partition: AuditedPartition, forecast: SegmentForecast, known: Any) -> Row:
    return {
        "logDir": partition.log_dir,
        "topic": partition.topic,
        "partition": partition.partition,
        "baseOffset": forecast.base_offset,
        "nextOffset": known.next_offset if known else NEVER,
        "bytes": forecast.size_in_bytes,
        "records": known.records_count if known else NEVER,
        "smallestTimestampMs": known.smallest_timestamp_ms if known else NEVER,
        "largestTimestampMs": known.largest_timestamp_ms if known else NEVER,
        "isActive": known.is_active if known else False,
        "dueMs": forecast.due_ms,
        "rule": forecast.rule,
        "blockedBy": forecast.blocked_by,
    }


def timeline(run: AuditRun) -> list[Row]:
    """Bytes that go per topic and day (UTC), what is overdue today."""
    sums: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0])
    groups, others = in_groups(run.partitions)
    for partition in others:
        for segment in partition.retention.segments:
            if segment.due_ms != NEVER:
                day = max(segment.due_ms, run.now_ms) // _DAY_MS * _DAY_MS
                entry = sums[partition.topic, day]
                entry[0] += segment.size_in_bytes
                entry[1] += 1
    for group, own in groups:
        for topic, day, size, count in sound_timeline(group, own, _DAY_MS):
            entry = sums[topic, day]
            entry[0] += size
            entry[1] += count
    return [
        {"topic": topic, "dayMs": day, "bytes": size, "segments": count}
        for (topic, day), (size, count) in sorted(sums.items())
    ]


def audit_finding_row(finding: Finding) -> Row:
    """A finding, and what to do about it in one sentence."""
    row = finding_row(finding)
    row["fix"] = finding.fix or ALL_KINDS[finding.kind].remedy
    return row
