"""The numbers of many sound logs (`sound_facts`) in columns, and what time makes of them: when each
segment goes, if time alone deletes.

What is said of a log is what `planning.retention_forecast` and `timestamp_findings` say of it:
nothing is below the log start or above a size, all of it is replicated, and the empty active
segment is the only one that never goes. A log of which it would be more is not certain here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kafkalog.auditing.retention_findings import ENTRY_BYTES
from kafkalog.auditing.thresholds import SECONDS_MS
from kafkalog.contents.segment_statistics import CODEC_NAMES
from kafkalog.format.constants import MAX_INT64
from kafkalog.log.kept_logs import KeptLogs
from kafkalog.log.log_numbers import NONE, I64s, LogNumbers, SegmentNumbers
from kafkalog.planning.retention_forecast import NEVER

Flags = NDArray[np.bool_]

# No later time is judged here, so that no sum below leaves 64 bits.
MOST_MS = 1 << 62


class SoundColumns:
    """Of some kept logs, each with a segment at least: columns, made of what is kept each time they
    are asked for.
    """

    def __init__(self, kept: KeptLogs, places: Sequence[int] | I64s) -> None:
        self._kept, self._places = kept, np.asarray(places, np.int64)
        self.counts = kept.counts("segment", self._places)
        self.slice_counts = kept.counts("slice", self._places)

    def __len__(self) -> int:
        return len(self._places)

    @cached_property
    def _rows(self) -> I64s:
        return self._kept.rows("segment", self._places)

    @cached_property
    def firsts(self) -> I64s:
        """The first segment of each log."""
        return np.cumsum(self.counts) - self.counts

    @cached_property
    def actives(self) -> I64s:
        """The last segment of each log."""
        return np.cumsum(self.counts) - 1

    def log_column(self, name: str) -> I64s:
        """One of LogNumbers."""
        return self._kept.values("log", name, self._places)

    def column(self, name: str) -> I64s:
        """One of SegmentNumbers."""
        return self._kept.values("segment", name, self._rows)

    def slice_column(self, name: str) -> I64s:
        """One of SliceNumbers."""
        return self._kept.values("slice", name, self._kept.rows("slice", self._places))

    def log(self, number: int) -> LogNumbers:
        """The numbers of a log."""
        return LogNumbers._make(self._kept.of_log("log", int(self._places[number]))[0])

    def logs(self) -> list[LogNumbers]:
        """Those of all."""
        columns = (self.log_column(name).tolist() for name in LogNumbers._fields)
        return [LogNumbers._make(row) for row in zip(*columns, strict=True)]

    def segments_of(self, number: int) -> list[SegmentNumbers]:
        """The segments of a log."""
        return self._kept.segments(int(self._places[number]))

    def slices_of(self, number: int) -> list[tuple[int, ...]]:
        """The SliceNumbers of a log."""
        return self._kept.of_log("slice", int(self._places[number]))

    def last_written(self) -> Iterator[list[int]]:
        """Of each log when each producer wrote last that its broker knows."""
        rows = self._kept.rows("producer", self._places)
        times, first = self._kept.values("producer", "last_timestamp_ms", rows).tolist(), 0
        for count in self._kept.counts("producer", self._places).tolist():
            yield times[first : first + count]
            first += count

    def each(self, of_logs: I64s) -> I64s:
        """What holds of a log for each of its segments."""
        return np.repeat(of_logs, self.counts)

    def any_segment(self, flags: Flags) -> Flags:
        """Of which logs it is so for a segment."""
        found: Flags = np.logical_or.reduceat(flags, self.firsts) if flags.size else flags
        return found

    def smallest(self, values: I64s, counting: Flags, otherwise: int) -> I64s:
        """The smallest value of each log, of the segments that count."""
        found = np.minimum.reduceat(np.where(counting, values, MAX_INT64), self.firsts)
        has_any = self.any_segment(counting)
        return np.where(has_any, found, otherwise)

    @property
    def active_flags(self) -> Flags:
        """Which segments are active."""
        flags = np.zeros(len(self._rows), np.bool_)
        flags[self.actives] = True
        return flags

    @property
    def modification_times_ms(self) -> I64s:
        """Of the segments' `.log` files."""
        return self.column("mtime_ns") // 1_000_000

    def of_logs(self, chosen: Flags) -> SoundColumns:
        """Those of some logs."""
        return SoundColumns(self._kept, self._places[chosen])


