"""Rows of the views of Kafka Streams' internal topics: changelogs of state stores, with the windows
in their keys, and repartition topics.

Records are read as for the view `records` and their keys taken apart as whole columns: a changelog
is as large as its store. What a store is, its keys tell: those of the first records that are read
of each partition, in each task anew. A key too short for what these were is as a batch that cannot
be read: FAILFAST raises, PERMISSIVE has a row with the `error`, DROPMALFORMED leaves it out and
says how many.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.schemas import RECORDS
from kafkalog.columns.selection import choose_columns
from kafkalog.columns.streams_keys import split_keys, store_type_of
from kafkalog.log.inventory import PartitionInventory
from kafkalog.messages.streams_topics import CHANGELOG, REPARTITION, application_and_store
from kafkalog.reading.message_views import readable_rows
from kafkalog.reading.request import ReadCounts, ReadMode, ReadRequest
from kafkalog.reading.segment_reader import read_record_splits
from kafkalog.reading.selection import PartitionSelection, refuse_replicas
from kafkalog.reading.split_plan import plan_reading
from kafkalog.reading.splits import ScanSplit, SplitNeeds, pack_splits
from kafkalog.reading.view_reader import ScanNeeds, ScanTask, ViewReader

_logger = logging.getLogger(__name__)

# View → what its topics' names end in.
SUFFIXES = {"streams_changelogs": CHANGELOG, "streams_repartitions": REPARTITION}

_ERROR = "error"
# So many records tell what a store is.
_FIRST_RECORDS = 4096
# Columns that the key is needed for.
_OF_KEY = ("storeType", "key", "windowStartMs", "windowEndMs", "sequence", _ERROR)
# Columns of `records` that the rows have.
_OF_RECORDS = frozenset(
    "topic partition offset timestamp key recordKey value transactionState path".split()
)
# Under other names in `records`.
_RENAMED = {"recordKey": "key"}


@dataclass(frozen=True, slots=True)
class StreamsPiece:
    """A split of a topic; head: the first one that is read of its partition."""

    split: ScanSplit
    head: ScanSplit
    application_id: str | None
    store: str | None

    @property
    def log_bytes(self) -> int:
        """What is read of the log."""
        return self.split.end - self.split.start


def _plan(
    view: str,
    partitions: Sequence[PartitionInventory],
    selection: PartitionSelection,
    needs: ScanNeeds,
) -> list[ScanTask[StreamsPiece]]:
    """Of topics with the view's names; tasks of one or several splits."""
    suffix = SUFFIXES[view]
    wanted = [p for p in needs.wanted(partitions) if p.topic_partition.topic.endswith(suffix)]
    refuse_replicas(wanted, selection)
    split_needs = SplitNeeds(row_filter=needs.row_filter, with_transactions=needs.with_transactions)
    plan = plan_reading(wanted, selection, needs.sizes, split_needs)
    _logger.info("%s: %s", view, plan.describe())
    heads: dict[tuple[str, int], ScanSplit] = {}
    for split in plan.splits:
        heads.setdefault((split.topic, split.partition), split)
    parts = {
        topic: application_and_store(topic, suffix, selection.applications)
        for topic in {split.topic for split in plan.splits}
    }
    return [
        ScanTask(
            view,
            tuple(
                StreamsPiece(split, heads[split.topic, split.partition], *parts[split.topic])
                for split in pack
            ),
        )
        for pack in pack_splits(plan.splits, plan.sizes.pack_bytes)
    ]


