"""Rows of the views of small files: indexes, producer snapshots, leader epochs, checkpoints.

A file is a task's piece: it is read whole, up to a cap, and without the preallocated zeros behind
an index. What cannot be read is raised, given as one row with its path and `error`, or left out, as
the mode says; a file that is gone since the plan was made has no rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np
import pyarrow as pa

from kafkalog.columns.entries import Entries, Numbers, build_entries
from kafkalog.columns.places import rows_batch
from kafkalog.errors import KafkaLogError
from kafkalog.format.checkpoints import parse_leader_epoch_checkpoint, parse_offset_checkpoint
from kafkalog.format.file_names import (
    LEADER_EPOCH_CHECKPOINT_FILE,
    LIVE_SUFFIX,
    LogFileKind,
    parse_file_name,
)
from kafkalog.format.offset_index import OFFSET_INDEX_ENTRY_BYTES, parse_offset_index
from kafkalog.format.producer_snapshot import ProducerEntry, parse_producer_snapshot
from kafkalog.format.time_index import TIME_INDEX_ENTRY_BYTES, parse_time_index
from kafkalog.format.transaction_index import parse_transaction_index
from kafkalog.log.index_tail import read_index_tail
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.listing import entries_in
from kafkalog.log.log_dir_files import CHECKPOINT_FILES
from kafkalog.log.remote_segments import REMOTE
from kafkalog.log.small_files import read_small_file
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.reading.request import ReadCounts, ReadMode, ReadRequest
from kafkalog.reading.selection import PartitionSelection
from kafkalog.reading.view_reader import ScanNeeds, ScanTask, ViewReader, tasks_of
from kafkalog.remote.stores import joined

_ROWS_PER_BATCH = 65_536

# View → what its files are called.
_KINDS = {
    "offset_index": LogFileKind.OFFSET_INDEX,
    "time_index": LogFileKind.TIME_INDEX,
    "transaction_index": LogFileKind.TRANSACTION_INDEX,
    "producer_snapshot": LogFileKind.PRODUCER_SNAPSHOT,
}
_FILES_PER_TASK = 64


@dataclass(frozen=True, slots=True)
class FileTask:
    """A small file to read: its path, the offset in its name, the columns all its rows share. Of
    a checkpoint the lines of `partitions` are wanted, and those that `selection` accepts.
    """

    view: str
    path: str
    offset: int = 0
    place: Mapping[str, object] = field(default_factory=dict)
    partitions: frozenset[TopicPartition] = frozenset()
    selection: PartitionSelection | None = None


def _plan_files(
    view: str,
    partitions: Sequence[PartitionInventory],
    selection: PartitionSelection,
    needs: ScanNeeds,
) -> list[ScanTask[FileTask]]:
    """The files of a view, in the order of partition and name.

    Of a log dir that was named as such the checkpoints' lines of partitions that are not there
    count as well, if `selection` accepts them.
    """
    if view == "checkpoints":
        files = list(_checkpoint_tasks(partitions, selection))
    else:
        wanted = needs.wanted(partitions)
        files = [file for partition in wanted for file in _partition_tasks(view, partition)]
    return tasks_of(view, files, pieces_per_task=_FILES_PER_TASK)


def _read_entries(
    scan_task: ScanTask[FileTask], request: ReadRequest, counts: ReadCounts
) -> Iterator[pa.RecordBatch]:
    """A row an entry of each file. KafkaLogError and OSError of a bad file in mode FAILFAST."""
    for task in scan_task.pieces:
        try:
            entries = _PARSERS[task.view](task)
        except FileNotFoundError:
            continue
        except (KafkaLogError, OSError) as error:
            if request.mode == ReadMode.FAILFAST:
                raise
            if request.mode == ReadMode.DROPMALFORMED:
                counts.drop(task.path)
            else:
                row = {**task.place, "path": task.path, "error": str(error)}
                yield rows_batch([row], request.schema, request.names)
            continue
        batch = build_entries(entries, request.schema, request.names)
        for first in range(0, batch.num_rows, _ROWS_PER_BATCH):
            yield batch.slice(first, _ROWS_PER_BATCH)


# -- which files -----------------------------------------------------------------------------------


def _partition_tasks(view: str, partition: PartitionInventory) -> Iterator[FileTask]:
    place: dict[str, object] = {
        "topic": partition.topic_partition.topic,
        "partition": partition.topic_partition.partition,
        "kind": str(partition.kind),
    }
    yield from _remote_tasks(view, partition, place)
    try:
        names = sorted(entry.name for entry in entries_in(partition.path))
    except FileNotFoundError:
        return  # deleted by a live broker meanwhile
    for name in names:
        path = joined(partition.path, name)
        if view == "leader_epochs":
            if name == LEADER_EPOCH_CHECKPOINT_FILE:
                yield FileTask(view, path, place={**place, "path": path})
            continue
        parsed = parse_file_name(name)
        if parsed is None or parsed.kind is not _KINDS[view]:
            continue
        offset_column = "snapshotOffset" if view == "producer_snapshot" else "segmentBaseOffset"
        state = "live" if parsed.suffix == LIVE_SUFFIX else parsed.suffix.removeprefix(".")
        own = {offset_column: parsed.offset, "state": state, "path": path}
        yield FileTask(view, path, parsed.offset, {**place, **own})


def _remote_tasks(
    view: str, partition: PartitionInventory, place: dict[str, object]
) -> Iterator[FileTask]:
    """Index files of segments in remote storage, of which a snapshot is as old as its segment's
    end, and leader epochs those of the partition."""
    if view not in ("offset_index", "time_index", "transaction_index"):
        return
    for segment in partition.segments:
        if segment.state == REMOTE:
            path = segment.beside(_KINDS[view].value)
            own = {"segmentBaseOffset": segment.base_offset, "state": REMOTE, "path": path}
            yield FileTask(view, path, segment.base_offset, {**place, **own})


def _checkpoint_tasks(
    partitions: Sequence[PartitionInventory], selection: PartitionSelection
) -> Iterator[FileTask]:
    by_log_dir: dict[str, set[TopicPartition]] = {}
    for partition in partitions:
        by_log_dir.setdefault(partition.log_dir, set()).add(partition.topic_partition)
    for log_dir, opened in by_log_dir.items():
        is_named = str(Path(log_dir).resolve()) in selection.named_paths
        for checkpoint in CHECKPOINT_FILES:
            path = joined(log_dir, checkpoint)
            place = {"checkpoint": checkpoint, "logDir": log_dir, "path": path}
            accepting = selection if is_named else None
            yield FileTask("checkpoints", path, 0, place, frozenset(opened), accepting)


# -- what is in them -------------------------------------------------------------------------------


def _index_bytes(task: FileTask, entry_bytes: int) -> bytes:
    """The genuine entries, not the zeros behind them."""
    valid_bytes = read_index_tail(task.path, entry_bytes).valid_bytes
    return read_small_file(task.path, first_bytes=valid_bytes)


def _offset_index(task: FileTask) -> Entries:
    data = _index_bytes(task, OFFSET_INDEX_ENTRY_BYTES)
    index = parse_offset_index(data, task.offset, task.path)
    return _entries(task, {"offset": index.offsets, "position": index.positions})


def _time_index(task: FileTask) -> Entries:
    data = _index_bytes(task, TIME_INDEX_ENTRY_BYTES)
    index = parse_time_index(data, task.offset, task.path)
    return _entries(task, {"timestampMs": index.timestamps, "offset": index.offsets})


def _transaction_index(task: FileTask) -> Entries:
    found = parse_transaction_index(read_small_file(task.path), task.offset, task.path)
    columns = {
        "producerId": [entry.producer_id for entry in found],
        "firstOffset": [entry.first_offset for entry in found],
        "lastOffset": [entry.last_offset for entry in found],
        "lastStableOffset": [entry.last_stable_offset for entry in found],
    }
    return _entries(task, columns)


# Spark's name of each of the file's fields, in the file's order.
_PRODUCER_COLUMNS = (
    "producerId", "producerEpoch", "lastSequence", "lastOffset", "offsetDelta", "timestampMs",
    "coordinatorEpoch", "currentTxnFirstOffset",
)  # fmt: skip


def _producer_snapshot(task: FileTask) -> Entries:
    found = parse_producer_snapshot(read_small_file(task.path), task.path)
    return _entries(
        task,
        {
            column: [getattr(entry, attribute.name) for entry in found]
            for column, attribute in zip(_PRODUCER_COLUMNS, fields(ProducerEntry), strict=True)
        },
    )


def _leader_epochs(task: FileTask) -> Entries:
    found = parse_leader_epoch_checkpoint(read_small_file(task.path), task.path)
    return _entries(
        task, {"epoch": [epoch for epoch, _ in found], "startOffset": [start for _, start in found]}
    )


def _checkpoint(task: FileTask) -> Entries:
    lines = parse_offset_checkpoint(read_small_file(task.path), task.path)
    found = [
        (name.topic, name.partition, offset)
        for name, offset in ((TopicPartition(*key), offset) for key, offset in lines.items())
        if name in task.partitions or (task.selection and task.selection.accepts(name))
    ]
    columns = zip(("topic", "partition", "offset"), zip(*found, strict=True), strict=True)
    return _entries(task, dict(columns) if found else {"topic": ()})


def _entries(task: FileTask, columns: Mapping[str, Numbers]) -> Entries:
    count = len(next(iter(columns.values())))
    return Entries(count, {"entry": np.arange(count), **columns}, task.place)


_PARSERS: dict[str, Callable[[FileTask], Entries]] = {
    "offset_index": _offset_index,
    "time_index": _time_index,
    "transaction_index": _transaction_index,
    "producer_snapshot": _producer_snapshot,
    "leader_epochs": _leader_epochs,
    "checkpoints": _checkpoint,
}


ENTRIES_READER = ViewReader(_plan_files, _read_entries, malformed="files")
