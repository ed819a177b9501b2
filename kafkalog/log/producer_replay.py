"""The producer state a broker rebuilds when it recovers a log: all of a snapshot's fields, and the
transactions that were aborted.

Strategy: one entry a producer, fed with batches and markers in offset order.

 data batch   a new epoch forgets earlier batches; then its sequence, offsets and timestamp are
              noted; a transactional one opens a transaction if none is open
 marker       ends the transaction, an ABORT leaves an entry for the transaction index; a new epoch
              forgets earlier batches
 empty        what compaction left of a marker: the producer is known, with nothing about it

Between two events only the last data batch of a producer counts, so runs of them are thinned out
before anything is done batch by batch: a log of idempotent producers costs a sort.

`producer_state` answers a smaller question (who is known, by headers alone) for compaction's plans.

Source: Kafka ProducerStateManager, ProducerAppendInfo, ProducerStateEntry; KIP-98, KIP-890.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.batch_table import last_sequences
from kafkalog.errors import CorruptRecordError
from kafkalog.format.constants import (
    CONTROL_FLAG_MASK,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG_MASK,
)
from kafkalog.format.producer_snapshot import ProducerEntry
from kafkalog.format.transaction_index import AbortedTxn
from kafkalog.log.segment_file import Chunk

if TYPE_CHECKING:
    from kafkalog.log.transaction_markers import TransactionMarker

_EVENT_FIELDS = (
    *("producer_id", "producer_epoch", "base_offset", "last_offset", "max_timestamp"),
    *("attributes", "records_count", "position"),
)
_NONE = -1  # of offsets and epochs that are not there


class ProducerReplay:
    """Entries by producer id; `end_offset` is one past the last magic 2 batch seen."""

    def __init__(self, end_offset: int, entries: Iterable[ProducerEntry] = ()) -> None:
        self.end_offset = end_offset
        self._entries: dict[int, ProducerEntry] = {}
        self._open: dict[int, int] = {}
        """First offset of each open transaction, by producer id."""
        self.restart(entries)

    def restart(self, entries: Iterable[ProducerEntry]) -> None:
        """Forget everything and go on from these entries, as after loading a snapshot."""
        self._entries = {entry.producer_id: entry for entry in entries}
        self._open = {
            entry.producer_id: entry.current_txn_first_offset
            for entry in self._entries.values()
            if entry.current_txn_first_offset >= 0
        }

    def entries(self) -> tuple[ProducerEntry, ...]:
        """The entries of a snapshot taken now, by producer id."""
        return tuple(sorted(self._entries.values(), key=lambda entry: entry.producer_id))

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Drop who has been idle for so long and has no open transaction; Kafka does it whenever it
        loads a snapshot.
        """
        self.restart(
            entry
            for entry in self._entries.values()
            if entry.current_txn_first_offset >= 0 or now_ms - entry.timestamp < expiration_ms
        )

    def apply(self, chunk: Chunk, path: str) -> list[AbortedTxn]:
        """Replay whole batches; the transactions that were aborted among them.

        CorruptRecordError for what makes a broker fail to load the log: a marker that is none, data
        outside of the transaction that its producer has open.
        """
        rows = chunk.rows
        known = np.flatnonzero(rows["producer_id"] > NO_PRODUCER_ID)
        current = rows["magic"] >= 2
        if current.any():
            self.end_offset = int(rows["last_offset"][current][-1]) + 1
        if not known.size:
            return []
        events = known[_is_event(rows[known])]
        is_marker = (rows["attributes"][events] & CONTROL_FLAG_MASK) != 0
        is_marker &= rows["records_count"][events] > 0
        markers: Sequence[TransactionMarker] = ()
        if is_marker.any():
            # Imported late: a log without transactions needs none of the kernels that decode.
            from kafkalog.log.transaction_markers import read_markers

            markers = read_markers(chunk, events[is_marker], path)
        return self._apply_events(rows[events], markers, path)

    def _apply_events(
        self, rows: NDArray[np.void], markers: Iterable[TransactionMarker], path: str
    ) -> list[AbortedTxn]:
        aborted: list[AbortedTxn] = []
        marker = iter(markers)
        # Plain lists: numpy's scalars are slow one by one.
        fields = [rows[name].tolist() for name in _EVENT_FIELDS]
        sequences = last_sequences(rows).tolist()
        for row, sequence in zip(zip(*fields, strict=True), sequences, strict=True):
            producer_id, epoch, base, last, timestamp, attributes, count, position = row
            if attributes & CONTROL_FLAG_MASK:
                if count > 0:
                    aborted += self._end(producer_id, epoch, base, next(marker))
                else:
                    self._entries.setdefault(producer_id, _nothing_of(producer_id))
                continue
            old = self._entries.get(producer_id)
            start = _NONE if old is None else old.current_txn_first_offset
            if attributes & TRANSACTIONAL_FLAG_MASK:
                if start < 0:
                    start = base
                    self._open[producer_id] = base
            elif start >= 0:
                raise CorruptRecordError(
                    f"producer {producer_id} wrote outside of the transaction that it has open "
                    f"since offset {start}: a broker fails to load this log",
                    path=path,
                    position=position,
                    offset=base,
                )
            self._entries[producer_id] = ProducerEntry(
                producer_id=producer_id,
                producer_epoch=epoch,
                last_sequence=sequence,
                last_offset=last,
                offset_delta=last - base,
                timestamp=timestamp,
                coordinator_epoch=_NONE if old is None else old.coordinator_epoch,
                current_txn_first_offset=start,
            )
        return aborted

    def _end(
        self, producer_id: int, epoch: int, offset: int, marker: TransactionMarker
    ) -> Sequence[AbortedTxn]:
        old = self._entries.get(producer_id, _nothing_of(producer_id))
        keeps_batch = old.producer_epoch == epoch
        self._entries[producer_id] = ProducerEntry(
            producer_id=producer_id,
            producer_epoch=epoch,
            last_sequence=old.last_sequence if keeps_batch else NO_SEQUENCE,
            last_offset=old.last_offset if keeps_batch else _NONE,
            offset_delta=old.offset_delta if keeps_batch else 0,
            timestamp=marker.timestamp,
            coordinator_epoch=marker.coordinator_epoch,
            current_txn_first_offset=_NONE,
        )
        started = self._open.pop(producer_id, None)
        if started is None or not marker.is_abort:
            return ()
        # What is still open elsewhere holds the last stable offset back.
        last_stable_offset = min(self._open.values(), default=offset + 1)
        return (AbortedTxn(producer_id, started, offset, last_stable_offset),)


def _nothing_of(producer_id: int) -> ProducerEntry:
    return ProducerEntry(
        producer_id, NO_PRODUCER_EPOCH, NO_SEQUENCE, _NONE, 0, NO_TIMESTAMP, _NONE, _NONE
    )


def _is_event(rows: NDArray[np.void]) -> NDArray[np.bool_]:
    """bool[b]: markers, and of each run of like data batches of a producer the first and the last.

    The first may open a transaction, the last is what stays.
    """
    order = np.argsort(rows["producer_id"], kind="stable")
    kind = rows["attributes"][order] & (CONTROL_FLAG_MASK | TRANSACTIONAL_FLAG_MASK)
    producers = rows["producer_id"][order]
    same = (producers[1:] == producers[:-1]) & (kind[1:] == kind[:-1])
    same &= (kind[1:] & CONTROL_FLAG_MASK) == 0
    edge = np.array([True])
    is_event = np.empty(rows.size, np.bool_)
    is_event[order] = np.concatenate([edge, ~same]) | np.concatenate([~same, edge])
    return is_event
