"""The one reading path of records: a split in, Arrow batches out. Spark, the Python API and the
command line all read through it.

Strategy: a split is read in chunks of whole batches. Headers decide first (offset range, control
batches, the row filter), then the checksums, and only then bytes are decompressed and decoded,
column by column as asked. Where headers can rule out a lot they are all looked at before, and the
bodies of what is not wanted are not read.
`split_chunks` has what becomes of damage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from kafkalog.batches import batch_table
from kafkalog.batches.arena import Arena
from kafkalog.batches.record_areas import iterate_record_areas
from kafkalog.batches.spans import RecordSpans, WantedKeys, decode_spans
from kafkalog.columns.records import RecordArrays, build_records
from kafkalog.log.damage import wrong_checksum
from kafkalog.log.segment_file import Chunk
from kafkalog.reading.batch_places import BatchPlaces, Mask, check_places, misplaced, offset_limit
from kafkalog.reading.header_filter import (
    asks_headers,
    wanted_batches,
    wanted_records,
    wanted_runs,
)
from kafkalog.reading.key_search import Filters, KeySearch, Making, Part
from kafkalog.reading.request import ReadCounts, ReadMode, ReadRequest
from kafkalog.reading.split_chunks import (
    BAD_BATCH,
    CHUNK_BYTES,
    Rows,
    SplitChunks,
    place_of,
    sound_headers,
)
from kafkalog.reading.splits import ScanSplit, range_of
from kafkalog.remote.scans_in_turn import in_turn

_WINDOW_AFTER_DAMAGE = 64


def read_record_splits(
    splits: Iterable[ScanSplit], request: ReadRequest, counts: ReadCounts | None = None
) -> Iterator[pa.RecordBatch]:
    """Records of the splits in order, as Arrow batches of up to some ten thousand rows."""
    reader = _RecordReader(request, counts or ReadCounts())
    for split in in_turn(splits, range_of):
        yield from reader.records(split)


def read_record_arrays(
    splits: Iterable[ScanSplit], request: ReadRequest, counts: ReadCounts | None = None
) -> Iterator[RecordArrays | pa.RecordBatch]:
    """The same records where they lie, good until the next are asked for; in mode PERMISSIVE an
    Arrow batch of one row stands for a bad batch.
    """
    reader = _RecordReader(request, counts or ReadCounts())
    for split in in_turn(splits, range_of):
        yield from reader.arrays(split)


class _RecordReader:
    """Its memory is used again from chunk to chunk; what leaves this module was copied into Arrow's
    own."""

    def __init__(self, request: ReadRequest, counts: ReadCounts) -> None:
        self._request = request
        self._counts = counts
        self._chunks = SplitChunks(request, counts)
        self._places = BatchPlaces(goes_on=request.mode != ReadMode.FAILFAST)
        self._arena = Arena()
        self._spans: RecordSpans | None = None
        keys = request.row_filter.keys
        self._keys = None if keys is None else WantedKeys(keys)
        self._search = KeySearch.of(request)
        self._making: Making | None = None  # of the part at hand
        self._asks_states = "transactionState" in request.names
        self._wrong_positions = np.empty(0, np.int64)  # of misplaced batches in the chunk at hand

    def records(self, split: ScanSplit) -> Iterator[pa.RecordBatch]:
        for found in self.arrays(split):
            if isinstance(found, RecordArrays):
                yield build_records(found, self._request.schema, self._request.names)
            else:
                yield found

    def arrays(self, split: ScanSplit) -> Iterator[RecordArrays | pa.RecordBatch]:
        limit = offset_limit(split)
        for part, previous_offset, making in self._parts(split):
            self._making = making
            for chunk in self._chunks.of(part):
                if isinstance(chunk, pa.RecordBatch):
                    yield chunk
                    continue
                if making is not None:
                    making.add_batches(chunk.rows)
                wrong = self._places.misplaced(chunk.rows, previous_offset, limit, split)
                wanted = self._wanted(chunk.rows, split)
                wanted |= self._hidden(chunk, ~(wanted | wrong), split)
                rows = chunk.rows[wanted | wrong]
                self._wrong_positions = chunk.rows["position"][wrong]
                self._counts.skipped_batches += len(chunk.rows) - len(rows)
                previous_offset = int(chunk.rows["last_offset"][-1])
                yield from self._decode(chunk, rows, split)
            if self._search is not None and making is not None:
                self._search.keep(part.path, making)

    def _parts(self, split: ScanSplit) -> Iterator[Part]:
        """What is read of the split: all of it, or, where headers or kept facts of keys can rule
        batches out, what they leave."""
        before_split = split.segment_base_offset - 1
        filters: Filters = [] if self._search is None else self._search.filters(split)
        first = split.headers_first or asks_headers(self._request.row_filter)
        rows = sound_headers(split) if first else None
        if rows is None:
            yield from self._whole_parts(split, filters)
            return
        wanted = self._wanted(rows, split)
        wanted |= misplaced(rows, before_split, offset_limit(split))
        starts, ends = rows["position"], rows["position"] + rows["size_in_bytes"]
        read_bytes = 0
        for start, stop in wanted_runs(wanted, starts, ends):
            previous_offset = int(rows["last_offset"][start - 1]) if start else before_split
            part = replace(split, start=int(starts[start]), end=int(ends[stop - 1]))
            read_bytes += part.end - part.start
            self._counts.skipped_batches -= stop - start  # counted when they are read
            yield Part(part, previous_offset)
        self._counts.skipped_batches += len(rows)
        self._counts.skipped_bytes += int((ends - starts).sum()) - read_bytes

    def _whole_parts(self, split: ScanSplit, filters: Filters) -> Iterator[Part]:
        """All of the split but the blocks in which no key can be."""
        if self._search is None:
            yield Part(split, split.segment_base_offset - 1)
            return
        self._counts.keyless_bytes += split.end - split.start
        for part in self._search.parts(split, filters):
            self._counts.keyless_bytes -= part.split.end - part.split.start
            yield part

    def _wanted(self, rows: Rows, split: ScanSplit) -> Mask:
        wanted = wanted_batches(
            rows,
            split,
            self._request.row_filter,
            include_control=self._request.include_control,
            of_records=True,
        )
        return wanted if self._search is None else wanted & self._search.can_hold(rows)

    def _hidden(self, chunk: Chunk, left_out: Mask, split: ScanSplit) -> Mask:
        """bool[b]: of the batches that their headers rule out by more than their offsets those with
        a wrong checksum, as a consumer checks them too: the bit that makes one of control, or of an
        aborted transaction, may be the damage.
        """
        rows, hidden = chunk.rows, np.zeros(len(left_out), np.bool_)
        if not self._request.verify_checksums or not left_out.any():
            return hidden
        if split.start_offset is not None:
            left_out = left_out & (rows["last_offset"] >= split.start_offset)
        if split.end_offset is not None:
            left_out = left_out & (rows["base_offset"] < split.end_offset)
        which = np.flatnonzero(left_out)
        hidden[which] = ~batch_table.verify_checksums(chunk.buf, chunk.position, rows[which])
        return hidden

    def _decode(
        self, chunk: Chunk, rows: Rows, split: ScanSplit
    ) -> Iterator[RecordArrays | pa.RecordBatch]:
        """All records of `rows`, in order; what is wrong with a batch is treated as the mode
        says."""
        window = len(rows)
        while len(rows):
            done = 0
            try:
                for part_rows, records in self._decode_parts(chunk, rows[:window], split):
                    done += part_rows
                    if len(records):
                        yield records
                rows = rows[window:]
            except BAD_BATCH as error:
                bad = np.flatnonzero(rows["position"] == error.position)
                if self._request.mode == ReadMode.FAILFAST or not len(bad):
                    raise
                yield from self._decode(chunk, rows[done : bad[0]], split)
                length = int(rows["size_in_bytes"][bad[0]])
                yield from self._chunks.bad_batch(split, error, length)
                rows = rows[bad[0] + 1 :]
                # Where one batch is bad many may be: each costs the window once more.
                window = _WINDOW_AFTER_DAMAGE

    def _decode_parts(
        self, chunk: Chunk, rows: Rows, split: ScanSplit
    ) -> Iterator[tuple[int, RecordArrays]]:
        """(how many of `rows`, their records), in parts that fit the arena."""
        if self._wrong_positions.size:
            check_places(rows, self._wrong_positions, split.path)
        if self._request.verify_checksums:
            _check_checksums(chunk, rows, split.path)
        parts = iterate_record_areas(
            chunk.buf,
            chunk.position,
            rows,
            self._arena,
            path=split.path,
            max_bytes=self._request.max_batch_bytes,
            arena_bytes=CHUNK_BYTES,
        )
        for part, areas in parts:
            count = int(areas.rows["records_count"].sum(dtype=np.int64))
            if self._making is not None:
                self._spans = decode_spans(areas, areas.rows, split.path, self._spans)
                areas = self._making.add_records(areas, self._spans)
            spans = decode_spans(areas, areas.rows, split.path, self._spans, self._keys)
            self._spans = spans
            wanted = wanted_records(spans, split, self._request.row_filter)
            states = split.transactions.states(areas.rows) if self._asks_states else None
            arrays = RecordArrays(place_of(split), areas.buf, areas.rows, spans, wanted, states)
            self._counts.records += count
            self._counts.wanted_records += len(arrays)
            yield part.stop - part.start, arrays


def _check_checksums(chunk: Chunk, rows: Rows, path: str) -> None:
    valid = batch_table.verify_checksums(chunk.buf, chunk.position, rows)
    if not valid.all():
        raise wrong_checksum(path, rows[int(np.argmin(valid))])
