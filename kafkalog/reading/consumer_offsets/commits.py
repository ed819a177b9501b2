"""The records of a partition of `__consumer_offsets` in order, commits among them, and the view
`offset_commits`: all commits and tombstones.

A partition is read whole: a commit in a transaction counts if its marker says so, and that may lie
segments later. Records are read as for the view `records`; from there on whole columns are decoded
by kernels.

A record that is no commit, or of a version that is not known, is an error of the view: it may be
the latest commit of its key. FAILFAST raises, PERMISSIVE has a row with the error and does not show
an older commit of that key, and DROPMALFORMED says how many it left out. (A coordinator does not
load a partition that has such a record.)
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from kafkalog.batches.batch_table import has_producer_id, is_transactional
from kafkalog.columns.places import rows_batch
from kafkalog.columns.records import RecordArrays
from kafkalog.columns.schemas import RECORDS
from kafkalog.columns.selection import choose_columns
from kafkalog.errors import CorruptRecordError, KafkaLogError
from kafkalog.format.file_names import parse_file_name
from kafkalog.format.topics import OFFSETS_TOPIC
from kafkalog.kernels import commit_fields as kernel
from kafkalog.log.damage import FileRange
from kafkalog.log.segment_tail import SegmentEnds
from kafkalog.messages.coordinator_loading import loading_problem
from kafkalog.reading.consumer_offsets.commit_arrays import Int64s, Spans, read_commits, span_at
from kafkalog.reading.consumer_offsets.commit_columns import (
    CommitRows,
    build_commits,
    field_texts,
)
from kafkalog.reading.request import ReadCounts, ReadMode, ReadRequest
from kafkalog.reading.segment_reader import read_record_arrays
from kafkalog.reading.split_chunks import file_range
from kafkalog.reading.splits import ScanSplit
from kafkalog.reading.transaction_ends import (
    NOT_TRANSACTIONAL,
    TransactionEnds,
    read_transaction_ends,
)

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Piece:
    """Some records of a split, as spans; what they are only the kernels tell. Good until the next
    are read.

    states: of their transactions, see `reading.transaction_ends`.
    """

    split: ScanSplit
    records: RecordArrays
    keys: Spans
    values: Spans
    record_offsets: Int64s
    states: Int64s

    @classmethod
    def of(cls, split: ScanSplit, records: RecordArrays, ends: TransactionEnds | None) -> Piece:
        offsets = records.of_record("offsets")
        states = np.full(len(records), NOT_TRANSACTIONAL, np.int64)
        if ends is not None:
            # Coordinators hold back what has a producer: without one a commit counts at once.
            held_back = is_transactional(records.rows) & has_producer_id(records.rows)
            which = np.flatnonzero(records.of_batch(held_back))
            states[which] = ends.states(records.field("producer_id")[which], offsets[which])
        keys, values = _spans(records, "key"), _spans(records, "value")
        return cls(split, records, keys, values, offsets, states)


@dataclass(slots=True)
class PartitionRecords:
    """The splits of one partition, or of a part of it with `later_paths`, the segments behind."""

    splits: Sequence[ScanSplit]
    request: ReadRequest
    counts: ReadCounts
    later_paths: Sequence[str] = ()
    unreadable: int = 0

    @property
    def paths(self) -> list[str]:
        return list(dict.fromkeys(split.path for split in self.splits))

    def pieces(self) -> Iterator[Piece | pa.RecordBatch]:
        """The records in order; in between Arrow batches, the rows that PERMISSIVE has for what
        cannot be read. Raises as `read_record_splits`.
        """
        ends = self._transaction_ends()
        if ends is not None:
            yield from self._marker_rows(ends.unreadable)
            if not self.request.verify_checksums:  # else the read of their batches finds them
                yield from self._marker_rows(ends.damaged)
        for split in self.splits:
            for records in _record_arrays(split, self.request, self.counts):
                if isinstance(records, pa.RecordBatch):
                    yield self._batch_rows(records, split)
                else:
                    yield Piece.of(split, records, ends)

    def unreadable_rows(self, piece: Piece, fields: Int64s) -> Iterator[pa.RecordBatch]:
        """Rows with an error for the records that cannot be read; raises for the first with
        FAILFAST.
        """
        kinds = fields[:, kernel.KIND]
        which = np.flatnonzero((kinds == kernel.UNREADABLE) | (kinds == kernel.BROKEN)).tolist()
        self.unreadable += len(which)
        if self.request.mode == ReadMode.DROPMALFORMED:
            return
        rows = []
        for at in which:
            offset, split = int(piece.record_offsets[at]), piece.split
            key, value = span_at(piece.keys, at), span_at(piece.values, at)
            problem = loading_problem(OFFSETS_TOPIC, key, value)
            reason = "no offset commit" if problem is None else problem.reason
            if self.request.mode == ReadMode.FAILFAST:
                raise CorruptRecordError(reason, path=split.path, offset=offset)
            place = self._place(split) | {"recordOffset": offset}
            rows.append({**place, **_names(piece, fields[at]), "error": reason})
        yield rows_batch(rows, self.request.schema, self.request.names)

    def warn_of_unreadable(self) -> None:
        if self.unreadable:
            _logger.warning(
                "%d records of %s cannot be read, and may be the latest commits of their keys",
                self.unreadable,
                ", ".join(self.paths),
            )

    def _transaction_ends(self) -> TransactionEnds | None:
        """Of the own segments; where those have transactions, of the later ones too."""
        segments = {split.path: split for split in self.splits}.values()
        own = [file_range(replace(split, start=0, end=split.size)) for split in segments]
        ends = read_transaction_ends(own)
        if ends is not None and self.later_paths:
            ends = read_transaction_ends([*own, *_later(self.later_paths)])
        return ends

    def _marker_rows(self, errors: Sequence[KafkaLogError]) -> Iterator[pa.RecordBatch]:
        """What the mode makes of markers that cannot be read: whose commits count is not known
        then."""
        for error in errors:
            if self.request.mode == ReadMode.FAILFAST:
                raise error
            if self.request.mode == ReadMode.DROPMALFORMED:
                self.counts.drop(error.path or self.splits[0].path)
            if self.request.mode == ReadMode.PERMISSIVE:
                row = self._place(self.splits[0]) | {
                    "path": error.path,
                    "error": f"{error.reason} (marker at position {error.position})",
                }
                yield rows_batch([row], self.request.schema, self.request.names)

    def _batch_rows(self, bad: pa.RecordBatch, split: ScanSplit) -> pa.RecordBatch:
        rows = [self._place(split) | {"error": text} for text in bad.column("error").to_pylist()]
        return rows_batch(rows, self.request.schema, self.request.names)

    def _place(self, split: ScanSplit) -> dict[str, object]:
        return {"offsetsPartition": split.partition, "path": split.path}


def read_commit_history(
    splits: Sequence[ScanSplit], request: ReadRequest, counts: ReadCounts
) -> Iterator[pa.RecordBatch]:
    """All commits and tombstones in the splits of one partition, in order. Raises as
    `read_record_splits`.
    """
    partition = PartitionRecords(splits, request, counts)
    for piece in partition.pieces():
        if isinstance(piece, pa.RecordBatch):
            yield piece
            continue
        fields, unreadable = read_commits(piece.keys, piece.values)
        if unreadable:
            yield from partition.unreadable_rows(piece, fields)
        rows = _history(piece, fields)
        if len(rows):
            yield build_commits(rows, request.schema, request.names)
    partition.warn_of_unreadable()


def _history(piece: Piece, fields: Int64s) -> CommitRows:
    """All commits and tombstones of a piece."""
    kinds = fields[:, kernel.KIND]
    which = np.flatnonzero((kinds == kernel.COMMIT) | (kinds == kernel.TOMBSTONE))
    fields = fields[which]
    return CommitRows(
        piece.split.partition,
        piece.split.path,
        field_texts(piece.keys, fields, kernel.GROUP_START, kernel.GROUP_LENGTH),
        field_texts(piece.keys, fields, kernel.TOPIC_START, kernel.TOPIC_LENGTH),
        field_texts(piece.values, fields, kernel.METADATA_START, kernel.METADATA_LENGTH),
        fields,
        piece.record_offsets[which],
        piece.keys.lengths[which] + np.maximum(piece.values.lengths[which], 0),
        piece.states[which],
    )


def _names(piece: Piece, field: Int64s) -> dict[str, str | int]:
    """Whose commit it is, where the key tells."""
    if field[kernel.KIND] != kernel.BROKEN:
        return {}
    group, topic = (
        field_texts(piece.keys, field.reshape(1, -1), start, length)[0].as_py()
        for start, length in (
            (kernel.GROUP_START, kernel.GROUP_LENGTH),
            (kernel.TOPIC_START, kernel.TOPIC_LENGTH),
        )
    )
    return {"group": group, "topic": topic, "partition": int(field[kernel.PARTITION])}


def _later(paths: Sequence[str]) -> list[FileRange]:
    """The last segments of a partition, by their paths."""
    ranges = []
    for path in paths:
        name = parse_file_name(Path(path).name)
        ends = SegmentEnds(name.offset if name else 0, None, is_last=path == paths[-1])
        ranges.append(FileRange(path, 0, Path(path).stat().st_size, ends))
    return ranges


def _record_arrays(
    split: ScanSplit, request: ReadRequest, counts: ReadCounts
) -> Iterator[RecordArrays | pa.RecordBatch]:
    permissive = request.mode == ReadMode.PERMISSIVE
    # Of the columns only the rows of bad batches are made.
    names = ["position", "error"] if permissive else ["position"]
    inner = ReadRequest.of(
        choose_columns("records", RECORDS, names, with_error=permissive),
        mode=request.mode,
        verify_checksums=request.verify_checksums,
        max_batch_bytes=request.max_batch_bytes,
    )
    return read_record_arrays((split,), inner, counts)


def _spans(records: RecordArrays, part: str) -> Spans:
    lengths = records.of_record(f"{part}_lengths").astype(np.int64)
    return Spans(records.buf, records.of_record(f"{part}_starts"), lengths)
