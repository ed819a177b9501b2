"""Records with a time that is not theirs, in another unit or ahead of time, and retention."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kafkalog.auditing.finding_context import FindingContext
from kafkalog.auditing.thresholds import depends_on_time, is_in_seconds, latest_sound_ms
from kafkalog.checking.finding import MAX_PER_KIND, Finding
from kafkalog.contents.segment_statistics import SegmentStatistics
from kafkalog.errors import KafkaLogError
from kafkalog.format.constants import MAX_INT64
from kafkalog.format.file_names import producer_snapshot_file_name
from kafkalog.format.producer_snapshot import parse_producer_snapshot
from kafkalog.log.inventory import SegmentInfo
from kafkalog.log.producer_state import MAX_SNAPSHOT_BYTES
from kafkalog.log.segment_headers import scan_headers
from kafkalog.log.small_files import read_small_file
from kafkalog.planning.policy_evidence import POLICY, UNKNOWN
from kafkalog.planning.retention_forecast import (
    FUTURE_TIMESTAMP,
    NEVER,
    SECONDS,
    WRONG_UNIT,
    is_wrong_unit,
)
from kafkalog.reading.lookups import records_of
from kafkalog.texts import format_bytes, format_setting_ms, format_timestamp


def find_seconds(context: FindingContext) -> Iterator[Finding]:
    """Times of seconds, in the log or in what retention has left of it."""
    config = context.audited.config
    may_delete = "delete" in config.cleanup_policy or config.source(POLICY) == UNKNOWN
    if not may_delete or config.retention_ms < 0:
        return
    found = [s for s in context.audited.segments if is_in_seconds(s.largest_timestamp_ms)]
    if found:
        segment = found[0]
        yield context.say(
            SECONDS,
            f"{context.audited.topic}: {len(found)} of {len(context.audited.segments)} segments "
            f"({format_bytes(sum(s.size_in_bytes for s in found))}) have timestamps in seconds, as "
            f"{_seconds(segment.largest_timestamp_ms)} in segment {segment.base_offset}: all of "
            f"them is older than retention.ms {format_setting_ms(config.retention_ms)}, and a "
            "broker deletes it at "
            "its next check, while it is written",
            offset=largest_offset(context.info(segment.base_offset), segment),
            position=segment.largest_timestamp_position,
            segment=segment.base_offset,
            path=segment.path,
        )
        return
    audited = context.audited
    if audited.log_start_offset == 0 or any(s.records_count for s in audited.segments):
        return
    for where, timestamp in _traces(context):
        yield context.say(
            SECONDS,
            f"{audited.topic}: the log is empty up to offset {audited.log_end_offset}, and {where} "
            f"has a timestamp in seconds, {_seconds(timestamp)}: what was written was older than "
            f"retention.ms {format_setting_ms(config.retention_ms)} at once, and retention has "
            "deleted it",
            offset=audited.log_start_offset,
        )
        return


def _traces(context: FindingContext) -> Iterator[tuple[str, int]]:
    """Times of what is deleted: of segments that wait for their removal, and of last batches in the
    newest producer snapshot.
    """
    for segment in context.inventory.other_segments:
        if segment.state == "deleted" and is_in_seconds(segment.largest_timestamp_ms):
            yield Path(segment.path).name, segment.largest_timestamp_ms
    for offset in context.inventory.snapshot_offsets[-1:]:
        path = Path(context.inventory.path, producer_snapshot_file_name(offset))
        try:
            entries = parse_producer_snapshot(
                read_small_file(path, MAX_SNAPSHOT_BYTES), path=str(path)
            )
        except (KafkaLogError, OSError):
            return
        for entry in entries:
            if is_in_seconds(entry.timestamp):
                yield f"the last batch of producer {entry.producer_id}", entry.timestamp


def _seconds(timestamp: int) -> str:
    return (
        f"{timestamp} (in s it is {format_timestamp(timestamp * 1000)}, read as ms "
        f"{format_timestamp(timestamp)})"
    )


def find_future(context: FindingContext) -> Iterator[Finding]:
    """A segment with a timestamp ahead of time, what it holds back, and since when."""
    config, segments = context.audited.config, context.audited.retention.segments
    if not depends_on_time(
        config.cleanup_policy, config.retention_ms, config.min_compaction_lag_ms
    ):
        return
    limit_ms = latest_sound_ms(context.now_ms, config.message_timestamp_after_max_ms)
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
            if known is None or context.task.is_copied
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
            fix=_what_removes_it(context, number),
        )


def _what_removes_it(context: FindingContext, number: int) -> str:
    """Offsets up to which all is due by times that are right: `kafka-delete-records` takes these,
    and the segments between with a wrong time, but nothing younger. Where there is nothing due
    behind the segment, how old its own records are nobody knows.
    """
    keeps_out = "let the producer write ms that are no later than now" + (
        "" if context.audited.config.message_timestamp_after_max_ms < MAX_INT64
        else "; message.timestamp.after.max.ms refuses others"
    )  # fmt: skip
    end = _due_but_for_wrong_times(context, number)
    if end is None:
        return f"{keeps_out}; nothing behind it is due, so nothing is held back yet"
    name = context.audited
    return (
        f"{keeps_out}; `kafka-delete-records.sh` up to offset {end} of {name.topic}, partition "
        f"{name.partition}, deletes what is due behind it, this segment, and nothing younger"
    )


def _due_but_for_wrong_times(context: FindingContext, number: int) -> int | None:
    """The end of the last segment behind this one that is expired, where all in front of it are
    too, or have times ahead: what is in these was written before. None without one, and where a
    broker refuses to delete records.
    """
    config, segments = context.audited.config, context.audited.retention.segments
    if "delete" not in config.cleanup_policy or config.retention_ms < 0:
        return None
    end = None
    ends = [*(s.base_offset for s in segments[1:]), context.audited.log_end_offset]
    for n, (segment, segment_end) in enumerate(zip(segments, ends, strict=True)):
        is_expired = context.now_ms - segment.timestamp_ms > config.retention_ms
        is_ahead = segment.timestamp_ms > context.now_ms and not segment.is_file_time
        if not (is_expired or is_ahead) or segment_end > context.audited.high_watermark:
            break
        if n > number and is_expired:
            end = segment_end
    return end


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
