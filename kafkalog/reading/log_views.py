"""Rows of the views `segments` and `partitions`: what the inventory knows, and what a walk over the
headers adds.

Only `segments` columns that need the walk pay for it; without them a segment costs a `stat`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from kafkalog.columns.places import rows_batch
from kafkalog.errors import KafkaLogError
from kafkalog.format.clean_shutdown import CLEAN_SHUTDOWN_FILE, parse_clean_shutdown
from kafkalog.format.file_names import offset_index_file_name, time_index_file_name
from kafkalog.format.topics import CLUSTER_METADATA_TOPIC
from kafkalog.log.header_facts import SegmentFacts
from kafkalog.log.index_condition import (
    INDEX_CONDITIONS,
    offset_index_state,
    time_index_state,
)
from kafkalog.log.inventory import PartitionInventory, SegmentInfo
from kafkalog.log.log_numbers import NONE, SegmentNumbers
from kafkalog.log.segment_facts import segment_facts
from kafkalog.log.segment_headers import HeaderScan, scan_headers
from kafkalog.log.segment_tail import SegmentEnds, Tail, tail_error
from kafkalog.log.small_files import is_there, read_small_file
from kafkalog.reading.request import ReadCounts, ReadMode, ReadRequest
from kafkalog.reading.selection import PartitionSelection
from kafkalog.reading.view_reader import ScanNeeds, ScanTask, ViewReader, tasks_of

Row = dict[str, object]

_ROWS_PER_BATCH = 256
_SEGMENTS_PER_TASK = 64


@dataclass(frozen=True, slots=True)
class SegmentTask:
    """A segment to describe and the partition directory it is in."""

    topic: str
    partition: int
    kind: str
    segment: SegmentInfo

    @property
    def path(self) -> str:
        return self.segment.path


_FROM_INVENTORY: dict[str, Callable[[SegmentTask], object]] = {
    "topic": lambda t: t.topic,
    "partition": lambda t: t.partition,
    "kind": lambda t: t.kind,
    "baseOffset": lambda t: t.segment.base_offset,
    "sizeInBytes": lambda t: t.segment.size_in_bytes,
    "isActive": lambda t: t.segment.is_active,
    "state": lambda t: t.segment.state,
    "indexSize": lambda t: t.segment.offset_index_bytes,
    "timeIndexSize": lambda t: t.segment.time_index_bytes,
    "txnIndexSize": lambda t: t.segment.txn_index_bytes,
    "hasSnapshot": lambda t: t.segment.has_snapshot,
    "modificationTime": lambda t: t.segment.modification_time_ms * 1000,
    "path": lambda t: t.segment.path,
}

_FROM_HEADERS: dict[str, Callable[[SegmentFacts], object]] = {
    "nextOffset": lambda f: f.next_offset,
    "recordsCount": lambda f: f.records_count,
    "batchesCount": lambda f: f.batches_count,
    "largestTimestampMs": lambda f: _known_ms(f.max_timestamp_ms),
    "smallestTimestampMs": lambda f: _known_ms(f.min_timestamp_ms),
    "validBytes": lambda f: f.valid_bytes,
    "trailingBytes": lambda f: f.trailing_bytes,
    "error": lambda f: f.corrupt,
}


def segment_tasks(partitions: Sequence[PartitionInventory]) -> list[SegmentTask]:
    """All segments, those with a suffix too, in the order of partition, offset and path."""
    return [
        SegmentTask(p.topic_partition.topic, p.topic_partition.partition, str(p.kind), segment)
        for p in partitions
        for segment in sorted(
            (*p.segments, *p.other_segments), key=lambda s: (s.base_offset, s.path)
        )
    ]


def segment_row(task: SegmentTask, *, with_headers: bool = True) -> Row:
    """The row of view `segments` by column name, in Arrow's units; OSError if the file is gone."""
    row = {name: value(task) for name, value in _FROM_INVENTORY.items()}
    return row | _header_columns(task.segment) if with_headers else row


def kept_row(task: SegmentTask, numbers: SegmentNumbers) -> Row | None:
    """The same of a live segment of a log that nothing is wrong with, by what is known of its
    headers and indexes; None where that is not all. No file is opened.
    """
    if NONE in (numbers.offset_index, numbers.time_index):
        return None
    row = {name: value(task) for name, value in _FROM_INVENTORY.items()}
    return row | {
        "nextOffset": numbers.next_offset,
        "recordsCount": numbers.records_count,
        "batchesCount": numbers.batches_count,
        "largestTimestampMs": _known_ms(numbers.max_timestamp_ms),
        "smallestTimestampMs": _known_ms(numbers.min_timestamp_ms),
        "validBytes": numbers.valid_bytes,
        "trailingBytes": 0,
        "error": None,
        "indexState": str(INDEX_CONDITIONS[numbers.offset_index]),
        "timeIndexState": str(INDEX_CONDITIONS[numbers.time_index]),
    }


def _plan_segments(
    view: str,
    partitions: Sequence[PartitionInventory],
    selection: PartitionSelection,
    needs: ScanNeeds,
) -> list[ScanTask[SegmentTask]]:
    found = segment_tasks(needs.wanted(partitions))
    accepted = [task for task in found if selection.accepts_file(task.path)]
    return tasks_of(view, accepted, pieces_per_task=_SEGMENTS_PER_TASK)


