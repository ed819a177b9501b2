"""How the transactions of a partition ended, for records that count only if theirs was committed.

Headers alone tell whether there are any; then the markers are read.

Source: Kafka GroupCoordinator and its replay of transaction markers: a commit counts from its
marker on, and an aborted or open one never.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kafkalog.batches import batch_table
from kafkalog.errors import KafkaLogError
from kafkalog.log.damage import Damage, FileRange, wrong_checksum
from kafkalog.log.past_damage import DamageWalk, headers_past_damage
from kafkalog.log.segment_file import Chunk
from kafkalog.log.transaction_markers import TransactionMarker, read_markers
from kafkalog.reading import transaction_ranges

Int64s = npt.NDArray[np.int64]

# States of a record by number, and their names in columns; of records in no transaction none.
NOT_TRANSACTIONAL, OPEN, COMMITTED, ABORTED = range(4)
STATE_NAMES = (
    None,
    transaction_ranges.OPEN,
    transaction_ranges.COMMITTED,
    transaction_ranges.ABORTED,
)


@dataclass(frozen=True)
class TransactionEnds:
    """producer id → (offsets of its markers in order, whether each is an abort); what is wrong with
    markers that cannot be read."""

    by_producer: dict[int, tuple[Int64s, npt.NDArray[np.bool_]]]
    unreadable: tuple[KafkaLogError, ...] = ()

    def states(self, producer_ids: Int64s, offsets: Int64s) -> Int64s:
        """OPEN, COMMITTED or ABORTED of records in transactions."""
        states = np.full(offsets.size, OPEN, np.int64)
        for producer_id in np.unique(producer_ids).tolist():
            if producer_id not in self.by_producer:
                continue
            which = np.flatnonzero(producer_ids == producer_id)
            ends, is_abort = self.by_producer[producer_id]
            at = ends.searchsorted(offsets[which], side="right")
            ended = at < ends.size
            aborts = is_abort[at[ended]]
            states[which[ended]] = np.where(aborts, ABORTED, COMMITTED)
        return states


def read_transaction_ends(segments: Sequence[FileRange]) -> TransactionEnds | None:
    """The ends of all transactions in some segments of a partition, in order; None if none has a
    transactional record. What nothing leads over is left to the read of the records; a marker that
    cannot be read is in `unreadable`, for records are read past it.
    """
    has_data = False
    marked = []
    for segment in segments:
        rows, damages = headers_past_damage(segment)
        is_control = batch_table.is_control(rows)
        has_data |= bool((batch_table.is_transactional(rows) & ~is_control).any())
        if damages or (is_control & (rows["producer_id"] >= 0)).any():
            marked.append(segment)
    if not has_data:
        return None
    found: dict[int, list[tuple[int, bool]]] = {}
    unreadable: list[KafkaLogError] = []
    for segment in marked:
        for row, marker in _markers(segment, unreadable):
            end = (int(row["base_offset"]), marker.is_abort)
            found.setdefault(int(row["producer_id"]), []).append(end)
    return TransactionEnds(
        {
            producer_id: (
                np.array([offset for offset, _ in ends], np.int64),
                np.array([is_abort for _, is_abort in ends], np.bool_),
            )
            for producer_id, ends in found.items()
        },
        tuple(unreadable),
    )


def _markers(
    segment: FileRange, unreadable: list[KafkaLogError]
) -> Iterator[tuple[np.void, TransactionMarker]]:
    """The markers of a segment with their batches; what is wrong with others goes to
    `unreadable`."""
    walk = DamageWalk(segment)
    for chunk in walk:
        if isinstance(chunk, Damage):
            continue
        rows = chunk.rows
        is_marker = batch_table.is_control(rows) & (rows["records_count"] > 0)
        is_marker &= rows["producer_id"] >= 0
        which = np.flatnonzero(is_marker & walk.is_valid)
        try:
            yield from zip(rows[which], read_markers(chunk, which, segment.path), strict=True)
        except KafkaLogError:  # of one of them: each by itself tells which
            yield from _readable(chunk, which, segment.path, unreadable)
        unreadable += [
            wrong_checksum(segment.path, row) for row in rows[is_marker & ~walk.is_valid]
        ]


def _readable(
    chunk: Chunk, which: Int64s, path: str, unreadable: list[KafkaLogError]
) -> Iterator[tuple[np.void, TransactionMarker]]:
    for b in which.tolist():
        try:
            (marker,) = read_markers(chunk, np.array([b]), path)
        except KafkaLogError as error:
            unreadable.append(error)
        else:
            yield chunk.rows[b], marker
