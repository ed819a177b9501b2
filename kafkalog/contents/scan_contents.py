"""What the batch headers of one scan say by themselves, whatever lies in front of them or behind.

The contents of a log come from the scans of its segments, one after the other (`header_contents`);
what one says is small and kept from run to run, so a segment that has not changed need not be read
again. What only the whole log tells stays open here: the data of a transaction whose marker, or
whose beginning, is in another scan.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.batch_table import has_delete_horizon, is_control, is_transactional
from kafkalog.format.constants import (
    DELETE_HORIZON_FLAG_MASK,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG_MASK,
)
from kafkalog.log.header_sums import HeaderSums, header_sums, time_slices
from kafkalog.log.json_facts import JsonFacts
from kafkalog.log.producer_replay import (
    Producer,
    ProducerReplay,
    ProducerSink,
    TransactionEnd,
    has_marker,
)
from kafkalog.log.producer_runs import Data

Int64s = NDArray[np.int64]
Rows = NDArray[np.void]


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


def scan_contents(
    rows: Rows, aborted_markers: Int64s, sums: HeaderSums | None = None
) -> ScanContents:
    """Of the headers of some whole batches, BATCH_ROW[b]. `aborted_markers`: the last offsets of
    all entries of the transaction indexes, sorted; `sums`: of the rows, of a caller who has them.
    """
    sums = sums or header_sums(rows)
    if sums is None:
        return ScanContents(0, 0, 0, 0, NO_TIMESTAMP, NO_TIMESTAMP, (), (), (), (), ())
    transactions = _Transactions(aborted_markers)
    if sums.attributes & TRANSACTIONAL_FLAG_MASK:
        transactions.replay(rows[is_transactional(rows)])
    return ScanContents(
        data_bytes=sums.size_in_bytes - sums.control_bytes,
        marker_bytes=sums.control_bytes,
        markers=sums.control_batches,
        aborted_bytes=transactions.aborted_bytes,
        oldest_timestamp_ms=sums.smallest_timestamp_ms,
        newest_timestamp_ms=sums.largest_timestamp_ms,
        first_txns=tuple(transactions.first_txns),
        last_txns=tuple(transactions.last_txns),
        bare_markers=tuple(transactions.bare_markers),
        slices=time_slices(rows, sums),
        horizons=_horizons(rows) if sums.attributes & DELETE_HORIZON_FLAG_MASK else (),
    )


class _Transactions(ProducerSink):
    """See `ScanContents`."""

    def __init__(self, aborted_markers: Int64s) -> None:
        self._aborted_markers = aborted_markers
        self._is_aborted: set[int] = set()
        self._marked: set[int] = set()
        self.first_txns: list[TxnBatches] = []
        self.last_txns: list[TxnBatches] = []
        self.aborted_bytes = 0
        self.bare_markers: list[int] = []

    def replay(self, rows: Rows) -> None:
        """All of the scan."""
        offsets = rows["base_offset"][has_marker(rows)]
        self._is_aborted = set(offsets[np.isin(offsets, self._aborted_markers)].tolist())
        replay = ProducerReplay(self)
        replay.apply(rows)
        for producer_id, data in replay.transactions.items():
            part = TxnBatches(
                producer_id, data.size_in_bytes, data.batches, -1, is_stamped=False, is_abort=False
            )
            (self.last_txns if producer_id in self._marked else self.first_txns).append(part)

    def ended(self, producer: Producer, transaction: Data | None, end: TransactionEnd) -> None:
        """What began in front of the scan only the whole log tells."""
        producer_id, offset = producer.producer_id, end.offset
        size, batches = (0, 0) if transaction is None else (
            transaction.size_in_bytes, transaction.batches,
        )  # fmt: skip
        is_abort = offset in self._is_aborted
        is_stamped = bool(end.attributes & DELETE_HORIZON_FLAG_MASK)
        if producer_id not in self._marked:
            self._marked.add(producer_id)
            part = TxnBatches(producer_id, size, batches, offset, is_stamped, is_abort)
            self.first_txns.append(part)
            return
        self.aborted_bytes += size if is_abort else 0
        if not batches and not is_stamped:
            self.bare_markers.append(offset)


def _horizons(rows: Rows) -> tuple[tuple[int, ...], ...]:
    stamped = has_delete_horizon(rows)
    times, places = np.unique(rows["base_timestamp"][stamped], return_inverse=True)
    batches = np.bincount(places, minlength=times.size)
    markers = np.bincount(places[is_control(rows)[stamped]], minlength=times.size)
    return tuple(zip(times.tolist(), batches.tolist(), markers.tolist(), strict=True))
