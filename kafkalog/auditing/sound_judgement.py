"""What there is to say of sound logs (`sound_columns`): the results of an audit, made of columns.

sound_columns   what is known beforehand of all of them, and when each segment goes
sound_partitions  statistics, forecast and verdict of each, as `partition_audit` has them
here            which are judged, and the finding of each
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from kafkalog.auditing.advice import AdviceByTime
from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.auditing.known_files import KnownFiles
from kafkalog.auditing.request import AuditTask
from kafkalog.auditing.retention_findings import DueSegments, due_finding
from kafkalog.auditing.sound_columns import (
    Forecast,
    Moment,
    SoundColumns,
    are_plausible,
    forecast,
)
from kafkalog.auditing.sound_partitions import SoundGroup, SoundPartition
from kafkalog.auditing.thresholds import GRACE_MS
from kafkalog.log.log_numbers import NONE, I64s, LogNumbers
from kafkalog.planning.loaded_segments import LoadedSegment
from kafkalog.planning.refusals import refuse_by_inventory
from kafkalog.planning.retention import RetentionLimits, RetentionRule, why_kept
from kafkalog.planning.retention_forecast import (
    NEVER,
    why_due,
)

_BY_TIME = str(RetentionRule.RETENTION_MS)


class SoundTask(NamedTuple):
    """A log whose numbers still hold, and from which base offset on a broker makes indexes anew."""

    task: AuditTask
    log: LogNumbers
    first_repaired: int


def judge_columns(
    columns: SoundColumns, logs: Sequence[SoundTask], advice: AdviceByTime
) -> Iterator[AuditedPartition | None]:
    """What there is to say of each of these logs; None of one of which the numbers do not tell
    all."""
    at = _moment(logs)
    is_certain = are_plausible(columns, at) & forecast(columns, at).is_certain
    own = [each for each, is_one in zip(logs, is_certain.tolist(), strict=True) if is_one]
    found = iter(_judged(columns.of_logs(is_certain), own, advice) if own else ())
    for is_one in is_certain.tolist():
        yield next(found) if is_one else None


def _moment(logs: Sequence[SoundTask]) -> Moment:
    return Moment(
        logs[0].task.now_ms,
        _numbers([each.task.alive_ms for each in logs]),
        _numbers([each.task.resolved.in_force.retention_ms for each in logs]),
        _numbers([each.first_repaired for each in logs]),
    )


def _judged(
    columns: SoundColumns, logs: Sequence[SoundTask], advice: AdviceByTime
) -> Iterator[SoundPartition]:
    """Of logs of which the numbers tell all."""
    at = _moment(logs)
    due = forecast(columns, at)
    told = [_retention(*row) for row in _firsts(columns, at, due, logs)]
    group = SoundGroup(
        columns, at, due, [status for status, _ in told], [reason for _, reason in told],
        [_why_not_compacted(each) for each in logs],
    )  # fmt: skip
    for number, (own, (due_now, overdue)) in enumerate(zip(logs, _due(group), strict=True)):
        audited = SoundPartition(group, number, own.task.outline())
        if due_now.segments:
            alive_ms = own.task.alive_ms if overdue else None
            found = due_finding(audited, due_now, alive_ms, advice.of(own.task, _files(own.log)))
            audited = audited.with_findings((found,))
        yield audited


def _numbers(values: Sequence[int]) -> I64s:
    return np.array(values, np.int64)


def _why_not_compacted(own: SoundTask) -> str:
    config, end = own.task.resolved.in_force, own.log.log_end_offset
    _, reason = refuse_by_inventory(own.task.partition, config, end) or ("", "")
    return reason


def _firsts(
    columns: SoundColumns, at: Moment, due: Forecast, logs: Sequence[SoundTask]
) -> Iterator[tuple[SoundTask, LoadedSegment, int]]:
    """Of each log its first segment as a broker loads it, and when that goes."""
    firsts = columns.firsts
    bases = columns.column("base_offset")
    seconds = bases[np.minimum(firsts + 1, len(bases) - 1)]
    rows = zip(
        bases[firsts].tolist(),
        np.where(columns.counts > 1, seconds, columns.log_column("log_end_offset")).tolist(),
        due.sizes[firsts].tolist(),
        due.timestamps_ms[firsts].tolist(),
        columns.modification_times_ms[firsts].tolist(),
        due.is_file_time[firsts].tolist(),
        (columns.counts == 1).tolist(),
        strict=True,
    )
    for own, row, due_ms in zip(logs, rows, due.due_ms[firsts].tolist(), strict=True):
        yield own, LoadedSegment(*row), due_ms


def _retention(own: SoundTask, oldest: LoadedSegment, due_ms: int) -> tuple[str, str]:
    """Whether something goes, and the reason of the first segment, which goes first: a segment
    never goes before one in front of it.
    """
    task, log = own.task, own.log
    config = task.resolved.in_force
    limits = RetentionLimits(config, task.now_ms, log.log_end_offset, log.log_start_offset)
    if NEVER < due_ms <= task.now_ms:
        status, text = "due", why_due(oldest, limits, due_ms, _BY_TIME)
    else:
        status = "later" if due_ms != NEVER else "never"
        text = why_kept(oldest, (), oldest, limits)[1]
    return status, f"segment {oldest.base_offset}: {text}"


def _due(group: SoundGroup) -> Iterator[tuple[DueSegments, bool]]:
    """Of each log what is due, and whether that is overdue; empty of one of which nothing is. What
    goes are its first segments, and the first one is due since longest.
    """
    columns, due_ms, firsts = group.columns, group.due.due_ms, group.columns.firsts
    is_overdue = group.is_due & (due_ms < columns.each(group.at.alive_ms - GRACE_MS))
    has_overdue = columns.any_segment(is_overdue)
    told = np.where(np.repeat(has_overdue, columns.counts), is_overdue, group.is_due)
    rows = zip(
        np.add.reduceat(told.astype(np.int64), firsts).tolist(),
        columns.column("base_offset")[firsts].tolist(),
        np.add.reduceat(np.where(told, group.due.sizes, 0), firsts).tolist(),
        due_ms[firsts].tolist(),
        has_overdue.tolist(),
        strict=True,
    )
    for segments, first, size, since_ms, overdue in rows:
        yield DueSegments(segments, first, size, since_ms, _BY_TIME), overdue


def _files(log: LogNumbers) -> KnownFiles:
    """Of the leader epochs the newest is all that a command is held against."""
    newest = log.newest_leader_epoch
    return KnownFiles(leader_epochs=None if newest == NONE else ((newest, 0),), is_mark_known=True)
