"""The sections of an audit's document about contents: ages, tombstones, keys, leftovers, what
would be under other settings.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from operator import add
from typing import Any

from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.auditing.contents_findings import beyond_policy
from kafkalog.auditing.expected_growth import Outlook, arrival_pace
from kafkalog.auditing.sound_partitions import in_groups
from kafkalog.auditing.sound_sections import sound_ages
from kafkalog.auditing.what_if import SimulatedLog
from kafkalog.planning.loaded_segments import LoadedSegment

Row = dict[str, Any]
_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS
# Where a bucket of ages ends and the next begins.
AGE_EDGES_MS = (
    0, _HOUR_MS, 6 * _HOUR_MS,
    *(days * _DAY_MS for days in (1, 2, 3, 7, 14, 30, 60, 90, 180, 365, 730, 1825)),
)  # fmt: skip


def age_histogram(partitions: Sequence[AuditedPartition], now_ms: int) -> list[Row]:
    """Bytes and records of each topic by the age of the newest record of their batch, `fromMs` to
    `toMs`: -1 to 0 is in the future, -2 to -1 without a time, and -1 as the end is no end.
    """
    sums: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0, 0])
    groups, others = in_groups(partitions)
    for group, own in groups:
        for topic, bucket, sound in sound_ages(group, own, AGE_EDGES_MS, _NO_TIME):
            entry = sums[topic, bucket]
            entry[:] = map(add, entry, sound)
    for partition in others:
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
    return bisect_right(AGE_EDGES_MS, now_ms - time_ms) - 1


def _edges(bucket: int) -> Row:
    if bucket < 0:
        return {"fromMs": bucket, "toMs": bucket + 1}
    following = (*AGE_EDGES_MS[1:], -1)
    return {"fromMs": AGE_EDGES_MS[bucket], "toMs": following[bucket]}


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
        "fakeTombstones": None if keys is None else keys.fake_tombstones.value,
        "keylessRecords": records and records.keyless_records,
        "committedBytes": headers.committed_bytes,
        "abortedBytes": headers.aborted_bytes,
        "openBytes": headers.open_bytes,
        "markerBytes": headers.marker_bytes,
        "readableBeyondPolicyRecords": beyond_policy(audited, now_ms)[0],
        "oldestTimestampMs": headers.oldest_timestamp_ms,
        "newestTimestampMs": headers.newest_timestamp_ms,
        "distinctKeys": None if keys is None else keys.distinct_keys.value,
        "distinctKeysError": None if keys is None else keys.distinct_keys.error,
        "compactionGainBytes": None if keys is None else keys.gain_bytes.value,
        "compactionGainError": None if keys is None else keys.gain_bytes.error,
    }


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


def outlook(audited: AuditedPartition, now_ms: int) -> Outlook:
    """How a live partition goes on."""
    contents = audited.contents
    if contents is None:
        return Outlook()
    keys = None if contents.records is None else contents.records.keys
    return Outlook(
        arrival_pace(contents.headers.slices, now_ms),
        None if keys is None else keys.gain_bytes.value,
        audited.compaction.cleanable_at_ms,
    )


def simulated_log(audited: AuditedPartition, now_ms: int) -> SimulatedLog:
    """What a simulation needs of a live partition."""
    forecasts = audited.retention.segments
    known = {segment.base_offset: segment for segment in audited.segments}
    # One for each, and none of a directory without segments.
    ends = [*(f.base_offset for f in forecasts), audited.log_end_offset][1:]
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
        uploaded_offset=audited.uploaded_offset,
        outlook=outlook(audited, now_ms),
    )