@dataclass(frozen=True, slots=True)
class Moment:
    """When they are judged: now_ms from 0 to MOST_MS; of each log int64[l]: alive_ms, the broker's
    last sign of life, at most now; retention_ms; first_repaired, from which base offset on a broker
    makes indexes anew.
    """

    now_ms: int
    alive_ms: I64s
    retention_ms: I64s
    first_repaired: I64s

    def of_logs(self, chosen: Flags) -> Moment:
        """Those of some logs."""
        return Moment(
            self.now_ms, self.alive_ms[chosen], self.retention_ms[chosen],
            self.first_repaired[chosen],
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Forecast:
    """Of each segment what a SegmentForecast has; is_empty: the active one that never goes.
    is_certain bool[l]: no time of the log lies ahead, and no segment is held back.
    """

    sizes: I64s
    timestamps_ms: I64s
    is_file_time: Flags
    due_ms: I64s
    is_empty: Flags
    is_certain: Flags


def are_plausible(columns: SoundColumns, at: Moment) -> Flags:
    """Of which logs the rules of `timestamp_findings` and `contents_findings`, and those of
    `retention_findings` about time indexes and the active segment, find nothing.
    """
    codecs, largest = columns.column("codec"), columns.column("largest_timestamp_ms")
    is_odd = (codecs < NONE) | (codecs >= len(CODEC_NAMES))
    is_odd |= (largest >= SECONDS_MS.start) & (largest < SECONDS_MS.stop)
    is_short = ~columns.active_flags & (columns.column("indexed_timestamp_ms") < largest)
    zeros = columns.column("time_file_bytes") - columns.column("time_index_bytes")
    is_trusted = columns.column("base_offset") < columns.each(at.first_repaired)
    is_odd |= (is_short | (zeros >= ENTRY_BYTES)) & is_trusted
    # What retention may have taken from a log without records `timestamp_findings` looks for.
    has_all = (columns.log_column("log_start_offset") == 0) | columns.any_segment(
        columns.column("records_count") > 0
    )
    found: Flags = ~columns.any_segment(is_odd) & has_all
    return found & ~_has_old(columns, at) & ~_never_rolls(columns, at)


def _has_old(columns: SoundColumns, at: Moment) -> Flags:
    """Whether there are records that are older than the policy."""
    limits = np.repeat(at.alive_ms - at.retention_ms, columns.slice_counts)
    to_ms = columns.slice_column("to_ms")
    is_old = (to_ms >= 0) & (to_ms < limits)
    logs = np.repeat(np.arange(len(columns)), columns.slice_counts)
    found = np.zeros(len(columns), np.bool_)
    found[logs[is_old]] = True
    return found & (at.retention_ms >= 0)


def _never_rolls(columns: SoundColumns, at: Moment) -> Flags:
    """Whether the active segment has records older than the policy beside younger ones."""
    actives = columns.actives
    smallest = columns.column("min_timestamp_ms")[actives]
    largest = columns.column("largest_timestamp_ms")[actives]
    newest = np.where(largest < 0, columns.modification_times_ms[actives], largest)
    is_old = at.alive_ms - np.maximum(smallest, 0) > at.retention_ms
    is_kept = at.alive_ms - newest <= at.retention_ms
    return (smallest >= 0) & (at.retention_ms >= 0) & is_old & is_kept


def forecast(columns: SoundColumns, at: Moment) -> Forecast:
    """When each segment goes, of logs from which time alone deletes."""
    bases = columns.column("base_offset")
    ends = np.append(bases[1:], 0)
    ends[columns.actives] = columns.log_column("log_end_offset")
    is_active = columns.active_flags
    is_repaired = bases >= columns.each(at.first_repaired)
    sizes = np.where(is_repaired, columns.column("valid_bytes"), columns.column("size_in_bytes"))
    sizes = np.where(is_active & (ends == bases), 0, sizes)
    times = np.where(
        is_repaired, columns.column("max_timestamp_ms"), columns.column("indexed_timestamp_ms")
    )
    is_file_time = times < 0
    times = np.where(is_file_time, columns.modification_times_ms, times)
    is_empty = is_active & (sizes == 0)
    retention = columns.each(at.retention_ms)
    is_timed = ~is_empty & (retention >= 0)
    is_beyond = is_timed & (times > MAX_INT64 - np.maximum(retention, 0) - 1)
    # Strictly older than the limit, and never before those in front of it.
    own = np.where(is_timed & ~is_beyond, times + retention + 1, NEVER)
    latest = _running_maxima(columns, np.where(is_timed, np.maximum(own, 0), NEVER))
    is_held_back = is_timed & (latest > at.now_ms) & (at.now_ms - times > retention)
    is_ahead = ~is_empty & (times > at.now_ms)
    return Forecast(
        sizes,
        times,
        is_file_time,
        np.where(is_timed, latest, NEVER),
        is_empty,
        ~columns.any_segment(is_beyond | is_held_back | is_ahead),
    )


def _running_maxima(columns: SoundColumns, values: I64s) -> I64s:
    """Of each log the largest value up to each of its segments."""
    places = np.arange(len(values)) - columns.each(columns.firsts)
    rows = np.repeat(np.arange(len(columns.counts)), columns.counts)
    table = np.full((len(columns.counts), int(columns.counts.max(initial=0))), NEVER, np.int64)
    table[rows, places] = values
    found: I64s = np.maximum.accumulate(table, axis=1)[rows, places]
    return found
