"""Audited logs that nothing is wrong with, some hundred together: columns, of which the objects of
one log are made when they are asked for and not held.

A SoundPartition is an AuditedPartition like any other to who looks at it. Who goes over all
partitions takes sums (`with_sums`), or the columns of a group, and makes no object of a segment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from functools import cached_property
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from kafkalog.auditing.advice import nothing_to_compact
from kafkalog.auditing.audited_partition import (
    BYTE_KINDS,
    AuditedPartition,
    CompactionVerdict,
    Leftover,
)
from kafkalog.auditing.compaction_verdict import NOT_COMPACTED
from kafkalog.auditing.sound_columns import Forecast, Moment, SoundColumns
from kafkalog.auditing.sound_facts import segment_path
from kafkalog.checking.finding import Finding
from kafkalog.contents.header_contents import HeaderContents, TimeSlice
from kafkalog.contents.log_contents import Contents
from kafkalog.contents.segment_statistics import CODEC_NAMES, SegmentStatistics
from kafkalog.format.constants import MAX_INT64
from kafkalog.log.log_numbers import I64s
from kafkalog.planning.retention import RetentionRule
from kafkalog.planning.retention_forecast import NEVER, RetentionForecast, SegmentForecast

_BY_TIME = str(RetentionRule.RETENTION_MS)
_EMPTY = str(RetentionRule.EMPTY_ACTIVE)
_NO_LIMIT = str(RetentionRule.NO_LIMIT)
UNCLEANABLE = "active segment"
# What SegmentStatistics has of transactions, control batches and damage, in its order.
_NOTHING_ODD = (0, 0, 0, 0, -1, "", "", -1, False)


class PartitionSums(NamedTuple):
    """Of one partition directory: bytes in the order of BYTE_KINDS; -1 for no time and no limit."""

    bytes_by_kind: Sequence[int]
    segments: int
    records: int
    due_bytes: int
    blocked_bytes: int
    oldest_ms: int
    newest_ms: int
    largest_segment_bytes: int


class VerdictNumbers(NamedTuple):
    """Of a log that is not compacted: base of its active segment, bytes of all and of closed
    segments, since when these wait, the first time.
    """

    active_base: int
    all_bytes: int
    closed_bytes: int
    waits_since_ms: int
    dirty_since_ms: int

    @property
    def cleanable_ratio(self) -> float:
        """All closed segments are dirty."""
        return 1.0 if self.closed_bytes else 0.0


class SoundGroup:
    """Logs that were judged together. `statuses` and `reasons`: of each log's retention;
    `not_compacted`: why it is not.
    """

    def __init__(
        self,
        columns: SoundColumns,
        at: Moment,
        due: Forecast,
        statuses: Sequence[str],
        reasons: Sequence[str],
        not_compacted: Sequence[str],
    ) -> None:
        self.columns, self.at, self.due = columns, at, due
        self.statuses, self.reasons, self.not_compacted = statuses, reasons, not_compacted
        self.ends: list[int] = [0, *(columns.actives + 1).tolist()]

    @property
    def rules(self) -> list[str]:
        """Of each segment the one that takes or keeps it."""
        is_timed = self.columns.each(self.at.retention_ms) >= 0
        found = np.where(self.due.is_empty, _EMPTY, np.where(is_timed, _BY_TIME, _NO_LIMIT))
        rules: list[str] = found.tolist()
        return rules

    @cached_property
    def bytes_of_kinds(self) -> I64s:
        """Of each log a column a kind, in the order of BYTE_KINDS."""
        names = {"log": "log_bytes", "index": "index_bytes", "snapshot": "snapshot_bytes",
                 "other": "other_bytes"}  # fmt: skip
        none = np.zeros(len(self.columns), np.int64)
        own = [self.columns.log_column(names[k]) if k in names else none for k in BYTE_KINDS]
        return np.stack(own, axis=1)

    @property
    def is_due(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which segments go now."""
        return (self.due.due_ms > NEVER) & (self.due.due_ms <= self.at.now_ms)

    @cached_property
    def sums(self) -> list[PartitionSums]:
        """Of each log."""
        columns = self.columns
        smallest, firsts = columns.column("min_timestamp_ms"), columns.firsts
        rows = zip(
            self.bytes_of_kinds.tolist(),
            columns.counts.tolist(),
            np.add.reduceat(columns.column("records_count"), firsts).tolist(),
            np.add.reduceat(np.where(self.is_due, self.due.sizes, 0), firsts).tolist(),
            [0] * len(firsts),  # nothing is held back
            columns.smallest(smallest, smallest >= 0, NEVER).tolist(),
            np.maximum.reduceat(columns.column("largest_timestamp_ms"), firsts).tolist(),
            np.maximum.reduceat(self.due.sizes, firsts).tolist(),
            strict=True,
        )
        return [PartitionSums(*row) for row in rows]

    def _segments(self, number: int) -> slice:
        return slice(self.ends[number], self.ends[number + 1])

    def forecasts(self, number: int) -> tuple[SegmentForecast, ...]:
        """Of the segments of a log, each without the text of its rule."""
        own, due = self._segments(number), self.due
        by = _BY_TIME if int(self.at.retention_ms[number]) >= 0 else _NO_LIMIT
        rows = zip(
            self.columns.column("base_offset")[own].tolist(),
            due.sizes[own].tolist(),
            due.timestamps_ms[own].tolist(),
            due.is_file_time[own].tolist(),
            due.due_ms[own].tolist(),
            [_EMPTY if is_empty else by for is_empty in due.is_empty[own].tolist()],
            repeat(""),
            repeat(""),
            strict=False,
        )
        return tuple(SegmentForecast(*row) for row in rows)

    def statistics(self, number: int, directory: str) -> tuple[SegmentStatistics, ...]:
        """Of the segments of a log in a directory."""
        rows = self.columns.segments_of(number)
        return tuple(
            SegmentStatistics(
                row.base_offset, row.next_offset, segment_path(directory, row.base_offset),
                row is rows[-1], row.size_in_bytes, row.valid_bytes, row.batches_count,
                row.records_count, row.min_timestamp_ms, row.largest_timestamp_ms,
                row.largest_timestamp_offset, row.largest_timestamp_position,
                row.first_timestamp_ms, row.indexed_timestamp_ms, row.mtime_ns // 1_000_000,
                {CODEC_NAMES[row.codec]: row.codec_bytes} if row.codec >= 0 else {},
                *_NOTHING_ODD,
                row.index_bytes, max(row.time_file_bytes - row.time_index_bytes, 0),
            )
            for row in rows
        )  # fmt: skip

    def contents(self, number: int) -> Contents:
        """What the headers of a log say of its contents."""
        log = self.columns.log(number)
        return Contents(
            HeaderContents(
                committed_bytes=log.committed_bytes,
                aborted_bytes=0,
                open_bytes=0,
                marker_bytes=0,
                markers=0,
                bare_markers=0,
                oldest_timestamp_ms=log.oldest_timestamp_ms,
                newest_timestamp_ms=log.newest_timestamp_ms,
                slices=tuple(TimeSlice(*row) for row in self.columns.slices_of(number)),
                horizons=(),
            )
        )

    @cached_property
    def verdicts(self) -> list[VerdictNumbers]:
        """Of each log."""
        columns = self.columns
        is_closed, times = ~columns.active_flags, columns.column("min_timestamp_ms")
        sizes, first_times = columns.column("size_in_bytes"), columns.column("first_timestamp_ms")
        all_bytes = np.add.reduceat(sizes, columns.firsts)
        rows = zip(
            columns.column("base_offset")[columns.actives].tolist(),
            all_bytes.tolist(),
            (all_bytes - sizes[columns.actives]).tolist(),
            columns.smallest(first_times, is_closed & (first_times > 0), MAX_INT64).tolist(),
            columns.smallest(times, times >= 0, NEVER).tolist(),
            strict=True,
        )
        return list(map(VerdictNumbers._make, rows))

    def must_compact(self, verdict: VerdictNumbers, max_compaction_lag_ms: int) -> bool:
        """Whether closed segments wait for longer than the policy lets them."""
        return verdict.waits_since_ms < self.at.now_ms - max_compaction_lag_ms

    def verdict(self, number: int, max_compaction_lag_ms: int) -> CompactionVerdict:
        """Of a log whose policy is not to compact."""
        own, reason = self.verdicts[number], self.not_compacted[number]
        return CompactionVerdict(
            status=NOT_COMPACTED,
            reason=reason,
            first_dirty_offset=int(self.columns.log_column("log_start_offset")[number]),
            first_uncleanable_offset=own.active_base,
            uncleanable_reason=UNCLEANABLE,
            clean_bytes=0,
            dirty_bytes=own.all_bytes,
            cleanable_bytes=own.closed_bytes,
            cleanable_ratio=own.cleanable_ratio,
            must_compact=self.must_compact(own, max_compaction_lag_ms),
            cleanable_at_ms=NEVER,
            cleaned_up_to_ms=NEVER,
            dirty_since_ms=own.dirty_since_ms,
            can_clean_again=False,
            advice=nothing_to_compact(reason),
        )


