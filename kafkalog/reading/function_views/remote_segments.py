"""Remote segments as their metadata topic tells them: what was copied, what is left over, where
offsets are missing.

Source: Kafka RemoteLogMetadataCache; KIP-405.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kafkalog.columns import coordinator_schemas
from kafkalog.columns.column import arrow_schema
from kafkalog.messages.remote_log_records import RemoteLogSegmentState

REMOTE_SEGMENTS = arrow_schema(coordinator_schemas.REMOTE_SEGMENTS, all_nullable=True)
# Columns of view `messages` that are looked at.
EVENT_COLUMNS = ("offset", "messageType", "value")

_EVENTS = ("RemoteLogSegmentMetadataRecord", "RemoteLogSegmentMetadataUpdateRecord")
_STATES = {state.value: state.name for state in RemoteLogSegmentState}
_FINISHED = RemoteLogSegmentState.COPY_SEGMENT_FINISHED.name
# Storage may hold bytes that nobody reads.
_ORPHANS = (
    RemoteLogSegmentState.COPY_SEGMENT_STARTED.name,
    RemoteLogSegmentState.DELETE_SEGMENT_STARTED.name,
)


@dataclass(slots=True)
class _Segment:
    """events: (offset of the record, time, state). first: the offset of the record that says what
    the segment is, and that."""

    events: list[tuple[int, int, str | None]] = field(default_factory=list)
    first: tuple[int, dict[str, Any]] | None = None


def remote_segments(messages: Iterable[pa.RecordBatch]) -> pa.Table:
    """REMOTE_SEGMENTS of rows with EVENT_COLUMNS, of any parts of the topic in any order; a row a
    segment, in the order of topic, partition and offset. Memory is that of the segments' events.
    """
    rows = [_row(place, segment) for place, segment in _segments(messages).items()]
    rows.sort(key=_order)
    ends: dict[tuple[Any, Any], int] = {}
    for row in rows:
        if row["state"] != _FINISHED:
            continue
        log, start = (row["topicId"], row["partition"]), row["startOffset"]
        previous = ends.get(log)
        if previous is not None and start is not None:
            row["gapBefore"] = start > previous + 1
            row["overlapsPrevious"] = start <= previous
        its_ends = (end for end in (previous, row["endOffset"]) if end is not None)
        if (furthest := max(its_ends, default=None)) is not None:
            ends[log] = furthest
    return pa.Table.from_pylist(rows, REMOTE_SEGMENTS)


def _segments(messages: Iterable[pa.RecordBatch]) -> dict[tuple[Any, ...], _Segment]:
    found: dict[tuple[Any, ...], _Segment] = {}
    for batch in messages:
        for row in batch.to_pylist():
            if row["messageType"] not in _EVENTS or row["value"] is None:
                continue
            value, offset = json.loads(row["value"]), row["offset"]
            name = value["remoteLogSegmentId"]
            its = name["topicIdPartition"]
            place = its["name"], its["partition"], its["id"], name["id"]
            segment = found.setdefault(place, _Segment())
            state = _STATES.get(value["remoteLogSegmentState"])
            segment.events.append((offset, value["eventTimestampMs"], state))
            is_whole = value.get("startOffset") is not None
            if is_whole and (segment.first is None or offset < segment.first[0]):
                segment.first = offset, value
    return found


def _row(place: tuple[Any, ...], segment: _Segment) -> dict[str, Any]:
    topic, partition, topic_id, segment_id = place
    _, what = segment.first or (0, {})
    segment.events.sort(key=lambda event: event[0])
    state = segment.events[-1][2]
    return {
        "topic": topic,
        "partition": partition,
        "topicId": topic_id,
        "segmentId": segment_id,
        "startOffset": what.get("startOffset"),
        "endOffset": what.get("endOffset"),
        "sizeInBytes": what.get("segmentSizeInBytes"),
        "maxTimestampMs": what.get("maxTimestampMs"),
        "brokerId": what.get("brokerId"),
        "state": state,
        "history": [{"timestampMs": at, "state": then} for _, at, then in segment.events],
        "isOrphan": None if state is None else state in _ORPHANS,
        "gapBefore": False,
        "overlapsPrevious": False,
    }


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    """By place and offset; a segment whose first event is not there comes before the others."""
    start, end = row["startOffset"], row["endOffset"]
    return (
        row["topic"] or "", row["partition"] or 0, -1 if start is None else start,
        -1 if end is None else end, row["segmentId"] or "",
    )  # fmt: skip
