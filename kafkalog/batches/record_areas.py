"""Where the uncompressed records of some batches are: in the file's bytes, or decompressed into an
arena.

Batches without compression are read where they are. As soon as one batch is compressed, all of them
go into one arena, so that everything above sees one buffer, whatever the codecs. The arena is
allocated once and used again. Legacy entries (magic 0 and 1) go into it laid out as magic 2
records, so that nothing above knows another layout; their rows then tell what only their content
tells, base offset and records count of a wrapper.

What a file says never decides what we allocate: the decompressed size of a batch is capped (the
format has no bound), and a records count that its bytes cannot hold is refused here, before arrays
are made for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.arena import Arena
from kafkalog.batches.batch_table import codecs, is_legacy, is_legacy_wrapper
from kafkalog.errors import CorruptRecordError
from kafkalog.format.constants import (
    COMPRESSION_CODEC_MASK,
    MAX_BATCH_BYTES,
    MIN_RECORD_SIZE,
    RECORD_BATCH_OVERHEAD,
    CompressionType,
)
from kafkalog.format.legacy_record import open_wrapper
from kafkalog.format.record_batch import BATCH_ROW
from kafkalog.kernels.plain_areas import plain_areas
from kafkalog.kernels.status import OK, STATUS_TEXT

# Past this an arena is handed out and filled anew: a chunk of 8 MiB may decompress to gigabytes.
ARENA_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RecordAreas:
    """The uncompressed records of batch b are buf[starts[b]:ends[b]]; an empty batch has an empty
    area.

    buf: uint8, the caller's buffer or the arena's, valid as long as that is not filled again.
    starts, ends: int64[b]. rows: BATCH_ROW[b], those of legacy entries completed.
    """

    buf: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    rows: NDArray[np.void]


def open_record_areas(
    buf: NDArray[np.uint8],
    buf_position: int,
    rows: NDArray[np.void],
    arena: Arena,
    *,
    path: str | None = None,
    max_bytes: int = MAX_BATCH_BYTES,
) -> RecordAreas:
    """The record areas of all batches `rows`, decompressed into `arena` if any is compressed; they
    are all legacy entries, or none is.

    buf uint8[n] holds the batches in full, buf[0] is at buf_position of the file; max_bytes caps
    each batch. All rows are decompressed at once: callers that take whole chunks of unknown origin
    use `iterate_record_areas`.

    Raises CorruptRecordError, RecordTooLargeError, UnsupportedCompressionTypeError with the place
    of the batch.
    """
    part, areas = next(
        iterate_record_areas(
            buf, buf_position, rows, arena, path=path, max_bytes=max_bytes, arena_bytes=None
        )
    )
    assert part == slice(0, rows.size), "legacy entries and others together"  # noqa: S101
    return areas


def iterate_record_areas(
    buf: NDArray[np.uint8],
    buf_position: int,
    rows: NDArray[np.void],
    arena: Arena,
    *,
    path: str | None = None,
    max_bytes: int = MAX_BATCH_BYTES,
    arena_bytes: int | None = ARENA_BYTES,
) -> Iterator[tuple[slice, RecordAreas]]:
    """The same as `open_record_areas`, in parts: (which rows, their areas), at least one part.

    A part ends when the arena holds arena_bytes or more, so memory is bounded by arena_bytes +
    max_bytes, and where legacy entries and others meet. The areas are valid until the next part is
    asked for.
    """
    # Nothing is compressed: the records are where they lie in the file's bytes, without a copy.
    starts, ends = np.empty((2, rows.size), np.int64)
    if plain_areas(rows, buf_position, starts, ends) == rows.size:
        yield slice(0, rows.size), RecordAreas(buf, starts, ends, rows)
        return
    legacy = is_legacy(rows)
    if not legacy.any():
        yield from _current_areas(buf, buf_position, rows, arena, path, max_bytes, arena_bytes)
        return
    # Runs of one layout: where a log went over to magic 2, both lie in one chunk.
    edges = [0, *(np.flatnonzero(np.diff(legacy)) + 1).tolist(), rows.size]
    for first, stop in pairwise(edges):
        open_areas = _legacy_areas if legacy[first] else _current_areas
        run = rows[first:stop]
        for part, areas in open_areas(buf, buf_position, run, arena, path, max_bytes, arena_bytes):
            yield slice(first + part.start, first + part.stop), areas


def _current_areas(
    buf: NDArray[np.uint8],
    buf_position: int,
    rows: NDArray[np.void],
    arena: Arena,
    path: str | None,
    max_bytes: int,
    arena_bytes: int | None,
) -> Iterator[tuple[slice, RecordAreas]]:
    """Of magic 2 batches."""
    # An empty batch is given no bytes, whatever lies behind its header: Kafka does not look at
    # them.
    batch_starts = rows["position"] - buf_position
    starts = batch_starts + RECORD_BATCH_OVERHEAD
    is_empty = rows["records_count"] == 0
    stored = RecordAreas(
        buf, starts, np.where(is_empty, starts, batch_starts + rows["size_in_bytes"]), rows
    )
    # Plain ones beside others, or such of which a count is wrong.
    if ((codecs(rows) == CompressionType.NONE) | is_empty).all():
        _check_counts(rows, stored.ends - starts, path)
        yield slice(0, rows.size), stored
        return

    # From the first compressed batch on all go into the arena, the others copied: whoever reads the
    # areas then has one buffer to look into.
    # Kernels for which nobody waits who reads plain batches alone.
    from kafkalog.batches.decompressor import Decompressor

    decompressor = Decompressor(
        stored.buf, stored.starts, stored.ends, rows, arena, path, max_bytes
    )
    for part, edges in decompressor.parts(arena_bytes):
        _check_counts(rows[part], edges[1:] - edges[:-1], path)
        yield part, RecordAreas(arena.data[: arena.size], edges[:-1], edges[1:], rows[part])


def _fill_parts(
    arena: Arena, count: int, arena_bytes: int | None, fill: Callable[[int], None]
) -> Iterator[tuple[slice, NDArray[np.int64]]]:
    """Let `fill` append one batch after the other to the arena: (which batches it holds, the edges
    of each). It is emptied and filled anew when it holds arena_bytes or more.
    """
    first = 0
    while first < count:
        arena.clear()
        # A part has one batch at least, whatever its size: the cap on a single batch is another
        # one.
        bounds = [0]
        for b in range(first, count):
            fill(b)
            bounds.append(arena.size)
            if arena_bytes is not None and arena.size >= arena_bytes:
                break
        part = slice(first, first + len(bounds) - 1)
        yield part, np.array(bounds, np.int64)
        first = part.stop


def complete_rows(
    buf: NDArray[np.uint8],
    buf_position: int,
    rows: NDArray[np.void],
    arena: Arena,
    *,
    path: str | None = None,
) -> NDArray[np.void]:
    """`rows` with what only the content of legacy wrappers tells; as they are where none is one.

    Arguments and errors as in `iterate_record_areas`.
    """
    wrappers = is_legacy_wrapper(rows)
    if not wrappers.any():
        return rows
    complete = rows.copy()
    which = np.flatnonzero(wrappers)
    for part, areas in iterate_record_areas(buf, buf_position, rows[which], arena, path=path):
        complete[which[part]] = areas.rows
    return complete


def _legacy_areas(
    buf: NDArray[np.uint8],
    buf_position: int,
    rows: NDArray[np.void],
    arena: Arena,
    path: str | None,
    max_bytes: int,
    arena_bytes: int | None,
) -> Iterator[tuple[slice, RecordAreas]]:
    """Of entries of magic 0 and 1."""
    starts = rows["position"] - buf_position
    ends = starts + rows["size_in_bytes"]
    is_wrapper = is_legacy_wrapper(rows)
    if not is_wrapper.any():
        yield slice(0, rows.size), _convert(buf, starts, ends, rows, arena, path)
        return
    view = buf.data
    wrappers, first_bytes, end_bytes = is_wrapper.tolist(), starts.tolist(), ends.tolist()

    def fill(b: int) -> None:
        entry = view[first_bytes[b] : end_bytes[b]]
        content: bytes | memoryview = entry
        if wrappers[b]:
            row = rows[b]
            content = open_wrapper(
                entry,
                int(row["magic"]),
                int(row["attributes"]) & COMPRESSION_CODEC_MASK,
                max_bytes=max_bytes,
                path=path,
                position=int(row["position"]),
                offset=int(row["base_offset"]),
            )
        # Entries one behind the other, wrappers as what is in them: then one kernel lays all of it
        # out anew.
        arena.scratch.append(content)

    for part, edges in _fill_parts(arena.scratch, rows.size, arena_bytes, fill):
        areas = _convert(arena.scratch.data, edges[:-1], edges[1:], rows[part], arena, path)
        yield part, areas


def _convert(
    buf: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    rows: NDArray[np.void],
    arena: Arena,
    path: str | None,
) -> RecordAreas:
    """Lay the messages out as magic 2 records, in the arena."""
    # A kernel for which nobody waits who has no such messages.
    from kafkalog.kernels.legacy_records import (
        ENTRY_GROWTH_BYTES,
        MIN_ENTRY_BYTES,
        convert_legacy,
    )

    # The most that the layout of magic 2 can make of it: each entry grows by some bytes, and there
    # are no more entries than the least entry's size goes into the bytes.
    entry_bytes = int((ends - starts).sum())
    arena.make_room(entry_bytes + (entry_bytes // MIN_ENTRY_BYTES + rows.size) * ENTRY_GROWTH_BYTES)
    complete = np.empty(rows.size, BATCH_ROW)
    area_ends = np.empty(rows.size, np.int64)
    b, status, position = convert_legacy(buf, rows, starts, ends, arena.data, complete, area_ends)
    if status != OK:
        raise CorruptRecordError(
            f"message {position - int(starts[b])} bytes in: {STATUS_TEXT[status]}",
            path=path,
            position=int(rows["position"][b]),
            offset=int(rows["base_offset"][b]),
        )
    arena.size = int(area_ends[-1]) if rows.size else 0
    area_starts = np.concatenate([[0], area_ends[:-1]]).astype(np.int64)
    return RecordAreas(arena.data[: arena.size], area_starts, area_ends, complete)


def _check_counts(rows: NDArray[np.void], area_bytes: NDArray[np.int64], path: str | None) -> None:
    """Refuse counts that the bytes cannot hold: arrays are allocated by them."""
    # Without this a header of 61 bytes that states two thousand million records would have arrays
    # of gigabytes made for it.
    counts = rows["records_count"].astype(np.int64)
    is_impossible = (counts < 0) | (counts * MIN_RECORD_SIZE > area_bytes)
    if is_impossible.any():
        b = int(np.argmax(is_impossible))
        raise CorruptRecordError(
            f"records count {counts[b]}, but the records are {area_bytes[b]} bytes",
            path=path,
            position=int(rows["position"][b]),
            offset=int(rows["base_offset"][b]),
        )
