"""What became of the transactions in a range of offsets: aborted, still open, or not known.

As for a broker's fetch that comes from the transaction indexes and the producer state; everything
transactional that neither names is committed. Who doubts the indexes asks `kafkalog verify`. Where
batches cannot be read that lie behind the newest usable producer snapshot, a transaction that began
in front of them and has no marker since may have ended in them: nobody knows how.

Source: Kafka CompletedFetch, LocalLog.collectAbortedTransactions; KIP-98.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.batch_table import is_control, is_transactional
from kafkalog.format.constants import MAX_INT64
from kafkalog.format.transaction_index import AbortedTxn
from kafkalog.log.aborted_transactions import AbortedTransactions
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.producer_state import ActiveProducer, active_producers, producers_past_damage

Mask = NDArray[np.bool_]

_logger = logging.getLogger(__name__)

COMMITTED, ABORTED, OPEN = "committed", "aborted", "open"


@dataclass(frozen=True, slots=True)
class TransactionRanges:
    """Aborted transactions, and (producer id, first offset) of the open ones, and of those whose
    end is not known.

    `leave_aborted_out`: records of aborted ones, and of those whose end is not known, are not
    wanted, as for read_committed.
    """

    aborted: tuple[AbortedTxn, ...] = ()
    open_since: tuple[tuple[int, int], ...] = ()
    unknown_since: tuple[tuple[int, int], ...] = ()
    leave_aborted_out: bool = False

    def within(self, start_offset: int, end_offset: int | None) -> TransactionRanges:
        """Those that touch [start, end)."""
        end = MAX_INT64 if end_offset is None else end_offset
        return replace(
            self,
            aborted=tuple(
                txn
                for txn in self.aborted
                if txn.last_offset >= start_offset and txn.first_offset < end
            ),
            open_since=tuple(known for known in self.open_since if known[1] < end),
            unknown_since=tuple(known for known in self.unknown_since if known[1] < end),
        )

    def is_aborted(self, rows: NDArray[np.void]) -> Mask:
        """bool[b]: data of an aborted transaction."""
        firsts = [(txn.producer_id, txn.first_offset, txn.last_offset) for txn in self.aborted]
        return _covered(rows, firsts)

    def is_open(self, rows: NDArray[np.void]) -> Mask:
        """bool[b]: data of a transaction that has no end."""
        return _covered(rows, ((p, first, MAX_INT64) for p, first in self.open_since))

    def is_left_out(self, rows: NDArray[np.void]) -> Mask:
        """bool[b]: data that read_committed does not give."""
        return self.is_aborted(rows) | self._is_unknown(rows)

    def _is_unknown(self, rows: NDArray[np.void]) -> Mask:
        return _covered(rows, ((p, first, MAX_INT64) for p, first in self.unknown_since))

    def states(self, rows: NDArray[np.void]) -> list[str | None]:
        """What became of each batch's transaction; None outside of one, for markers, and where
        it is not known."""
        aborted, still_open = self.is_aborted(rows), self.is_open(rows)
        has_data = is_transactional(rows) & ~is_control(rows)
        has_data &= aborted | ~self._is_unknown(rows)
        return [
            None if not data else ABORTED if a else OPEN if o else COMMITTED
            for data, a, o in zip(
                has_data.tolist(), aborted.tolist(), still_open.tolist(), strict=True
            )
        ]


NO_TRANSACTIONS = TransactionRanges()


def ranges_of(
    partition: PartitionInventory,
    start_offset: int,
    end_offset: int | None,
    *,
    bears_damage: bool = False,
) -> TransactionRanges:
    """The transactions that touch [start, end) of a partition.

    CorruptIndexError, CorruptSnapshotError and OSError where they cannot be read;
    CorruptRecordError where batches cannot, unless it `bears_damage`: then the transactions that
    may have ended in them are said, once.
    """
    # Nothing on the disk lists committed transactions: whoever is neither in a transaction index
    # nor open in the producer state is one.
    end = partition.log_end_offset if end_offset is None else end_offset
    indexes = AbortedTransactions(partition.segments, partition.log_start_offset)
    aborted = () if indexes.is_empty else tuple(indexes.between(start_offset, end))
    if not bears_damage:
        producers = active_producers(partition, now_ms=0, expiration_ms=1)
        return TransactionRanges(aborted, _open_since(producers))
    found = producers_past_damage(partition)
    is_known: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    for producer, first in _open_since(found.producers):
        is_known[first >= found.doubtful_before].append((producer, first))
    for producer, first in is_known[False]:
        _logger.warning(
            "%s: the transaction of producer %d that began at offset %d may have ended in what "
            "cannot be read; whether it was committed is not known",
            partition.path, producer, first,
        )  # fmt: skip
    return TransactionRanges(aborted, tuple(is_known[True]), tuple(is_known[False]))


def _open_since(producers: Mapping[int, ActiveProducer]) -> tuple[tuple[int, int], ...]:
    return tuple(
        (known.producer_id, known.current_txn_first_offset)
        for known in producers.values()
        if known.current_txn_first_offset is not None
    )


def _covered(rows: NDArray[np.void], ranges: Iterable[tuple[int, int, int]]) -> Mask:
    """bool[b]: transactional data batches of a producer from a first to a last offset."""
    covered = np.zeros(rows.size, np.bool_)
    by_producer: dict[int, list[tuple[int, int]]] = {}
    for producer_id, first, last in ranges:
        by_producer.setdefault(producer_id, []).append((first, last))
    if not by_producer:
        return covered
    has_data = np.flatnonzero(is_transactional(rows) & ~is_control(rows))
    for producer_id in set(rows["producer_id"][has_data].tolist()) & by_producer.keys():
        own = has_data[rows["producer_id"][has_data] == producer_id]
        firsts, lasts = np.array(sorted(by_producer[producer_id]), np.int64).T
        # A producer has one transaction at a time, so its ranges do not overlap: only the last one
        # that begins at or in front of a batch can hold it.
        before = np.searchsorted(firsts, rows["base_offset"][own], side="right") - 1
        covered[own] = (before >= 0) & (lasts[before] >= rows["base_offset"][own])
    return covered
