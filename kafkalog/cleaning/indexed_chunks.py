"""Chunks of a segment in any order: where they begin its offset index tells.

The index is believed in nothing: a chunk must be whole batches up to where the next one begins, so
that, once all of them were read, those from the start of the file on are its batches.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from kafkalog.cleaning.checked_chunks import CLEANER_CHUNK_BYTES
from kafkalog.errors import CorruptRecordError, KafkaLogError
from kafkalog.format.file_names import LogFileKind
from kafkalog.format.offset_index import parse_offset_index
from kafkalog.kernels.status import OK
from kafkalog.log.inventory import SegmentInfo
from kafkalog.log.segment_file import Chunk, ChunkBuffers, read_chunks
from kafkalog.log.small_files import read_small_file
from kafkalog.log.storage import LocalFile, open_file

# Entries of the offset index further apart are those of huge batches, or of another log.
_MOST_CHUNK_BYTES = 3 * CLEANER_CHUNK_BYTES


def indexed_chunks(segment: SegmentInfo) -> list[tuple[int, int]] | None:
    """[start, end) of parts of about the size of a chunk, where the offset index has entries; None
    if it has too few.
    """
    size = segment.size_in_bytes
    edges = [0, size]
    if size > CLEANER_CHUNK_BYTES:
        path = Path(segment.path).with_suffix(LogFileKind.OFFSET_INDEX)
        try:
            data = read_small_file(path, segment.offset_index_bytes)
            positions = parse_offset_index(data, segment.base_offset, str(path)).positions
        except (KafkaLogError, OSError):
            # No index is needed to clean a log, as no index is by Kafka's cleaner.
            return None
        wanted = np.arange(CLEANER_CHUNK_BYTES, size, CLEANER_CHUNK_BYTES)
        at = np.searchsorted(positions, wanted, side="right") - 1
        # Once each; numpy's own way imports its masked arrays, 12 ms.
        inner = sorted(set(positions[at[at >= 0]].tolist()))
        edges[1:1] = [position for position in inner if position < size]
    chunks = [(start, end) for start, end in pairwise(edges) if start < end]
    is_dense = all(end - start <= _MOST_CHUNK_BYTES for start, end in chunks)
    return chunks if is_dense else None


def read_ahead(segment: SegmentInfo, end: int) -> None:
    """Have the system read what comes next: by itself it reads ahead only forward."""
    start = max(end - CLEANER_CHUNK_BYTES, 0)
    if start < end:
        with open_file(segment.path) as file:
            if isinstance(file, LocalFile):
                file.will_need(start, end - start)


def end_of(row: np.void) -> int:
    """The position behind a batch."""
    return int(row["position"]) + int(row["size_in_bytes"])


def read_between(
    segment: SegmentInfo, start: int, end: int, buffers: ChunkBuffers, max_batch_bytes: int
) -> Chunk:
    """The batches in [start, end), valid until `buffers` are used again. CorruptRecordError if they
    are not whole batches up to the end; else as in reading.
    """
    reader = read_chunks(
        segment.path,
        start,
        end,
        chunk_bytes=end - start,
        buffers=buffers,
        max_batch_bytes=max_batch_bytes,
    )
    chunks = list(reader)
    if len(chunks) != 1 or reader.status != OK or reader.valid_bytes != end:
        raise CorruptRecordError("not whole batches", path=segment.path, position=start)
    return chunks[0]
