"""What the batch headers of a log say of its contents: whose bytes they are, how old, and what
waits for a delete horizon. Nothing is decompressed, no record is decoded.

    bytes      committed data (data outside of transactions too), aborted, open, markers
    times      oldest and newest, and slices: so many bytes and records between two times
    horizons   of each delete horizon the batches and the markers that wait for it
    markers    those with nothing left to mark and no horizon, below the first dirty offset

Everything is in absolute times, so that an unchanged log need not be read again to be judged at
another time. A transaction is aborted if its marker is in a transaction index (what a broker
answers consumers by), committed with another marker behind it, else open.

Source: Kafka DefaultRecordBatch, ProducerAppendInfo, TransactionIndex; KIP-98, KIP-534.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.batch_table import has_delete_horizon, is_control, is_transactional
from kafkalog.format.constants import NO_TIMESTAMP
from kafkalog.log.json_facts import JsonFacts
from kafkalog.log.segment_facts import smallest_timestamps

Int64s = NDArray[np.int64]
Rows = NDArray[np.void]

# A partition has at most so many slices; of one scan of headers come a few.
MOST_SLICES = 128
_SLICES_A_SCAN = 8
# Every round of cleaning stamps one horizon, and what it stamped goes in a later round.
MOST_HORIZONS = 64

# columns of slices while they are collected
_FROM, _TO, _CLOSED, _ACTIVE, _RECORDS = range(5)


@dataclass(frozen=True, slots=True)
class TimeSlice(JsonFacts):
    """Batches whose newest record is from so late to so late, in closed segments and in the active
    one. -1 to -1: batches without timestamps.
    """

    from_ms: int
    to_ms: int
    closed_bytes: int
    active_bytes: int
    records: int


@dataclass(frozen=True, slots=True)
class Horizon(JsonFacts):
    """What may go from `at_ms` on, in the next round of cleaning behind it."""

    at_ms: int
    batches: int
    markers: int


@dataclass(frozen=True, slots=True)
class HeaderContents(JsonFacts):
    """See the module's text. Bytes are those of whole batches; times -1 where no batch has one."""

    committed_bytes: int
    aborted_bytes: int
    open_bytes: int
    marker_bytes: int
    markers: int
    bare_markers: int
    oldest_timestamp_ms: int
    newest_timestamp_ms: int
    slices: tuple[TimeSlice, ...]
    horizons: tuple[Horizon, ...]


