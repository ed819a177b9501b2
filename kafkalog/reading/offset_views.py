"""Rows of the views `offset_commits`, all commits in order, and `latest_offset_commits`, those in
force at the end of the log.

A task is a whole partition of `__consumer_offsets`: a commit in a transaction counts if its marker
says so, and that may lie segments later. Records are read as for the view `records`; from there on
whole columns are decoded by kernels.

A record that is no commit, or of a version that is not known, is an error of the view: it may be
the latest commit of its key. FAILFAST raises, PERMISSIVE has a row with the error and does not show
an older commit of that key, and DROPMALFORMED says how many it left out. (A coordinator does not
load a partition that has such a record.)

In force is the last record of a key that is not in an open or aborted transaction, if it is no
tombstone. (A tombstone written between a transactional commit and its marker counts here; a broker
would bring the commit back. Brokers write none there: they expire no offset that is pending.)
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from kafkalog.batches import offset_commits as commits
from kafkalog.batches.batch_table import is_transactional
from kafkalog.batches.offset_commits import (
    Int64s,
    LatestChange,
    LatestCommits,
    Spans,
    read_commits,
    span_at,
)
from kafkalog.columns.offset_commits import (
    COMMITTED,
    NOT_TRANSACTIONAL,
    CommitRows,
    build_commits,
    field_texts,
)
from kafkalog.columns.places import rows_batch
from kafkalog.columns.records import RecordArrays
from kafkalog.errors import CorruptRecordError, InvalidConfigError, KafkaLogError
from kafkalog.format.file_names import parse_file_name
from kafkalog.format.topics import OFFSETS_TOPIC
from kafkalog.log.damage import FileRange
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.segment_tail import SegmentEnds
from kafkalog.messages.coordinator_loading import loading_problem
from kafkalog.reading.group_records import LatestGroupRecords
from kafkalog.reading.request import ReadCounts, ReadMode, ReadRequest
from kafkalog.reading.segment_reader import file_range, read_record_arrays
from kafkalog.reading.selection import PartitionSelection, refuse_replicas
from kafkalog.reading.split_plan import plan_splits
from kafkalog.reading.splits import ScanSplit
from kafkalog.reading.transaction_ends import TransactionEnds, read_transaction_ends
from kafkalog.reading.view_reader import ScanNeeds, ScanTask, ViewReader
from kafkalog.reading.views import select_columns

_logger = logging.getLogger(__name__)

_ROWS_PER_BATCH = 65_536
# Pieces of metadata are put together when there are so many of them.
_MOST_PIECES = 64
_EMPTY_TEXT = pa.array([""], pa.string())


def offset_partitions(
    partitions: Sequence[PartitionInventory], selection: PartitionSelection
) -> list[PartitionInventory]:
    """Those of `__consumer_offsets`; InvalidConfigError where another topic was asked for."""
    asked = selection.topics or {tp.topic for tp in selection.partitions or ()}
    if set(asked) - {OFFSETS_TOPIC}:
        raise InvalidConfigError(f"the views of offset commits are of {OFFSETS_TOPIC} alone")
    return [p for p in partitions if p.topic_partition.topic == OFFSETS_TOPIC]


def _plan_partitions(
    view: str,
    partitions: Sequence[PartitionInventory],
    selection: PartitionSelection,
    needs: ScanNeeds,
) -> list[ScanTask[ScanSplit]]:
    """A task a partition."""
    wanted = offset_partitions(needs.wanted(partitions), selection)
    refuse_replicas(wanted, selection)
    return [ScanTask(view, tuple(plan_splits([p], selection))) for p in wanted]


def _read_partition(
    task: ScanTask[ScanSplit], request: ReadRequest, counts: ReadCounts
) -> Iterator[pa.RecordBatch]:
    latest = task.view == "latest_offset_commits"
    return read_offset_commits(task.pieces, request, counts, latest=latest)


OFFSET_COMMITS_READER = ViewReader(_plan_partitions, _read_partition)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some records, as spans; what they are only the kernels tell. Good until the next are read."""

    keys: Spans
    values: Spans
    record_offsets: Int64s
    states: Int64s


