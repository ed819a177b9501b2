"""Why segments are still here that should be gone, and which go too early."""

from __future__ import annotations

from collections.abc import Iterator

from kafkalog.auditing.finding_context import GRACE_MS, FindingContext
from kafkalog.auditing.segment_statistics import SegmentStatistics
from kafkalog.checking.finding import MAX_PER_KIND, Finding
from kafkalog.errors import KafkaLogError
from kafkalog.log.inventory import SegmentInfo
from kafkalog.log.retention_facts import repaired_segments
from kafkalog.log.segment_file import scan_headers
from kafkalog.planning.retention_forecast import (
    AWAITS_HIGH_WATERMARK,
    AWAITS_UPLOAD,
    BEHIND_YOUNGER,
    FUTURE_TIMESTAMP,
    NEVER,
    WRONG_UNIT,
    SegmentForecast,
    is_wrong_unit,
)
from kafkalog.planning.retention_plan import RetentionRule
from kafkalog.planning.texts import format_bytes, format_timestamp
from kafkalog.reading.lookups import records_of

_ENTRY_BYTES = 12


def find_retention(context: FindingContext) -> Iterator[Finding]:
    """The findings about retention of a live log."""
    yield from _from_the_future(context)
    yield from _held_back(context)
    yield from _due(context)
    yield from _active(context)
    yield from _time_indexes(context)


def _from_the_future(context: FindingContext) -> Iterator[Finding]:
    """A segment with a timestamp ahead of time, what it holds back, and since when."""
    config, segments = context.audited.config, context.audited.retention.segments
    if "delete" not in config.cleanup_policy or config.retention_ms < 0:
        if config.min_compaction_lag_ms <= 0 or not config.is_compacted:
            return
    limit_ms = context.now_ms + min(config.message_timestamp_after_max_ms, GRACE_MS)
    found = [
        (number, segment)
        for number, segment in enumerate(segments)
        if segment.timestamp_ms > limit_ms and not segment.is_file_time
    ]
    for number, segment in found[:MAX_PER_KIND]:
        known = context.segment(segment.base_offset)
        behind = segments[number + 1 :]
        waiting = [s for s in behind if s.blocked_by]
        wrong_unit = is_wrong_unit(segment.timestamp_ms)
        when = _in_another_unit(segment.timestamp_ms) if wrong_unit else ""
        offset = None if known is None else largest_offset(context.info(segment.base_offset), known)
        at = f"offset {offset}" if offset is not None else "a record"
        until = (
            f"it goes after {format_timestamp(segment.due_ms)}"
            if segment.due_ms != NEVER
            else "it never goes by time"
        )
        written = (
            ""
            if known is None
            else (f"; the file was written {format_timestamp(known.modification_time_ms)}")
        )
        yield context.say(
            WRONG_UNIT if wrong_unit else FUTURE_TIMESTAMP,
            f"{context.audited.topic}: segment {segment.base_offset}: {at} has timestamp "
            f"{segment.timestamp_ms}{when}, {format_timestamp(segment.timestamp_ms)}: {until}; "
            f"behind it lie {format_bytes(sum(s.size_in_bytes for s in behind))} in {len(behind)} "
            f"segments, {format_bytes(sum(s.size_in_bytes for s in waiting))} of them due{written}",
            offset=offset,
            position=None if known is None else known.largest_timestamp_position,
            segment=segment.base_offset,
            path=None if known is None else known.path,
        )


def _in_another_unit(timestamp: int) -> str:
    unit, per_ms = ("ns", 1_000_000) if timestamp >= 10**18 else ("µs", 1000)
    return f" (in {unit} it is {format_timestamp(timestamp // per_ms)})"


def largest_offset(segment: SegmentInfo, known: SegmentStatistics) -> int | None:
    """The offset of the first record with a segment's largest timestamp; None if that batch cannot
    be read.
    """
    position = known.largest_timestamp_position
    if position < 0:
        return None
    try:
        rows = scan_headers(segment.path, position, most_rows=1).rows
        spans = records_of(segment, rows[0])
    except (KafkaLogError, OSError, IndexError, StopIteration):
        return None
    offsets = spans.offsets[spans.timestamps == known.largest_timestamp_ms]
    return int(offsets[0]) if offsets.size else known.largest_timestamp_offset


def _held_back(context: FindingContext) -> Iterator[Finding]:
    """Segments that wait for the high watermark, or behind a younger one."""
    audited = context.audited
    for cause in (AWAITS_HIGH_WATERMARK, AWAITS_UPLOAD, BEHIND_YOUNGER):
        held = [s for s in audited.retention.segments if s.blocked_by == cause]
        if not held:
            continue
        first = held[0]
        what = (
            f"{audited.topic}: {len(held)} segments from {first.base_offset} on, "
            f"{format_bytes(sum(s.size_in_bytes for s in held))}, are due by their own"
        )
        if cause == AWAITS_HIGH_WATERMARK:
            why = (
                f"the high watermark is {audited.high_watermark}, the log ends at "
                f"{audited.log_end_offset}"
            )
        elif cause == AWAITS_UPLOAD:
            uploaded = context.task.uploaded_offset
            why = (
                "no __remote_log_metadata is there, so nobody tells what is uploaded"
                if uploaded is None
                else f"remote storage has offsets up to {uploaded}"
                if uploaded >= 0
                else "nothing of it is in remote storage"
            )
        else:
            oldest = next(s for s in audited.retention.segments if s.due_ms > context.now_ms)
            why = (
                f"segment {oldest.base_offset} in front of them has records of "
                f"{format_timestamp(oldest.timestamp_ms)} and goes after "
                f"{format_timestamp(oldest.due_ms)}"
            )
        yield context.say(cause, f"{what}; {why}", segment=first.base_offset)