def _read(
    task: ScanTask[StreamsPiece], request: ReadRequest, counts: ReadCounts
) -> Iterator[pa.RecordBatch]:
    is_changelog = SUFFIXES[task.view] == CHANGELOG
    asks_keys = is_changelog and not {*_OF_KEY}.isdisjoint(request.names)
    names = dict.fromkeys(["offset"])
    names |= dict.fromkeys(_RENAMED.get(n, n) for n in request.names if n in _OF_RECORDS)
    if asks_keys:
        names |= dict.fromkeys(["key"])
    if "isTombstone" in request.names:
        names |= dict.fromkeys(["valueSize"])
    inner = _records_request(request, tuple(names))
    types: dict[str, str | None] = {}
    for piece in task.pieces:
        if asks_keys and piece.head.path not in types:
            types[piece.head.path] = _store_type(piece.head, request)
        store_type = types.get(piece.head.path)
        unreadable = 0
        for records in read_record_splits((piece.split,), inner, counts):
            columns = _columns(records, piece, store_type, asks_keys=asks_keys)
            stay = readable_rows(records, columns[_ERROR], piece.split, request.mode)
            if stay is not None:
                unreadable += records.num_rows - int(pc.sum(stay).as_py() or 0)
                columns = {name: column.filter(stay) for name, column in columns.items()}
            rows = [columns[name] for name in request.names]
            yield pa.RecordBatch.from_arrays(rows, schema=request.schema)
        if unreadable:
            path = piece.split.path
            _logger.warning("left out %d records of %s that cannot be read", unreadable, path)


def _columns(
    records: pa.RecordBatch, piece: StreamsPiece, store_type: str | None, *, asks_keys: bool
) -> dict[str, pa.Array]:
    """All columns that these records give, by name."""
    n = records.num_rows
    columns: dict[str, Any] = {name: records.column(name) for name in records.schema.names}
    columns["applicationId"] = pa.repeat(pa.scalar(piece.application_id, pa.string()), n)
    columns["store"] = columns["name"] = pa.repeat(pa.scalar(piece.store, pa.string()), n)
    columns["storeType"] = pa.repeat(pa.scalar(store_type, pa.string()), n)
    errors = columns.get(_ERROR, pa.nulls(n, pa.string()))
    if "valueSize" in columns:
        # A bad batch's row is no record.
        is_tombstone = pc.is_null(columns["valueSize"])
        columns["isTombstone"] = pc.if_else(pc.is_null(errors), is_tombstone, None)
    if "key" in columns:
        columns["recordKey"] = columns["key"]
    if asks_keys:
        parts = split_keys(records.column("key"), store_type)
        columns |= {
            "key": parts.key,
            "windowStartMs": parts.window_start_ms,
            "windowEndMs": parts.window_end_ms,
            "sequence": parts.sequence,
        }
        if not parts.is_whole.all():
            text = f"the key is too short for a {store_type} store's"
            errors = pc.if_else(pa.array(parts.is_whole), errors, pc.coalesce(errors, text))
    columns[_ERROR] = errors
    return columns


def _store_type(head: ScanSplit, request: ReadRequest) -> str | None:
    """By the first records of a partition; damage there is for who reads the rows to tell."""
    inner = _records_request(request, ("key", "timestampMs"), mode=ReadMode.DROPMALFORMED)
    keys, times, count = [], [], 0
    for records in read_record_splits((head,), inner):
        keys.append(records.column("key"))
        times.append(np.asarray(records.column("timestampMs")))
        count += records.num_rows
        if count >= _FIRST_RECORDS:
            break
    if not keys:
        return None
    first = pa.chunked_array(keys).combine_chunks().slice(0, _FIRST_RECORDS)
    return store_type_of(first, np.concatenate(times)[:_FIRST_RECORDS])


def _records_request(
    request: ReadRequest, names: Sequence[str], *, mode: ReadMode | None = None
) -> ReadRequest:
    mode = mode or request.mode
    permissive = mode == ReadMode.PERMISSIVE
    names = [*names, *([_ERROR] if permissive else [])]
    return ReadRequest.of(
        choose_columns("records", RECORDS, names, with_error=permissive),
        mode=mode,
        verify_checksums=request.verify_checksums,
        max_batch_bytes=request.max_batch_bytes,
        row_filter=request.row_filter,
    )


STREAMS_READER = ViewReader(_plan, _read, is_of=lambda view, topic: topic.endswith(SUFFIXES[view]))