def read_offset_commits(
    splits: Sequence[ScanSplit],
    request: ReadRequest,
    counts: ReadCounts,
    *,
    latest: bool,
    later_paths: Sequence[str] | None = None,
    others: LatestGroupRecords | None = None,
) -> Iterator[pa.RecordBatch]:
    """The commits in the splits of one partition, in order. Raises as `read_record_splits`.

    With `later_paths` the splits are a part of the partition, and these the segments behind them:
    the latest record of each key then comes where it is a tombstone too, which ends a commit of an
    earlier part. The records that are no commits go to `others`.
    """
    if not splits:
        return
    paths = list(dict.fromkeys(split.path for split in splits))
    own = [
        file_range(replace(s, start=0, end=s.size)) for s in {s.path: s for s in splits}.values()
    ]
    ends = read_transaction_ends(own)
    if ends is not None and later_paths:
        ends = read_transaction_ends([*own, *_later(later_paths)])
    yield from _unreadable_markers(
        () if ends is None else ends.unreadable, splits[0], request, counts
    )
    in_force = _InForce()
    unreadable = 0
    for split in splits:
        for records in _records(split, request, counts):
            if isinstance(records, pa.RecordBatch):
                yield _error_row(records, split, request)
                continue
            piece = _piece(records, ends)
            if latest:
                change = in_force.add(piece)
                if change.unreadable:
                    unreadable += change.unreadable
                    fields, _ = read_commits(piece.keys, piece.values)
                    yield from _unreadable_rows(piece, fields, split, request)
                if others is not None and change.others:
                    timestamps = records.of_record("timestamps")
                    others.add(
                        piece.keys, piece.values, piece.record_offsets, timestamps, split.path
                    )
                continue
            fields, bad = read_commits(piece.keys, piece.values)
            if bad:
                unreadable += bad
                yield from _unreadable_rows(piece, fields, split, request)
            rows = _history(piece, fields, split)
            if len(rows):
                yield build_commits(rows, request.schema, request.names)
    if unreadable:
        _logger.warning(
            "%d records of %s cannot be read, and may be the latest commits of their keys",
            unreadable,
            ", ".join(paths),
        )
    if latest:
        is_whole = later_paths is None
        rows = in_force.rows(splits[0].partition, [*paths, *(later_paths or ())][-1], is_whole)
        batch = build_commits(rows, request.schema, request.names)
        for first in range(0, batch.num_rows, _ROWS_PER_BATCH):
            yield batch.slice(first, _ROWS_PER_BATCH)


def _later(paths: Sequence[str]) -> list[FileRange]:
    """The last segments of a partition, by their paths."""
    ranges = []
    for path in paths:
        name = parse_file_name(Path(path).name)
        ends = SegmentEnds(name.offset if name else 0, None, is_last=path == paths[-1])
        ranges.append(FileRange(path, 0, Path(path).stat().st_size, ends))
    return ranges


def _unreadable_markers(
    errors: Sequence[KafkaLogError], split: ScanSplit, request: ReadRequest, counts: ReadCounts
) -> Iterator[pa.RecordBatch]:
    """What the mode makes of markers that cannot be read: whose commits count is not known then."""
    for error in errors:
        if request.mode == ReadMode.FAILFAST:
            raise error
        counts.dropped_batches += request.mode == ReadMode.DROPMALFORMED
        if request.mode == ReadMode.PERMISSIVE:
            place = {"offsetsPartition": split.partition, "path": error.path}
            row = place | {"error": f"{error.reason} (marker at position {error.position})"}
            yield rows_batch([row], request.schema, request.names)


def _unreadable_rows(
    piece: _Piece, fields: Int64s, split: ScanSplit, request: ReadRequest
) -> Iterator[pa.RecordBatch]:
    """Rows with an error for the records that cannot be read; raises for the first with
    FAILFAST.
    """
    if request.mode == ReadMode.DROPMALFORMED:
        return
    kinds = fields[:, commits.KIND]
    rows = []
    for at in np.flatnonzero((kinds == commits.UNREADABLE) | (kinds == commits.BROKEN)).tolist():
        offset = int(piece.record_offsets[at])
        problem = loading_problem(OFFSETS_TOPIC, span_at(piece.keys, at), span_at(piece.values, at))
        reason = "no offset commit" if problem is None else problem.reason
        if request.mode == ReadMode.FAILFAST:
            raise CorruptRecordError(reason, path=split.path, offset=offset)
        place = {"offsetsPartition": split.partition, "path": split.path, "recordOffset": offset}
        rows.append({**place, **_names(piece, fields[at]), "error": reason})
    yield rows_batch(rows, request.schema, request.names)


def _names(piece: _Piece, field: Int64s) -> dict[str, str | int]:
    """Whose commit it is, where the key tells."""
    if field[commits.KIND] != commits.BROKEN:
        return {}
    group, topic = (
        field_texts(piece.keys, field.reshape(1, -1), start, length)[0].as_py()
        for start, length in (
            (commits.GROUP_START, commits.GROUP_LENGTH),
            (commits.TOPIC_START, commits.TOPIC_LENGTH),
        )
    )
    return {"group": group, "topic": topic, "partition": int(field[commits.PARTITION])}


def _history(piece: _Piece, fields: Int64s, split: ScanSplit) -> CommitRows:
    """All commits and tombstones of a piece."""
    kinds = fields[:, commits.KIND]
    which = np.flatnonzero((kinds == commits.COMMIT) | (kinds == commits.TOMBSTONE))
    fields = fields[which]
    return CommitRows(
        split.partition,
        split.path,
        field_texts(piece.keys, fields, commits.GROUP_START, commits.GROUP_LENGTH),
        field_texts(piece.keys, fields, commits.TOPIC_START, commits.TOPIC_LENGTH),
        field_texts(piece.values, fields, commits.METADATA_START, commits.METADATA_LENGTH),
        fields,
        piece.record_offsets[which],
        piece.keys.lengths[which] + np.maximum(piece.values.lengths[which], 0),
        piece.states[which],
    )


