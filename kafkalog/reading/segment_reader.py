"""The one reading path: a split in, Arrow batches out. Spark, the Python API and the command line
all read through it.

Strategy: a split is read in chunks of whole batches. Headers decide first (offset range, control
batches), then the checksums, and only then bytes are decompressed and decoded, column by column as
asked.

What is wrong with a batch is raised (FAILFAST), given as a row with its place and `error`
(PERMISSIVE), or left out and counted (DROPMALFORMED). A batch whose header cannot be walked over
ends the split: nothing says where the next one is. A torn tail is the end of the log, not an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkalog.batches import batch_table
from kafkalog.batches.arena import Arena, open_record_areas
from kafkalog.batches.spans import RecordSpans, decode_spans
from kafkalog.columns.batches import WRONG_CHECKSUM, BatchArrays, build_batches
from kafkalog.columns.places import SegmentPlace, error_row
from kafkalog.columns.records import RecordArrays, build_records
from kafkalog.errors import (
    CorruptRecordError,
    KafkaLogError,
    RecordTooLargeError,
    UnsupportedCompressionTypeError,
    UnsupportedMagicError,
)
from kafkalog.log.segment_file import Chunk, ChunkBuffers, read_chunks
from kafkalog.reading.request import ReadCounts, ReadMode, ReadRequest
from kafkalog.reading.splits import ScanSplit

Rows = npt.NDArray[np.void]
Mask = npt.NDArray[np.bool_]

# Compressed batches are decoded in slices of this many bytes on disk, so that a chunk of them stays
# small unpacked.
_COMPRESSED_SLICE_BYTES = 1024 * 1024

# What one bad batch can raise; anything else (a file that changed, a fault of ours) ends the read
# in every mode.
BAD_BATCH = (
    CorruptRecordError,
    RecordTooLargeError,
    UnsupportedCompressionTypeError,
    UnsupportedMagicError,
)


@dataclass(slots=True)
class _Buffers:
    """Memory used again from chunk to chunk; what leaves this module was copied into Arrow's
    own."""

    chunks: ChunkBuffers = field(default_factory=ChunkBuffers)
    arena: Arena = field(default_factory=Arena)
    spans: RecordSpans | None = None


def read_record_splits(
    splits: Iterable[ScanSplit], request: ReadRequest, counts: ReadCounts | None = None
) -> Iterator[pa.RecordBatch]:
    """Records of the splits in order, as Arrow batches of up to some ten thousand rows."""
    reader = _SplitReader(request, counts or ReadCounts())
    for split in splits:
        yield from reader.records(split)


def read_batch_splits(
    splits: Iterable[ScanSplit], request: ReadRequest, counts: ReadCounts | None = None
) -> Iterator[pa.RecordBatch]:
    """A row for each batch of the splits. A wrong checksum is a fact here (`isValid`), not a reason
    to stop."""
    reader = _SplitReader(request, counts or ReadCounts())
    for split in splits:
        yield from reader.batches(split)


class _SplitReader:
    def __init__(self, request: ReadRequest, counts: ReadCounts) -> None:
        self.request = request
        self.counts = counts
        self.buffers = _Buffers()

    # -- records ----------------------------------------------------------------------------------

    def records(self, split: ScanSplit) -> Iterator[pa.RecordBatch]:
        place = _place(split)
        for chunk in self._chunks(split):
            if isinstance(chunk, pa.RecordBatch):
                yield chunk
                continue
            rows = chunk.rows[_wanted_batches(chunk.rows, split, self.request.include_control)]
            for run in _slices(rows):
                yield from self._decode(chunk, run, split, place)

    def _decode(
        self, chunk: Chunk, rows: Rows, split: ScanSplit, place: SegmentPlace
    ) -> Iterator[pa.RecordBatch]:
        """All records of `rows`; where one batch is bad, batch by batch."""
        try:
            batch = self._decode_all(chunk, rows, split, place)
        except BAD_BATCH as error:
            if self.request.mode == ReadMode.FAILFAST:
                raise
            if len(rows) == 1:
                yield from self._bad_batch(place, error)
                return
            # Halving finds the bad ones and keeps their neighbours together, in order.
            middle = len(rows) // 2
            yield from self._decode(chunk, rows[:middle], split, place)
            yield from self._decode(chunk, rows[middle:], split, place)
        else:
            if batch is not None and batch.num_rows:
                yield batch

    def _decode_all(
        self, chunk: Chunk, rows: Rows, split: ScanSplit, place: SegmentPlace
    ) -> pa.RecordBatch | None:
        if self.request.verify_checksums:
            valid = batch_table.verify_checksums(chunk.buf, chunk.position, rows)
            if not valid.all():
                bad = rows[np.flatnonzero(~valid)[0]]
                raise CorruptRecordError(
                    WRONG_CHECKSUM,
                    path=split.path,
                    position=int(bad["position"]),
                    offset=int(bad["base_offset"]),
                )
        areas = open_record_areas(
            chunk.buf, chunk.position, rows, self.buffers.arena, path=split.path
        )
        spans = decode_spans(areas, rows, split.path, reuse=self.buffers.spans)
        self.buffers.spans = spans
        arrays = RecordArrays(place, areas.buf, rows, spans, _wanted_records(spans, split))
        return build_records(arrays, self.request.schema, self.request.names)

    # -- batches ----------------------------------------------------------------------------------

    def batches(self, split: ScanSplit) -> Iterator[pa.RecordBatch]:
        place = _place(split)
        for chunk in self._chunks(split):
            if isinstance(chunk, pa.RecordBatch):
                yield chunk
                continue
            rows = chunk.rows[_wanted_batches(chunk.rows, split, include_control=True)]
            is_valid = None
            if self.request.verify_checksums:
                is_valid = batch_table.verify_checksums(chunk.buf, chunk.position, rows)
                if self.request.mode == ReadMode.DROPMALFORMED and not is_valid.all():
                    self.counts.dropped_batches += int((~is_valid).sum())
                    rows, is_valid = rows[is_valid], is_valid[is_valid]
            if len(rows):
                arrays = BatchArrays(place, rows, is_valid)
                yield build_batches(arrays, self.request.schema, self.request.names)

    # -- both -------------------------------------------------------------------------------------

    def _chunks(self, split: ScanSplit) -> Iterator[Chunk | pa.RecordBatch]:
        """Chunks of the split; the batch that nothing can walk over comes last, as its mode has
        it."""
        split.check_unchanged()
        chunks = read_chunks(
            split.path, start=split.start, end=split.end, buffers=self.buffers.chunks
        )
        try:
            yield from chunks
            if chunks.trailing_bytes and split.end < split.size:
                # Only the end of the file may be torn.
                raise CorruptRecordError(
                    f"no whole batch in the {chunks.trailing_bytes} bytes up to {split.end}",
                    path=split.path,
                    position=chunks.valid_bytes,
                )
        except BAD_BATCH as error:
            if self.request.mode == ReadMode.FAILFAST:
                raise
            yield from self._bad_batch(_place(split), error)

    def _bad_batch(self, place: SegmentPlace, error: KafkaLogError) -> Iterator[pa.RecordBatch]:
        if self.request.mode == ReadMode.DROPMALFORMED:
            self.counts.dropped_batches += 1
            return
        yield error_row(
            place,
            self.request.schema,
            self.request.names,
            reason=error.reason,
            position=error.position,
            base_offset=error.offset,
        )


def _place(split: ScanSplit) -> SegmentPlace:
    return SegmentPlace(split.topic, split.partition, split.segment_base_offset, split.path)


def _wanted_batches(rows: Rows, split: ScanSplit, include_control: bool) -> Mask:
    """Batches that may hold a wanted offset; control batches only on request."""
    wanted = np.ones(len(rows), np.bool_)
    if split.start_offset is not None:
        wanted &= rows["last_offset"] >= split.start_offset
    if split.end_offset is not None:
        wanted &= rows["base_offset"] < split.end_offset
    if not include_control:
        wanted &= ~batch_table.is_control(rows)
    return wanted


def _wanted_records(spans: RecordSpans, split: ScanSplit) -> npt.NDArray[np.int64] | None:
    """Indexes of the records in the split's offset range; None for all of them."""
    offsets = spans.offsets[: spans.n]
    if not len(offsets):
        return None
    low = -1 if split.start_offset is None else split.start_offset
    high = np.iinfo(np.int64).max if split.end_offset is None else split.end_offset
    if int(offsets.min()) >= low and int(offsets.max()) < high:
        return None
    return np.flatnonzero((offsets >= low) & (offsets < high))


def _slices(rows: Rows) -> Iterator[Rows]:
    """Rows in order, in pieces to decode at once: uncompressed ones together, compressed ones by
    size on disk."""
    if not len(rows):
        return
    compressed = batch_table.codecs(rows) != 0
    if not compressed.any():
        yield rows
        return
    weight = np.cumsum(rows["size_in_bytes"].astype(np.int64)) // _COMPRESSED_SLICE_BYTES
    starts = np.flatnonzero((np.diff(weight) != 0) | (np.diff(compressed.astype(np.int8)) != 0)) + 1
    yield from np.split(rows, starts)