class SoundPartition(AuditedPartition):
    """A log of a group, by its number there. What takes room is made each time it is asked for."""

    __slots__ = ("group", "number")
    group: SoundGroup
    number: int

    def __init__(self, group: SoundGroup, number: int, outline: dict[str, Any]) -> None:
        put = object.__setattr__  # a frozen class has no other way
        for name, value in outline.items():
            put(self, name, value)
        put(self, "findings", ())
        put(self, "is_carried", True)
        put(self, "group", group)
        put(self, "number", number)
        put(self, "carried_segments", group.ends[number + 1] - group.ends[number])

    def with_findings(self, findings: tuple[Finding, ...]) -> SoundPartition:
        """This one, which has none yet."""
        object.__setattr__(self, "findings", findings)
        return self

    def note_reading(self) -> None:
        """Its numbers are of this run, not of an earlier one."""
        object.__setattr__(self, "is_carried", False)
        object.__setattr__(self, "carried_segments", 0)

    # What is the same of all of them.

    @property
    def problems(self) -> tuple[str, ...]:
        return ()

    @property
    def scan(self) -> bytes:
        return b""

    @property
    def sound(self) -> None:
        return None

    @property
    def remote(self) -> None:
        return None

    @property
    def leftovers(self) -> tuple[Leftover, ...]:
        return ()

    # What its numbers tell.

    @property
    def high_watermark(self) -> int:
        return self.log_end_offset

    @property
    def last_stable_offset(self) -> int:
        return self.log_end_offset

    @property
    def segments(self) -> tuple[SegmentStatistics, ...]:
        return self.group.statistics(self.number, self.path)

    @property
    def bytes_by_kind(self) -> dict[str, int]:
        own: list[int] = self.group.bytes_of_kinds[self.number].tolist()
        return dict(zip(BYTE_KINDS, own, strict=True))

    @property
    def retention(self) -> RetentionForecast:
        group, number = self.group, self.number
        return RetentionForecast(
            group.at.now_ms, group.statuses[number], group.reasons[number],
            group.forecasts(number),
        )  # fmt: skip

    @property
    def compaction(self) -> CompactionVerdict:
        return self.group.verdict(self.number, self.config.max_compaction_lag_ms)

    @property
    def contents(self) -> Contents:
        return self.group.contents(self.number)

    @property
    def commits(self) -> None:
        return None

    @property
    def whole(self) -> AuditedPartition:
        """As an object of its own, with all that is in it."""
        return AuditedPartition(**{each.name: getattr(self, each.name) for each in _FIELDS})


