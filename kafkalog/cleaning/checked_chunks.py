"""Segments as the cleaner reads them: in chunks that stay in a processor's cache, whole, and with
checksums that are right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.arena import Arena
from kafkalog.batches.batch_table import is_legacy, verify_checksums
from kafkalog.batches.record_areas import RecordAreas, iterate_record_areas
from kafkalog.batches.spans import decode_spans
from kafkalog.cleaning.batch_roles import BatchRoles
from kafkalog.errors import CorruptRecordError, KafkaLogError, RecordTooLargeError
from kafkalog.log.inventory import SegmentInfo
from kafkalog.log.segment_file import Chunk, ChunkBuffers, read_chunks

# Measured: a chunk costs half a millisecond of Python whatever it holds, and a larger one leaves
# the cache before its CRCs are done and its records are looked at.
CLEANER_CHUNK_BYTES = 6 * 1024 * 1024
# What is decompressed at once.
CLEANER_ARENA_BYTES = 4 * 1024 * 1024


def read_whole(
    path: str, buffers: ChunkBuffers, max_batch_bytes: int, end: int | None = None
) -> Iterator[Chunk]:
    """The chunks of a segment, up to `end`, that ends with a whole batch. CorruptRecordError if it
    does not, RecordTooLargeError for a batch above the limit.
    """
    reader = read_chunks(
        path,
        end=end,
        chunk_bytes=CLEANER_CHUNK_BYTES,
        buffers=buffers,
        max_batch_bytes=max_batch_bytes,
    )
    try:
        yield from reader
    except RecordTooLargeError as error:
        # --memory sets a limit, too
        error.reason += " (--max-batch-bytes, --memory)"
        raise
    # Only the active segment may end within a batch: elsewhere bytes behind the last one may have
    # been a batch, and a rewrite would lose them.
    if reader.trailing_bytes:
        raise CorruptRecordError(
            f"{reader.trailing_bytes} bytes after the last whole batch of a "
            "segment that is not the active one",
            path=path,
            position=reader.valid_bytes,
        )


def checked_areas(
    segment: SegmentInfo,
    roles_of: BatchRoles,
    buffers: ChunkBuffers,
    arena: Arena,
    max_batch_bytes: int,
    kept_corrupt: CorruptBatches | None = None,
    end: int | None = None,
) -> Iterator[tuple[RecordAreas, NDArray[np.uint8]]]:
    """The records of a segment, up to `end`, as whoever maps its keys wants them, with the roles of
    their batches; valid until the next ones are asked for. Raises as `read_whole` and
    `check_checksums`, or with `kept_corrupt` leaves corrupt batches out and notes them there.
    """
    for chunk in read_whole(segment.path, buffers, max_batch_bytes, end):
        if kept_corrupt is None:
            check_checksums(chunk, segment.path)
        else:
            corrupt = corrupt_batches(chunk, arena, segment.path, max_batch_bytes)
            kept_corrupt.note(chunk.rows[corrupt], segment.path)
            # A corrupt batch is not in the map: its keys are not known, so it supersedes nothing.
            chunk = Chunk(chunk.buf, chunk.position, chunk.rows[~corrupt])
            if not chunk.rows.size:
                continue
        roles = roles_of.batches(chunk, segment)
        for part, areas in iterate_record_areas(
            chunk.buf,
            chunk.position,
            chunk.rows,
            arena,
            path=segment.path,
            max_bytes=max_batch_bytes,
            arena_bytes=CLEANER_ARENA_BYTES,
        ):
            yield areas, roles[part]


@dataclass(slots=True)
class CorruptBatches:
    """How many corrupt batches were met, and where the first one is."""

    count: int = 0
    first: str = ""

    def note(self, rows: NDArray[np.void], path: str) -> None:
        """Count these batches."""
        if rows.size and not self.count:
            self.first = f"{path} @ {rows['position'][0]} (offset {rows['base_offset'][0]})"
        self.count += rows.size


def corrupt_batches(
    chunk: Chunk, arena: Arena, path: str, max_batch_bytes: int
) -> NDArray[np.bool_]:
    """bool[b]: batches whose checksum is wrong, or whose records cannot be decoded.

    CorruptRecordError for one of magic 0 or 1: what it holds moves when it becomes magic 2.
    RecordTooLargeError as in decoding.
    """
    corrupt = ~verify_checksums(chunk.buf, chunk.position, chunk.rows)
    # A batch with a right checksum may still hold records that do not decode. The first such error
    # ends the decoding of all, so take that batch out and begin again with the others.
    while True:
        rows = chunk.rows[~corrupt]
        try:
            for _, areas in iterate_record_areas(
                chunk.buf, chunk.position, rows, arena,
                path=path, max_bytes=max_batch_bytes, arena_bytes=CLEANER_ARENA_BYTES,
            ):  # fmt: skip
                decode_spans(areas, areas.rows, path)
        except RecordTooLargeError:
            raise
        except KafkaLogError as error:
            found = chunk.rows["position"] == error.position
            # An error of no batch that is left, of the file itself: not to be answered by leaving
            # batches out.
            if not (found & ~corrupt).any():
                raise
            corrupt |= found
        else:
            break
    legacy = corrupt & is_legacy(chunk.rows)
    if legacy.any():
        row = chunk.rows[int(np.argmax(legacy))]
        raise CorruptRecordError(
            f"a corrupt batch of magic {row['magic']}, which cannot be kept as it is",
            path=path,
            position=int(row["position"]),
            offset=int(row["base_offset"]),
        )
    return corrupt


def check_checksums(chunk: Chunk, path: str) -> None:
    """CorruptRecordError for the first batch of a chunk whose CRC is wrong."""
    valid = verify_checksums(chunk.buf, chunk.position, chunk.rows)
    if not valid.all():
        row = chunk.rows[int(np.argmin(valid))]
        raise CorruptRecordError(
            f"CRC of the batch is not the stored {int(row['crc']):#010x}",
            path=path,
            position=int(row["position"]),
            offset=int(row["base_offset"]),
        )
