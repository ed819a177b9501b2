"""Rows of the views `transactions` and `producers`: who wrote a partition, and what became of each
transaction, from the batch headers and the markers of the whole log.

The indexes and snapshots beside the log are not asked: this is what the log itself says, and what
they can be compared with. What began before the log's start is known only from its marker.

Source: Kafka ProducerStateManager, EndTransactionMarker; KIP-98.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kafkalog.batches.batch_table import is_control, last_sequences
from kafkalog.columns.places import rows_batch
from kafkalog.errors import KafkaLogError
from kafkalog.format.constants import NO_PRODUCER_ID
from kafkalog.log.damage import FileRange
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.past_damage import headers_past_damage
from kafkalog.log.producer_replay import (
    Producer,
    ProducerReplay,
    ProducerSink,
    TransactionEnd,
    has_marker,
)
from kafkalog.log.producer_runs import Data, data_of
from kafkalog.log.transaction_markers import read_markers_at
from kafkalog.reading.data_loss import check_loss
from kafkalog.reading.request import ReadCounts, ReadMode, ReadRequest
from kafkalog.reading.selection import PartitionSelection, refuse_replicas
from kafkalog.reading.transaction_ranges import ABORTED, COMMITTED, OPEN
from kafkalog.reading.view_reader import ScanNeeds, ScanTask, ViewReader

_ROWS_PER_BATCH = 16_384
Row = dict[str, object]
Rows = NDArray[np.void]


@dataclass(slots=True)
class _Totals:
    """All that a producer wrote, and how its transactions ended."""

    data: Data | None = None
    committed: int = 0
    aborted: int = 0

    def add(self, data: Data) -> None:
        if self.data is None:
            self.data = replace(data)
        else:
            self.data.add(data)


def _plan_partitions(
    view: str,
    partitions: Sequence[PartitionInventory],
    selection: PartitionSelection,
    needs: ScanNeeds,
) -> list[ScanTask[PartitionInventory]]:
    """Whole partitions, small ones together."""
    refuse_replicas(partitions, selection)
    for partition in partitions:
        check_loss(partition, selection)
    tasks: list[ScanTask[PartitionInventory]] = []
    pack: list[PartitionInventory] = []
    packed_bytes = 0
    for partition in needs.wanted(partitions):
        if pack and packed_bytes + partition.size_in_bytes > needs.sizes.split_bytes:
            tasks.append(ScanTask(view, tuple(pack)))
            pack, packed_bytes = [], 0
        pack.append(partition)
        packed_bytes += partition.size_in_bytes
    return [*tasks, ScanTask(view, tuple(pack))] if pack else tasks


def _read_partitions(
    task: ScanTask[PartitionInventory], request: ReadRequest, counts: ReadCounts
) -> Iterator[pa.RecordBatch]:
    """A row a transaction, in the order in which they ended, open ones last; or a row a producer.

    What cannot be walked over, and a marker that cannot be read, is raised (FAILFAST), given as a
    row with `error` (PERMISSIVE) or counted (DROPMALFORMED); what is behind it is looked at.
    """
    view = task.view
    for partition in task.pieces:
        walk = _PartitionWalk(partition)
        rows: list[Row] = []
        later_bases = [segment.base_offset for segment in partition.segments[1:]]
        for segment, end_offset in zip_longest(partition.segments, later_bases):
            ended = walk.segment(FileRange.of(segment, end_offset))
            for error in walk.errors:
                if request.mode == ReadMode.FAILFAST:
                    raise error
                if request.mode == ReadMode.PERMISSIVE:
                    rows.append(walk.place | {"error": str(error)})
                else:
                    counts.drop(error.path or partition.path)
            if view == "transactions":
                rows += ended
            while len(rows) >= _ROWS_PER_BATCH:
                yield rows_batch(rows[:_ROWS_PER_BATCH], request.schema, request.names)
                rows = rows[_ROWS_PER_BATCH:]
        rows += walk.still_open() if view == "transactions" else walk.producers()
        for first in range(0, len(rows), _ROWS_PER_BATCH):
            part = rows[first : first + _ROWS_PER_BATCH]
            yield rows_batch(part, request.schema, request.names)


class _PartitionWalk(ProducerSink):
    """Fed with the segments of a partition in order."""

    def __init__(self, partition: PartitionInventory) -> None:
        self.place: Row = {
            "topic": partition.topic_partition.topic,
            "partition": partition.topic_partition.partition,
            "path": partition.path,
        }
        self._start_offset = partition.log_start_offset
        self._replay = ProducerReplay(self)
        self._unknown = Producer(NO_PRODUCER_ID)
        self._totals: dict[int, _Totals] = {}
        self._ended: list[Row] = []
        self.errors: list[KafkaLogError] = []
        """What is wrong with the latest segment."""

    def segment(self, wanted: FileRange) -> list[Row]:
        """Replay the batches of a segment; the rows of the transactions that end in it."""
        found, damages = headers_past_damage(wanted)
        self.errors = [damage.error for damage in damages]
        rows = found[found["last_offset"] >= self._start_offset]
        markers, unreadable = read_markers_at(wanted.path, rows[has_marker(rows)])
        self.errors += unreadable
        self._ended = []
        self._replay.apply(rows, markers)
        self._add_without_producer(rows)
        return self._ended

    def still_open(self) -> list[Row]:
        """Rows of the transactions that have no end, oldest first."""
        # The oldest one first: it is what holds the last stable offset.
        open_now = sorted(self._replay.transactions.items(), key=lambda each: each[1].first_offset)
        return [
            self._transaction(self._replay.producers[producer_id], data, OPEN)
            for producer_id, data in open_now
        ]

    def producers(self) -> list[Row]:
        """Rows of all producers, by id; of those that compaction left nothing of, none."""
        return [
            self._producer(producer_id, totals)
            for producer_id, totals in sorted(self._totals.items())
        ]

    # -- what the replay tells ---------------------------------------------------------------------

    def wrote(self, producer: Producer, data: Data) -> None:
        """Count a producer's data."""
        self._totals_of(producer.producer_id).add(data)

    def ended(self, producer: Producer, transaction: Data | None, end: TransactionEnd) -> None:
        """Count the end of a transaction, and make its row."""
        marker = end.marker
        totals = self._totals_of(producer.producer_id)
        totals.aborted += bool(marker.is_abort)
        totals.committed += not marker.is_abort
        state = ABORTED if marker.is_abort else COMMITTED
        began = None if transaction is None else _known(transaction.first_timestamp)
        self._ended.append(
            self._transaction(producer, transaction, state)
            | {
                "markerOffset": end.offset,
                "markerTimestampMs": _known(marker.timestamp),
                "coordinatorEpoch": marker.coordinator_epoch,
                "durationMs": None if began is None else marker.timestamp - began,
            }
        )

    # -- rows --------------------------------------------------------------------------------------

    def _totals_of(self, producer_id: int) -> _Totals:
        totals = self._totals.get(producer_id)
        if totals is None:
            totals = self._totals[producer_id] = _Totals()
        return totals

    def _add_without_producer(self, rows: Rows) -> None:
        """What has no producer counts together, as that of one without an id."""
        others = rows[(rows["producer_id"] < 0) & ~is_control(rows)]
        if not others.size:
            return
        self._totals_of(NO_PRODUCER_ID).add(data_of(others))
        last = others[-1:]
        self._unknown = Producer(
            NO_PRODUCER_ID,
            int(last["producer_epoch"][0]),
            int(last_sequences(last)[0]),  # coordinators write 0 in each batch
            timestamp=int(last["max_timestamp"][0]),
        )

    def _producer(self, producer_id: int, totals: _Totals) -> Row:
        known = self._replay.producers.get(producer_id, self._unknown)
        return (
            self.place
            | _columns(totals.data)
            | {
                "producerId": _known(producer_id),
                "producerEpoch": _known(known.epoch),
                "lastSequence": _known(known.last_sequence),
                "lastTimestampMs": _known(known.timestamp),
                "committedCount": totals.committed,
                "abortedCount": totals.aborted,
                "currentTxnFirstOffset": self._replay.transaction_start(producer_id),
            }
        )

    def _transaction(self, producer: Producer, data: Data | None, state: str) -> Row:
        return (
            self.place
            | _columns(data)
            | {
                "producerId": producer.producer_id,
                "producerEpoch": producer.epoch,
                "state": state,
            }
        )


def _columns(data: Data | None) -> Row:
    if data is None:
        return {"recordsCount": 0, "batchesCount": 0, "sizeInBytes": 0}
    return {
        "firstOffset": data.first_offset,
        "lastOffset": data.last_offset,
        "recordsCount": data.records,
        "batchesCount": data.batches,
        "sizeInBytes": data.size_in_bytes,
        "firstTimestampMs": _known(data.first_timestamp),
        "lastTimestampMs": _known(data.last_timestamp),
    }


def _known(number: int | None) -> int | None:
    return None if number is None or number < 0 else number


PRODUCERS_READER = ViewReader(_plan_partitions, _read_partitions)
