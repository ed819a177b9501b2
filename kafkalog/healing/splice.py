"""The batches of a healed segment: of the right copy below the cut, of the wrong one behind it and
below the right one's start. Batches keep their bytes; none may lie across a border.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.arena import Arena
from kafkalog.batches.batch_table import verify_checksums
from kafkalog.batches.record_areas import complete_rows
from kafkalog.cleaning.checked_chunks import CLEANER_CHUNK_BYTES
from kafkalog.errors import CorruptRecordError, LogCleaningRefusedError
from kafkalog.format.constants import MAX_INT32, MAX_INT64
from kafkalog.log.index_lookup import batch_at
from kafkalog.log.inventory import PartitionInventory, SegmentInfo
from kafkalog.log.segment_file import ChunkBuffers, read_chunks
from kafkalog.swap.local_files import LocalFiles


@dataclass(frozen=True, slots=True)
class Splice:
    """The right copy from `start_offset` to `cut_offset`, the wrong one elsewhere."""

    wrong: PartitionInventory
    right: PartitionInventory
    start_offset: int
    cut_offset: int
    max_batch_bytes: int

    @property
    def rewritten(self) -> list[tuple[SegmentInfo, int]]:
        """The segments of the wrong copy that are written anew, each with the offset where the next
        one begins.
        """
        segments = self.wrong.segments
        ends = [*(segment.base_offset for segment in segments[1:]), MAX_INT64]
        return [
            (segment, end)
            for segment, end in zip(segments, ends, strict=True)
            if segment.base_offset < self.cut_offset and end > self.start_offset
        ]


def start_of(wrong: PartitionInventory, right: PartitionInventory) -> int:
    """From where on the right copy is taken: its start, or the begin of the batch there."""
    first = wrong.segments[0].base_offset if wrong.segments else 0
    start = right.log_start_offset
    if start <= max(wrong.log_start_offset, first):
        return first
    below = [segment for segment in right.segments if segment.base_offset <= start]
    row = batch_at(below[-1], start) if below else None
    return start if row is None else min(start, int(row["base_offset"]))


def write_segment(
    splice: Splice, segment: SegmentInfo, end_offset: int, path: str, files: LocalFiles
) -> None:
    """Write a healed `.log`, synced, with owner and modification time of the one it replaces.

    LogCleaningRefusedError for a batch across a border; CorruptRecordError for one that is damaged.
    """
    base, size = segment.base_offset, 0
    start = min(max(base, splice.start_offset), end_offset)
    cut = max(min(end_offset, splice.cut_offset), start)
    fd = files.create(path)
    try:
        for data in _pieces(splice, segment, (base, start, cut, end_offset)):
            size += len(data)
            if size > MAX_INT32:
                raise LogCleaningRefusedError(
                    f"the new segment {base} would pass {MAX_INT32} bytes"
                )
            files.write(fd, data)
        files.set_owner(fd, os.stat(segment.path))  # noqa: PTH116 - as elsewhere in the swap
        files.set_modification_time(fd, segment.modification_time_ms)
        files.sync_file(fd)
    finally:
        os.close(fd)


def _pieces(
    splice: Splice, segment: SegmentInfo, borders: tuple[int, int, int, int]
) -> Iterator[memoryview]:
    base, start, cut, end = borders
    own = (segment,)
    if base < start:
        yield from _batches(own, base, start, splice.max_batch_bytes)
    ends = [*(each.base_offset for each in splice.right.segments[1:]), MAX_INT64]
    theirs = [
        each
        for each, its_end in zip(splice.right.segments, ends, strict=True)
        if each.base_offset < cut and its_end > start
    ]
    yield from _batches(theirs, start, cut, splice.max_batch_bytes)
    if cut < end:
        yield from _batches(own, cut, end, splice.max_batch_bytes)


def _batches(
    segments: Sequence[SegmentInfo], start: int, end: int, max_batch_bytes: int
) -> Iterator[memoryview]:
    """The bytes of the batches of [start, end)."""
    arena, buffers = Arena(), ChunkBuffers()
    for segment in segments:
        reader = read_chunks(
            segment.path, chunk_bytes=CLEANER_CHUNK_BYTES, buffers=buffers,
            max_batch_bytes=max_batch_bytes,
        )  # fmt: skip
        for chunk in reader:
            reaches = chunk.rows["last_offset"] >= start
            rows = chunk.rows[reaches & (chunk.rows["last_offset"] < MAX_INT64)]
            rows = complete_rows(chunk.buf, chunk.position, rows, arena, path=segment.path)
            rows = rows[rows["base_offset"] < end]
            if not rows.size:
                continue
            _check(rows, start, end, segment)
            valid = verify_checksums(chunk.buf, chunk.position, rows)
            if not valid.all():
                bad = rows[int(np.argmin(valid))]
                raise CorruptRecordError(
                    "CRC of the batch is not the stored one",
                    path=segment.path,
                    position=int(bad["position"]),
                )
            first = int(rows["position"][0]) - chunk.position
            last = int(rows["position"][-1] + rows["size_in_bytes"][-1]) - chunk.position
            yield chunk.buf[first:last].data
        if reader.trailing_bytes and not segment.is_active:
            raise CorruptRecordError(
                f"{reader.trailing_bytes} bytes behind the last whole batch",
                path=segment.path,
                position=reader.valid_bytes,
            )


def _check(rows: NDArray[np.void], start: int, end: int, segment: SegmentInfo) -> None:
    for row in (rows[0], rows[-1]):
        if row["base_offset"] < start or row["last_offset"] >= end:
            border = start if row["base_offset"] < start else end
            raise LogCleaningRefusedError(
                f"a batch of offsets {row['base_offset']} to {row['last_offset']} lies across "
                f"{border}, where one copy's records end and the other's begin",
                path=segment.path,
                position=int(row["position"]),
            )