def _records(
    split: ScanSplit, request: ReadRequest, counts: ReadCounts
) -> Iterator[RecordArrays | pa.RecordBatch]:
    permissive = request.mode == ReadMode.PERMISSIVE
    # Of the columns only the rows of bad batches are made.
    names = ["position", "error"] if permissive else ["position"]
    inner = ReadRequest.of(
        select_columns("records", names, with_error=permissive),
        mode=request.mode,
        verify_checksums=request.verify_checksums,
        max_batch_bytes=request.max_batch_bytes,
    )
    return read_record_arrays((split,), inner, counts)


def _piece(records: RecordArrays, ends: TransactionEnds | None) -> _Piece:
    offsets = records.of_record("offsets")
    states = np.full(len(records), NOT_TRANSACTIONAL, np.int64)
    if ends is not None:
        which = np.flatnonzero(records.of_batch(is_transactional(records.rows)))
        states[which] = ends.states(records.field("producer_id")[which], offsets[which])
    return _Piece(_spans(records, "key"), _spans(records, "value"), offsets, states)


def _spans(records: RecordArrays, part: str) -> Spans:
    lengths = records.of_record(f"{part}_lengths").astype(np.int64)
    return Spans(records.buf, records.of_record(f"{part}_starts"), lengths)


def _error_row(bad: pa.RecordBatch, split: ScanSplit, request: ReadRequest) -> pa.RecordBatch:
    place = {"offsetsPartition": split.partition, "path": split.path}
    rows = [{**place, "error": text} for text in bad.column("error").to_pylist()]
    return rows_batch(rows, request.schema, request.names)


@dataclass
class _InForce:
    """The last record of each key so far, and by the key's number its names and its metadata."""

    latest: LatestCommits = field(default_factory=LatestCommits)
    names: list[tuple[pa.Array, pa.Array]] = field(default_factory=list)
    metadata: list[pa.Array] = field(default_factory=lambda: [_EMPTY_TEXT])
    metadata_rows: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, piece: _Piece) -> LatestChange:
        """Records behind those so far."""
        counts = (piece.states == NOT_TRANSACTIONAL) | (piece.states == COMMITTED)
        states = np.where(counts, piece.states, -1)
        change = self.latest.add(piece.keys, piece.values, piece.record_offsets, states)
        if len(change.new):
            groups, topics = (field_texts(piece.keys, change.new, at, at + 1) for at in (0, 2))
            self.names.append((groups, topics))
        if len(change.texts):
            self._keep_metadata(field_texts(piece.values, change.texts, 1, 2), change.texts[:, 0])
        return change

    def _keep_metadata(self, texts: pa.Array, numbers: Int64s) -> None:
        """Most commits have none. The others' are kept piece by piece; which of them is the key's
        latest its row says.
        """
        count = self.latest.count
        if len(self.metadata_rows) < count:
            rows = np.zeros(2 * count, np.int64)
            rows[: len(self.metadata_rows)] = self.metadata_rows
            self.metadata_rows = rows
        total = sum(len(part) for part in self.metadata)
        self.metadata.append(texts)
        # Of repeated numbers the last one is kept, which is the latest record.
        self.metadata_rows[numbers] = total + np.arange(len(texts))
        if len(self.metadata) > _MOST_PIECES:
            kept = pa.concat_arrays(self.metadata).take(pa.array(self.metadata_rows[:count]))
            self.metadata = [_EMPTY_TEXT, kept]
            self.metadata_rows[:count] = 1 + np.arange(count)

    def rows(self, partition: int, path: str, in_force_only: bool) -> CommitRows:
        """The keys that have a commit in force, or all of them, in the order they came up."""
        latest = self.latest.rows
        is_commit = latest[:, commits.KIND] == commits.COMMIT
        which = np.flatnonzero(is_commit | (not in_force_only))
        latest = latest[which]
        text_rows = np.zeros(len(which), np.int64)
        has_text = latest[:, commits.METADATA_LENGTH] > 0
        text_rows[has_text] = self.metadata_rows[which[has_text]]
        no_names = pa.array([], pa.string())
        groups, topics = (
            pa.concat_arrays([pair[part] for pair in self.names] or [no_names]).take(
                pa.array(which)
            )
            for part in (0, 1)
        )
        return CommitRows(
            partition,
            path,
            groups,
            topics,
            pa.concat_arrays(self.metadata).take(pa.array(text_rows)),
            latest,
            latest[:, commits.RECORD_OFFSET],
            latest[:, commits.RECORD_BYTES],
            latest[:, commits.STATE],
        )