def _due(context: FindingContext) -> Iterator[Finding]:
    forecast = context.audited.retention
    due = [s for s in forecast.segments if NEVER < s.due_ms <= context.now_ms]
    below = [s for s in due if s.rule == str(RetentionRule.LOG_START)]
    if below:
        yield context.say(
            "below-log-start",
            f"{_counted(context, below)} lie below the log start offset "
            f"{context.audited.log_start_offset}",
            segment=below[0].base_offset,
        )
    others = [s for s in due if s not in below]
    overdue = [s for s in others if _due_since(context, s) < context.alive_ms - GRACE_MS]
    if overdue:
        since = format_timestamp(_due_since(context, overdue[0]))
        yield context.say(
            "retention-overdue",
            f"{_counted(context, overdue)} are due by {_rules(overdue)} since {since}; the broker "
            f"was alive until {format_timestamp(context.alive_ms)}, at least",
            segment=overdue[0].base_offset,
        )
    elif others:
        since = format_timestamp(_due_since(context, others[0]))
        yield context.say(
            "retention-due",
            f"{_counted(context, others)} are due by {_rules(others)} since {since}",
            segment=others[0].base_offset,
        )


def _due_since(context: FindingContext, segment: SegmentForecast) -> int:
    """Of size retention at the latest since the last append: the log was as large then."""
    if segment.rule != str(RetentionRule.RETENTION_BYTES):
        return segment.due_ms
    return max((s.modification_time_ms for s in context.audited.segments), default=segment.due_ms)


def _counted(context: FindingContext, segments: list[SegmentForecast]) -> str:
    size = format_bytes(sum(s.size_in_bytes for s in segments))
    first = segments[0].base_offset
    return f"{context.audited.topic}: {len(segments)} segments from {first} on, {size},"


def _rules(segments: list[SegmentForecast]) -> str:
    config_keys = dict.fromkeys(s.rule for s in segments)
    return " and ".join(config_keys)


def _active(context: FindingContext) -> Iterator[Finding]:
    """Records older than the policy that share a segment with younger ones."""
    config, segments = context.audited.config, context.audited.segments
    if not segments or not segments[-1].is_active or segments[-1].smallest_timestamp_ms < 0:
        return
    active, now_ms = segments[-1], context.now_ms
    oldest = format_timestamp(active.smallest_timestamp_ms)
    until = format_timestamp(active.smallest_timestamp_ms + config.retention_ms)
    is_old = now_ms - active.smallest_timestamp_ms > config.retention_ms
    is_kept = now_ms - active.effective_timestamp_ms <= config.retention_ms
    if "delete" in config.cleanup_policy and config.retention_ms >= 0 and is_old and is_kept:
        yield context.say(
            "active-never-rolls",
            f"{context.audited.topic}: the active segment {active.base_offset} has records since "
            f"{oldest}, retention.ms {config.retention_ms} is past for them since "
            f"{until}; segment.ms is {config.segment_ms}, segment.bytes "
            f"{config.segment_bytes}, the segment has {active.size_in_bytes}",
            segment=active.base_offset,
            offset=active.base_offset,
            fix=f"set segment.ms to at most {max(config.retention_ms // 2, 1)}: records then go at "
            "most so long after their time; a segment rolls at the next append",
        )
    if config.is_compacted and now_ms - active.smallest_timestamp_ms > config.segment_ms:
        yield context.say(
            "active-never-rolls",
            f"{context.audited.topic}: the active segment {active.base_offset} has records since "
            f"{oldest}, older than segment.ms {config.segment_ms}: without an append it does not "
            "roll, and its records, tombstones too, are never cleaned",
            segment=active.base_offset,
            offset=active.base_offset,
            fix="append a record: the segment rolls in front of it",
        )


def _time_indexes(context: FindingContext) -> Iterator[Finding]:
    """Time indexes a broker would trust, and that tell another age than the records."""
    rebuilt = {segment.base_offset for segment in repaired_segments(context.inventory)}
    for segment in context.audited.segments:
        if segment.base_offset in rebuilt:
            continue
        if segment.padded_time_index_bytes >= _ENTRY_BYTES:
            yield context.say(
                "time-index-padded",
                f"{context.audited.topic}: {segment.padded_time_index_bytes} bytes of zeros behind "
                f"the entries of segment {segment.base_offset}: a broker takes its records for "
                "ones of 1970 and deletes it, or fails when it rolls; their largest timestamp is "
                f"{format_timestamp(segment.largest_timestamp_ms)}",
                segment=segment.base_offset,
                path=segment.path.removesuffix("log") + "timeindex",
            )
        elif not segment.is_active and segment.indexed_timestamp_ms < segment.largest_timestamp_ms:
            by = "the file's time" if segment.indexed_timestamp_ms < 0 else "its time index"
            known = max(segment.indexed_timestamp_ms, NEVER)
            age = segment.modification_time_ms if known < 0 else known
            if age < segment.largest_timestamp_ms:
                yield context.say(
                    "time-index-short",
                    f"{context.audited.topic}: retention goes by {by}, "
                    f"{format_timestamp(age)}, the records of segment {segment.base_offset} reach "
                    f"to {format_timestamp(segment.largest_timestamp_ms)}: it goes too early",
                    segment=segment.base_offset,
                    path=segment.path.removesuffix("log") + "timeindex",
                )
