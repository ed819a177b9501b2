"""What the batch headers of one scan say by themselves, whatever lies in front of them or behind.

A log is told from the scans of its segments, one after the other (`header_contents`); what one says
is small and kept from run to run, so a segment that has not changed need not be read again. What
only the whole log tells stays open here: the data of a transaction whose marker, or whose
beginning, is in another scan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.batch_table import has_delete_horizon, is_control, is_transactional
from kafkalog.format.constants import NO_TIMESTAMP
from kafkalog.log.json_facts import JsonFacts
from kafkalog.log.segment_facts import smallest_timestamps

Int64s = NDArray[np.int64]
Rows = NDArray[np.void]

_SLICES_A_SCAN = 8
# columns of slices
_FROM, _TO, _BYTES, _RECORDS = range(4)


@dataclass(frozen=True, slots=True)
class TxnBatches(JsonFacts):
    """What one scan has of a producer's transaction: bytes and batches of data, then its marker (-1
    where it is not in the scan), and whether that is stamped with a horizon, and aborts.
    """

    producer_id: int
    data_bytes: int
    batches: int
    marker_offset: int
    is_stamped: bool
    is_abort: bool


@dataclass(frozen=True, slots=True)
class ScanContents(JsonFacts):
    """What the headers of one scan say by themselves.

    `first_txns`: of each producer the transaction that may have begun before the scan; `last_txns`:
    the one behind its last marker here; of those between `aborted_bytes` and `bare_markers`, the
    offsets of markers without data and without horizon. `slices`: from, to, bytes, records;
    `horizons`: time, batches, markers.
    """

    data_bytes: int
    marker_bytes: int
    markers: int
    aborted_bytes: int
    oldest_timestamp_ms: int
    newest_timestamp_ms: int
    first_txns: tuple[TxnBatches, ...]
    last_txns: tuple[TxnBatches, ...]
    bare_markers: tuple[int, ...]
    slices: tuple[tuple[int, ...], ...]
    horizons: tuple[tuple[int, ...], ...]


def scan_contents(rows: Rows, aborted_markers: Int64s) -> ScanContents:
    """Of the headers of some whole batches, BATCH_ROW[b]. `aborted_markers`: the last offsets of
    all entries of the transaction indexes, sorted.
    """
    sizes = rows["size_in_bytes"].astype(np.int64)
    control = is_control(rows)
    marker_bytes = int(sizes[control].sum())
    transactional = is_transactional(rows)
    first_txns: list[TxnBatches] = []
    last_txns: list[TxnBatches] = []
    aborted_bytes, bare_markers = 0, []
    if transactional.any():
        part = rows[transactional]
        for txn, is_first in _transactions(
            part, sizes[transactional], control[transactional], aborted_markers
        ):
            if is_first:
                first_txns.append(txn)
            elif txn.marker_offset < 0:
                last_txns.append(txn)
            else:
                aborted_bytes += txn.data_bytes if txn.is_abort else 0
                if not txn.batches and not txn.is_stamped:
                    bare_markers.append(txn.marker_offset)
    times = rows["max_timestamp"].astype(np.int64)
    oldest, known = smallest_timestamps(rows), times[times != NO_TIMESTAMP]
    records = rows["records_count"].astype(np.int64).clip(min=0)
    return ScanContents(
        data_bytes=int(sizes.sum()) - marker_bytes,
        marker_bytes=marker_bytes,
        markers=int(control.sum()),
        aborted_bytes=aborted_bytes,
        oldest_timestamp_ms=int(oldest.min()) if oldest.size else NO_TIMESTAMP,
        newest_timestamp_ms=int(known.max()) if known.size else NO_TIMESTAMP,
        first_txns=tuple(first_txns),
        last_txns=tuple(last_txns),
        bare_markers=tuple(bare_markers),
        slices=tuple(map(tuple, _slices(times, sizes, records).tolist())),
        horizons=_horizons(rows, control),
    )


def _transactions(
    rows: Rows, sizes: Int64s, control: NDArray[np.bool_], aborted_markers: Int64s
) -> Iterator[tuple[TxnBatches, bool]]:
    """Parts of transactions by producer and offset, and whether each is its producer's first."""
    order = np.argsort(rows["producer_id"], kind="stable")
    producers = rows["producer_id"][order]
    ends = control[order]
    is_first = np.concatenate([[True], producers[1:] != producers[:-1]])
    starts = np.flatnonzero(is_first | np.concatenate([[False], ends[:-1]]))
    lasts = np.append(starts[1:], order.size) - 1
    closed = ends[lasts]
    markers = order[lasts]
    offsets = np.where(closed, rows["base_offset"][markers], -1)
    columns = (
        producers[starts],
        np.add.reduceat(np.where(ends, 0, sizes[order]), starts),
        np.add.reduceat((~ends).astype(np.int64), starts),
        offsets,
        closed & has_delete_horizon(rows[markers]),
        closed & np.isin(offsets, aborted_markers),
    )
    for values, first in zip(
        zip(*(column.tolist() for column in columns), strict=True),
        is_first[starts].tolist(),
        strict=True,
    ):
        yield TxnBatches(*values), first


def _horizons(rows: Rows, control: NDArray[np.bool_]) -> tuple[tuple[int, ...], ...]:
    stamped = has_delete_horizon(rows)
    if not stamped.any():
        return ()
    times, places = np.unique(rows["base_timestamp"][stamped], return_inverse=True)
    batches = np.bincount(places, minlength=times.size)
    markers = np.bincount(places[control[stamped]], minlength=times.size)
    return tuple(zip(times.tolist(), batches.tolist(), markers.tolist(), strict=True))


def _slices(times: Int64s, sizes: Int64s, records: Int64s) -> Int64s:
    """int64[n, 4]: the batches by equal parts of the time they span; those without one apart."""
    is_known = times != NO_TIMESTAMP
    known = times[is_known]
    # Python's integers: timestamps are whatever a producer wrote, their distance may be 65 bits.
    first, last = (int(known.min()), int(known.max())) if known.size else (0, 0)
    width = (last - first) // _SLICES_A_SCAN + 1
    places = np.full(times.size, -1, np.int64)
    places[is_known] = (known.astype(np.float64) - first) // width
    numbers, index = np.unique(places, return_inverse=True)
    found = np.zeros((numbers.size, 4), np.int64)
    found[:, _FROM] = np.iinfo(np.int64).max
    found[:, _TO] = np.iinfo(np.int64).min
    np.minimum.at(found[:, _FROM], index, times)
    np.maximum.at(found[:, _TO], index, times)
    np.add.at(found[:, _BYTES], index, sizes)
    np.add.at(found[:, _RECORDS], index, records)
    return found
