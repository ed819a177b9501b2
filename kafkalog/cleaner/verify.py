"""Read a new segment back and prove that it is what was meant to be written, before any live file
moves.

Every batch found on disk must be the one written, field for field, CRC included, and its bytes must
match that CRC. Copied batches carry the CRC of their source, which was checked when it was read:
equal CRCs are equal bytes. Rebuilt batches are decoded again through the ordinary reading path, and
their records' offsets and timestamps compared with those of the source (as a fold,
kernels.encode_records). Offsets must rise throughout.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.arena import Arena, iterate_record_areas
from kafkalog.batches.spans import RecordSpans, decode_spans
from kafkalog.cleaner.key_map import CLEANER_CHUNK_BYTES, check_checksums
from kafkalog.cleaner.output_segment import OutputFile, joined_rows
from kafkalog.cleaner.rewrite import RebuiltBatches
from kafkalog.errors import CorruptIndexError, CorruptRecordError
from kafkalog.format.checksum import crc32c
from kafkalog.format.record_batch import BATCH_ROW
from kafkalog.kernels.encode_records import fold_records
from kafkalog.log.segment_file import Chunk, ChunkBuffers, read_chunks


def verify_segment(
    log: OutputFile,
    written_rows: list[NDArray[np.void]],
    rebuilt: RebuiltBatches,
    buffers: ChunkBuffers,
) -> None:
    """CorruptRecordError unless the file holds exactly the written batches."""
    expected = joined_rows(written_rows)
    arena = Arena()
    seen = 0
    rebuilt_seen = 0
    reader = read_chunks(log.path, chunk_bytes=CLEANER_CHUNK_BYTES, buffers=buffers)
    for chunk in reader:
        wanted = expected[seen : seen + chunk.rows.size]
        _check_rows(chunk.rows, wanted, log.path)
        check_checksums(chunk, log.path)
        end = chunk.position + chunk.buf.size
        upto = int(np.searchsorted(rebuilt.positions, end))
        part = slice(rebuilt_seen, upto)
        at = np.searchsorted(chunk.rows["position"], rebuilt.positions[part])
        _check_records(chunk, chunk.rows[at], rebuilt.folds[part], arena, log.path)
        rebuilt_seen = upto
        seen += chunk.rows.size
    if reader.trailing_bytes or seen != expected.size or reader.valid_bytes != log.size_in_bytes:
        raise CorruptRecordError(
            f"read back {seen} batches in {reader.valid_bytes} bytes and "
            f"{reader.trailing_bytes} more, "
            f"wrote {expected.size} in {log.size_in_bytes}",
            path=log.path,
        )
    if rebuilt_seen != rebuilt.positions.size:
        raise CorruptRecordError("a rebuilt batch was not read back", path=log.path)
    if (expected["base_offset"][1:] <= expected["last_offset"][:-1]).any():
        raise CorruptRecordError("offsets of the batches do not rise", path=log.path)


def verify_index(index: OutputFile) -> None:
    """CorruptIndexError unless the file holds the bytes that were written."""
    data = Path(index.path).read_bytes()
    if len(data) != index.size_in_bytes or crc32c(data) != index.checksum:
        raise CorruptIndexError(
            f"read back: {len(data)} bytes that are not the {index.size_in_bytes} written",
            path=index.path,
        )


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
    spans: RecordSpans | None = None
    for part, areas in iterate_record_areas(chunk.buf, chunk.position, rows, arena, path=path):
        spans = decode_spans(areas, rows[part], path, reuse=spans)
        found = np.empty(rows[part].size, np.int64)
        ends = np.cumsum(rows["records_count"][part], dtype=np.int64)
        fold_records(spans.offsets, spans.timestamps, ends, found)
        if not np.array_equal(found, folds[part]):
            b = int(np.argmax(found != folds[part]))
            raise _differs("records differ from those that were to stay", rows[part][b], path)


def _check_rows(found: NDArray[np.void], wanted: NDArray[np.void], path: str) -> None:
    if found.size != wanted.size:
        raise _differs(
            "a batch that was not written", found[min(wanted.size, found.size - 1)], path
        )
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
