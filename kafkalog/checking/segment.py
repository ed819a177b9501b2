"""Check one segment: its batches and records, and its indexes against them.

One pass over the `.log`; memory is bounded by a chunk, the largest batch and the indexes. Nothing
is raised for what is on the disk: it is in the report. What depends on the rest of the partition
(is this the active segment, did the broker stop cleanly) is judged above.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kafkalog.checking.batch_checks import BatchChecks
from kafkalog.checking.finding import FindingList
from kafkalog.checking.index_checks import OffsetIndexChecks, TimeIndexChecks
from kafkalog.checking.producer_track import ProducerTrack
from kafkalog.checking.segment_report import FileState, IndexEntry, SegmentReport, SegmentTask
from kafkalog.errors import (
    CorruptIndexError,
    CorruptRecordError,
    LogChangedError,
    RecordTooLargeError,
    RemoteStorageError,
    UnsupportedMagicError,
)
from kafkalog.format.constants import MAX_BATCH_BYTES, MAX_INT32
from kafkalog.format.file_names import LogFileKind
from kafkalog.format.offset_index import OFFSET_INDEX_ENTRY
from kafkalog.format.time_index import TIME_INDEX_ENTRY
from kafkalog.format.transaction_index import (
    TRANSACTION_INDEX_ENTRY_BYTES,
    parse_transaction_index,
)
from kafkalog.kernels.status import NEED_MORE, ZERO_TAIL
from kafkalog.log.index_tail import read_index_tail
from kafkalog.log.inventory import SegmentInfo
from kafkalog.log.segment_file import Chunk, ChunkBuffers, ChunkReader, read_chunks
from kafkalog.log.single_batch import whole_batch_at
from kafkalog.log.small_files import read_small_file
from kafkalog.log.storage import identity_of, open_file

# Measured: a chunk is read, summed and walked while it is in the processor's cache.
CHUNK_BYTES = 2 * 1024 * 1024
# What headers say of each other is compared for about so many batches at once.
_BLOCK_ROWS = 4096
# segment.index.bytes may be this large, and no transaction index is larger than its segment.
_MAX_INDEX_BYTES = 2 * 1024 * 1024 * 1024

Rows = NDArray[np.void]

WHOLE, TORN, ZEROS, DAMAGED, GONE = "whole", "torn", "zeros", "damaged", "gone"
_TAILS = {NEED_MORE: TORN, ZERO_TAIL: ZEROS}

_KINDS = (
    LogFileKind.LOG,
    LogFileKind.OFFSET_INDEX,
    LogFileKind.TIME_INDEX,
    LogFileKind.TRANSACTION_INDEX,
)


def segment_task(segment: SegmentInfo, max_batch_bytes: int = MAX_BATCH_BYTES) -> SegmentTask:
    """The task of checking a segment as it is now. OSError if a file cannot be looked at."""
    states = []
    for kind in _KINDS:
        try:
            found = identity_of(segment.beside(kind))
        except FileNotFoundError:
            continue
        states.append(FileState(kind.value, found.size, found.mtime_ns, found.inode))
    return SegmentTask(segment.path, segment.base_offset, tuple(states), max_batch_bytes)


def check_segment(task: SegmentTask, buffers: ChunkBuffers | None = None) -> SegmentReport:
    """Read and check a segment; `buffers` is memory to be used again."""
    found = FindingList(task.path, task.base_offset)
    try:
        return _check(task, found, buffers or ChunkBuffers())
    except (FileNotFoundError, LogChangedError) as error:
        found.add("segment-changed", str(error))
    except RemoteStorageError as error:
        found.add("unreadable", error.reason, path=error.path, position=error.position)
    except OSError as error:
        found.add("unreadable", error.strerror or str(error), path=error.filename)
    return SegmentReport(task, found.findings(), tail=GONE)


def segment_died(task: SegmentTask) -> SegmentReport:
    """The report of a segment whose worker process died."""
    found = FindingList(task.path, task.base_offset)
    found.add("unreadable", "a worker process died while it was read")
    return SegmentReport(task, found.findings(), tail=GONE)


class _Walk:
    """Everything that looks at the batches of one segment, in one pass over its chunks."""

    def __init__(self, task: SegmentTask, found: FindingList) -> None:
        base_offset = task.base_offset
        self.offsets, self.offset_padding = _read_index(
            task, LogFileKind.OFFSET_INDEX, OFFSET_INDEX_ENTRY, found
        )
        self.times, self.time_padding = _read_index(
            task, LogFileKind.TIME_INDEX, TIME_INDEX_ENTRY, found
        )
        self.batches = BatchChecks(found, base_offset, task.max_batch_bytes)
        self.producers = ProducerTrack(found)
        self._offset_index = OffsetIndexChecks(
            self.offsets, base_offset, task.beside(LogFileKind.OFFSET_INDEX), found
        )
        self._time_index = TimeIndexChecks(
            self.times, base_offset, task.beside(LogFileKind.TIME_INDEX), found
        )
        self._block: list[tuple[Rows, NDArray[np.bool_], NDArray[np.int8]]] = []
        self._block_rows = 0

    def add(self, chunk: Chunk) -> None:
        """The next chunk: its bytes now, its headers with those of others."""
        rows, sound = self.batches.check_content(chunk)
        self._block.append((rows, sound, self.producers.marker_types(chunk, sound)))
        self._block_rows += rows.size
        # Bytes are checked chunk by chunk, while they are in the cache; headers are compared some
        # thousand at once, for each call of numpy has its price.
        if self._block_rows >= _BLOCK_ROWS:
            self._check_headers()

    def pass_over(self, row: np.void) -> None:
        """A batch that is not read: its header alone counts, as that of one that is not sound."""
        rows = np.array([row])
        sound = np.zeros(1, np.bool_)
        chunk = Chunk(np.empty(0, np.uint8), int(row["position"]), rows)
        self._block.append((rows, sound, self.producers.marker_types(chunk, sound)))
        self._block_rows += 1

    def end(self, valid_bytes: int, *, is_whole: bool) -> None:
        """After the last chunk; `is_whole`: it is the log's end."""
        self._check_headers()
        self._offset_index.end(valid_bytes, is_whole=is_whole)
        self._time_index.end(is_whole=is_whole)

    def _check_headers(self) -> None:
        if self._block:
            rows, sound, marker_types = (_joined(parts) for parts in zip(*self._block, strict=True))
            self.batches.check_headers(rows, sound)
            self.producers.add(rows, sound, marker_types)
            end = int(rows["position"][-1]) + int(rows["size_in_bytes"][-1])
            self._offset_index.add(rows, end)
            self._time_index.add(rows)
        self._block.clear()
        self._block_rows = 0


