"""Rows of the views of topics that programs beside the broker keep: those of Kafka Connect,
MirrorMaker 2 and Schema Registry.

A task is a partition: which record is the latest of its key is known only with all of them read, so
the keys are read before, where `isLatest` is asked for. Then each record is decoded on its own, in
plain Python: such topics are small. Bytes that are no record of the topic are as a batch that
cannot be read: FAILFAST raises, PERMISSIVE has a row with the `error`, DROPMALFORMED leaves it out
and says how many.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.schemas import RECORDS
from kafkalog.columns.selection import choose_columns
from kafkalog.errors import KafkaLogError
from kafkalog.log.inventory import PartitionInventory
from kafkalog.messages.client_topics import CLIENT_TOPICS
from kafkalog.messages.registry_records import is_deletion, mark_deleted
from kafkalog.reading.message_views import readable_rows
from kafkalog.reading.request import ReadCounts, ReadMode, ReadRequest
from kafkalog.reading.segment_reader import read_record_splits
from kafkalog.reading.selection import PartitionSelection, refuse_replicas
from kafkalog.reading.split_plan import plan_reading
from kafkalog.reading.splits import ScanSplit, SplitNeeds
from kafkalog.reading.view_reader import ScanNeeds, ScanTask, ViewReader
from kafkalog.reading.views import view_columns

_logger = logging.getLogger(__name__)

_ERROR = "error"
_STATE = "transactionState"
# Columns of `records` that the rows have as they are.
_PLACES = ("topic", "partition", "offset", "timestamp", _STATE, "path")
# What does not count: it was aborted, or may still be.
_NOT_COMMITTED = ("aborted", "open")
# (offset, decoded record) of what deletes earlier records.
_Deletions = list[tuple[int, dict[str, Any]]]


def _plan_partitions(
    view: str,
    partitions: Sequence[PartitionInventory],
    selection: PartitionSelection,
    needs: ScanNeeds,
) -> list[ScanTask[ScanSplit]]:
    """Of topics asked for by name, whatever they are called, else of those with the view's names.
    A task a partition, with what became of its transactions.
    """
    names = CLIENT_TOPICS[view].names
    are_named = selection.topics is not None or selection.partitions is not None
    wanted = [
        p
        for p in needs.wanted(partitions)
        if are_named or names.fullmatch(p.topic_partition.topic) is not None
    ]
    refuse_replicas(wanted, selection)
    split_needs = SplitNeeds(row_filter=needs.row_filter, with_transactions=True)
    plans = [plan_reading([p], selection, needs.sizes, split_needs) for p in wanted]
    return [ScanTask(view, tuple(plan.splits)) for plan in plans if plan.splits]


def _read_partition(
    task: ScanTask[ScanSplit], request: ReadRequest, counts: ReadCounts
) -> Iterator[pa.RecordBatch]:
    latest: frozenset[int] = frozenset()
    if "isLatest" in request.names:
        latest = frozenset(_latest_offsets(task.pieces, request).values())
    deletions: _Deletions = []
    if CLIENT_TOPICS[task.view].has_deletions and "isDeleted" in request.names:
        deletions = _deletions(task, request)
    permissive = request.mode == ReadMode.PERMISSIVE
    inner = _records_request(request, (*_PLACES, "key", "value"))
    for split in task.pieces:
        unreadable = 0
        for records in read_record_splits((split,), inner, counts):
            columns = _decoded(task.view, records, latest, deletions)
            if not permissive:
                stay = readable_rows(records, columns[_ERROR], split, request.mode)
                if stay is not None:
                    unreadable += records.num_rows - int(pc.sum(stay).as_py() or 0)
                    columns = {name: column.filter(stay) for name, column in columns.items()}
            rows = [columns[name] for name in request.names]
            yield pa.RecordBatch.from_arrays(rows, schema=request.schema)
        if unreadable:
            _logger.warning("left out %d records of %s that cannot be read", unreadable, split.path)


def _records_request(request: ReadRequest, names: Sequence[str]) -> ReadRequest:
    permissive = request.mode == ReadMode.PERMISSIVE
    names = [*names, *([_ERROR] if permissive else [])]
    return ReadRequest.of(
        choose_columns("records", RECORDS, names, with_error=permissive),
        mode=request.mode,
        verify_checksums=request.verify_checksums,
        max_batch_bytes=request.max_batch_bytes,
        row_filter=request.row_filter,
    )


def _latest_offsets(splits: Sequence[ScanSplit], request: ReadRequest) -> dict[bytes | None, int]:
    """The last offset of each key, as compaction sees keys: byte by byte."""
    latest: dict[bytes | None, int] = {}
    for records in read_record_splits(splits, _records_request(request, ("key", "offset", _STATE))):
        keys, offsets, states = (records.column(i).to_pylist() for i in range(3))
        for key, offset, state in zip(keys, offsets, states, strict=True):
            if offset is not None and state not in _NOT_COMMITTED:
                latest[key] = max(offset, latest.get(key, offset))
    return latest


def _deletions(task: ScanTask[ScanSplit], request: ReadRequest) -> _Deletions:
    """Committed records that delete earlier ones; those that cannot be decoded delete nothing."""
    decode = CLIENT_TOPICS[task.view].decode
    found: _Deletions = []
    inner = _records_request(request, ("key", "value", "offset", _STATE))
    for records in read_record_splits(task.pieces, inner):
        columns = (records.column(i).to_pylist() for i in range(4))
        for key, value, offset, state in zip(*columns, strict=True):
            if offset is None or state in _NOT_COMMITTED:
                continue
            try:
                row = decode(key, value)
            except KafkaLogError:
                continue
            if is_deletion(row):
                found.append((offset, row))
    return found


def _decoded(
    view: str, records: pa.RecordBatch, latest: frozenset[int], deletions: _Deletions
) -> dict[str, pa.Array]:
    """All columns of the view, by name."""
    decode = CLIENT_TOPICS[view].decode
    count = records.num_rows
    has_errors = _ERROR in records.schema.names
    errors = records.column(_ERROR).to_pylist() if has_errors else [None] * count
    rows: list[dict[str, Any]] = [{} for _ in range(count)]
    pairs = zip(records.column("key").to_pylist(), records.column("value").to_pylist(), strict=True)
    offsets = records.column("offset").to_pylist()
    for i, (key, value) in enumerate(pairs):
        if errors[i] is not None:
            continue  # a batch that cannot be read
        rows[i] = {"isTombstone": value is None, "isLatest": offsets[i] in latest}
        try:
            rows[i] |= decode(key, value)
        except KafkaLogError as error:
            errors[i] = error.reason
        else:
            mark_deleted(offsets[i], rows[i], deletions)
    columns = {name: records.column(name) for name in _PLACES}
    columns[_ERROR] = pa.array(errors, pa.string())
    for column in view_columns(view):
        if column.name not in columns:
            columns[column.name] = pa.array([row.get(column.name) for row in rows], column.type)
    return columns


CLIENT_READER = ViewReader(
    _plan_partitions,
    _read_partition,
    is_of=lambda view, topic: CLIENT_TOPICS[view].names.fullmatch(topic) is not None,
)
