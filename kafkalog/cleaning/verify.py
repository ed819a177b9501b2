"""Read a new segment back and prove that it is what was meant to be written, before any live file
moves.

Every batch found on disk must be the one written, field for field, CRC included, and its bytes must
match that CRC. Copied batches carry the CRC of their source, which was checked when it was read:
equal CRCs are equal bytes. Rebuilt batches are decoded again through the ordinary reading path, and
their records' offsets and timestamps compared with those of the source (as a fold,
kernels.encode_records). Offsets must rise throughout.
"""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.arena import Arena
from kafkalog.batches.checked_records import check_compressed
from kafkalog.batches.record_areas import iterate_record_areas
from kafkalog.cleaning.checked_chunks import (
    CLEANER_ARENA_BYTES,
    CLEANER_CHUNK_BYTES,
    check_checksums,
)
from kafkalog.cleaning.output_segment import OutputFile
from kafkalog.cleaning.rebuilt_batches import RebuiltBatches
from kafkalog.errors import CorruptIndexError, CorruptRecordError
from kafkalog.format.batch_rows import are_equal_rows
from kafkalog.format.checksum import crc32c
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.format.record_batch import BATCH_ROW
from kafkalog.kernels.check_records import check_records
from kafkalog.kernels.status import OK, STATUS_TEXT
from kafkalog.log.segment_file import Chunk, ChunkBuffers, read_chunks
from kafkalog.resources.spilled_array import SpilledArray


def verify_segment(
    log: OutputFile,
    written_rows: SpilledArray,
    rebuilt: RebuiltBatches,
    buffers: ChunkBuffers,
) -> None:
    """CorruptRecordError unless the file holds exactly the written batches."""
    arena = Arena()
    seen, rebuilt_seen, previous_offset = 0, 0, -1
    reader = read_chunks(log.path, chunk_bytes=CLEANER_CHUNK_BYTES, buffers=buffers)
    for chunk in reader:
        # Chunks end elsewhere than when they were written: what was noted of each batch is read
        # along in the same order, and what is left over on either side is an error below.
        end = min(seen + chunk.rows.size, written_rows.size)
        _check_rows(chunk.rows, written_rows.read(seen, end), log.path)
        seen = end
        _check_checksums(chunk, rebuilt, log.path)
        previous_offset = _check_order(chunk.rows, previous_offset, log.path)
        # No more of them than batches of the chunk.
        upto = min(rebuilt_seen + chunk.rows.size, rebuilt.positions.size)
        positions = rebuilt.positions.read(rebuilt_seen, upto)
        positions = positions[: int(np.searchsorted(positions, chunk.position + chunk.buf.size))]
        upto = rebuilt_seen + positions.size
        # Rebuilt batches were noted by position, which rises: those of this chunk are the next
        # ones.
        at = np.searchsorted(chunk.rows["position"], positions)
        folds = rebuilt.folds.read(rebuilt_seen, upto)
        _check_records(chunk, chunk.rows.take(at), folds, arena, log.path)
        rebuilt_seen = upto
    whole = not reader.trailing_bytes and reader.valid_bytes == log.size_in_bytes
    if not whole or seen != written_rows.size:
        raise CorruptRecordError(
            f"read back {seen} batches in {reader.valid_bytes} bytes and "
            f"{reader.trailing_bytes} more, "
            f"wrote {written_rows.size} in {log.size_in_bytes}",
            path=log.path,
        )
    if rebuilt_seen != rebuilt.positions.size:
        raise CorruptRecordError("a rebuilt batch was not read back", path=log.path)


def verify_index(index: OutputFile) -> None:
    """CorruptIndexError unless the file holds the bytes that were written."""
    descriptor = os.open(index.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # One byte more than there should be: what is longer is noticed as well.
        data = os.pread(descriptor, index.size_in_bytes + 1, 0)
    finally:
        os.close(descriptor)
    if len(data) != index.size_in_bytes or crc32c(data) != index.checksum:
        raise CorruptIndexError(
            f"read back: {len(data)} bytes that are not the {index.size_in_bytes} written",
            path=index.path,
        )


def _check_checksums(chunk: Chunk, rebuilt: RebuiltBatches, path: str) -> None:
    """CorruptRecordError unless each batch has the checksum it states, or is one that was corrupt
    before, byte for byte.
    """
    if not rebuilt.corrupt:
        check_checksums(chunk, path)
        return
    corrupt = np.isin(chunk.rows["position"], list(rebuilt.corrupt))
    check_checksums(Chunk(chunk.buf, chunk.position, chunk.rows[~corrupt]), path)
    for row in chunk.rows[corrupt]:
        start = int(row["position"]) - chunk.position
        found = crc32c(chunk.buf[start : start + int(row["size_in_bytes"])])
        if found != rebuilt.corrupt[int(row["position"])]:
            raise _differs("not the corrupt batch that was to be kept", row, path)


def _check_records(
    chunk: Chunk,
    rows: NDArray[np.void],
    folds: NDArray[np.int64],
    arena: Arena,
    path: str,
) -> None:
    """Decode these rebuilt batches; CorruptRecordError unless their records have the folds they
    should.
    """
    if not rows.size:
        return
    _, found = check_compressed(chunk.buf, chunk.position, rows, arena, MAX_BATCH_BYTES)
    _check_folds(rows[: found.size], found, folds[: found.size], path)
    rows, folds = rows[found.size :], folds[found.size :]
    for part, areas in iterate_record_areas(
        chunk.buf, chunk.position, rows, arena, path=path, arena_bytes=CLEANER_ARENA_BYTES
    ):
        largest, found = np.empty((2, areas.rows.size), np.int64)
        b, code, _, record = check_records(
            areas.buf, areas.rows, areas.starts, areas.ends, largest, found
        )
        if code != OK:
            raise _differs(f"record {record}: {STATUS_TEXT[code]}", areas.rows[b], path)
        _check_folds(areas.rows, found, folds[part], path)


def _check_folds(
    rows: NDArray[np.void], found: NDArray[np.int64], wanted: NDArray[np.int64], path: str
) -> None:
    if not np.array_equal(found, wanted):
        b = int(np.argmax(found != wanted))
        raise _differs("records differ from those that were to stay", rows[b], path)


def _check_order(rows: NDArray[np.void], previous_offset: int, path: str) -> int:
    """CorruptRecordError unless batches follow each other; the last offset of the last one."""
    if not rows.size:
        return previous_offset
    # From the last batch of the chunk before on, so that no pair of neighbours is left out.
    before = np.concatenate([[previous_offset], rows["last_offset"][:-1]])
    if (rows["base_offset"] <= before).any():
        raise CorruptRecordError("offsets of the batches do not rise", path=path)
    return int(rows["last_offset"][-1])


def _check_rows(found: NDArray[np.void], wanted: NDArray[np.void], path: str) -> None:
    if found.size != wanted.size:
        raise _differs(
            "a batch that was not written", found[min(wanted.size, found.size - 1)], path
        )
    # Field by field only to say which one it is.
    if are_equal_rows(found, wanted):
        return
    for name in BATCH_ROW.names or ():
        if not np.array_equal(found[name], wanted[name]):
            b = int(np.argmax(found[name] != wanted[name]))
            raise _differs(
                f"{name} is {found[name][b]}, {wanted[name][b]} was written", found[b], path
            )


def _differs(what: str, row: np.void, path: str) -> CorruptRecordError:
    return CorruptRecordError(
        f"read back: {what}",
        path=path,
        position=int(row["position"]),
        offset=int(row["base_offset"]),
    )
