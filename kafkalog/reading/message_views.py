"""Rows of the view `messages`: records of internal topics, decoded.

Records are read as for the view `records`; then each key and value is decoded on its own, in plain
Python: for questions, not for millions of commits. Bytes that are no record of the topic are as a
batch that cannot be read: FAILFAST raises, PERMISSIVE has a row with the `error`, DROPMALFORMED
leaves it out and says how many. Types that are not known have no JSON and no error, nor have
versions that whoever owns the topic skips; how many is said once a segment, at level INFO.
Secrets are neither in the JSON nor in `valueBytes`, which is null then: view `records` has the
bytes of everything.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrow_arrays import binary_spans
from kafkalog.columns.schemas import RECORDS
from kafkalog.columns.selection import choose_columns
from kafkalog.errors import CorruptRecordError, InvalidConfigError, KafkaLogError
from kafkalog.format.topics import CLUSTER_METADATA_TOPIC, OFFSETS_TOPIC
from kafkalog.log.inventory import PartitionInventory
from kafkalog.messages.internal_topics import INTERNAL_TOPICS, InternalRecord, may_have_secret
from kafkalog.reading.consumer_offsets.commit_arrays import Spans, is_commit_key
from kafkalog.reading.request import ReadCounts, ReadMode, ReadRequest
from kafkalog.reading.segment_reader import read_record_splits
from kafkalog.reading.selection import PartitionSelection
from kafkalog.reading.split_views import plan_split_tasks
from kafkalog.reading.splits import ScanSplit
from kafkalog.reading.view_reader import ScanNeeds, ScanTask, ViewReader

_logger = logging.getLogger(__name__)

# Columns that are made here; all others are those of `records`, two of them under other names.
_DECODED = ("messageType", "version", "key", "value")
# Only with a record decoded is it known whether its bytes may be shown.
_VALUE_BYTES = "valueBytes"
_RENAMED = {"keyBytes": "key", "valueBytes": "value"}
_ERROR = "error"


def _plan_messages(
    view: str,
    partitions: Sequence[PartitionInventory],
    selection: PartitionSelection,
    needs: ScanNeeds,
) -> list[ScanTask[ScanSplit]]:
    """Of internal topics; InvalidConfigError where another one was asked for by name."""
    asked = selection.topics or {tp.topic for tp in selection.partitions or ()}
    others = sorted(set(asked) - set(INTERNAL_TOPICS))
    if others:
        known = ", ".join(INTERNAL_TOPICS)
        raise InvalidConfigError(f"view messages is of {known}; {', '.join(others)} has none")
    internal = [p for p in partitions if p.topic_partition.topic in INTERNAL_TOPICS]
    return plan_split_tasks(view, internal, selection, needs)


def read_messages(
    splits: Iterable[ScanSplit], request: ReadRequest, counts: ReadCounts, *, commits: bool = True
) -> Iterator[pa.RecordBatch]:
    """A row a record; without `commits` those of `__consumer_offsets` are left out, undecoded.
    Raises as `read_record_splits`.
    """
    decodes_all = bool({*_DECODED, _ERROR}.intersection(request.names))
    shows_bytes = _VALUE_BYTES in request.names
    needed = dict.fromkeys(["offset"] if decodes_all else [])
    needed |= dict.fromkeys(
        _RENAMED.get(name, name) for name in request.names if name not in (*_DECODED, _ERROR)
    )
    if decodes_all or shows_bytes or not commits:
        needed |= dict.fromkeys(("key", "value"))
    permissive = request.mode == ReadMode.PERMISSIVE
    names = [*(needed or {"offset": None}), *([_ERROR] if permissive else [])]
    inner = ReadRequest.of(
        choose_columns("records", RECORDS, names, with_error=permissive),
        mode=request.mode,
        verify_checksums=request.verify_checksums,
        max_batch_bytes=request.max_batch_bytes,
        row_filter=request.row_filter,
    )
    for split in splits:
        unknown = unreadable = 0
        decodes = decodes_all or (shows_bytes and split.topic == CLUSTER_METADATA_TOPIC)
        for records in read_record_splits((split,), inner, counts):
            if not commits and split.topic == OFFSETS_TOPIC:
                records = _without_commits(records)
            made = _decoded(split.topic, records) if decodes else {}
            if decodes_all:
                stay = readable_rows(records, made[_ERROR], split, request.mode)
                if stay is not None:
                    unreadable += records.num_rows - int(pc.sum(stay).as_py() or 0)
                    records = records.filter(stay)
                    made = {name: column.filter(stay) for name, column in made.items()}
            if decodes:
                is_unknown = pc.and_(pc.is_null(made["key"]), pc.is_valid(made["messageType"]))
                unknown += pc.sum(pc.and_(is_unknown, pc.is_null(made["value"]))).as_py() or 0
            columns = [
                made[name] if name in made else records.column(_RENAMED.get(name, name))
                for name in request.names
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=request.schema)
        if unreadable:
            _logger.warning("left out %d records of %s that cannot be read", unreadable, split.path)
        if unknown:
            _logger.info("%d records of unknown types or versions in %s", unknown, split.path)


def readable_rows(
    records: pa.RecordBatch, errors: pa.Array, split: ScanSplit, mode: ReadMode
) -> pa.Array | None:
    """Which rows stay, None if all do; raises for the first error with FAILFAST."""
    if mode == ReadMode.PERMISSIVE or errors.null_count == len(errors):
        return None
    if mode == ReadMode.FAILFAST:
        at = pc.index(pc.is_valid(errors), True).as_py()
        offset = records.column("offset")[at].as_py()
        raise CorruptRecordError(errors[at].as_py(), path=split.path, offset=offset)
    return pc.is_null(errors)


def _without_commits(records: pa.RecordBatch) -> pa.RecordBatch:
    keys = Spans(*binary_spans(records.column("key")))
    return records.filter(pa.array(~is_commit_key(keys)))


def _decoded(topic: str, records: pa.RecordBatch) -> dict[str, pa.Array]:
    decode = INTERNAL_TOPICS[topic]
    errors: list[str | None] = [None] * records.num_rows
    if _ERROR in records.schema.names:
        errors = records.column(_ERROR).to_pylist()
    found: list[InternalRecord | None] = [None] * records.num_rows
    secret: list[int] = []
    pairs = zip(records.column("key").to_pylist(), records.column("value").to_pylist(), strict=True)
    for i, (key, value) in enumerate(pairs):
        if errors[i] is not None:
            continue  # a batch that cannot be read
        try:
            record = decode(key, value)
        except KafkaLogError as error:
            errors[i] = error.reason
            has_secret = topic == CLUSTER_METADATA_TOPIC and may_have_secret(value)
        else:
            found[i] = record
            has_secret = record.has_secret
        if has_secret:
            secret.append(i)
    return {
        _VALUE_BYTES: _without(records.column("value"), secret),
        "messageType": pa.array([r and r.type for r in found], pa.string()),
        "version": pa.array([r and r.version for r in found], pa.int16()),
        "key": pa.array([r and r.key for r in found], pa.string()),
        "value": pa.array([r and r.value for r in found], pa.string()),
        _ERROR: pa.array(errors, pa.string()),
    }


def _without(values: pa.Array, which: Sequence[int]) -> pa.Array:
    if not which:
        return values
    hidden = np.zeros(len(values), np.bool_)
    hidden[which] = True
    return pc.if_else(pa.array(hidden), pa.scalar(None, values.type), values)


def _read_messages(
    task: ScanTask[ScanSplit], request: ReadRequest, counts: ReadCounts
) -> Iterator[pa.RecordBatch]:
    return read_messages(task.pieces, request, counts, commits=task.view == "messages")


MESSAGES_READER = ViewReader(
    _plan_messages, _read_messages, is_of=lambda _, topic: topic in INTERNAL_TOPICS
)
