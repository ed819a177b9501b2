"""Where rows come from, and the row that stands for a batch that cannot be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

# So much of what cannot be read is given as `errorBytes`.
MOST_ERROR_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SegmentPlace:
    """The same for all rows of a segment."""

    topic: str
    partition: int
    segment_base_offset: int
    path: str


def rows_batch(
    rows: Sequence[Mapping[str, object]], schema: pa.Schema, names: Sequence[str]
) -> pa.RecordBatch:
    """An Arrow batch of a few rows given as dicts (columns named as in the table; a missing one is
    null).

    For the views with a row per file or directory; records and batches never take this way.
    """
    columns = [
        pa.array([row.get(name) for row in rows], field.type)
        for name, field in zip(names, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def error_row(
    place: SegmentPlace,
    schema: pa.Schema,
    names: Sequence[str],
    *,
    reason: str,
    position: int | None,
    base_offset: int | None,
    length: int | None = None,
    data: bytes | None = None,
) -> pa.RecordBatch:
    """The one row mode PERMISSIVE gives for a bad batch: its place, `error` and its bytes; all else
    is null."""
    row = {
        "topic": place.topic,
        "partition": place.partition,
        "segmentBaseOffset": place.segment_base_offset,
        "path": place.path,
        "position": position,
        "batchBaseOffset": base_offset,
        "baseOffset": base_offset,
        "error": reason,
        "errorBytes": data,
        "errorLength": length,
    }
    return rows_batch([row], schema, names)
