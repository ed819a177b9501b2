"""What there is to say of sound logs (`sound_columns`): the results of an audit, made of columns.

sound_columns   what is known beforehand of all of them, and when each segment goes
sound_partitions  statistics, forecast and verdict of each, as `partition_audit` has them
here            which are judged, and the finding of each
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from kafkalog.auditing.advice import advise_retention_by_time
from kafkalog.auditing.audited_partition import AuditedPartition
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
from kafkalog.auditing.sound_partitions import SoundGroup, SoundPartition
from kafkalog.checking.finding import Finding
from kafkalog.log.header_facts import PartitionFacts, SegmentFacts
from kafkalog.log.kept_logs import NONE, I64s, LogNumbers, SegmentNumbers
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
    columns: SoundColumns, logs: Sequence[SoundTask]
) -> Iterator[AuditedPartition | None]:
    """What there is to say of each of these logs; None of one of which the numbers do not tell
    all."""
    at = _moment(logs)
    is_certain = are_plausible(columns, at) & forecast(columns, at).is_certain
    own = [each for each, is_one in zip(logs, is_certain.tolist(), strict=True) if is_one]
    found = iter(_judged(columns.of_logs(is_certain), own) if own else ())
    for is_one in is_certain.tolist():
        yield next(found) if is_one else None


def _moment(logs: Sequence[SoundTask]) -> Moment:
    return Moment(
        logs[0].task.now_ms,
        _numbers([each.task.alive_ms for each in logs]),
        _numbers([each.task.resolved.in_force.retention_ms for each in logs]),
        _numbers([each.first_repaired for each in logs]),
    )


def _judged(columns: SoundColumns, logs: Sequence[SoundTask]) -> Iterator[SoundPartition]:
    """Of logs of which the numbers tell all."""
    at = _moment(logs)
    due = forecast(columns, at)
    told = [_retention(*row) for row in _firsts(columns, at, due, logs)]
    group = SoundGroup(
        columns, at, due, [status for status, _ in told], [reason for _, reason in told],
        [_why_not_compacted(each) for each in logs],
    )  # fmt: skip
    for number, own in enumerate(logs):
        audited = SoundPartition(group, number, own.task.outline())
        if told[number][0] == "due":
            audited = audited.with_findings(_due(audited, own))
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


def _due(audited: SoundPartition, own: SoundTask) -> tuple[Finding, ...]:
    """The finding that segments are due, and the command for it, tried."""
    # Of the leader epochs the newest is all that the command is held against.
    newest = own.log.newest_leader_epoch
    files = KnownFiles(leader_epochs=None if newest == NONE else ((newest, 0),), is_mark_known=True)
    group = audited.group
    segments = group.columns.segments[group.ends[audited.number] : group.ends[audited.number + 1]]
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
