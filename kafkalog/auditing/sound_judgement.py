"""What there is to say of sound logs (`sound_columns`): the results of an audit, made of columns.

sound_columns   what is known beforehand of all of them, and when each segment goes
here            statistics, forecast, verdict and finding of each, as `partition_audit` has them
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from kafkalog.auditing.advice import advise_retention_by_time, nothing_to_compact
from kafkalog.auditing.audited_partition import AuditedPartition, CompactionVerdict
from kafkalog.auditing.compaction_verdict import NOT_COMPACTED
from kafkalog.auditing.finding_context import FindingContext
from kafkalog.auditing.known_files import KnownFiles
from kafkalog.auditing.request import AuditTask
from kafkalog.auditing.retention_findings import find_due
from kafkalog.auditing.sound_columns import (
    Forecast,
    Moment,
    SoundColumns,
    are_plausible,
    forecast,
)
from kafkalog.checking.finding import Finding
from kafkalog.contents.header_contents import HeaderContents, TimeSlice
from kafkalog.contents.log_contents import Contents
from kafkalog.contents.segment_statistics import CODEC_NAMES, SegmentStatistics
from kafkalog.format.constants import MAX_INT64
from kafkalog.log.header_facts import PartitionFacts, SegmentFacts
from kafkalog.log.kept_logs import NONE, I64s, LogNumbers, SegmentNumbers
from kafkalog.planning.loaded_segments import LoadedSegment
from kafkalog.planning.refusals import refuse_by_inventory
from kafkalog.planning.retention import RetentionLimits, RetentionRule, why_kept
from kafkalog.planning.retention_forecast import (
    NEVER,
    RetentionForecast,
    SegmentForecast,
    why_due,
)

_BY_TIME = str(RetentionRule.RETENTION_MS)
_EMPTY = str(RetentionRule.EMPTY_ACTIVE)
_NO_LIMIT = str(RetentionRule.NO_LIMIT)
# What SegmentStatistics has of transactions, control batches and damage, in its order.
_NOTHING_ODD = (0, 0, 0, 0, -1, "", "", -1, False)


class SoundTask(NamedTuple):
    """A log whose numbers still hold, and from which base offset on a broker makes indexes anew."""

    task: AuditTask
    log: LogNumbers
    first_repaired: int


def judge_columns(
    columns: SoundColumns, logs: Sequence[SoundTask]
) -> Iterator[AuditedPartition | None]:
    """What there is to say of each of these logs; None of one of which the numbers do not tell
    all."""
    if not logs:
        return
    at = Moment(
        logs[0].task.now_ms,
        _numbers([each.task.alive_ms for each in logs]),
        _numbers([each.task.resolved.in_force.retention_ms for each in logs]),
        _numbers([each.first_repaired for each in logs]),
    )
    due = forecast(columns, at)
    statistics, forecasts = _statistics(columns, logs), _forecasts(columns, at, due)
    verdicts, slices = _verdicts(columns, logs), list(_slices(columns))
    is_certain = (are_plausible(columns, at) & due.is_certain).tolist()
    ends = [0, *(columns.actives + 1).tolist()]
    for number, own in enumerate(logs):
        if not is_certain[number]:
            yield None
            continue
        first, end = ends[number], ends[number + 1]
        fields = _fields(
            own, statistics[first:end], tuple(forecasts[first:end]), verdicts[number],
            slices[number],
        )  # fmt: skip
        audited = AuditedPartition(**fields)
        if audited.retention.status == "due":
            findings = _due(audited, own, columns.segments[first:end])
            audited = AuditedPartition(**fields, findings=findings)
        yield audited


def _numbers(values: Sequence[int]) -> I64s:
    return np.array(values, np.int64)


def _fields(
    own: SoundTask,
    statistics: Sequence[SegmentStatistics],
    forecasts: tuple[SegmentForecast, ...],
    verdict: CompactionVerdict,
    slices: tuple[TimeSlice, ...],
) -> dict[str, Any]:
    """The fields of an AuditedPartition, but findings."""
    task, log = own.task, own.log
    return {
        **task.outline(),
        "high_watermark": log.log_end_offset,
        "last_stable_offset": log.log_end_offset,
        "segments": tuple(statistics),
        "bytes_by_kind": {
            "log": log.log_bytes, "index": log.index_bytes, "snapshot": log.snapshot_bytes,
            "leftover": 0, "undo": 0, "other": log.other_bytes,
        },
        "leftovers": (),
        "retention": _summed_up(task, statistics, forecasts),
        "compaction": verdict,
        "is_carried": True,
        "carried_segments": len(statistics),
        "contents": Contents(
            HeaderContents(
                committed_bytes=log.committed_bytes,
                aborted_bytes=0,
                open_bytes=0,
                marker_bytes=0,
                markers=0,
                bare_markers=0,
                oldest_timestamp_ms=log.oldest_timestamp_ms,
                newest_timestamp_ms=log.newest_timestamp_ms,
                slices=slices,
                horizons=(),
            )
        ),
    }  # fmt: skip


def _statistics(columns: SoundColumns, logs: Sequence[SoundTask]) -> list[SegmentStatistics]:
    names = (
        "size_in_bytes", "valid_bytes", "batches_count", "records_count", "min_timestamp_ms",
        "largest_timestamp_ms", "largest_timestamp_offset", "largest_timestamp_position",
        "first_timestamp_ms", "indexed_timestamp_ms",
    )  # fmt: skip
    zeros = columns.column("time_file_bytes") - columns.column("time_index_bytes")
    codecs = zip(
        columns.column("codec").tolist(), columns.column("codec_bytes").tolist(), strict=True
    )
    rows = zip(
        columns.column("base_offset").tolist(),
        columns.column("next_offset").tolist(),
        (info.path for each in logs for info in each.task.partition.segments),
        columns.active_flags.tolist(),
        *(columns.column(name).tolist() for name in names),
        columns.modification_times_ms.tolist(),
        (_codec_bytes(codec, size) for codec, size in codecs),
        *map(repeat, _NOTHING_ODD),
        columns.column("index_bytes").tolist(),
        np.maximum(zeros, 0).tolist(),
        strict=False,
    )
    return [SegmentStatistics(*row) for row in rows]


def _codec_bytes(codec: int, size: int) -> dict[str, int]:
    return {CODEC_NAMES[codec]: size} if 0 <= codec < len(CODEC_NAMES) else {}


def _forecasts(columns: SoundColumns, at: Moment, due: Forecast) -> list[SegmentForecast]:
    """Each without the text of its rule."""
    is_timed = columns.each(at.retention_ms) >= 0
    rules = (
        _EMPTY if is_empty else _BY_TIME if by_time else _NO_LIMIT
        for is_empty, by_time in zip(due.is_empty.tolist(), is_timed.tolist(), strict=True)
    )
    rows = zip(
        columns.column("base_offset").tolist(),
        due.sizes.tolist(),
        due.timestamps_ms.tolist(),
        due.is_file_time.tolist(),
        due.due_ms.tolist(),
        rules,
        repeat(""),
        repeat(""),
        strict=False,
    )
    return [SegmentForecast(*row) for row in rows]


def _slices(columns: SoundColumns) -> Iterator[tuple[TimeSlice, ...]]:
    slices = [TimeSlice(*numbers) for numbers in columns.slices.tolist()]
    first = 0
    for count in columns.slice_counts.tolist():
        yield tuple(slices[first : first + count])
        first += count


def _verdicts(columns: SoundColumns, logs: Sequence[SoundTask]) -> list[CompactionVerdict]:
    """Those of logs whose policy is not to compact."""
    is_closed, times = ~columns.active_flags, columns.column("min_timestamp_ms")
    sizes, first_times = columns.column("size_in_bytes"), columns.column("first_timestamp_ms")
    all_bytes = np.add.reduceat(sizes, columns.firsts)
    rows = zip(
        logs,
        columns.column("base_offset")[columns.actives].tolist(),
        all_bytes.tolist(),
        (all_bytes - sizes[columns.actives]).tolist(),
        columns.smallest(first_times, is_closed & (first_times > 0), MAX_INT64).tolist(),
        columns.smallest(times, times >= 0, NEVER).tolist(),
        strict=True,
    )
    return [_verdict(*row) for row in rows]


def _verdict(
    own: SoundTask,
    active_base: int,
    all_bytes: int,
    closed_bytes: int,
    waits_since_ms: int,
    dirty_since_ms: int,
) -> CompactionVerdict:
    task, log = own.task, own.log
    config = task.resolved.in_force
    _, reason = refuse_by_inventory(task.partition, config, log.log_end_offset) or ("", "")
    return CompactionVerdict(
        status=NOT_COMPACTED,
        reason=reason,
        first_dirty_offset=log.log_start_offset,
        first_uncleanable_offset=active_base,
        uncleanable_reason="active segment",
        clean_bytes=0,
        dirty_bytes=all_bytes,
        cleanable_bytes=closed_bytes,
        cleanable_ratio=1.0 if closed_bytes else 0.0,
        must_compact=waits_since_ms < task.now_ms - config.max_compaction_lag_ms,
        cleanable_at_ms=NEVER,
        cleaned_up_to_ms=NEVER,
        dirty_since_ms=dirty_since_ms,
        can_clean_again=False,
        advice=nothing_to_compact(reason),
    )


def _summed_up(
    task: AuditTask,
    statistics: Sequence[SegmentStatistics],
    forecasts: tuple[SegmentForecast, ...],
) -> RetentionForecast:
    """With the reason of the first that goes, now or later."""
    partition, config = task.partition, task.resolved.in_force
    limits = RetentionLimits(
        config, task.now_ms, partition.log_end_offset, partition.log_start_offset
    )
    first = forecasts[0]
    oldest = LoadedSegment(
        first.base_offset,
        forecasts[1].base_offset if len(forecasts) > 1 else partition.log_end_offset,
        first.size_in_bytes,
        first.timestamp_ms,
        statistics[0].modification_time_ms,
        first.is_file_time,
        statistics[0].is_active,
    )
    if NEVER < first.due_ms <= task.now_ms:
        status, text = "due", why_due(oldest, limits, first.due_ms, first.rule)
    else:
        # A segment never goes before one in front of it.
        status = "later" if first.due_ms != NEVER else "never"
        text = why_kept(oldest, (), oldest, limits)[1]
    reason = f"segment {first.base_offset}: {text}"
    return RetentionForecast(task.now_ms, status, reason, forecasts)


def _due(audited: AuditedPartition, own: SoundTask, segments: I64s) -> tuple[Finding, ...]:
    """The finding that segments are due, and the command for it, tried."""
    # Of the leader epochs the newest is all that the command is held against.
    newest = own.log.newest_leader_epoch
    files = KnownFiles(leader_epochs=None if newest == NONE else ((newest, 0),), is_mark_known=True)
    base_offsets = segments[:, SegmentNumbers._fields.index("base_offset")]
    repaired = tuple(
        _retention_facts(SegmentNumbers._make(numbers))
        for numbers in segments[base_offsets >= own.first_repaired].tolist()
    )
    context = FindingContext(
        audited,
        own.task,
        own.task.partition,
        PartitionFacts(()),
        PartitionFacts(repaired),
        frozenset(facts.base_offset for facts in repaired),
        files,
        is_high_watermark_known=True,
        indexes_end_in_log=True,
    )
    return tuple(find_due(context, advise_retention_by_time(own.task, files)))


def _retention_facts(numbers: SegmentNumbers) -> SegmentFacts:
    """What retention looks at in a segment that a broker repairs."""
    has_batches = numbers.next_offset > numbers.base_offset
    return SegmentFacts(
        base_offset=numbers.base_offset,
        batches_count=numbers.batches_count,
        records_count=numbers.records_count,
        first_offset=numbers.base_offset if has_batches else None,
        last_offset=numbers.next_offset - 1 if has_batches else None,
        min_timestamp_ms=numbers.min_timestamp_ms,
        max_timestamp_ms=numbers.max_timestamp_ms,
        first_batch_max_timestamp_ms=None
        if numbers.first_timestamp_ms == NONE
        else numbers.first_timestamp_ms,
        has_transactional=False,
        has_control=False,
        has_producer_ids=False,
        magics=(),
        codecs=(),
        largest_batch_bytes=0,
        valid_bytes=numbers.valid_bytes,
        trailing_bytes=0,
    )