def _plan_partitions(
    view: str,
    partitions: Sequence[PartitionInventory],
    selection: PartitionSelection,
    needs: ScanNeeds,
) -> list[ScanTask[PartitionInventory]]:
    wanted = needs.wanted(partitions)
    return tasks_of(view, wanted, pieces_per_task=max(len(wanted), 1))


def _read_segments(
    task: ScanTask[SegmentTask], request: ReadRequest, counts: ReadCounts
) -> Iterator[pa.RecordBatch]:
    """A row a segment. Damage is shown by `error` and `trailingBytes`; only a file that cannot be
    read is raised."""
    tasks = task.pieces
    needs_headers = any(name not in _FROM_INVENTORY for name in request.names)
    for first in range(0, len(tasks), _ROWS_PER_BATCH):
        rows = []
        for piece in tasks[first : first + _ROWS_PER_BATCH]:
            row = segment_row(piece, with_headers=needs_headers)
            if row.get("error") is not None and request.mode == ReadMode.DROPMALFORMED:
                counts.drop(piece.path)
                continue
            rows.append(row)
        if rows:
            yield rows_batch(rows, request.schema, request.names)


def _read_partitions(
    task: ScanTask[PartitionInventory], request: ReadRequest, counts: ReadCounts
) -> Iterator[pa.RecordBatch]:
    """A row a partition directory."""
    partitions = task.pieces
    needs_producers = "lastStableOffset" in request.names
    for first in range(0, len(partitions), _ROWS_PER_BATCH):
        rows = []
        for partition in partitions[first : first + _ROWS_PER_BATCH]:
            row = _partition_row(partition)
            if needs_producers:
                row["lastStableOffset"] = _stable_offset(partition)
            rows.append(row)
        yield rows_batch(rows, request.schema, request.names)


def _header_columns(segment: SegmentInfo) -> Row:
    scan = scan_headers(segment.path)
    facts = segment_facts(segment.base_offset, scan)
    row = {name: value(facts) for name, value in _FROM_HEADERS.items()}
    if row["error"] is None and facts.trailing_bytes and segment.state == "live":
        ends = SegmentEnds.of(segment)
        tail = Tail(facts.valid_bytes, scan.file_size, scan.status, facts.next_offset - 1)
        error = tail_error(segment.path, tail, ends)
        row["error"] = None if error is None else error.reason
    return row | _index_columns(segment, scan, facts.next_offset)


def _index_columns(segment: SegmentInfo, scan: HeaderScan, next_offset: int) -> Row:
    base_offset = segment.base_offset
    if segment.state in ("live", "remote"):
        offset_index, time_index = segment.beside(".index"), segment.beside(".timeindex")
    else:
        directory, suffix = segment.path.rpartition("/")[0], f".{segment.state}"
        offset_index = f"{directory}/{offset_index_file_name(base_offset, suffix)}"
        time_index = f"{directory}/{time_index_file_name(base_offset, suffix)}"
    positions = scan.rows["position"].astype(np.int64)
    return {
        "indexState": str(
            offset_index_state(offset_index, base_offset, positions, scan.file_size).condition
        ),
        "timeIndexState": str(time_index_state(time_index, base_offset, next_offset).condition),
    }


def _partition_row(partition: PartitionInventory) -> Row:
    checkpoints = partition.checkpoints
    is_clean, broker_epoch = _clean_shutdown(partition)
    return {
        "isCleanShutdown": is_clean,
        "brokerEpoch": broker_epoch,
        "topic": partition.topic_partition.topic,
        "partition": partition.topic_partition.partition,
        "kind": str(partition.kind),
        "topicId": partition.topic_id,
        "directoryId": partition.directory_id,
        "logStartOffset": partition.log_start_offset,
        "logEndOffset": partition.log_end_offset,
        "highWatermark": checkpoints.high_watermark,
        "recoveryPoint": checkpoints.recovery_point,
        "cleanerCheckpoint": checkpoints.cleaner,
        "segmentsCount": len(partition.segments),
        "sizeInBytes": partition.size_in_bytes,
        "hasRemoteSegments": partition.has_remote_segments,
        "logDir": partition.log_dir,
        "path": partition.path,
    }


def _clean_shutdown(partition: PartitionInventory) -> tuple[bool, int | None]:
    """Whether the log was closed in order, and the broker's epoch. The marker does not stand for
    the metadata log, which is always recovered."""
    path = Path(partition.log_dir) / CLEAN_SHUTDOWN_FILE
    if partition.topic_partition.topic == CLUSTER_METADATA_TOPIC or not is_there(path):
        return False, None
    try:
        return True, parse_clean_shutdown(read_small_file(path), str(path))
    except (OSError, KafkaLogError):
        return True, None


def _stable_offset(partition: PartitionInventory) -> int | None:
    """None where the log cannot tell."""
    # Needs the kernels that decode records; nothing else in this module does.
    from kafkalog.reading.lookups import last_stable_offset

    try:
        return last_stable_offset(partition)
    except KafkaLogError:
        return None


def _known_ms(timestamp_ms: int) -> int | None:
    return None if timestamp_ms < 0 else timestamp_ms


SEGMENTS_READER = ViewReader(_plan_segments, _read_segments, malformed="segments")
PARTITIONS_READER = ViewReader(_plan_partitions, _read_partitions)
