"""Rows of the views `transactions` and `producers`: who wrote a partition, and what became of each
transaction, from the batch headers and the markers of the whole log.

The indexes and snapshots beside the log are not asked: this is what the log itself says, and what
they can be compared with. What began before the log's start is known only from its marker.

Source: Kafka ProducerStateManager, EndTransactionMarker; KIP-98.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kafkalog.batches.batch_table import is_control, is_transactional, last_sequences
from kafkalog.columns.places import rows_batch
from kafkalog.errors import KafkaLogError, LogChangedError
from kafkalog.log.damage import FileRange
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.past_damage import headers_past_damage
from kafkalog.log.segment_file import read_chunks
from kafkalog.log.transaction_markers import TransactionMarker, read_markers
from kafkalog.reading.data_loss import check_loss
from kafkalog.reading.request import ReadCounts, ReadMode, ReadRequest
from kafkalog.reading.selection import PartitionSelection, refuse_replicas
from kafkalog.reading.transaction_ranges import ABORTED, COMMITTED, OPEN
from kafkalog.reading.view_reader import ScanNeeds, ScanTask, ViewReader

_logger = logging.getLogger(__name__)

_ROWS_PER_BATCH = 16_384
_FIELDS = (
    *("producer_id", "producer_epoch", "base_offset", "last_offset", "records_count"),
    *("size_in_bytes", "max_timestamp"),
)

Row = dict[str, object]
Rows = NDArray[np.void]


@dataclass(slots=True)
class _Data:
    """Data batches of a producer, or of one of its transactions."""

    first_offset: int | None = None
    last_offset: int | None = None
    records: int = 0
    batches: int = 0
    size_in_bytes: int = 0
    first_timestamp: int | None = None
    last_timestamp: int | None = None

    def add(self, first: int, last: int, records: int, size: int, timestamp: int) -> None:
        if self.first_offset is None:
            self.first_offset, self.first_timestamp = first, timestamp
        self.last_offset, self.last_timestamp = last, timestamp
        self.records += max(records, 0)
        self.batches += 1
        self.size_in_bytes += size

    def columns(self) -> Row:
        return {
            "firstOffset": self.first_offset,
            "lastOffset": self.last_offset,
            "recordsCount": self.records,
            "batchesCount": self.batches,
            "sizeInBytes": self.size_in_bytes,
            "firstTimestampMs": _known(self.first_timestamp),
            "lastTimestampMs": _known(self.last_timestamp),
        }


@dataclass(slots=True)
class _Producer:
    epoch: int = -1
    last_sequence: int = -1
    data: _Data = field(default_factory=_Data)
    last_timestamp: int = -1
    transaction: _Data | None = None
    committed: int = 0
    aborted: int = 0


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
                counts.dropped_batches += 1
                if request.mode == ReadMode.PERMISSIVE:
                    rows.append(walk.place | {"error": str(error)})
            if view == "transactions":
                rows += ended
            while len(rows) >= _ROWS_PER_BATCH:
                yield rows_batch(rows[:_ROWS_PER_BATCH], request.schema, request.names)
                rows = rows[_ROWS_PER_BATCH:]
        rows += walk.still_open() if view == "transactions" else walk.producers()
        for first in range(0, len(rows), _ROWS_PER_BATCH):
            part = rows[first : first + _ROWS_PER_BATCH]
            yield rows_batch(part, request.schema, request.names)


class _PartitionWalk:
    """Producers by id, fed with the segments of a partition in order."""

    def __init__(self, partition: PartitionInventory) -> None:
        self.place: Row = {
            "topic": partition.topic_partition.topic,
            "partition": partition.topic_partition.partition,
            "path": partition.path,
        }
        self._start_offset = partition.log_start_offset
        self._producers: dict[int, _Producer] = {}
        self.errors: list[KafkaLogError] = []
        """What is wrong with the latest segment."""

    def segment(self, wanted: FileRange) -> list[Row]:
        """Replay the batches of a segment; the rows of the transactions that end in it."""
        found, damages = headers_past_damage(wanted)
        self.errors = [damage.error for damage in damages]
        rows = found[found["last_offset"] >= self._start_offset]
        return self._replay(wanted.path, rows)

    def still_open(self) -> list[Row]:
        """Rows of the transactions that have no end, oldest first."""
        found = [
            self._transaction(producer_id, producer, producer.transaction, OPEN)
            for producer_id, producer in self._producers.items()
            if producer.transaction is not None
        ]
        return sorted(found, key=lambda row: str(row["firstOffset"]).zfill(20))

    def producers(self) -> list[Row]:
        """Rows of all producers, by id."""
        return [
            self.place
            | producer.data.columns()
            | {
                "producerId": _known(producer_id),
                "producerEpoch": _known(producer.epoch),
                "lastSequence": _known(producer.last_sequence),
                "lastTimestampMs": _known(producer.last_timestamp),
                "committedCount": producer.committed,
                "abortedCount": producer.aborted,
                "currentTxnFirstOffset": (
                    None if producer.transaction is None else producer.transaction.first_offset
                ),
            }
            for producer_id, producer in sorted(self._producers.items())
        ]

    def _replay(self, path: str, rows: Rows) -> list[Row]:
        control = is_control(rows)
        # Markers are of producers; a leader's own records, and what compaction left, end nothing.
        is_marker = control & (rows["producer_id"] >= 0) & (rows["records_count"] > 0)
        fields = [rows[name].tolist() for name in _FIELDS]
        flags = zip(
            control.tolist(),
            is_marker.tolist(),
            is_transactional(rows).tolist(),
            last_sequences(rows).tolist(),
            strict=True,
        )
        ended: list[Row] = []
        for b, (row, (is_ctl, marks, in_transaction, sequence)) in enumerate(
            zip(zip(*fields, strict=True), flags, strict=True)
        ):
            producer_id, epoch, first, last, records, size, timestamp = row
            if is_ctl and not marks:
                continue
            producer = self._producers.setdefault(producer_id, _Producer())
            if epoch != producer.epoch:
                producer.epoch, producer.last_sequence = epoch, -1
            producer.last_timestamp = timestamp
            if marks:
                try:
                    ended.append(self._end(path, rows[b], producer_id, producer))
                except LogChangedError:
                    raise
                except KafkaLogError as error:
                    self.errors.append(error)
                continue
            producer.last_sequence = sequence
            producer.data.add(first, last, records, size, timestamp)
            if in_transaction:
                producer.transaction = producer.transaction or _Data()
                producer.transaction.add(first, last, records, size, timestamp)
        return ended

    def _end(self, path: str, row: np.void, producer_id: int, producer: _Producer) -> Row:
        position = int(row["position"])
        chunk = next(iter(read_chunks(path, position, position + int(row["size_in_bytes"]))))
        (marker,) = read_markers(chunk, np.zeros(1, np.int64), path)
        data, producer.transaction = producer.transaction or _Data(), None
        if marker.is_abort:
            producer.aborted += 1
        else:
            producer.committed += 1
        state = ABORTED if marker.is_abort else COMMITTED
        return self._transaction(
            producer_id, producer, data, state, (int(row["base_offset"]), marker)
        )

    def _transaction(
        self,
        producer_id: int,
        producer: _Producer,
        data: _Data,
        state: str,
        end: tuple[int, TransactionMarker] | None = None,
    ) -> Row:
        row = self.place | data.columns()
        row |= {"producerId": producer_id, "producerEpoch": producer.epoch, "state": state}
        if end is not None:
            offset, marker = end
            began = data.first_timestamp
            row |= {
                "markerOffset": offset,
                "markerTimestampMs": _known(marker.timestamp),
                "coordinatorEpoch": marker.coordinator_epoch,
                "durationMs": None if _known(began) is None else marker.timestamp - (began or 0),
            }
        return row


def _known(number: int | None) -> int | None:
    return None if number is None or number < 0 else number


PRODUCERS_READER = ViewReader(_plan_partitions, _read_partitions)
