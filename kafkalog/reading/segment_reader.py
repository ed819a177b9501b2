"""The one reading path: a split in, Arrow batches out. Spark, the Python API and the command line
all read through it.

Strategy: a split is read in chunks of whole batches. Headers decide first (offset range, control
batches, the row filter), then the checksums, and only then bytes are decompressed and decoded,
column by column as asked. Where headers can rule out a lot they are all looked at before, and the
bodies of what is not wanted are not read.

What is wrong with a batch is raised (FAILFAST), given as a row with its place and `error`
(PERMISSIVE), or left out and counted (DROPMALFORMED). Behind a batch whose header cannot be walked
over the next one with a right checksum is searched. A torn tail is the log's end, not an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkalog.batches import batch_table
from kafkalog.batches.arena import Arena
from kafkalog.batches.record_areas import iterate_record_areas
from kafkalog.batches.spans import RecordSpans, decode_spans
from kafkalog.columns.batches import BatchArrays, build_batches
from kafkalog.columns.places import MOST_ERROR_BYTES, SegmentPlace, error_row
from kafkalog.columns.records import RecordArrays, build_records
from kafkalog.columns.schemas import ERROR_BYTES
from kafkalog.errors import (
    CorruptRecordError,
    KafkaLogError,
    RecordTooLargeError,
    UnsupportedCompressionTypeError,
    UnsupportedMagicError,
)
from kafkalog.log.batch_order import sound_places
from kafkalog.log.damage import Damage, FileRange, wrong_checksum
from kafkalog.log.past_damage import DamageWalk
from kafkalog.log.segment_file import Chunk, ChunkBuffers, scan_headers
from kafkalog.log.segment_tail import SegmentEnds
from kafkalog.log.single_batch import whole_batch_at
from kafkalog.log.storage import LocalFile
from kafkalog.reading.header_filter import asks_headers, wanted_batches, wanted_records
from kafkalog.reading.request import ReadCounts, ReadMode, ReadRequest
from kafkalog.reading.splits import ScanSplit

Rows = npt.NDArray[np.void]
Mask = npt.NDArray[np.bool_]
_Int64s = npt.NDArray[np.int64]

# Bytes read at once, and decompressed bytes that make one Arrow batch, give or take a batch.
# Measured: 8 MiB leave the cache before they are copied out, with 1 MiB calls cost more than
# records.
_CHUNK_BYTES = 4 * 1024 * 1024
_WINDOW_AFTER_DAMAGE = 64
# Headers that make one Arrow batch.
_HEADER_ROWS = 65_536
# Unwanted bytes up to this between wanted ones are read with them: cheaper than a read more.
_NEAR_BYTES = 32 * 1024

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


def read_record_arrays(
    splits: Iterable[ScanSplit], request: ReadRequest, counts: ReadCounts | None = None
) -> Iterator[RecordArrays | pa.RecordBatch]:
    """The same records where they lie, good until the next are asked for; in mode PERMISSIVE an
    Arrow batch of one row stands for a bad batch.
    """
    reader = _SplitReader(request, counts or ReadCounts())
    for split in splits:
        yield from reader.arrays(split)


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
        self.asks_states = "transactionState" in request.names
        self.misplaced = np.empty(0, np.int64)  # positions of batches in the chunk at hand
        self.places: tuple[str, tuple[_Int64s, _Int64s]] | None = None  # of the segment at hand

    # -- records ----------------------------------------------------------------------------------

    def records(self, split: ScanSplit) -> Iterator[pa.RecordBatch]:
        for found in self.arrays(split):
            if isinstance(found, RecordArrays):
                yield build_records(found, self.request.schema, self.request.names)
            else:
                yield found

    def arrays(self, split: ScanSplit) -> Iterator[RecordArrays | pa.RecordBatch]:
        limit = _offset_limit(split)
        for part, previous_offset in self._parts(split):
            for chunk in self._chunks(part):
                if isinstance(chunk, pa.RecordBatch):
                    yield chunk
                    continue
                misplaced = self._misplaced(chunk.rows, previous_offset, limit, split)
                wanted = self._wanted_batches(chunk.rows, split, of_records=True)
                rows = chunk.rows[wanted | misplaced]
                self.misplaced = chunk.rows["position"][misplaced]
                self.counts.skipped_batches += len(chunk.rows) - len(rows)
                previous_offset = int(chunk.rows["last_offset"][-1])
                yield from self._decode(chunk, rows, split)

    def _parts(self, split: ScanSplit) -> Iterator[tuple[ScanSplit, int]]:
        """(byte ranges of the split to read, the last offset before each): all of it, or, where
        headers can rule batches out, what they leave."""
        before_split = split.segment_base_offset - 1
        first = split.headers_first or asks_headers(self.request.row_filter)
        rows = _sound_headers(split) if first else None
        if rows is None:
            yield split, before_split
            return
        wanted = self._wanted_batches(rows, split, of_records=True)
        wanted |= _misplaced(rows, before_split, _offset_limit(split))
        starts, ends = rows["position"], rows["position"] + rows["size_in_bytes"]
        read_bytes = 0
        for start, stop in _runs(wanted, starts, ends):
            previous_offset = int(rows["last_offset"][start - 1]) if start else before_split
            part = replace(split, start=int(starts[start]), end=int(ends[stop - 1]))
            read_bytes += part.end - part.start
            self.counts.skipped_batches -= stop - start  # counted when they are read
            yield part, previous_offset
        self.counts.skipped_batches += len(rows)
        self.counts.skipped_bytes += int((ends - starts).sum()) - read_bytes

    def _misplaced(self, rows: Rows, previous_offset: int, limit: int, split: ScanSplit) -> Mask:
        """Batches whose offsets are not to be believed. A read that goes on asks the whole segment
        which those are: a batch too high makes the one behind it look too low, and two that were
        swapped are both right.
        """
        misplaced = _misplaced(rows, previous_offset, limit)
        if self.request.mode == ReadMode.FAILFAST or not misplaced.any():
            return misplaced
        if self.places is None or self.places[0] != split.path:
            whole = replace(split, start=0, end=split.size)
            self.places = split.path, sound_places(file_range(whole))
        sound, wrong = self.places[1]
        positions = rows["position"]
        return np.isin(positions, wrong) | (misplaced & ~np.isin(positions, sound))

    def _wanted_batches(self, rows: Rows, split: ScanSplit, *, of_records: bool) -> Mask:
        return wanted_batches(
            rows,
            split,
            self.request.row_filter,
            include_control=self.request.include_control or not of_records,
            of_records=of_records,
        )

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
                if self.request.mode == ReadMode.FAILFAST or not len(bad):
                    raise
                yield from self._decode(chunk, rows[done : bad[0]], split)
                length = int(rows["size_in_bytes"][bad[0]])
                yield from self._bad_batch(split, error, length)
                rows = rows[bad[0] + 1 :]
                # Where one batch is bad many may be: each costs the window once more.
                window = _WINDOW_AFTER_DAMAGE

    def _decode_parts(
        self, chunk: Chunk, rows: Rows, split: ScanSplit
    ) -> Iterator[tuple[int, RecordArrays]]:
        """(how many of `rows`, their records), in parts that fit the arena."""
        if self.misplaced.size:
            _check_places(rows, self.misplaced, split.path)
        if self.request.verify_checksums:
            _check_checksums(chunk, rows, split.path)
        parts = iterate_record_areas(
            chunk.buf,
            chunk.position,
            rows,
            self.buffers.arena,
            path=split.path,
            max_bytes=self.request.max_batch_bytes,
            arena_bytes=_CHUNK_BYTES,
        )
        for _, areas in parts:
            spans = decode_spans(areas, areas.rows, split.path, reuse=self.buffers.spans)
            self.buffers.spans = spans
            wanted = wanted_records(areas.buf, spans, split, self.request.row_filter)
            states = split.transactions.states(areas.rows) if self.asks_states else None
            arrays = RecordArrays(_place(split), areas.buf, areas.rows, spans, wanted, states)
            self.counts.records += spans.n
            self.counts.wanted_records += len(arrays)
            yield len(areas.rows), arrays

    # -- batches ----------------------------------------------------------------------------------

    def batches(self, split: ScanSplit) -> Iterator[pa.RecordBatch]:
        place = _place(split)
        headers = None if self.request.checks_batches else _sound_headers(split)
        if headers is not None:
            wanted = headers[self._wanted_batches(headers, split, of_records=False)]
            self.counts.skipped_batches += len(headers) - len(wanted)
            for first in range(0, len(wanted), _HEADER_ROWS):
                arrays = BatchArrays(place, wanted[first : first + _HEADER_ROWS])
                yield build_batches(arrays, self.request.schema, self.request.names)
            return
        for chunk in self._chunks(split):
            if isinstance(chunk, pa.RecordBatch):
                yield chunk
                continue
            rows = chunk.rows[self._wanted_batches(chunk.rows, split, of_records=False)]
            self.counts.skipped_batches += len(chunk.rows) - len(rows)
            is_valid = None
            if self.request.checks_batches:
                is_valid = batch_table.verify_checksums(chunk.buf, chunk.position, rows)
                if self.request.mode == ReadMode.DROPMALFORMED and not is_valid.all():
                    self.counts.dropped_batches += int((~is_valid).sum())
                    rows, is_valid = rows[is_valid], is_valid[is_valid]
            if len(rows):
                arrays = BatchArrays(place, rows, is_valid, chunk.buf, chunk.position)
                yield build_batches(arrays, self.request.schema, self.request.names)

    # -- both -------------------------------------------------------------------------------------

    def _chunks(self, split: ScanSplit) -> Iterator[Chunk | pa.RecordBatch]:
        """Chunks of the split; in the place of what nothing can walk over, what the mode has for
        it."""
        split.check_unchanged()
        walk = DamageWalk(
            file_range(split),
            checks=self.request.verify_checksums,
            raises=self.request.mode == ReadMode.FAILFAST,
            chunk_bytes=_CHUNK_BYTES,
            buffers=self.buffers.chunks,
            max_batch_bytes=self.request.max_batch_bytes,
        )
        is_open = False
        try:
            for found in walk:
                if not is_open:
                    split.check_unchanged()  # what was opened is what was looked at before
                    is_open = True
                if isinstance(found, Damage):
                    yield from self._bad_batch(split, found.error, found.length)
                else:
                    yield found
        except BAD_BATCH:
            if not is_open:
                split.check_unchanged()
            raise

    def _bad_batch(
        self, split: ScanSplit, error: KafkaLogError, length: int
    ) -> Iterator[pa.RecordBatch]:
        if self.request.mode == ReadMode.DROPMALFORMED:
            self.counts.dropped_batches += 1
            return
        data = None
        if ERROR_BYTES.name in self.request.names and error.position is not None:
            with LocalFile(split.path) as file:
                data = file.read_bytes(error.position, min(length, MOST_ERROR_BYTES))
        yield error_row(
            _place(split),
            self.request.schema,
            self.request.names,
            reason=error.reason,
            position=error.position,
            base_offset=error.offset,
            length=length,
            data=data,
        )


def file_range(split: ScanSplit) -> FileRange:
    """The bytes of a split, and what is known of the segment around them."""
    ends = SegmentEnds(split.segment_base_offset, split.segment_end_offset, split.is_active)
    return FileRange(split.path, split.start, split.end, ends, split.end >= split.size)


def _sound_headers(split: ScanSplit) -> Rows | None:
    """All headers of the split, bodies not read where they are large; None where a batch cannot be
    walked over, which the chunks then tell as the mode has it.
    """
    split.check_unchanged()
    scan = scan_headers(split.path, split.start, split.end)
    split.check_unchanged()  # what was opened is what was looked at before
    return None if scan.error is not None or scan.trailing_bytes else scan.rows


def _place(split: ScanSplit) -> SegmentPlace:
    return SegmentPlace(split.topic, split.partition, split.segment_base_offset, split.path)


def _check_checksums(chunk: Chunk, rows: Rows, path: str) -> None:
    valid = batch_table.verify_checksums(chunk.buf, chunk.position, rows)
    if not valid.all():
        raise wrong_checksum(path, rows[int(np.argmin(valid))])


def _misplaced(rows: Rows, previous_offset: int, limit: int) -> Mask:
    """Batches that do not lie behind the one before them and below `limit`. No CRC covers a base
    offset, so a damaged one shows here only; and such a batch may hold any offset, so none is
    passed over as unwanted.
    """
    before = np.concatenate([[previous_offset], rows["last_offset"][:-1]])
    misplaced: Mask = (rows["base_offset"] <= before) | (rows["last_offset"] < rows["base_offset"])
    return misplaced | (rows["last_offset"] >= limit)


def _offset_limit(split: ScanSplit) -> int:
    """The offset that all of a split lie below: the next split's first, or the next segment's."""
    limit = file_range(split).ends.upper_bound_offset
    if split.end >= split.size:
        return limit
    with LocalFile(split.path) as file:
        behind = whole_batch_at(file, split.end, file.size)
    # of a legacy wrapper that is its last offset
    return limit if behind is None else min(limit, int(behind["base_offset"]))


def _check_places(rows: Rows, misplaced: npt.NDArray[np.int64], path: str) -> None:
    bad = np.flatnonzero(np.isin(rows["position"], misplaced))
    if bad.size:
        row = rows[bad[0]]
        raise CorruptRecordError(
            f"batch of offsets {row['base_offset']} to {row['last_offset']} does not lie behind "
            "the one before it and in front of what follows",
            path=path,
            position=int(row["position"]),
            offset=int(row["base_offset"]),
        )


def _runs(
    wanted: Mask, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> Iterator[tuple[int, int]]:
    """(first, behind the last) of the wanted batches that lie together, or nearly so."""
    chosen = np.flatnonzero(wanted)
    if not chosen.size:
        return
    gaps = starts[chosen[1:]] - ends[chosen[:-1]]
    breaks = np.flatnonzero(gaps > _NEAR_BYTES) + 1
    for run in np.split(chosen, breaks):
        yield int(run[0]), int(run[-1]) + 1
