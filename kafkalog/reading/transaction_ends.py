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

from kafkalog.batches.batch_table import has_producer_id, is_control, is_transactional
from kafkalog.errors import KafkaLogError
from kafkalog.log.damage import Damage, FileRange, wrong_checksum
from kafkalog.log.past_damage import DamageWalk, headers_past_damage
from kafkalog.log.producer_replay import (
    Producer,
    ProducerReplay,
    ProducerSink,
    TransactionEnd,
    TransactionMarker,
    has_marker,
)
from kafkalog.log.producer_runs import Data
from kafkalog.log.transaction_markers import read_each_marker
from kafkalog.reading import transaction_ranges

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.void]

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
    markers that cannot be read, and with those whose batches have a wrong checksum."""

    by_producer: dict[int, tuple[Int64s, npt.NDArray[np.bool_]]]
    unreadable: tuple[KafkaLogError, ...] = ()
    damaged: tuple[KafkaLogError, ...] = ()

    def states(self, producer_ids: Int64s, offsets: Int64s) -> Int64s:
        """OPEN, COMMITTED or ABORTED of records in transactions."""
        states = np.full(offsets.size, OPEN, np.int64)
        for producer_id in np.unique(producer_ids).tolist():
            if producer_id not in self.by_producer:
                continue
            which = np.flatnonzero(producer_ids == producer_id)
            # A producer has one transaction at a time, so a record belongs to its first marker
            # behind it.
            ends, is_abort = self.by_producer[producer_id]
            at = ends.searchsorted(offsets[which], side="right")
            ended = at < ends.size
            aborts = is_abort[at[ended]]
            states[which[ended]] = np.where(aborts, ABORTED, COMMITTED)
        return states


def read_transaction_ends(segments: Sequence[FileRange]) -> TransactionEnds | None:
    """The ends of all transactions in some segments of a partition, in order; None if none has a
    transactional record. What nothing leads over is left to the read of the records; a marker that
    cannot be read is in `unreadable`, for records are read past it. One with a wrong checksum is in
    `damaged`: a read of the records that sums up batches finds it, too.
    """
    # Headers first: most partitions have no transactions, and of others only the segments with
    # markers are read, though markers of all of them: one may end data of any segment before.
    has_data = False
    marked = []
    for segment in segments:
        rows, damages = headers_past_damage(segment)
        is_data = is_transactional(rows) & has_producer_id(rows) & ~is_control(rows)
        has_data |= bool(is_data.any())
        if damages or has_marker(rows).any():
            marked.append(segment)
    if not has_data:
        return None
    ends, unreadable, damaged = _Ends(), list[KafkaLogError](), list[KafkaLogError]()
    replay = ProducerReplay(ends)
    for segment in marked:
        for rows, markers in _markers(segment, unreadable, damaged):
            replay.apply(rows, markers)
    return TransactionEnds(
        {
            producer_id: (
                np.array([offset for offset, _ in found], np.int64),
                np.array([is_abort for _, is_abort in found], np.bool_),
            )
            for producer_id, found in ends.by_producer.items()
        },
        tuple(unreadable),
        tuple(damaged),
    )


class _Ends(ProducerSink):
    """Offset and kind of each producer's markers."""

    def __init__(self) -> None:
        self.by_producer: dict[int, list[tuple[int, bool]]] = {}

    def ended(self, producer: Producer, transaction: Data | None, end: TransactionEnd) -> None:
        """Data in front of a marker may lie in a segment that is not looked at."""
        marker = end.offset, bool(end.marker.is_abort)
        self.by_producer.setdefault(producer.producer_id, []).append(marker)


def _markers(
    segment: FileRange, unreadable: list[KafkaLogError], damaged: list[KafkaLogError]
) -> Iterator[tuple[Rows, list[TransactionMarker | None]]]:
    """The control batches of a segment that have a marker, and these; what is wrong with those that
    cannot be read goes to `unreadable`, with those whose checksum is wrong to `damaged`."""
    walk = DamageWalk(segment)
    for chunk in walk:
        if isinstance(chunk, Damage):
            continue
        is_marker = has_marker(chunk.rows)
        which = np.flatnonzero(is_marker & walk.is_valid)
        markers, wrong = read_each_marker(chunk, which, segment.path)
        unreadable += wrong
        yield chunk.rows[which], markers
        damaged += [
            wrong_checksum(segment.path, row) for row in chunk.rows[is_marker & ~walk.is_valid]
        ]
