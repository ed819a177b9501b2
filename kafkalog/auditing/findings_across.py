"""What only several partitions together tell: what groups have committed against the logs it is
about, and what a topic's retention.bytes comes to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.auditing.what_if import ceiling_bytes
from kafkalog.checking.finding import Finding
from kafkalog.contents.committed_offsets import CommittedRange, merge_ranges
from kafkalog.log.inventory import PartitionKind
from kafkalog.texts import format_bytes, format_setting_bytes, format_timestamp

Row = dict[str, Any]
# Cluster id, topic, partition: what one cluster's groups have read says nothing of another's logs.
Key = tuple[str, str, int]


def live(partitions: Iterable[AuditedPartition]) -> list[AuditedPartition]:
    """Those whose log a broker serves."""
    return [p for p in partitions if p.kind is PartitionKind.LIVE]


def safe_delete_rows(partitions: Sequence[AuditedPartition]) -> list[Row]:
    """Up to which offset all groups have read each partition that has something in front of it;
    `bytes` are those of its closed segments there. Of replicas the one that goes furthest.
    """
    committed, _ = committed_ranges(partitions)
    if not committed:
        return []
    rows = []
    for key, audited in sorted(furthest(partitions).items()):
        found = committed.get(key)
        if found is None or "delete" not in audited.config.cleanup_policy:
            continue  # a broker refuses to delete records of a topic that is only compacted
        offset = min(found.lowest, audited.high_watermark)
        if offset <= audited.log_start_offset:
            continue
        closed = zip(audited.retention.segments, audited.retention.segments[1:], strict=False)
        rows.append(
            {
                "clusterId": audited.cluster_id or None,
                "topic": audited.topic,
                "partition": audited.partition,
                "offset": offset,
                "group": found.lowest_group,
                "groups": found.groups,
                "committedMs": found.lowest_commit_ms,
                "bytes": sum(s.size_in_bytes for s, after in closed if after.base_offset <= offset),
            }
        )
    return rows


def committed_ranges(
    partitions: Sequence[AuditedPartition],
) -> tuple[dict[Key, CommittedRange], dict[str, int]]:
    """What all groups on these disks have committed, cluster by cluster, and how many partitions of
    each one's offsets topic has it. Of replicas the one that goes furthest.
    """
    if all(audited.commits is None for audited in partitions):
        return {}, {}
    telling: dict[str, list[CommittedRange]] = {}
    counts: dict[str, int] = {}
    for (cluster_id, _, _), audited in furthest(partitions).items():
        if (commits := audited.commits) is not None:
            telling.setdefault(cluster_id, []).extend(commits.ranges)
            counts[cluster_id] = counts.get(cluster_id, 0) + 1
    merged = {
        (cluster_id, *key): found
        for cluster_id, ranges in telling.items()
        for key, found in merge_ranges(ranges).items()
    }
    return merged, counts


def furthest(partitions: Iterable[AuditedPartition]) -> dict[Key, AuditedPartition]:
    """Of the copies of each partition that a broker serves the one whose log ends last."""
    found: dict[Key, AuditedPartition] = {}
    for audited in live(partitions):
        key = audited.cluster_id, audited.topic, audited.partition
        if key not in found or audited.log_end_offset > found[key].log_end_offset:
            found[key] = audited
    return found


def find_across(partitions: Sequence[AuditedPartition]) -> Iterator[Finding]:
    """The findings of all partitions together, each at the partition it is about."""
    committed, telling = committed_ranges(partitions)
    logs = furthest(partitions) if committed else {}
    for key, found in sorted(committed.items()):
        audited = logs.get(key)
        if audited is None:
            continue
        if found.highest > audited.log_end_offset:
            text = (
                f"group {found.highest_group} has committed {found.highest}, "
                f"{found.highest - audited.log_end_offset} past the log's end "
                f"{audited.log_end_offset}"
            )
            yield audited.finding("committed-beyond-end", text)
        if found.lowest < audited.log_start_offset:
            when = format_timestamp(found.lowest_commit_ms)
            text = (
                f"group {found.lowest_group} has committed {found.lowest} ({when}), "
                f"{audited.log_start_offset - found.lowest} below the log's start "
                f"{audited.log_start_offset}"
            )
            yield audited.finding("committed-below-start", text)
    for row in safe_delete_rows(partitions):
        if row["bytes"]:
            cluster_id = row["clusterId"] or ""
            audited = logs[cluster_id, row["topic"], row["partition"]]
            text = (
                f"all {row['groups']} groups have read up to offset {row['offset']} (last of them "
                f"{row['group']}): {format_bytes(row['bytes'])} of closed segments are in front of "
                f"it; counted in {telling[cluster_id]} partitions of __consumer_offsets"
            )
            yield audited.finding("consumed-by-all", text)
    yield from _beyond_retention_bytes(partitions)


def _beyond_retention_bytes(partitions: Sequence[AuditedPartition]) -> Iterator[Finding]:
    """Topics whose retention.bytes does what it is for, if not what it was meant for."""
    by_topic: dict[tuple[str, str], list[AuditedPartition]] = {}
    for audited in live(partitions):
        by_topic.setdefault((audited.topic, audited.cluster_id), []).append(audited)
    for (topic, _), own in sorted(by_topic.items()):
        limit = own[0].config.retention_bytes
        if limit < 0:
            continue
        ceiling, total = topic_ceiling(own), sum(p.log_bytes for p in own)
        if ceiling is not None and limit < total:
            text = (
                f"{topic} has {format_bytes(total)} in {len(own)} partitions here with "
                f"retention.bytes {format_setting_bytes(limit)}: it may come to "
                f"{format_bytes(ceiling)}, retention.bytes "
                "and one segment for each partition"
            )
            found = own[0].finding("retention-bytes-per-partition", text)
            yield replace(found, path=own[0].log_dir, partition=None)


def topic_ceiling(own: Sequence[AuditedPartition]) -> int | None:
    """See `what_if.ceiling_bytes`."""
    return ceiling_bytes(
        (p.config, max((s.size_in_bytes for s in p.retention.segments), default=0)) for p in own
    )
