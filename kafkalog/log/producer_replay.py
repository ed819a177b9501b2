"""Producers and transactions of a log, replayed from its batches in offset order: the one
interpreter of what they did, for all that ask.

 a batch                          what becomes of its producer
 data                             its epoch, last sequence, offsets and timestamp are noted,
                                  whatever the epoch before
  - the first in a transaction    the transaction begins
  - outside, while one is open    a broker fails to load the log; reported, and the transaction
                                  stays open
 marker                           the transaction ends, whatever epoch began it; another epoch than
                                  the producer's, newer (KIP-890 raises it with each transaction) or
                                  older, forgets its batches; coordinator epoch and timestamp are
                                  the marker's
  - without data before it        nothing ends, and an ABORT is in no transaction index
 control batch without records    what compaction left of a marker: the producer is known, by
                                  nothing if it was not before, and no transaction ends
 no producer id                   nothing, be it in a transaction or not

Each user has a `ProducerSink` of its own: `recovered_producers` (what recovery writes),
`producer_state` (plans, the audit, open transactions), views, checks. Two do not ask here.
`cleaning.transactions` takes what is aborted from the transaction indexes, as Kafka's cleaner does:
where an index and the log differ, only so is its output Kafka's. And `cleaning.survivors` has the
rules a second time on purpose, for `--verify deep`.

Source: Kafka ProducerStateManager, ProducerAppendInfo, ProducerStateEntry; KIP-98, KIP-890; seen
with 4.3.1 (tests/oracle/test_producer_histories.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.format.constants import (
    CONTROL_FLAG_MASK,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG_MASK,
)
from kafkalog.log.producer_runs import Data, ProducerRuns

Rows = NDArray[np.void]

_NONE = -1  # of offsets and epochs that are not there


@dataclass(slots=True)
class TransactionMarker:
    """The end of a transaction; timestamp in ms. is_abort, coordinator_epoch: None where headers
    alone were read.
    """

    is_abort: bool | None
    coordinator_epoch: int | None
    timestamp: int


@dataclass(slots=True)
class Producer:
    """What is known of a producer; offsets, sequence and epochs -1 where nothing is."""

    producer_id: int
    epoch: int = NO_PRODUCER_EPOCH
    last_sequence: int = NO_SEQUENCE
    last_offset: int = _NONE
    offset_delta: int = 0
    timestamp: int = NO_TIMESTAMP
    coordinator_epoch: int = _NONE


@dataclass(slots=True)
class TransactionEnd:
    """A marker, and the offset and the attributes of its batch."""

    offset: int
    attributes: int
    marker: TransactionMarker


class ProducerSink:
    """What happens; a user overrides what it wants to know. A producer is as it is behind the
    batch; what is handed over changes when the replay goes on.
    """

    def wrote(self, producer: Producer, data: Data) -> None:
        """A producer wrote data batches, all in a transaction or all outside."""

    def ended(self, producer: Producer, transaction: Data | None, end: TransactionEnd) -> None:
        """A marker ends a transaction, None if no data of it was seen."""

    def outside(self, producer: Producer, transaction: Data, row: np.void) -> None:
        """The data batch `row` is outside of the transaction that its producer has open."""


class ProducerReplay:
    """`producers`: all that are known, by id. `transactions`: the open ones by producer id, in the
    order in which they began.
    """

    def __init__(self, sink: ProducerSink) -> None:
        self._sink = sink
        self.producers: dict[int, Producer] = {}
        self.transactions: dict[int, Data] = {}

    def restart(self, known: Iterable[tuple[Producer, int]]) -> None:
        """Forget everything and go on from these, as after loading a snapshot; each with the first
        offset of its open transaction, -1 without.
        """
        # A snapshot says where an open transaction began and nothing of what is in it: sums begin
        # with what is replayed behind it.
        self.producers, self.transactions = {}, {}
        for producer, first_offset in known:
            self.producers[producer.producer_id] = producer
            if first_offset >= 0:
                self.transactions[producer.producer_id] = Data(
                    first_offset, first_offset, NO_TIMESTAMP, NO_TIMESTAMP, 0, 0, 0
                )

    def first_open_offset(self) -> int | None:
        """Where the oldest open transaction begins."""
        return min((data.first_offset for data in self.transactions.values()), default=None)

    def transaction_start(self, producer_id: int) -> int | None:
        """The first offset of a producer's open transaction."""
        data = self.transactions.get(producer_id)
        return None if data is None else data.first_offset

    def join(self, ended: Iterable[int], still_open: Iterable[tuple[int, Data]]) -> None:
        """Go on behind batches that were replayed by themselves, from nothing: the producers a
        marker of which lies among them, and what was open there in the end.
        """
        # First what ended among those batches, then what was open at their end: one producer may
        # have ended a transaction there and begun another.
        for producer_id in ended:
            self.transactions.pop(producer_id, None)
        for producer_id, data in still_open:
            self._go_on(producer_id, data)

    def apply(self, rows: Rows, markers: Sequence[TransactionMarker | None] | None = None) -> None:
        """Replay batches, BATCH_ROW[b]. `markers`: of each that `has_marker`; None for one that
        could not be read, which then tells nothing. Without `markers` headers alone are known.
        """
        if not (rows["producer_id"] >= 0).any():
            return
        # One step a run, not a batch: what lies between two events of a producer changes nothing
        # but its last batch and the sums.
        runs = ProducerRuns.of(rows)
        read = None if markers is None else iter(markers)
        for run, columns in enumerate(runs.columns()):
            producer_id, attributes, epoch, sequence, last_base, *sums = columns
            data = Data(*sums)
            if not attributes & CONTROL_FLAG_MASK:
                producer = self._known(producer_id)
                producer.epoch, producer.last_sequence = epoch, sequence
                producer.last_offset = data.last_offset
                producer.offset_delta = data.last_offset - last_base
                producer.timestamp = data.last_timestamp
                self._sink.wrote(producer, data)
                if attributes & TRANSACTIONAL_FLAG_MASK:
                    self._go_on(producer_id, data)
                elif producer_id in self.transactions:
                    self._report_outside(producer, runs, run)
            # A control batch without records: compaction took the marker's record and left the
            # batch, so that its producer stays known. It ends nothing.
            elif not data.records:
                self._known(producer_id)
            else:
                # A marker's timestamp is its batch's largest.
                marker = (
                    TransactionMarker(None, None, data.last_timestamp)
                    if read is None
                    else next(read)
                )
                if marker is not None:
                    self._end(
                        producer_id, epoch, TransactionEnd(data.first_offset, attributes, marker)
                    )

    def _known(self, producer_id: int) -> Producer:
        producer = self.producers.get(producer_id)
        if producer is None:
            producer = self.producers[producer_id] = Producer(producer_id)
        return producer

    def _go_on(self, producer_id: int, data: Data) -> None:
        transaction = self.transactions.get(producer_id)
        if transaction is None:
            self.transactions[producer_id] = data
        else:
            transaction.add(data)

    def _report_outside(self, producer: Producer, runs: ProducerRuns, run: int) -> None:
        transaction = self.transactions[producer.producer_id]
        for row in runs.rows[runs.batches_of(run)]:
            self._sink.outside(producer, transaction, row)

    def _end(self, producer_id: int, epoch: int, end: TransactionEnd) -> None:
        producer, marker = self._known(producer_id), end.marker
        # Since KIP-890 each transaction's marker raises the epoch, and sequences begin anew with
        # it.
        if epoch != producer.epoch:
            producer.epoch, producer.last_sequence = epoch, NO_SEQUENCE
            producer.last_offset, producer.offset_delta = _NONE, 0
        if marker.coordinator_epoch is not None:
            producer.coordinator_epoch = marker.coordinator_epoch
        producer.timestamp = marker.timestamp
        # Taken out before the sink is asked: what it looks up as open is open behind this marker.
        self._sink.ended(producer, self.transactions.pop(producer_id, None), end)


def has_marker(rows: Rows) -> NDArray[np.bool_]:
    """bool[b]: control batches of a producer that have a record. A leader's own control batches,
    and what compaction leaves of markers, end nothing.
    """
    result: NDArray[np.bool_] = (rows["attributes"] & CONTROL_FLAG_MASK) != 0
    result &= (rows["producer_id"] >= 0) & (rows["records_count"] > 0)
    return result
