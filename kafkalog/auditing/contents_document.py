"""The sections of an audit's document about contents: ages, tombstones, keys, leftovers, what
would be under other settings, and what all groups have read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.auditing.committed_offsets import CommittedRange, merge_ranges
from kafkalog.auditing.contents_findings import beyond_policy
from kafkalog.auditing.latest_keys import Estimate
from kafkalog.auditing.what_if import SimulatedLog
from kafkalog.checking.finding import Finding
from kafkalog.log.inventory import PartitionKind
from kafkalog.planning.retention import LoadedSegment
from kafkalog.planning.texts import format_bytes, format_timestamp

Row = dict[str, Any]
_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS
# Where a bucket of ages ends and the next begins.
AGE_EDGES_MS = (
    0, _HOUR_MS, 6 * _HOUR_MS,
    *(days * _DAY_MS for days in (1, 2, 3, 7, 14, 30, 60, 90, 180, 365, 730, 1825)),
)  # fmt: skip


def age_histogram(partitions: Sequence[AuditedPartition], now_ms: int) -> list[Row]:
    """Bytes and records of each topic by the age of the newest record of their batch. `fromMs` is
    null of what is in the future, `toMs` of what is older than all edges, both of what has no time.
    """
    sums: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0, 0])
    for partition in partitions:
        if partition.contents is None:
            continue
        for part in partition.contents.headers.slices:
            entry = sums[partition.topic, _bucket(part.to_ms, now_ms)]
            entry[0] += part.closed_bytes
            entry[1] += part.active_bytes
            entry[2] += part.records
    return [
        {
            "topic": topic, **_edges(bucket),
            "closedBytes": closed, "activeBytes": active, "records": records,
        }
        for (topic, bucket), (closed, active, records) in sorted(sums.items())
    ]  # fmt: skip


_NO_TIME, _FUTURE = -2, -1


def _bucket(time_ms: int, now_ms: int) -> int:
    """Number of the last edge at or below an age; _FUTURE, _NO_TIME."""
    if time_ms < 0:
        return _NO_TIME
    return sum(edge <= now_ms - time_ms for edge in AGE_EDGES_MS) - 1


def _edges(bucket: int) -> Row:
    if bucket == _NO_TIME:
        return {"fromMs": None, "toMs": None}
    following = (*AGE_EDGES_MS, None)
    return {
        "fromMs": None if bucket == _FUTURE else AGE_EDGES_MS[bucket],
        "toMs": following[bucket + 1],
    }


def contents_rows(partitions: Sequence[AuditedPartition], now_ms: int) -> list[Row]:
    """An entry a live partition; what only records tell is null where they were not read."""
    return [row for p in partitions for row in _contents_row(p, now_ms)]


def _contents_row(audited: AuditedPartition, now_ms: int) -> Iterator[Row]:
    contents = audited.contents
    if contents is None:
        return
    headers, records = contents.headers, contents.records
    expired = [h for h in headers.horizons if h.at_ms <= now_ms]
    later = [h.at_ms for h in headers.horizons if h.at_ms > now_ms]
    is_idle = audited.config.is_compacted and audited.compaction.cleanable_at_ms < 0
    stuck_batches = sum(h.batches - h.markers for h in expired) if is_idle else 0
    stuck_markers = sum(h.markers for h in expired) + headers.bare_markers if is_idle else 0
    keys = records.keys if records is not None else None
    yield {
        "topic": audited.topic,
        "partition": audited.partition,
        "logDir": audited.log_dir,
        "tombstones": records and records.tombstones,
        "tombstonesWithHorizon": records and records.tombstones_with_horizon,
        "horizonBatches": sum(h.batches for h in headers.horizons),
        "nextTombstoneMs": min(later, default=-1),
        "stuckTombstones": (records and records.tombstones_in_clean) if is_idle else 0,
        "stuckTombstoneBatches": stuck_batches,
        "markers": headers.markers,
        "stuckMarkers": stuck_markers,
        "emptyValues": records and records.empty_values,
        "nullTextValues": records and records.null_text_values,
        "fakeTombstones": _value(keys and keys.fake_tombstones),
        "keylessRecords": records and records.keyless_records,
        "committedBytes": headers.committed_bytes,
        "abortedBytes": headers.aborted_bytes,
        "openBytes": headers.open_bytes,
        "markerBytes": headers.marker_bytes,
        "readableBeyondPolicyRecords": beyond_policy(audited, now_ms)[0],
        "oldestTimestampMs": headers.oldest_timestamp_ms,
        "newestTimestampMs": headers.newest_timestamp_ms,
        "distinctKeys": _value(keys and keys.distinct_keys),
        "distinctKeysError": _error(keys and keys.distinct_keys),
        "compactionGainBytes": _value(keys and keys.gain_bytes),
        "compactionGainError": _error(keys and keys.gain_bytes),
    }


def _value(estimate: Estimate | None) -> int | None:
    return None if estimate is None else estimate.value


def _error(estimate: Estimate | None) -> int | None:
    return None if estimate is None else estimate.error


def leftover_rows(partitions: Sequence[AuditedPartition]) -> list[Row]:
    """Files and directories that no log needs any more, largest first."""
    rows = [
        {
            "path": left.path,
            "kind": left.kind,
            "bytes": left.size_in_bytes,
            "topic": audited.topic,
            "partition": audited.partition,
        }
        for audited in partitions
        for left in audited.leftovers
    ]
    return sorted(rows, key=lambda row: (-row["bytes"], row["path"]))


def simulated_log(audited: AuditedPartition) -> SimulatedLog:
    """What a simulation needs of a live partition."""
    forecasts = audited.retention.segments
    known = {segment.base_offset: segment for segment in audited.segments}
    ends = [*(f.base_offset for f in forecasts[1:]), audited.log_end_offset]
    last = len(forecasts) - 1
    return SimulatedLog(
        topic=audited.topic,
        config=audited.config,
        segments=tuple(
            LoadedSegment(
                base_offset=f.base_offset,
                end_offset=end,
                size_in_bytes=f.size_in_bytes,
                timestamp_ms=f.timestamp_ms,
                is_file_time=f.is_file_time,
                is_active=number == last,
                modification_time_ms=(
                    known[f.base_offset].modification_time_ms if f.base_offset in known else -1
                ),
            )
            for number, (f, end) in enumerate(zip(forecasts, ends, strict=True))
        ),
        records=tuple(
            known[f.base_offset].records_count if f.base_offset in known else 0 for f in forecasts
        ),
        log_start_offset=audited.log_start_offset,
        high_watermark=audited.high_watermark,
    )


def live(partitions: Iterable[AuditedPartition]) -> list[AuditedPartition]:
    """Those whose log a broker serves."""
    return [p for p in partitions if p.kind is PartitionKind.LIVE]


def safe_delete_rows(partitions: Sequence[AuditedPartition]) -> list[Row]:
    """Up to which offset all groups have read each partition that has something in front of it;
    `bytes` are those of its closed segments there. Of replicas the one that goes furthest.
    """
    committed, _ = committed_ranges(partitions)
    rows = []
    for key, audited in sorted(_furthest(partitions).items()):
        found = committed.get(key)
        if found is None or "delete" not in audited.config.cleanup_policy:
            continue  # a broker refuses to delete records of a topic that is only compacted
        offset = min(found.lowest, audited.high_watermark)
        if offset <= audited.log_start_offset:
            continue
        closed = zip(audited.retention.segments, audited.retention.segments[1:], strict=False)
        rows.append(
            {
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
) -> tuple[dict[tuple[str, int], CommittedRange], int]:
    """What all groups on these disks have committed, and how many partitions of the offsets topic
    told it. Of replicas the one that goes furthest.
    """
    telling = [
        p.contents.commits
        for p in _furthest(partitions).values()
        if p.contents is not None and p.contents.commits is not None
    ]
    return merge_ranges(r for commits in telling for r in commits.ranges), len(telling)


def _furthest(
    partitions: Iterable[AuditedPartition],
) -> dict[tuple[str, int], AuditedPartition]:
    found: dict[tuple[str, int], AuditedPartition] = {}
    for audited in live(partitions):
        key = audited.topic, audited.partition
        if key not in found or audited.log_end_offset > found[key].log_end_offset:
            found[key] = audited
    return found


def find_across(partitions: Sequence[AuditedPartition]) -> Iterator[Finding]:
    """What only several partitions together tell: commits against the logs they are about, and what
    a topic's retention.bytes comes to.
    """
    from kafkalog.auditing.core_findings import finding

    committed, telling = committed_ranges(partitions)
    logs = _furthest(partitions)
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
            yield audited.placed(finding("committed-beyond-end", text, audited.path))
        if found.lowest < audited.log_start_offset:
            when = format_timestamp(found.lowest_commit_ms)
            text = (
                f"group {found.lowest_group} has committed {found.lowest} ({when}), "
                f"{audited.log_start_offset - found.lowest} below the log's start "
                f"{audited.log_start_offset}"
            )
            yield audited.placed(finding("committed-below-start", text, audited.path))
    for row in safe_delete_rows(partitions):
        if row["bytes"]:
            audited = logs[row["topic"], row["partition"]]
            text = (
                f"all {row['groups']} groups have read up to offset {row['offset']} (last of them "
                f"{row['group']}): {format_bytes(row['bytes'])} of closed segments are in front of "
                f"it; told by {telling} partitions of __consumer_offsets"
            )
            yield audited.placed(finding("consumed-by-all", text, audited.path))
