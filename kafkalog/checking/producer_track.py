"""Producers and transactions of one segment, batch by batch: what a broker would replay.

Sequences are compared within an epoch. They may jump: compaction takes batches, and a broker that
forgot a producer takes any number. They must not come again, but for 0: coordinators write 0 in
every batch, and a producer that a broker forgot begins there. After 2147483647 comes 0.

Of transactions is kept what the next segment, the transaction index and the snapshot are compared
with: the first marker of each producer, every ABORT, and what is still open at the end.

Source: Kafka ProducerAppendInfo, ProducerStateManager; KIP-98, KIP-890.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches import batch_table
from kafkalog.batches.batch_table import last_sequences
from kafkalog.checking.finding import FindingList
from kafkalog.checking.segment_report import AbortedSpan, FirstMarker, OpenSpan, ProducerSpan
from kafkalog.format.constants import MAX_INT32, NO_TIMESTAMP, TRANSACTIONAL_FLAG_MASK
from kafkalog.format.control_record import ControlRecordType
from kafkalog.log.control_batches import MARKERS, ControlProblem, judge_chunk
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

Rows = NDArray[np.void]
Mask = NDArray[np.bool_]

# Half of all sequence numbers: what lies further ahead lies behind.
_HALF = 1 << 30


def is_repeated(previous_last: int, base_sequence: int) -> bool:
    """Whether a batch's base sequence is one its producer has used in this epoch."""
    # Sequences go around at 2^31, so that a large step ahead and a small one back are the same
    # number: what is more than half the way ahead is taken for a step back.
    ahead = (base_sequence - previous_last - 1) & MAX_INT32
    return base_sequence > 0 and previous_last >= 0 and ahead > _HALF


