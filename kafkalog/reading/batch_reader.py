"""Splits as rows of the view `batches`: headers, and where it is asked for what is wrong with the
batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from kafkalog.batches import batch_table
from kafkalog.columns.batches import BatchArrays, build_batches
from kafkalog.reading.header_filter import wanted_batches
from kafkalog.reading.request import ReadCounts, ReadMode, ReadRequest
from kafkalog.reading.split_chunks import Rows, SplitChunks, place_of, sound_headers
from kafkalog.reading.splits import ScanSplit, range_of
from kafkalog.remote.scans_in_turn import in_turn

# Headers that make one Arrow batch.
_HEADER_ROWS = 65_536


def read_batch_splits(
    splits: Iterable[ScanSplit], request: ReadRequest, counts: ReadCounts | None = None
) -> Iterator[pa.RecordBatch]:
    """A row for each batch of the splits. A wrong checksum is a fact here (`isValid`), not a reason
    to stop."""
    counts = counts or ReadCounts()
    chunks = SplitChunks(request, counts)
    for split in in_turn(splits, range_of):
        headers = None if request.checks_batches else sound_headers(split)
        if headers is None:
            yield from _checked_batches(split, request, counts, chunks)
        else:
            yield from _headers(_wanted(headers, split, request, counts), split, request)


def _headers(rows: Rows, split: ScanSplit, request: ReadRequest) -> Iterator[pa.RecordBatch]:
    """Of batches that are not looked at, so that bodies need not be read."""
    for first in range(0, len(rows), _HEADER_ROWS):
        arrays = BatchArrays(place_of(split), rows[first : first + _HEADER_ROWS])
        yield build_batches(arrays, request.schema, request.names)


def _checked_batches(
    split: ScanSplit, request: ReadRequest, counts: ReadCounts, chunks: SplitChunks
) -> Iterator[pa.RecordBatch]:
    for chunk in chunks.of(split):
        if isinstance(chunk, pa.RecordBatch):
            yield chunk
            continue
        rows, is_valid = _wanted(chunk.rows, split, request, counts), None
        if request.checks_batches:
            is_valid = batch_table.verify_checksums(chunk.buf, chunk.position, rows)
            if request.mode == ReadMode.DROPMALFORMED and not is_valid.all():
                counts.drop(split.path, int((~is_valid).sum()))
                rows, is_valid = rows.compress(is_valid), is_valid[is_valid]
        if len(rows):
            arrays = BatchArrays(place_of(split), rows, is_valid, chunk.buf, chunk.position)
            yield build_batches(arrays, request.schema, request.names)


def _wanted(rows: Rows, split: ScanSplit, request: ReadRequest, counts: ReadCounts) -> Rows:
    mask = wanted_batches(rows, split, request.row_filter, include_control=True, of_records=False)
    wanted: Rows = rows.compress(mask)
    counts.skipped_batches += len(rows) - len(wanted)
    return wanted
