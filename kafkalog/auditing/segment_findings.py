"""Very many very small segments: what they cost a broker, and the setting that rolls them.

A segment rolls when the next batch does not fit into segment.bytes, when an index has no room
(segment.index.bytes), or when a record's timestamp is more than segment.ms past the first one's:
the time of records, not of the clock, so that old data written today rolls for each segment.ms of
its own time.

Source: Kafka LogSegment.shouldRoll, RollParams.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from kafkalog.auditing.finding_context import FindingContext
from kafkalog.auditing.thresholds import MANY_SEGMENTS, SMALL_SEGMENT_BYTES
from kafkalog.checking.finding import Finding
from kafkalog.contents.segment_statistics import SegmentStatistics
from kafkalog.format.constants import MAX_INT32
from kafkalog.texts import format_bytes, format_setting_bytes, format_setting_ms

# What a setting is raised for: so many segments instead.
_FEW = 50
_INDEX_ENTRY_BYTES = 8


def find_small_segments(context: FindingContext) -> Iterator[Finding]:
    """One finding of a live partition."""
    segments = context.audited.segments
    closed = [segment for segment in segments if not segment.is_active]
    total = sum(segment.size_in_bytes for segment in closed)
    if len(closed) < MANY_SEGMENTS or total >= len(closed) * SMALL_SEGMENT_BYTES:
        return
    mean_bytes = total // len(closed)
    cause, fix = _cause(context, closed, mean_bytes)
    yield context.say(
        "many-small-segments",
        f"{context.audited.topic}: {len(segments)} segments, of {format_bytes(mean_bytes)} on "
        f"average: {len(segments)} open files of a broker and up to {2 * len(segments)} maps; "
        f"{cause}",
        fix=fix,
    )


def _cause(
    context: FindingContext, closed: Sequence[SegmentStatistics], mean_bytes: int
) -> tuple[str, str]:
    """What has rolled most of them, and what to do about it."""
    config = context.audited.config
    times = -(-len(closed) // _FEW)
    if 2 * mean_bytes >= config.segment_bytes:
        wanted = min(config.segment_bytes * times, MAX_INT32)
        return (
            f"segment.bytes {format_setting_bytes(config.segment_bytes)} rolls them",
            f"set segment.bytes to {wanted}",
        )
    if any(_fills_index(context, segment) for segment in closed[:: len(closed) // _FEW]):
        return (
            f"an index of segment.index.bytes {format_setting_bytes(config.segment_index_bytes)} "
            "is full with them",
            f"set segment.index.bytes to {min(config.segment_index_bytes * times, MAX_INT32)}",
        )
    apart = [
        after.first_timestamp_ms - before.first_timestamp_ms
        for before, after in pairwise(context.audited.segments)
    ]
    if 2 * sum(ms > config.segment_ms for ms in apart) >= len(apart):
        span = closed[-1].largest_timestamp_ms - closed[0].first_timestamp_ms
        is_backfill = _written_within(closed) * 2 < span
        how = "by the time of records, which are older than what wrote them, " * is_backfill
        return (
            f"segment.ms {format_setting_ms(config.segment_ms)} rolls them {how}".rstrip(" ,"),
            f"set segment.ms to {format_setting_ms(config.segment_ms * times)}: for a topic with "
            "retention.ms, its "
            "records then stay up to so much longer",
        )
    return (
        "neither segment.ms nor segment.bytes, as they are now, has rolled most of them",
        "raise segment.ms or segment.bytes, if they were lower; and look for what restarts or "
        "rolls them",
    )


def _fills_index(context: FindingContext, segment: SegmentStatistics) -> bool:
    info = context.info(segment.base_offset)
    largest = max(info.offset_index_bytes, info.time_index_bytes)
    return largest + 2 * _INDEX_ENTRY_BYTES > context.audited.config.segment_index_bytes


def _written_within(closed: Sequence[SegmentStatistics]) -> int:
    """How long the files took to be written, in ms."""
    times = [segment.modification_time_ms for segment in closed]
    return max(times) - min(times)
