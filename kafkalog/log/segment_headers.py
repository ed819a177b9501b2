"""The headers of a `.log` file's batches.

Strategy: as for chunks (`segment_file`) the file is read by windows; where batches are large each
header is read by itself instead. What breaks the format is not raised: it is in the result, for the
caller to judge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.batch_table import is_control
from kafkalog.errors import KafkaLogError
from kafkalog.format.batch_rows import copy_rows
from kafkalog.format.constants import LOG_OVERHEAD, MAX_INT64, RECORD_BATCH_OVERHEAD
from kafkalog.format.record_batch import BATCH_ROW, HEADER
from kafkalog.kernels.status import CORRUPT_LENGTH, OK, ZERO_TAIL
from kafkalog.log.segment_file import ChunkBuffers, batch_error, is_zero
from kafkalog.log.storage import HEADER_READ_BYTES, LocalFile, SourceFile, open_file

if TYPE_CHECKING:
    from kafkalog.log.control_batches import ControlProblem

WINDOW_BYTES = 256 * 1024

# Measured, from the page cache: past this average batch size a read per header costs less than
# reading everything.
_SKIP_FROM_BYTES = 12 * 1024
_HEADERS_A_READ = 1024
# On a disk, single pages one after the other cost more than all of them at once, up to this size.
_READ_AHEAD_BYTES = 256 * 1024
# Up to this size so much of a segment is in the pages of headers that all of it may be waited for.
_WAIT_BYTES = 32 * 1024
# Of one scan, where a segment is scanned in several: 11 MB.
MOST_ROWS = 128 * 1024

_SAME_FIELDS = [name for name in HEADER.names or () if name in (BATCH_ROW.names or ())]


@dataclass(frozen=True, slots=True)
class HeaderScan:
    """What a walk over the headers of a file range found.

    rows: BATCH_ROW[b], positions from the start of the file. valid_bytes: the position behind the
    last whole batch. trailing_bytes: what the range holds from there on. status: of kernels.status;
    OK, NEED_MORE (torn tail) and ZERO_TAIL are ways to end. Otherwise `error` says what is wrong
    with the batch at valid_bytes. control_problem: the first control batch that a broker cannot go
    on with, where that was asked for.
    """

    rows: NDArray[np.void]
    valid_bytes: int
    trailing_bytes: int
    status: int
    file_size: int
    error: KafkaLogError | None
    control_problem: ControlProblem | None = None

    def raise_if_corrupt(self) -> None:
        """Raise CorruptRecordError or UnsupportedMagicError for the batch that stopped the walk."""
        if self.error is not None:
            raise self.error


def iterate_headers(
    path: str,
    start: int = 0,
    end: int | None = None,
    *,
    most_rows: int = MOST_ROWS,
    judges_control: bool = False,
    buffers: ChunkBuffers | None = None,
) -> Iterator[HeaderScan]:
    """The same as `scan_headers` in several scans, each of about `most_rows` batches: a segment may
    hold more small batches than fit into memory. All but the last have nothing trailing.
    """
    buffers = buffers or ChunkBuffers()
    while True:
        scan = scan_headers(
            path, start, end,
            most_rows=most_rows, judges_control=judges_control, buffers=buffers,
        )  # fmt: skip
        if scan.status != OK or not scan.trailing_bytes:
            yield scan
            return
        start = scan.valid_bytes
        yield replace(scan, trailing_bytes=0)


def scan_headers(
    path: str,
    start: int = 0,
    end: int | None = None,
    *,
    window_bytes: int = WINDOW_BYTES,
    most_rows: int | None = None,
    judges_control: bool = False,
    buffers: ChunkBuffers | None = None,
) -> HeaderScan:
    """The headers of the batches in [start, end) of a file; `start` is where a batch starts.

    Bodies are not looked at, and where batches are large not read; those of control batches are
    with `judges_control`. The walk ends early when it has `most_rows` batches or some more; the
    rest is trailing then. `buffers`: memory to use again, of a caller who scans many. Raises
    OSError if the file cannot be read and LogChangedError if it shrinks meanwhile; everything else
    is in the result.
    """
    buffers = buffers or ChunkBuffers()
    window_bytes = max(window_bytes, RECORD_BATCH_OVERHEAD)
    most = MAX_INT64 if most_rows is None else most_rows
    control_problem: ControlProblem | None = None
    with open_file(path) as file:
        file_end = file.size if end is None else min(end, file.size)
        if most >= MOST_ROWS:
            file.expect_scan(start, file_end)
        position, count, status = start, 0, OK
        while position < file_end and status == OK and count < most:
            length = min(window_bytes, file_end - position)
            buf = buffers.read(file, position, length)
            before = count
            count, status, pos = buffers.scan(buf, file_end - position, position, before)
            if status == ZERO_TAIL and not is_zero(file, position + length, file_end, buffers):
                status = CORRUPT_LENGTH
            if judges_control and control_problem is None:
                rows = buffers.rows[before:count]
                control_problem = _control_problem(file, rows, buf, position, buf.size)
            # Two ways to go on. Where batches are small a window is read in whole, bodies and all:
            # one read for many headers. Where they are large each header is read by itself, and the
            # bodies are skipped; not in remote storage, where all around a header comes with it.
            position += pos
            batch_bytes = pos / max(count - before, 1)
            if isinstance(file, LocalFile) and status == OK:
                judges_control &= control_problem is None
                count, position, found = _read_singly(
                    file, position, file_end, count, most, batch_bytes, buffers,
                    judges_control=judges_control,
                )  # fmt: skip
                control_problem = found if control_problem is None else control_problem
        return HeaderScan(
            rows=copy_rows(buffers.rows[:count]),
            valid_bytes=position,
            trailing_bytes=max(file_end - position, 0),
            status=status,
            file_size=file.size,
            error=batch_error(file, status, position, file_end),
            control_problem=control_problem,
        )


def _read_singly(
    file: LocalFile,
    position: int,
    end: int,
    count: int,
    most: int,
    batch_bytes: float,
    buffers: ChunkBuffers,
    *,
    judges_control: bool,
) -> tuple[int, int, ControlProblem | None]:
    """Header by header while batches are large: (rows in `buffers`, position behind the last one,
    the first problem of a control batch). `count`: of rows that are there already.
    """
    problem: ControlProblem | None = None
    while batch_bytes > _SKIP_FROM_BYTES and count < most and position < end:
        # Of middling batches the kernel is asked for the pages ahead; of large ones this would read
        # what is skipped. Of small ones to wait for each header's page took three times as long.
        if batch_bytes <= _READ_AHEAD_BYTES:
            ahead = min(int(batch_bytes) * _HEADERS_A_READ, end - position)
            file.will_need(position, ahead, waits=batch_bytes <= _WAIT_BYTES)
        headers, positions, next_position = file.read_headers(position, end, _HEADERS_A_READ)
        if not positions.size:
            break
        rows = _decode_headers(headers, positions)
        if judges_control and problem is None:
            problem = _control_problem(file, rows, headers, None, HEADER_READ_BYTES)
        batch_bytes = (next_position - position) / rows.size
        count, position = buffers.append_rows(count, rows), next_position
    return count, position, problem


def _control_problem(
    file: SourceFile,
    rows: NDArray[np.void],
    buf: NDArray[np.uint8],
    position: int | None,
    most_bytes: int,
) -> ControlProblem | None:
    """The first control batch among `rows` that a broker cannot go on with; of each up to
    `most_bytes` are at hand in `buf`, which begins at `position` of the file, or without one has
    as many of each batch.
    """
    found = is_control(rows)
    if not found.any():
        return None
    which = np.flatnonzero(found)
    # Imported late: a log without transactions needs none of the kernels that decode.
    from kafkalog.log.control_batches import judge_control_batches

    starts = which * most_bytes if position is None else rows["position"][which] - position
    ends = np.minimum(starts + np.minimum(rows["size_in_bytes"][which], most_bytes), buf.size)
    judged = judge_control_batches(buf, starts, ends, rows[which], file.path, file.read_bytes)
    return judged.problems[0] if judged.problems else None


def _decode_headers(headers: NDArray[np.uint8], positions: NDArray[np.int64]) -> NDArray[np.void]:
    # Column by column, in one pass each: the fields are big-endian where they were read and native
    # in the rows.
    fields = headers.reshape(-1, HEADER_READ_BYTES)[:, : HEADER.itemsize]
    disk = np.ascontiguousarray(fields).view(HEADER).reshape(-1)
    rows = np.zeros(disk.size, BATCH_ROW)
    for name in _SAME_FIELDS:
        rows[name] = disk[name]
    rows["position"] = positions
    rows["last_offset"] = disk["base_offset"] + disk["last_offset_delta"]
    rows["size_in_bytes"] = disk["batch_length"] + LOG_OVERHEAD
    return rows