def _check(task: SegmentTask, found: FindingList, buffers: ChunkBuffers) -> SegmentReport:
    kinds = {file.suffix for file in task.files}
    if task.size_in_bytes > MAX_INT32:
        found.add("segment-too-large", f"{task.size_in_bytes} bytes")
    transactions, are_readable = _read_transaction_index(task, found)
    walk = _Walk(task, found)
    reader, tail = _walk_batches(task, walk, found, buffers)
    walk.end(reader.valid_bytes, is_whole=tail != DAMAGED)
    batches, producers = walk.batches, walk.producers
    return SegmentReport(
        task,
        found.findings(),
        batches_count=batches.batches_count,
        records_count=batches.records_count,
        first_offset=batches.first_offset,
        last_offset=batches.last_offset if batches.batches_count else -1,
        max_timestamp_ms=batches.max_timestamp_ms,
        largest_batch_bytes=batches.largest_batch[0],
        largest_batch_position=batches.largest_batch[1],
        valid_bytes=reader.valid_bytes,
        tail=tail,
        holes=batches.holes,
        holes_count=batches.holes_count,
        is_thinned=batches.is_thinned,
        epochs=tuple(batches.epochs),
        producers=producers.producers(),
        first_markers=producers.first_markers(),
        aborted=producers.aborted(),
        open_transactions=producers.open_transactions(),
        groups=batches.coordinator.groups.spans,
        transaction_index=transactions,
        is_transaction_index_readable=are_readable,
        offset_index_count=len(walk.offsets) if LogFileKind.OFFSET_INDEX in kinds else -1,
        offset_index_padding=walk.offset_padding,
        time_index_count=len(walk.times) if LogFileKind.TIME_INDEX in kinds else -1,
        time_index_padding=walk.time_padding,
        time_index_last_ms=int(walk.times["timestamp"][-1]) if len(walk.times) else -1,
    )


