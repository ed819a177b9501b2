"""Offset commits → the columns of views `offset_commits` and `latest_offset_commits`."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkalog.columns.arrow_arrays import constant_array, number_array, text_array
from kafkalog.kernels import commit_fields as kernel
from kafkalog.reading.consumer_offsets.commit_arrays import Int64s, Spans
from kafkalog.reading.transaction_ends import STATE_NAMES


@dataclass(frozen=True)
class CommitRows:
    """n commits or tombstones of one partition of `__consumer_offsets`.

    fields int64[n, at least KEPT], see `kernels.commit_fields`; states int64[n] into
    STATE_NAMES; record_bytes: of key and value.
    """

    partition: int
    path: str
    groups: pa.Array
    topics: pa.Array
    metadata: pa.Array
    fields: Int64s
    record_offsets: Int64s
    record_bytes: Int64s
    states: Int64s

    def __len__(self) -> int:
        return len(self.fields)


def field_texts(spans: Spans, fields: Int64s, start: int, length: int) -> pa.Array:
    """The texts whose starts and lengths are in two columns of `fields`; length -1 is null."""
    return text_array(
        spans.buf,
        np.ascontiguousarray(fields[:, start]),
        np.ascontiguousarray(fields[:, length]).astype(np.int32),
    )


def build_commits(rows: CommitRows, schema: pa.Schema, names: Sequence[str]) -> pa.RecordBatch:
    """One Arrow batch with the columns `names` under the names and nullability of `schema`."""
    columns = [_BUILDERS[name](rows) for name in names]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _number(
    word: int, dtype: type[np.generic], null: int | None = None
) -> Callable[[CommitRows], pa.Array]:
    """A field of commits; null of tombstones, and where it has the value `null`."""

    def build(rows: CommitRows) -> pa.Array:
        values = rows.fields[:, word]
        valid = rows.fields[:, kernel.KIND] == kernel.COMMIT
        if null is not None:
            valid = valid & (values != null)
        return number_array(values.astype(dtype), None if valid.all() else valid)

    return build


def _topic_ids(rows: CommitRows) -> pa.Array:
    # Numbers of the halves make one number of a pair: sorting rows of two is ten times slower.
    high, low = rows.fields[:, kernel.TOPIC_ID_HIGH], rows.fields[:, kernel.TOPIC_ID_LOW]
    (_, highs), (lows, places) = (np.unique(half, return_inverse=True) for half in (high, low))
    _, first, places = np.unique(highs * len(lows) + places, return_index=True, return_inverse=True)
    texts = [
        _uuid_text(h, low_)
        for h, low_ in zip(high[first].tolist(), low[first].tolist(), strict=True)
    ]
    return pa.array(texts, pa.string()).take(pa.array(places))


def _uuid_text(high: int, low: int) -> str | None:
    data = struct.pack(">qq", high, low)
    return base64.urlsafe_b64encode(data).decode()[:22] if any(data) else None


def _is_tombstone(rows: CommitRows) -> pa.Array:
    # A commit that cannot be read ends the ones before it as a tombstone does; its error has a row.
    flags: npt.NDArray[np.bool_] = rows.fields[:, kernel.KIND] != kernel.COMMIT
    return pa.array(flags)


def _states(rows: CommitRows) -> pa.Array:
    if not rows.states.any():
        return constant_array(None, pa.string(), len(rows))
    return pa.array(STATE_NAMES, pa.string()).take(pa.array(rows.states))


_BUILDERS: dict[str, Callable[[CommitRows], pa.Array]] = {
    "group": lambda rows: rows.groups,
    "topic": lambda rows: rows.topics,
    "partition": lambda rows: number_array(rows.fields[:, kernel.PARTITION].astype(np.int32)),
    "offset": _number(kernel.OFFSET, np.int64),
    "leaderEpoch": _number(kernel.LEADER_EPOCH, np.int32, kernel.NO_EPOCH),
    "metadata": lambda rows: rows.metadata,
    "commitTimestampMs": _number(kernel.COMMIT_TIMESTAMP, np.int64),
    "expireTimestampMs": _number(kernel.EXPIRE_TIMESTAMP, np.int64, kernel.NO_TIMESTAMP),
    "topicId": _topic_ids,
    "isTombstone": _is_tombstone,
    "transactionState": _states,
    "offsetsPartition": lambda rows: constant_array(rows.partition, pa.int32(), len(rows)),
    "recordOffset": lambda rows: number_array(rows.record_offsets),
    "recordBytes": lambda rows: number_array(rows.record_bytes.astype(np.int32)),
    "path": lambda rows: constant_array(rows.path, pa.string(), len(rows)),
    "error": lambda rows: constant_array(None, pa.string(), len(rows)),
}