class HeaderContentsScan:
    """Add the headers of all segments in offset order, then `finish`."""

    def __init__(self, aborted_markers: Int64s, first_dirty_offset: int) -> None:
        """`aborted_markers`: the last offsets of all entries of the transaction indexes, sorted."""
        self._aborted_markers = aborted_markers
        self._first_dirty_offset = first_dirty_offset
        self._open: dict[int, tuple[int, int]] = {}
        """Bytes and batches of each producer's open transaction so far."""
        self._data = self._aborted = self._marked = 0
        self._markers = self._bare_markers = 0
        self._oldest, self._newest = NO_TIMESTAMP, NO_TIMESTAMP
        self._slices = np.empty((0, 5), np.int64)
        self._horizons: dict[int, list[int]] = {}

    def add(self, rows: Rows, *, is_active: bool) -> None:
        """The headers of some whole batches, BATCH_ROW[b]."""
        if not rows.size:
            return
        sizes = rows["size_in_bytes"].astype(np.int64)
        control = is_control(rows)
        marker_bytes = int(sizes[control].sum())
        self._marked += marker_bytes
        self._markers += int(control.sum())
        self._data += int(sizes.sum()) - marker_bytes
        transactional = is_transactional(rows)
        if transactional.any():
            self._follow(rows[transactional], sizes[transactional], control[transactional])
        self._add_horizons(rows, control)
        self._add_times(rows, sizes, is_active=is_active)

    def finish(self) -> HeaderContents:
        """What all headers said."""
        open_bytes = sum(size for size, _ in self._open.values())
        return HeaderContents(
            committed_bytes=self._data - self._aborted - open_bytes,
            aborted_bytes=self._aborted,
            open_bytes=open_bytes,
            marker_bytes=self._marked,
            markers=self._markers,
            bare_markers=self._bare_markers,
            oldest_timestamp_ms=self._oldest,
            newest_timestamp_ms=self._newest,
            slices=tuple(TimeSlice(*row) for row in self._slices.tolist()),
            horizons=tuple(
                Horizon(at_ms, batches, markers)
                for at_ms, (batches, markers) in sorted(self._horizons.items())
            ),
        )

    def _follow(self, rows: Rows, sizes: Int64s, control: NDArray[np.bool_]) -> None:
        """Transactional batches: whose data, up to which marker."""
        order = np.argsort(rows["producer_id"], kind="stable")
        producers = rows["producer_id"][order]
        ends = control[order]
        is_first = np.concatenate([[True], producers[1:] != producers[:-1]])
        starts = np.flatnonzero(is_first | np.concatenate([[False], ends[:-1]]))
        lasts = np.append(starts[1:], order.size) - 1
        data_bytes = np.add.reduceat(np.where(ends, 0, sizes[order]), starts)
        batches = np.add.reduceat((~ends).astype(np.int64), starts)
        for group in np.flatnonzero(is_first[starts]).tolist():
            before = self._open.pop(int(producers[starts[group]]), None)
            if before is not None:
                data_bytes[group] += before[0]
                batches[group] += before[1]
        closed = ends[lasts]
        for group in np.flatnonzero(~closed).tolist():
            part = int(data_bytes[group]), int(batches[group])
            self._open[int(producers[starts[group]])] = part
        markers = order[lasts[closed]]
        offsets = rows["base_offset"][markers]
        is_abort = np.isin(offsets, self._aborted_markers)
        self._aborted += int(data_bytes[closed][is_abort].sum())
        is_bare = (batches[closed] == 0) & ~has_delete_horizon(rows[markers])
        self._bare_markers += int((is_bare & (offsets < self._first_dirty_offset)).sum())

    def _add_horizons(self, rows: Rows, control: NDArray[np.bool_]) -> None:
        stamped = has_delete_horizon(rows)
        if not stamped.any():
            return
        times, places = np.unique(rows["base_timestamp"][stamped], return_inverse=True)
        batches = np.bincount(places, minlength=times.size)
        markers = np.bincount(places[control[stamped]], minlength=times.size)
        for at_ms, *counts in zip(times.tolist(), batches.tolist(), markers.tolist(), strict=True):
            known = self._horizons.setdefault(at_ms, [0, 0])
            known[0] += counts[0]
            known[1] += counts[1]
        if len(self._horizons) > MOST_HORIZONS:
            self._merge_horizons()

    def _merge_horizons(self) -> None:
        """Each second one counts as the next: later than it is, by no more than one step."""
        known = sorted(self._horizons.items())
        self._horizons = {}
        for first in range(0, len(known), 2):
            pair = known[first : first + 2]
            self._horizons[pair[-1][0]] = [sum(c[i] for _, c in pair) for i in (0, 1)]

    def _add_times(self, rows: Rows, sizes: Int64s, *, is_active: bool) -> None:
        times = rows["max_timestamp"].astype(np.int64)
        oldest, known = smallest_timestamps(rows), times[times != NO_TIMESTAMP]
        if oldest.size:
            smallest = int(oldest.min())
            self._oldest = smallest if self._oldest < 0 else min(self._oldest, smallest)
        if known.size:
            self._newest = max(self._newest, int(known.max()))
        records = rows["records_count"].astype(np.int64).clip(min=0)
        found = _slices(times, sizes, records, is_active=is_active)
        self._slices = np.concatenate([self._slices, found])
        while len(self._slices) > MOST_SLICES:
            self._slices = _thinned(self._slices)


def _slices(times: Int64s, sizes: Int64s, records: Int64s, *, is_active: bool) -> Int64s:
    """int64[n, 5]: the batches by equal parts of the time they span; those without one apart."""
    is_known = times != NO_TIMESTAMP
    known = times[is_known]
    # Python's integers: timestamps are whatever a producer wrote, their distance may be 65 bits.
    first, last = (int(known.min()), int(known.max())) if known.size else (0, 0)
    width = (last - first) // _SLICES_A_SCAN + 1
    places = np.full(times.size, -1, np.int64)
    places[is_known] = (known.astype(np.float64) - first) // width
    numbers, index = np.unique(places, return_inverse=True)
    found = np.zeros((numbers.size, 5), np.int64)
    found[:, _FROM] = np.iinfo(np.int64).max
    found[:, _TO] = np.iinfo(np.int64).min
    np.minimum.at(found[:, _FROM], index, times)
    np.maximum.at(found[:, _TO], index, times)
    np.add.at(found[:, _ACTIVE if is_active else _CLOSED], index, sizes)
    np.add.at(found[:, _RECORDS], index, records)
    return found


def _thinned(slices: Int64s) -> Int64s:
    """About half as many: neighbours are put together, the nearest first."""
    slices = slices[np.lexsort((slices[:, _TO], slices[:, _FROM]))]
    widths = slices[1:, _TO].astype(np.float64) - slices[:-1, _FROM]
    # What has no time is no neighbour of what has one.
    widths[(slices[:-1, _TO] < 0) & (slices[1:, _TO] >= 0)] = np.inf
    limit = np.partition(widths, widths.size // 2)[widths.size // 2]
    kept: list[list[int]] = []
    was_merged = True
    for row, width in zip(slices.tolist(), [np.inf, *widths.tolist()], strict=True):
        if not was_merged and width <= limit and np.isfinite(width):
            last = kept[-1]
            last[_FROM], last[_TO] = min(last[_FROM], row[_FROM]), max(last[_TO], row[_TO])
            for column in (_CLOSED, _ACTIVE, _RECORDS):
                last[column] += row[column]
            was_merged = True
        else:
            kept.append(row)
            was_merged = False
    return np.array(kept, np.int64)