def _walk_batches(
    task: SegmentTask, walk: _Walk, found: FindingList, buffers: ChunkBuffers
) -> tuple[ChunkReader, str]:
    """Show the walk all batches up to damage; the reader of the last ones, and how the file ends. A
    batch above the limit is reported, and what lies behind it is checked.
    """
    start = 0
    while True:
        reader = read_chunks(
            task.path, start, chunk_bytes=CHUNK_BYTES, buffers=buffers,
            max_batch_bytes=task.max_batch_bytes,
        )  # fmt: skip
        try:
            for chunk in reader:
                walk.add(chunk)
            return reader, _TAILS.get(reader.status, WHOLE)
        except (CorruptRecordError, UnsupportedMagicError) as error:
            found.add(
                "batch-unreadable", error.reason, position=error.position, offset=error.offset
            )
            return reader, DAMAGED
        except RecordTooLargeError as error:
            found.add(
                "batch-over-limit", error.reason, position=error.position, offset=error.offset
            )
            with open_file(task.path) as file:
                # The batch is sound, only larger than what is read: its header leads to the next
                # one.
                row = whole_batch_at(file, reader.valid_bytes, file.size)
            if row is None:
                return reader, DAMAGED
            walk.pass_over(row)
            start = reader.valid_bytes + int(row["size_in_bytes"])


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The parts as one array; numpy's own concatenation compares records field by field first."""
    result = np.empty(sum(part.size for part in parts), parts[0].dtype)
    end = 0
    for part in parts:
        result[end : end + part.size] = part
        end += part.size
    return result


def _read_index(
    task: SegmentTask, kind: LogFileKind, entry: np.dtype[np.void], found: FindingList
) -> tuple[NDArray[np.void], int]:
    """The genuine entries as they lie, and how many zero ones follow them."""
    path = task.beside(kind)
    size = next((file.size for file in task.files if file.suffix == kind), 0)
    if size % entry.itemsize:
        found.add("index-partial-entry", f"{size % entry.itemsize} bytes", path=path)
    tail = read_index_tail(path, entry.itemsize)
    data = _read_start(path, tail.valid_bytes)
    entries = np.frombuffer(data, entry, len(data) // entry.itemsize)
    return entries, size // entry.itemsize - len(entries)


def _read_start(path: str, length: int) -> bytes:
    return read_small_file(path, _MAX_INDEX_BYTES, first_bytes=length) if length else b""


def _read_transaction_index(
    task: SegmentTask, found: FindingList
) -> tuple[tuple[IndexEntry, ...], bool]:
    """The entries, and whether all could be read."""
    if not any(file.suffix == LogFileKind.TRANSACTION_INDEX for file in task.files):
        return (), True
    path = task.beside(LogFileKind.TRANSACTION_INDEX)
    data = read_small_file(path, _MAX_INDEX_BYTES)
    if len(data) % TRANSACTION_INDEX_ENTRY_BYTES:
        rest = len(data) % TRANSACTION_INDEX_ENTRY_BYTES
        found.add("index-partial-entry", f"{rest} bytes", path=path)
    try:
        entries = parse_transaction_index(data, task.base_offset, path)
    except CorruptIndexError as error:
        found.add("transaction-index-unreadable", error.reason, path=path, position=error.position)
        return (), False
    return tuple(
        IndexEntry(e.producer_id, e.first_offset, e.last_offset, e.last_stable_offset)
        for e in entries
    ), True
