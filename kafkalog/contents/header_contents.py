"""What the batch headers of a log say of its contents: whose bytes they are, how old, and what
waits for a delete horizon. Nothing is decompressed, no record is decoded.

    bytes      committed data (data outside of transactions too), aborted, open, markers
    times      oldest and newest, and slices: so many bytes and records between two times
    horizons   of each delete horizon the batches and the markers that wait for it
    markers    those with nothing left to mark and no horizon, below the first dirty offset

Everything is in absolute times, so that an unchanged log need not be read again to be judged at
another time. What one scan says by itself (`ScanContents`) is kept apart from what only the log as
a whole tells, so that of a log that has grown the old segments need not be read again either. A
transaction is aborted if its marker is in a transaction index (what a broker answers consumers by),
committed with another marker behind it, else open.

Source: Kafka DefaultRecordBatch, ProducerAppendInfo, TransactionIndex; KIP-98, KIP-534.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.contents.scan_contents import ScanContents, scan_contents
from kafkalog.format.constants import NO_TIMESTAMP
from kafkalog.log.header_sums import HeaderSums
from kafkalog.log.json_facts import JsonFacts

Int64s = NDArray[np.int64]
Rows = NDArray[np.void]

# A partition has at most so many slices; of one scan of headers come a few.
MOST_SLICES = 128
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
        """`aborted_markers`: as of `scan_contents`."""
        self._aborted_markers = aborted_markers
        self._first_dirty_offset = first_dirty_offset
        self._open: dict[int, tuple[int, int]] = {}
        """Bytes and batches of each producer's open transaction so far."""
        self._data = self._aborted = self._marked = 0
        self._markers = self._bare_markers = 0
        self._oldest, self._newest = NO_TIMESTAMP, NO_TIMESTAMP
        self._slices: list[list[int]] = []
        self._horizons: dict[int, list[int]] = {}

    def aborted_within(self, first_offset: int, end_offset: int) -> Int64s:
        """Of the markers of aborted transactions those with an offset from, and below."""
        if not self._aborted_markers.size:
            return self._aborted_markers
        first, end = np.searchsorted(self._aborted_markers, (first_offset, end_offset))
        return self._aborted_markers[first:end]

    def scanned(self, rows: Rows, sums: HeaderSums | None = None) -> ScanContents:
        """What these headers say by themselves; `sums`: of them, of a caller who has them."""
        return scan_contents(rows, self._aborted_markers, sums)

    def add(self, scanned: ScanContents, *, is_active: bool) -> None:
        """Count what a scan said."""
        self._marked += scanned.marker_bytes
        self._markers += scanned.markers
        self._data += scanned.data_bytes
        self._follow(scanned)
        for at_ms, batches, markers in scanned.horizons:
            known = self._horizons.setdefault(at_ms, [0, 0])
            known[0] += batches
            known[1] += markers
        if len(self._horizons) > MOST_HORIZONS:
            self._merge_horizons()
        if scanned.oldest_timestamp_ms != NO_TIMESTAMP:
            oldest = scanned.oldest_timestamp_ms
            self._oldest = oldest if self._oldest < 0 else min(self._oldest, oldest)
        self._newest = max(self._newest, scanned.newest_timestamp_ms)
        self._add_slices(scanned.slices, is_active=is_active)

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
            slices=tuple(TimeSlice(*row) for row in self._slices),
            horizons=tuple(
                Horizon(at_ms, batches, markers)
                for at_ms, (batches, markers) in sorted(self._horizons.items())
            ),
        )

    def _follow(self, scanned: ScanContents) -> None:
        """Transactional batches: whose data, up to which marker."""
        bare_markers = list(scanned.bare_markers)
        self._aborted += scanned.aborted_bytes
        for txn in scanned.first_txns:
            before = self._open.pop(txn.producer_id, (0, 0))
            data_bytes, batches = before[0] + txn.data_bytes, before[1] + txn.batches
            if txn.marker_offset < 0:
                self._open[txn.producer_id] = data_bytes, batches
                continue
            self._aborted += data_bytes if txn.is_abort else 0
            if not batches and not txn.is_stamped:
                bare_markers.append(txn.marker_offset)
        for txn in scanned.last_txns:
            self._open[txn.producer_id] = txn.data_bytes, txn.batches
        self._bare_markers += sum(offset < self._first_dirty_offset for offset in bare_markers)

    def _merge_horizons(self) -> None:
        """Each second one counts as the next: later than it is, by no more than one step."""
        known = sorted(self._horizons.items())
        self._horizons = {}
        for first in range(0, len(known), 2):
            pair = known[first : first + 2]
            self._horizons[pair[-1][0]] = [sum(c[i] for _, c in pair) for i in (0, 1)]

    def _add_slices(self, slices: tuple[tuple[int, ...], ...], *, is_active: bool) -> None:
        for first_ms, last_ms, size, records in slices:
            closed, active = (0, size) if is_active else (size, 0)
            self._slices.append([first_ms, last_ms, closed, active, records])
        while len(self._slices) > MOST_SLICES:
            self._slices = _thinned(np.array(self._slices, np.int64))


def _thinned(slices: Int64s) -> list[list[int]]:
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
    return kept