class ProducerTrack(ProducerSink):
    """Fed with the batches of a segment in offset order."""

    def __init__(self, found: FindingList) -> None:
        self._found = found
        self._first: dict[int, tuple[int, int, int, int, bool]] = {}
        self._last: dict[int, tuple[int, int, int]] = {}
        self._first_markers: dict[int, int] = {}
        self._replay = ProducerReplay(self)
        self._aborted: list[AbortedSpan] = []

    def marker_types(self, chunk: Chunk, sound: Mask) -> NDArray[np.int8]:
        """int8[b]: the ControlRecordType of each sound control batch, else -1; what a broker cannot
        go on with is noted.
        """
        types = np.full(chunk.rows.size, ControlRecordType.UNKNOWN, np.int8)
        is_control = batch_table.is_control(chunk.rows)
        if is_control.any():
            which = np.flatnonzero(is_control & sound)
            control = judge_chunk(chunk, which, self._found.path)
            types[which] = control.types
            for problem in control.problems:
                self._say_control(problem)
        return types

    def add(self, rows: Rows, sound: Mask, marker_types: NDArray[np.int8]) -> None:
        """Take in batches; rows that are not `sound` tell nothing."""
        with_producer = sound & (rows["producer_id"] >= 0)
        if not with_producer.any():
            return
        is_control = batch_table.is_control(rows)
        self._add_sequences(rows[with_producer & ~is_control])
        # Of the others, producers that use no transactions, nothing is asked here.
        wanted = with_producer & (batch_table.is_transactional(rows) | is_control)
        open_now = self._replay.transactions
        if wanted.any() or open_now:
            known = np.fromiter(open_now, np.int64, len(open_now))
            # Not by np.unique, which loads numpy's masked arrays: 0.02 s of each process.
            found = np.sort(rows["producer_id"][wanted])
            known = np.concatenate([known, found[np.diff(found, prepend=-1) > 0]])
            wanted |= with_producer & np.isin(rows["producer_id"], known)
            markers = _markers(marker_types[wanted & has_marker(rows)])
            self._replay.apply(rows[wanted], markers)

    def _say_control(self, problem: ControlProblem) -> None:
        error = problem.error
        self._found.add(
            "control-record", error.reason, position=error.position, offset=error.offset
        )

    # -- sequences ---------------------------------------------------------------------------------

    def _add_sequences(self, rows: Rows) -> None:
        if not rows.size:
            return
        # Stable, so that each producer's batches stay in the order of the log: neighbours are then
        # compared all at once.
        rows = rows[np.argsort(rows["producer_id"], kind="stable")]
        producer_ids, epochs = rows["producer_id"], rows["producer_epoch"]
        last = last_sequences(rows).astype(np.int64)
        base = rows["base_sequence"].astype(np.int64)
        same = producer_ids[1:] == producer_ids[:-1]
        falls = same & (epochs[1:] < epochs[:-1])
        ahead = (base[1:] - last[:-1] - 1) & MAX_INT32
        again = same & (epochs[1:] == epochs[:-1]) & (base[1:] > 0) & (last[:-1] >= 0)
        again &= ahead > _HALF
        for b in np.flatnonzero(falls | again).tolist():
            before = int(epochs[b]), int(last[b]), int(rows["last_offset"][b])
            self._say(rows[b + 1], before)
        edges = np.flatnonzero(~same).tolist()
        for first, end in zip([0, *(e + 1 for e in edges)], [*edges, rows.size - 1], strict=True):
            self._join(rows[first], rows[end], int(last[end]))

    def _join(self, first: np.void, last: np.void, last_sequence: int) -> None:
        """Batches of one producer in this chunk: compare the first with what was before."""
        producer_id = int(first["producer_id"])
        before = self._last.get(producer_id)
        if before is None:
            self._first[producer_id] = (
                int(first["producer_epoch"]),
                int(first["base_sequence"]),
                int(first["base_offset"]),
                int(first["position"]),
                bool(first["attributes"] & TRANSACTIONAL_FLAG_MASK),
            )
        elif int(first["producer_epoch"]) < before[0] or (
            int(first["producer_epoch"]) == before[0]
            and is_repeated(before[1], int(first["base_sequence"]))
        ):
            self._say(first, before)
        self._last[producer_id] = (
            int(last["producer_epoch"]), last_sequence, int(last["last_offset"]),
        )  # fmt: skip

    def _say(self, row: np.void, before: tuple[int, int, int]) -> None:
        say_producer_order(
            self._found,
            (int(row["producer_id"]), int(row["producer_epoch"]), int(row["base_sequence"])),
            before,
            position=int(row["position"]),
            offset=int(row["base_offset"]),
        )

    # -- transactions ------------------------------------------------------------------------------

    def ended(self, producer: Producer, transaction: Data | None, end: TransactionEnd) -> None:
        """Note what other segments, the index and the snapshot are compared with."""
        producer_id, offset = producer.producer_id, end.offset
        is_first = producer_id not in self._first_markers
        if is_first:
            self._first_markers[producer_id] = offset
        if end.marker.is_abort:
            first_offset = -1 if transaction is None else transaction.first_offset
            has_records = transaction is not None and transaction.records > 0
            self._aborted.append(
                AbortedSpan(producer_id, first_offset, offset, is_first, has_records)
            )

    def outside(self, producer: Producer, transaction: Data, row: np.void) -> None:
        """A broker fails to load the log."""
        offset, position = int(row["base_offset"]), int(row["position"])
        say_outside(self._found, producer.producer_id, transaction.first_offset, offset, position)

    # -- results -----------------------------------------------------------------------------------

    def producers(self) -> tuple[ProducerSpan, ...]:
        """By producer id."""
        return tuple(ProducerSpan(p, *self._first[p], *self._last[p]) for p in sorted(self._first))

    def first_markers(self) -> tuple[FirstMarker, ...]:
        """By producer id."""
        return tuple(FirstMarker(*each) for each in sorted(self._first_markers.items()))

    def aborted(self) -> tuple[AbortedSpan, ...]:
        """By offset."""
        return tuple(self._aborted)

    def open_transactions(self) -> tuple[OpenSpan, ...]:
        """By producer id."""
        return tuple(
            OpenSpan(producer_id, data.first_offset, data.records > 0)
            for producer_id, data in sorted(self._replay.transactions.items())
        )


def _markers(types: NDArray[np.int8]) -> list[TransactionMarker | None]:
    """Markers by what they are: where and when others tell."""
    kinds = {
        int(kind): TransactionMarker(kind is ControlRecordType.ABORT, None, NO_TIMESTAMP)
        for kind in MARKERS
    }
    return [kinds.get(each) for each in types.tolist()]


def say_outside(
    found: FindingList, producer_id: int, first_offset: int, offset: int, position: int
) -> None:
    """A batch outside of the transaction that its producer has open."""
    found.add(
        "transaction-left",
        f"producer {producer_id} wrote outside of the transaction that it has open since offset "
        f"{first_offset}",
        position=position,
        offset=offset,
    )


def say_producer_order(
    found: FindingList,
    batch: tuple[int, int, int],
    before: tuple[int, int, int],
    *,
    position: int,
    offset: int,
) -> None:
    """A batch (producer id, epoch, base sequence) that does not lie behind its producer's last one
    (epoch, last sequence, last offset).
    """
    producer_id, epoch, base_sequence = batch
    if epoch < before[0]:
        kind = "producer-epoch-order"
        text = f"producer {producer_id} has epoch {epoch} after epoch {before[0]}"
    else:
        kind = "sequence-order"
        text = (
            f"producer {producer_id} epoch {epoch} has sequence {base_sequence} after {before[1]}"
        )
    found.add(kind, f"{text} at offset {before[2]}", position=position, offset=offset)
