"""What recovery writes of producers: the entries of a snapshot, and the transactions that were
aborted.

`producer_state` answers a smaller question (who is known, by headers alone) for compaction's plans.

Source: Kafka ProducerStateManager, LogSegment.updateProducerState.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from kafkalog.errors import CorruptRecordError
from kafkalog.format.producer_snapshot import ProducerEntry
from kafkalog.format.transaction_index import AbortedTxn
from kafkalog.log.producer_replay import (
    Producer,
    ProducerReplay,
    ProducerSink,
    TransactionEnd,
    TransactionMarker,
    has_marker,
)
from kafkalog.log.producer_runs import Data
from kafkalog.log.segment_file import Chunk


class RecoveredProducers(ProducerSink):
    """Entries by producer id; `end_offset` is one past the last magic 2 batch seen."""

    def __init__(self, end_offset: int, entries: Iterable[ProducerEntry] = ()) -> None:
        self.end_offset = end_offset
        self._replay = ProducerReplay(self)
        self._path = ""
        self._aborted: list[AbortedTxn] = []
        self.restart(entries)

    def restart(self, entries: Iterable[ProducerEntry]) -> None:
        """Forget everything and go on from these entries, as after loading a snapshot."""
        self._replay.restart(
            (
                Producer(
                    entry.producer_id,
                    entry.producer_epoch,
                    entry.last_sequence,
                    entry.last_offset,
                    entry.offset_delta,
                    entry.timestamp,
                    entry.coordinator_epoch,
                ),
                entry.current_txn_first_offset,
            )
            for entry in entries
        )

    def entries(self) -> tuple[ProducerEntry, ...]:
        """The entries of a snapshot taken now, by producer id."""
        entries = []
        for producer_id, producer in sorted(self._replay.producers.items()):
            start = self._replay.transaction_start(producer_id)
            entries.append(
                ProducerEntry(
                    producer_id=producer_id,
                    producer_epoch=producer.epoch,
                    last_sequence=producer.last_sequence,
                    last_offset=producer.last_offset,
                    offset_delta=producer.offset_delta,
                    timestamp=producer.timestamp,
                    coordinator_epoch=producer.coordinator_epoch,
                    current_txn_first_offset=-1 if start is None else start,
                )
            )
        return tuple(entries)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Drop who has been idle for so long and has no open transaction; Kafka does it whenever it
        loads a snapshot.
        """
        self.restart(
            entry
            for entry in self.entries()
            if entry.current_txn_first_offset >= 0 or now_ms - entry.timestamp < expiration_ms
        )

    def apply(self, chunk: Chunk, path: str) -> list[AbortedTxn]:
        """Replay whole batches; the transactions that were aborted among them.

        CorruptRecordError for what makes a broker fail to load the log: a marker that is none, data
        outside of the transaction that its producer has open.
        """
        rows = chunk.rows
        # Legacy entries know no producers, and Kafka takes no state at their offsets.
        current = rows["magic"] >= 2
        if current.any():
            self.end_offset = int(rows["last_offset"][current][-1]) + 1
        which = np.flatnonzero(has_marker(rows))
        markers: Sequence[TransactionMarker] = ()
        if which.size:
            # Imported late: a log without transactions needs none of the kernels that decode.
            from kafkalog.log.transaction_markers import read_markers

            markers = read_markers(chunk, which, path)
        self._path, self._aborted = path, []
        self._replay.apply(rows, markers)
        return self._aborted

    def ended(self, producer: Producer, transaction: Data | None, end: TransactionEnd) -> None:
        """An abort leaves an entry for the transaction index."""
        if transaction is None or not end.marker.is_abort:
            return
        # What is still open elsewhere holds the last stable offset back.
        open_elsewhere = self._replay.first_open_offset()
        last_stable_offset = end.offset + 1 if open_elsewhere is None else open_elsewhere
        self._aborted.append(
            AbortedTxn(
                producer.producer_id, transaction.first_offset, end.offset, last_stable_offset
            )
        )

    def outside(self, producer: Producer, transaction: Data, row: np.void) -> None:
        """A broker fails."""
        raise CorruptRecordError(
            f"producer {producer.producer_id} wrote outside of the transaction that it has open "
            f"since offset {transaction.first_offset}: a broker fails to load this log",
            path=self._path,
            position=int(row["position"]),
            offset=int(row["base_offset"]),
        )
