"""A `.log` file as chunks of whole batches; `segment_headers` reads headers only.

Strategy: the file is read by windows into one buffer and `scan_batches` walks it. Three ends are
told apart. A torn tail (the file ends inside a batch: a broker was, or is, in the middle of an
append) and a zero tail (a preallocated file) end the walk. Bytes that break the format stop it:
what is wrong is raised after the last whole batch in front of them.

A batch whose length is intact but whose records are damaged is walked over here; its CRC is checked
above.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.errors import (
    CorruptRecordError,
    KafkaLogError,
    RecordTooLargeError,
    UnsupportedMagicError,
)
from kafkalog.format.batch_rows import copy_rows, put_rows
from kafkalog.format.constants import (
    LOG_OVERHEAD,
    MAX_BATCH_BYTES,
    RECORD_BATCH_OVERHEAD,
)
from kafkalog.format.record_batch import BATCH_ROW, HEADER
from kafkalog.kernels import status as kernel_status
from kafkalog.kernels.scan_batches import scan_batches
from kafkalog.kernels.status import (
    CORRUPT_LENGTH,
    NEED_MORE,
    NEGATIVE_COUNT,
    OK,
    OUTPUT_FULL,
    STATUS_TEXT,
    UNSUPPORTED_MAGIC,
    ZERO_TAIL,
)
from kafkalog.log.single_batch import has_right_checksum, header_at
from kafkalog.log.storage import SourceFile, open_file

CHUNK_BYTES = 8 * 1024 * 1024

_FIRST_ROWS = 1024


class ChunkBuffers:
    """The memory of a walk, to be used again for the next file by the same thread."""

    __slots__ = ("data", "rows")

    def __init__(self) -> None:
        self.data: NDArray[np.uint8] = np.empty(0, np.uint8)
        self.rows: NDArray[np.void] = np.empty(_FIRST_ROWS, BATCH_ROW)

    def read(self, file: SourceFile, position: int, length: int) -> NDArray[np.uint8]:
        """The bytes of a file range, in `data`; what `data` held is gone."""
        data = self.reserve(length)
        file.read_into(data, position, length)
        return data

    def reserve(self, length: int) -> NDArray[np.uint8]:
        """So many bytes of `data`."""
        if self.data.size < length:
            self.data = np.empty(length, np.uint8)
        return self.data[:length]

    def scan(
        self, buf: NDArray[np.uint8], file_end: int, position: int, count: int
    ) -> tuple[int, int, int]:
        """`scan_batches` of buf into rows[count:], which grows; (new count, status, next_pos)."""
        pos = 0
        while True:
            found, status, pos = scan_batches(
                buf, pos, buf.size, file_end, position, self.rows[count:]
            )
            count += found
            if status != OUTPUT_FULL:
                return count, status, int(pos)
            self._grow_rows()

    def append_rows(self, count: int, rows: NDArray[np.void]) -> int:
        """Put rows behind the first `count`; returns the new count."""
        end = count + rows.size
        while self.rows.size < end:
            self._grow_rows()
        put_rows(self.rows[count:end], rows)
        return end

    def _grow_rows(self) -> None:
        grown = np.empty(2 * self.rows.size, BATCH_ROW)
        put_rows(grown[: self.rows.size], self.rows)
        self.rows = grown


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole batches, one after the other.

    buf: uint8, valid until the next chunk is asked for. position: of buf[0] in the file. rows:
    BATCH_ROW[b], positions from the start of the file.
    """

    buf: NDArray[np.uint8]
    position: int
    rows: NDArray[np.void]


