"""One record a key of a partition of `__consumer_offsets`: the last one.

Of commits in force is the last one of a key that is not in an open or aborted transaction, if it is
no tombstone. (A tombstone written between a transactional commit and its marker counts here; a
broker would bring the commit back. Brokers write none there: they expire no offset that is
pending.)

Records that are no commits, of groups and their members, are few among the commits. Of each key
only the last is decoded, piece by piece. As in view `group_messages` types that are not known do
not count; a version that is not known, or bytes that are no record, are an error: an older record
would pass for the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from kafkalog.errors import KafkaLogError
from kafkalog.format.topics import OFFSETS_TOPIC
from kafkalog.kernels import commit_fields as kernel
from kafkalog.messages.internal_topics import INTERNAL_TOPICS
from kafkalog.messages.offsets_topic import OFFSETS_TYPES
from kafkalog.reading.consumer_offsets.commit_arrays import (
    Int64s,
    LatestChange,
    LatestCommits,
    is_commit_key,
    read_commits,
    span_at,
)
from kafkalog.reading.consumer_offsets.commit_columns import (
    CommitRows,
    build_commits,
    field_texts,
)
from kafkalog.reading.consumer_offsets.commits import PartitionRecords, Piece
from kafkalog.reading.request import ReadCounts, ReadMode, ReadRequest
from kafkalog.reading.splits import ScanSplit
from kafkalog.reading.transaction_ends import COMMITTED, NOT_TRANSACTIONAL

_ROWS_PER_BATCH = 65_536
# Pieces of metadata are put together when there are so many of them.
_MOST_PIECES = 64
# One text of no bytes. Of a list Arrow would make it by way of pandas: a third of a verb's start.
_EMPTY_TEXT = pa.Array.from_buffers(pa.string(), 1, [None, *map(pa.py_buffer, (bytes(8), b""))])


def read_latest_commits(
    splits: Sequence[ScanSplit],
    request: ReadRequest,
    counts: ReadCounts,
    *,
    later_paths: Sequence[str] | None = None,
    others: LatestGroupRecords | None = None,
) -> Iterator[pa.RecordBatch]:
    """The commits in force at the end of one partition. Raises as `read_record_splits`.

    With `later_paths` the splits are a part of the partition, and these the segments behind them:
    the latest record of each key then comes where it is a tombstone too, which ends a commit of an
    earlier part. The records that are no commits go to `others`.
    """
    partition = PartitionRecords(splits, request, counts, later_paths or ())
    in_force = _CommitsInForce()
    for piece in partition.pieces():
        if isinstance(piece, pa.RecordBatch):
            yield piece
            continue
        change = in_force.add(piece)
        if change.unreadable:
            fields, _ = read_commits(piece.keys, piece.values)
            yield from partition.unreadable_rows(piece, fields)
        if others is not None and change.others:
            others.add(piece, fails_fast=request.mode == ReadMode.FAILFAST)
    if later_paths is None:  # of a part whoever puts the parts together
        partition.warn_of_unreadable()
    if splits:
        path = [*partition.paths, *(later_paths or ())][-1]
        rows = in_force.rows(splits[0].partition, path, in_force_only=later_paths is None)
        batch = build_commits(rows, request.schema, request.names)
        for first in range(0, batch.num_rows, _ROWS_PER_BATCH):
            yield batch.slice(first, _ROWS_PER_BATCH)


@dataclass
class _CommitsInForce:
    """The last record of each key so far, and by the key's number its names and its metadata."""

    latest: LatestCommits = field(default_factory=LatestCommits)
    names: list[tuple[pa.Array, pa.Array]] = field(default_factory=list)
    metadata: list[pa.Array] = field(default_factory=lambda: [_EMPTY_TEXT])
    metadata_rows: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, piece: Piece) -> LatestChange:
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

    def rows(self, partition: int, path: str, *, in_force_only: bool) -> CommitRows:
        """The keys that have a commit in force, or all of them, in the order they came up."""
        latest = self.latest.rows
        is_commit = latest[:, kernel.KIND] == kernel.COMMIT
        which = np.flatnonzero(is_commit | (not in_force_only))
        latest = latest[which]
        text_rows = np.zeros(len(which), np.int64)
        has_text = latest[:, kernel.METADATA_LENGTH] > 0
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
            latest[:, kernel.RECORD_OFFSET],
            latest[:, kernel.RECORD_BYTES],
            latest[:, kernel.STATE],
        )


@dataclass(slots=True)
class LatestGroupRecords:
    """Memory: what is kept of a coordinator's groups, as the coordinator has it."""

    _rows: dict[bytes, dict[str, Any]] = field(default_factory=dict)

    def add(self, piece: Piece, *, fails_fast: bool) -> None:
        """Records behind those so far. Of the last one of a key that cannot be read a row has the
        error; with `fails_fast` CorruptRecordError, or UnsupportedMessageVersionError.
        """
        keys, offsets = piece.keys, piece.record_offsets
        timestamps = piece.records.of_record("timestamps")
        by_key: dict[bytes, list[int]] = {}
        # A key too short for a type is no record of a group either.
        is_other = (keys.lengths >= 2) & ~is_commit_key(keys)
        for at in np.flatnonzero(is_other).tolist():
            by_key.setdefault(span_at(keys, at) or b"", []).append(at)
        for key, places in by_key.items():
            at = places[-1]
            try:
                row = _row(key, span_at(piece.values, at))
            except KafkaLogError as error:
                path = piece.split.path
                if fails_fast:
                    raise type(error)(error.reason, path=path, offset=int(offsets[at])) from None
                row = _names(key) | {"isTombstone": True, "error": error.reason, "path": path}
            if row is not None:
                place = {"recordOffset": int(offsets[at]), "timestampMs": int(timestamps[at])}
                self._rows[key] = row | place

    def rows(self) -> list[dict[str, Any]]:
        """messageType, key, value (JSON, None of a tombstone), isTombstone, recordOffset and
        timestampMs of each. What cannot be read ends the records before it as a tombstone does, and
        has error and path.
        """
        return list(self._rows.values())


def _row(key: bytes, value: bytes | None) -> dict[str, Any] | None:
    """None of a type that is not known. Raises as the decoder."""
    record = INTERNAL_TOPICS[OFFSETS_TOPIC](key, value)
    if record.key is None:
        return None
    return {
        "messageType": record.type,
        "key": record.key,
        "value": record.value,
        "isTombstone": value is None,
    }


def _names(key: bytes) -> dict[str, Any]:
    """What is known of a record that cannot be read: messageType and key, as far as they can be."""
    try:
        return _row(key, None) or {}
    except KafkaLogError:
        known = OFFSETS_TYPES.get(int.from_bytes(key[:2], "big"))
        return {"messageType": None if known is None else known.name, "key": None}
