"""A split in chunks of whole batches, and what stands in the place of what nothing leads over.

What is wrong with a batch is raised (FAILFAST), given as a row with its place and `error`
(PERMISSIVE), or left out and counted (DROPMALFORMED). Behind a batch whose header cannot be walked
over the next one with a right checksum is searched. A torn tail is the log's end, not an error.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkalog.columns.places import MOST_ERROR_BYTES, SegmentPlace, error_row
from kafkalog.columns.schemas import ERROR_BYTES
from kafkalog.errors import (
    CorruptRecordError,
    KafkaLogError,
    RecordTooLargeError,
    UnsupportedCompressionTypeError,
    UnsupportedMagicError,
)
from kafkalog.log.damage import Damage, FileRange
from kafkalog.log.past_damage import DamageWalk
from kafkalog.log.segment_file import Chunk, ChunkBuffers
from kafkalog.log.segment_headers import scan_headers
from kafkalog.log.segment_tail import SegmentEnds
from kafkalog.log.storage import open_file
from kafkalog.reading.request import ReadCounts, ReadMode, ReadRequest
from kafkalog.reading.splits import ScanSplit
from kafkalog.remote.stores import is_remote

Rows = npt.NDArray[np.void]

# Bytes read at once, and decompressed bytes that make one Arrow batch, give or take a batch.
# Measured: 8 MiB leave the cache before they are copied out, with 1 MiB calls cost more than
# records.
CHUNK_BYTES = 4 * 1024 * 1024

# What one bad batch can raise; anything else (a file that changed, a fault of ours) ends the read
# in every mode.
BAD_BATCH = (
    CorruptRecordError,
    RecordTooLargeError,
    UnsupportedCompressionTypeError,
    UnsupportedMagicError,
)


class SplitChunks:
    """Reads splits for one request. Its memory is used again from chunk to chunk: a chunk is good
    until the next is asked for."""

    def __init__(self, request: ReadRequest, counts: ReadCounts) -> None:
        self._request = request
        self._counts = counts
        self._buffers = ChunkBuffers()

    def of(self, split: ScanSplit) -> Iterator[Chunk | pa.RecordBatch]:
        """Chunks of the split; in the place of what nothing can walk over, what the mode has for
        it."""
        split.check_unchanged()
        walk = DamageWalk(
            file_range(split),
            checks=self._request.verify_checksums,
            raises=self._request.mode == ReadMode.FAILFAST,
            chunk_bytes=CHUNK_BYTES,
            buffers=self._buffers,
            max_batch_bytes=self._request.max_batch_bytes,
        )
        # The plan named the file by size and inode. It is looked at before the file is opened and
        # again after: in between a broker may have put another one in its place.
        # Of remote storage no more is read than the object that was looked at (its ETag says so).
        is_open = is_remote(split.path)
        try:
            for found in walk:
                if not is_open:
                    split.check_unchanged()  # what was opened is what was looked at before
                    is_open = True
                if isinstance(found, Damage):
                    yield from self.bad_batch(split, found.error, found.length)
                else:
                    yield found
        except BAD_BATCH:
            if not is_open:
                split.check_unchanged()
            raise

    def bad_batch(
        self, split: ScanSplit, error: KafkaLogError, length: int
    ) -> Iterator[pa.RecordBatch]:
        """What the mode has for a batch of so many bytes that cannot be read."""
        if self._request.mode == ReadMode.DROPMALFORMED:
            self._counts.drop(split.path)
            return
        data = None
        if ERROR_BYTES.name in self._request.names and error.position is not None:
            with open_file(split.path) as file:
                data = file.read_bytes(error.position, min(length, MOST_ERROR_BYTES))
        yield error_row(
            place_of(split),
            self._request.schema,
            self._request.names,
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


def sound_headers(split: ScanSplit) -> Rows | None:
    """All headers of the split, bodies not read where they are large; None where a batch cannot be
    walked over, which the chunks then tell as the mode has it.
    """
    split.check_unchanged()
    scan = scan_headers(split.path, split.start, split.end)
    split.check_unchanged()  # what was opened is what was looked at before
    return None if scan.error is not None or scan.trailing_bytes else scan.rows


def place_of(split: ScanSplit) -> SegmentPlace:
    return SegmentPlace(split.topic, split.partition, split.segment_base_offset, split.path)