class ChunkReader:
    """Iterates once over the chunks of a file range.

    At any time `valid_bytes` is the position behind the last whole batch handed out; after the end
    `trailing_bytes` is what the range holds behind it (a torn or zero tail) and `status` tells
    which.
    """

    def __init__(
        self,
        path: str,
        start: int,
        end: int | None,
        *,
        chunk_bytes: int,
        max_batch_bytes: int,
        buffers: ChunkBuffers,
    ) -> None:
        self.path = path
        self.valid_bytes = start
        self.trailing_bytes = 0
        self.status = OK
        self._end = end
        self._chunk_bytes = max(chunk_bytes, RECORD_BATCH_OVERHEAD)
        self._max_batch_bytes = max_batch_bytes
        self._buffers = buffers

    def __iter__(self) -> Iterator[Chunk]:
        with open_file(self.path) as file:
            file_end = file.size if self._end is None else min(self._end, file.size)
            file.expect_scan(self.valid_bytes, file_end)
            wanted_bytes = self._chunk_bytes
            while self.valid_bytes < file_end and self.status == OK:
                position = self.valid_bytes
                length = min(wanted_bytes, file_end - position)
                buf = self._buffers.read(file, position, length)
                # The chunk's end stands in for the file's: a batch that goes on behind it is
                # NEED_MORE here, and whether the file ends inside it, too, is found out below.
                count, status, pos = self._buffers.scan(buf, length, position, 0)
                rows = copy_rows(self._buffers.rows[:count])
                error: KafkaLogError | None = None
                if length > self._max_batch_bytes:
                    count, pos, error = self._within_limit(file, rows, pos)
                self.valid_bytes = position + pos
                wanted_bytes = self._chunk_bytes
                if error is None and status == NEED_MORE and position + length < file_end:
                    # Cut by the chunk, or by the file as well? The next chunk begins here and holds
                    # it in full.
                    row, status = header_at(file, position + pos, file_end)
                    if row is not None:
                        error = _limit_error(file, row, self._max_batch_bytes)
                        wanted_bytes = max(wanted_bytes, int(row["size_in_bytes"]))
                if count:
                    yield Chunk(buf[:pos], position, rows[:count])
                # What lies in front of the error has been handed out: a reader that passes over
                # damage has lost nothing.
                if error is not None:
                    raise error
                if status == ZERO_TAIL and not is_zero(
                    file, position + length, file_end, self._buffers
                ):
                    status = CORRUPT_LENGTH
                self.status = status
            self.trailing_bytes = max(file_end - self.valid_bytes, 0)
            damage = batch_error(file, self.status, self.valid_bytes, file_end)
            if damage is not None:
                raise damage

    def _within_limit(
        self, file: SourceFile, rows: NDArray[np.void], pos: int
    ) -> tuple[int, int, KafkaLogError | None]:
        """(how many rows in front are within the limit, where they end in the chunk, what is said
        of the one behind them)."""
        too_large = np.flatnonzero(rows["size_in_bytes"] > self._max_batch_bytes)
        if not too_large.size:
            return rows.size, pos, None
        # The chunk ends in front of it, so that no more than the limit is ever decompressed or
        # copied.
        first = int(too_large[0])
        row = rows[first]
        pos = int(row["position"]) - self.valid_bytes
        return first, pos, _limit_error(file, row, self._max_batch_bytes)


def read_chunks(
    path: str,
    start: int = 0,
    end: int | None = None,
    *,
    chunk_bytes: int = CHUNK_BYTES,
    buffers: ChunkBuffers | None = None,
    max_batch_bytes: int = MAX_BATCH_BYTES,
) -> ChunkReader:
    """The batches in [start, end) of a file in chunks of about `chunk_bytes`; `start` is where a
    batch starts.

    A batch larger than the chunk gets a larger chunk, up to `max_batch_bytes`. While iterating
    raises OSError, LogChangedError (the file shrank), and, after everything in front of the place
    has been handed out, CorruptRecordError, UnsupportedMagicError, or RecordTooLargeError for a
    batch that is sound and above the limit. A torn tail is not an error here: `segment_tail`.
    """
    return ChunkReader(
        path,
        start,
        end,
        chunk_bytes=chunk_bytes,
        max_batch_bytes=max_batch_bytes,
        buffers=buffers or ChunkBuffers(),
    )


def _header_at(file: SourceFile, position: int, file_end: int) -> np.void:
    """The header at `position`, filled up with zeros where the file ends inside it."""
    data = np.zeros(RECORD_BATCH_OVERHEAD, np.uint8)
    file.read_into(data, position, min(data.size, file_end - position))
    header: np.void = data.view(HEADER)[0]
    return header


def _limit_error(file: SourceFile, row: np.void, max_batch_bytes: int) -> KafkaLogError | None:
    """What is said of a batch that is above the limit: its length may be wrong, or right."""
    size_in_bytes = int(row["size_in_bytes"])
    if size_in_bytes <= max_batch_bytes:
        return None
    kind: type[KafkaLogError] = RecordTooLargeError
    reason = f"not read: a batch of {size_in_bytes} bytes is above the limit of {max_batch_bytes}"
    # The checksum decides: over a length that is wrong by damage it cannot be right.
    if not has_right_checksum(file, row):
        kind = CorruptRecordError
        reason = f"batch length {size_in_bytes - LOG_OVERHEAD}: the checksum over it is wrong"
    position, offset = int(row["position"]), int(row["base_offset"])
    return kind(reason, path=file.path, position=position, offset=offset)


def is_zero(file: SourceFile, position: int, end: int, buffers: ChunkBuffers) -> bool:
    """Whether all bytes in [position, end) of the file are zero."""
    while position < end:
        length = min(CHUNK_BYTES, end - position)
        if buffers.read(file, position, length).any():
            return False
        position += length
    return True


def batch_error(
    file: SourceFile, status: int, position: int, file_end: int
) -> KafkaLogError | None:
    """What is wrong with the batch at `position`, or None if the status is no error."""
    if not kernel_status.is_corrupt(status):
        return None
    header = _header_at(file, position, file_end)
    kind: type[KafkaLogError] = CorruptRecordError
    reason = STATUS_TEXT[status]
    if status == UNSUPPORTED_MAGIC:
        kind = UnsupportedMagicError
        reason = f"magic {header['magic']}, this version reads 0, 1 and 2"
    elif status == CORRUPT_LENGTH:
        reason = f"batch length {header['batch_length']}: {reason}"
    elif status == NEGATIVE_COUNT:
        reason = f"records count {header['records_count']}"
    return kind(reason, path=file.path, position=position, offset=int(header["base_offset"]))