_FIELDS = fields(AuditedPartition)


def with_sums(
    partitions: Iterable[AuditedPartition],
) -> Iterator[tuple[AuditedPartition, PartitionSums]]:
    """Each partition with its sums."""
    group, rows = None, []
    for each in partitions:
        if isinstance(each, SoundPartition):
            if each.group is not group:
                group, rows = each.group, each.group.sums
            yield each, rows[each.number]
        else:
            yield each, _sums(each)


def _sums(audited: AuditedPartition) -> PartitionSums:
    forecast, segments = audited.retention, audited.segments
    times = [s.smallest_timestamp_ms for s in segments if s.smallest_timestamp_ms >= 0]
    return PartitionSums(
        [audited.bytes_by_kind[kind] for kind in BYTE_KINDS],
        len(forecast.segments),
        audited.records_count,
        forecast.due_bytes,
        forecast.blocked_bytes,
        min(times, default=NEVER),
        max((s.largest_timestamp_ms for s in segments), default=NEVER),
        max((s.size_in_bytes for s in forecast.segments), default=0),
    )


def due_columns(partitions: Iterable[AuditedPartition]) -> Iterator[tuple[I64s, I64s, I64s]]:
    """(base offsets, bytes, when it goes) of the segments of each partition."""
    group, bases = None, np.empty(0, np.int64)
    for each in partitions:
        if isinstance(each, SoundPartition):
            if each.group is not group:
                group, bases = each.group, each.group.columns.column("base_offset")
            own = slice(group.ends[each.number], group.ends[each.number + 1])
            yield bases[own], group.due.sizes[own], group.due.due_ms[own]
        else:
            rows = [(s.base_offset, s.size_in_bytes, s.due_ms) for s in each.retention.segments]
            own_bases, sizes, due_ms = np.array(rows, np.int64).reshape(-1, 3).T
            yield own_bases, sizes, due_ms


def in_groups(
    partitions: Iterable[AuditedPartition],
) -> tuple[list[tuple[SoundGroup, list[SoundPartition]]], list[AuditedPartition]]:
    """The sound ones by their group, and the others."""
    groups: dict[int, tuple[SoundGroup, list[SoundPartition]]] = {}
    others = []
    for each in partitions:
        if isinstance(each, SoundPartition):
            groups.setdefault(id(each.group), (each.group, []))[1].append(each)
        else:
            others.append(each)
    return list(groups.values()), others
