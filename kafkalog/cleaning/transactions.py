"""Which batches of a round belong to aborted transactions, and which markers have nothing left to
mark.

Fed with every transactional and control batch of a round in offset order:

 data     of an aborted transaction: its records go at once, whatever their keys
 ABORT    ends it: while a batch of it was seen the marker and the index entry stay, else the marker
          has nothing left to mark
 COMMIT   has nothing left to mark if no data of its producer was seen since its last marker
 empty    what is left of a marker: nothing to mark either
 other    never goes

A marker with nothing left to mark first gets a delete horizon and goes in a round after it. An
empty data batch that is kept for its producer counts as seen, so it holds its marker. State is
carried over the groups of a round (KAFKA-8351).

What is aborted comes from the transaction indexes, not from a replay of the log
(`log.producer_replay`): Kafka's cleaner goes by them, so where the two differ only this way keeps
the output Kafka's.

Source: Kafka CleanedTransactionMetadata, Cleaner.shouldDiscardBatch; KIP-98, KIP-534.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import astuple
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kafkalog.format.constants import (
    CONTROL_FLAG_MASK,
    DELETE_HORIZON_FLAG_MASK,
    TRANSACTIONAL_FLAG_MASK,
)
from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.transaction_index import AbortedTxn
from kafkalog.kernels.control_types import EMPTY
from kafkalog.log.control_batches import judge_chunk
from kafkalog.log.segment_file import Chunk


class CleanedTransactionMetadata:
    """The transactions of one pass over a log."""

    def __init__(self) -> None:
        # A heap by first offset; the number in the middle keeps entries of the same offset in the
        # order in which they were added, and entries themselves are never compared.
        self._pending: list[tuple[int, int, AbortedTxn]] = []
        self._added = 0
        self._aborted: dict[int, AbortedTxn] = {}
        self._seen: set[int] = set()
        self._committed: set[int] = set()
        self._kept: list[AbortedTxn] = []

    def to_json(self) -> dict[str, Any]:
        """The state between two segments, for another task to go on from."""
        return {
            "pending": [astuple(transaction) for _, _, transaction in sorted(self._pending)],
            "aborted": [astuple(transaction) for transaction in self._aborted.values()],
            "seen": sorted(self._seen),
            "committed": sorted(self._committed),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> CleanedTransactionMetadata:
        """What `to_json` was called on."""
        state = cls()
        state.add_aborted(AbortedTxn(*fields) for fields in values["pending"])
        aborted = [AbortedTxn(*fields) for fields in values["aborted"]]
        state._aborted = {transaction.producer_id: transaction for transaction in aborted}
        state._seen = set(values["seen"])
        state._committed = set(values["committed"])
        return state

    def add_aborted(self, transactions: Iterable[AbortedTxn]) -> None:
        """Make known what the next segment's batches may belong to."""
        for transaction in transactions:
            self._added += 1
            heapq.heappush(self._pending, (transaction.first_offset, self._added, transaction))

    def take_kept_entries(self) -> list[AbortedTxn]:
        """The index entries of the aborted transactions that ended since this was last asked, and
        of which something is left.
        """
        kept, self._kept = self._kept, []
        return kept

    def on_data(self, producer_id: int, last_offset: int) -> bool:
        """A transactional data batch; True if it belongs to an aborted transaction."""
        # By the last offset, as Kafka: an entry that begins within the batch holds for all of it.
        self._begin_up_to(last_offset)
        if producer_id in self._aborted:
            self._seen.add(producer_id)
            return True
        # Until its marker says otherwise data that is in no index is committed data, or of a
        # transaction that is open: neither is removed here.
        self._committed.add(producer_id)
        return False

    def on_marker(self, producer_id: int, last_offset: int, kind: ControlRecordType | None) -> bool:
        """A control batch, `kind` None if it has no record; True if it has nothing left to mark."""
        self._begin_up_to(last_offset)
        if kind is None:
            return True
        if kind is ControlRecordType.ABORT:
            # While the marker stays its index entry does, too: readers go by the entry.
            transaction = self._aborted.pop(producer_id, None)
            if transaction is None or producer_id not in self._seen:
                return True
            self._seen.discard(producer_id)
            self._kept.append(transaction)
            return False
        if kind is ControlRecordType.COMMIT:
            was_seen = producer_id in self._committed
            self._committed.discard(producer_id)
            return not was_seen
        return False

    def _begin_up_to(self, offset: int) -> None:
        while self._pending and self._pending[0][0] <= offset:
            transaction = heapq.heappop(self._pending)[2]
            # Indexes of neighbouring segments may list a transaction twice; the first one counts.
            if transaction.producer_id not in self._aborted:
                self._aborted[transaction.producer_id] = transaction
                self._seen.discard(transaction.producer_id)

    def discardable(self, chunk: Chunk, path: str) -> NDArray[np.bool_]:
        """bool[b]: data of aborted transactions, markers with nothing left to mark.

        CorruptRecordError for a control batch with which a broker cannot go on: its cleaner would
        fail, or its loader on what was cleaned.
        """
        rows = chunk.rows
        result = np.zeros(rows.size, np.bool_)
        attributes = rows["attributes"]
        # Batch by batch in Python, for each depends on those before it; of a log without
        # transactions it is none at all.
        of_interest = np.flatnonzero(attributes & (TRANSACTIONAL_FLAG_MASK | CONTROL_FLAG_MASK))
        if not of_interest.size:
            return result
        which = np.flatnonzero(attributes & CONTROL_FLAG_MASK)
        control = judge_chunk(chunk, which, path)
        if control.problems:
            raise control.problems[0].error
        kinds = dict(zip(which.tolist(), control.types.tolist(), strict=True))
        for b in of_interest.tolist():
            producer_id, last_offset = int(rows["producer_id"][b]), int(rows["last_offset"][b])
            if b in kinds:
                kind = None if kinds[b] == EMPTY else ControlRecordType(kinds[b])
                result[b] = self.on_marker(producer_id, last_offset, kind)
            else:
                result[b] = self.on_data(producer_id, last_offset)
        return result


def expired_horizons(rows: NDArray[np.void], now_ms: int) -> NDArray[np.bool_]:
    """bool[b]: batches with a delete horizon at or before now."""
    has_horizon = (rows["attributes"] & DELETE_HORIZON_FLAG_MASK) != 0
    expired: NDArray[np.bool_] = has_horizon & (rows["base_timestamp"] <= now_ms)
    return expired
