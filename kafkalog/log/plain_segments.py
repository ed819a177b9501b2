"""The numbers of many small segments that were read into one array, as SegmentNumbers has them.

Which segments are plain `kernels.plain_segments` says; here they have one codec, and their indexes
are looked at: whole entries, the last of which leads to a batch and to an offset of the segment,
and zeros behind them at most, as a broker leaves an index that it still writes to. Of any other
segment nothing is said.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kafkalog.format.constants import MAX_INT32, NO_TIMESTAMP, RECORD_BATCH_OVERHEAD
from kafkalog.format.offset_index import OFFSET_INDEX_ENTRY, OFFSET_INDEX_ENTRY_BYTES
from kafkalog.format.record_batch import BATCH_ROW
from kafkalog.format.time_index import TIME_INDEX_ENTRY, TIME_INDEX_ENTRY_BYTES
from kafkalog.kernels import header_slices, header_sums, plain_segments
from kafkalog.log.index_condition import INDEX_CONDITIONS, IndexCondition
from kafkalog.log.log_numbers import NONE, I64s, SegmentNumbers

Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]

_EMPTY, _WHOLE, _NEVER_WRITTEN, _ZERO_TAIL = map(
    INDEX_CONDITIONS.index,
    (
        IndexCondition.EMPTY, IndexCondition.WHOLE, IndexCondition.NEVER_WRITTEN,
        IndexCondition.ZERO_TAIL,
    ),
)  # fmt: skip


class SegmentFiles(NamedTuple):
    """Of s segments, int64[s]: base offset, modification time and inode of the `.log`, whether
    there is a snapshot of this offset; how long `.index` and `.timeindex` are; where `.log`,
    `.index` and `.timeindex` of each start and end in an array that has all logs first, one behind
    the other. Of an index behind whose end there it is longer, the rest is zeros.
    """

    base_offsets: I64s
    mtimes_ns: I64s
    inodes: I64s
    has_snapshot: I64s
    offset_index_bytes: I64s
    time_index_bytes: I64s
    logs: tuple[I64s, I64s]
    offset_indexes: tuple[I64s, I64s]
    time_indexes: tuple[I64s, I64s]


class PlainSegments(NamedTuple):
    """`numbers` int64[s, SegmentNumbers], `are_plain` bool[s]: of others they say nothing. `rows`
    BATCH_ROW[b] with positions in their segment, of segment s from row_firsts[s] to row_ends[s];
    `sums` int64[s, SUMS_SIZE], `slices` int64[s, SLICES, SLICE_COLUMNS] as the kernels have them.
    """

    numbers: I64s
    are_plain: Flags
    rows: NDArray[np.void]
    row_firsts: I64s
    row_ends: I64s
    sums: I64s
    slices: I64s


def plain_segments_of(buf: Bytes, files: SegmentFiles) -> PlainSegments:
    """What there is to say of these segments."""
    bases, (starts, ends) = files.base_offsets, files.logs
    count = len(bases)
    rows = np.empty(int((ends - starts).sum()) // RECORD_BATCH_OVERHEAD + 1, BATCH_ROW)
    found = np.empty(count, np.int64)
    plain_segments.walk_segments(buf, starts, ends, bases, rows, found)
    sums = np.zeros((count, header_sums.SUMS_SIZE), np.int64)
    slices = np.zeros((count, header_slices.SLICES, header_slices.SLICE_COLUMNS), np.int64)
    plain_segments.sum_segments(rows, found, bases, sums.reshape(-1), slices.reshape(-1))
    row_ends = np.maximum.accumulate(np.append(0, found))
    row_firsts, row_ends = row_ends[:-1], row_ends[1:]
    rows = rows[: int(row_ends[-1]) if count else 0]
    has_batches = row_ends > row_firsts
    next_offsets = np.where(has_batches, sums[:, header_sums.LAST_OFFSET] + 1, bases)
    batch_starts = np.repeat(starts, row_ends - row_firsts) + rows["position"]
    indexes = _entries_of(buf, files.offset_indexes, files.offset_index_bytes, OFFSET_INDEX_ENTRY)
    times = _entries_of(buf, files.time_indexes, files.time_index_bytes, TIME_INDEX_ENTRY)
    return PlainSegments(
        _numbers(files, sums, rows, row_firsts, row_ends, next_offsets, indexes, times),
        (found >= 0)
        & (next_offsets - bases <= MAX_INT32)
        & _lead_to_batches(indexes, files, next_offsets, batch_starts)
        & _are_times_within(times, files, next_offsets)
        & (np.count_nonzero(sums[:, header_sums.CODEC_BYTES :], axis=1) <= 1),
        rows,
        row_firsts,
        row_ends,
        sums,
        slices,
    )


class _Entries(NamedTuple):
    """Of the indexes of all segments: how many entries were written, -1 of an odd one; which have
    any, and the last of these.
    """

    counts: I64s
    indexes: I64s
    last: NDArray[np.void]


def _entries_of(
    buf: Bytes, ranges: tuple[I64s, I64s], file_bytes: I64s, entry: np.dtype[np.void]
) -> _Entries:
    starts, ends = ranges
    counts = np.empty(len(starts), np.int64)
    plain_segments.check_entries(buf, starts, ends, entry.itemsize, counts)
    counts[file_bytes % entry.itemsize != 0] = -1
    # Entries go on behind what was read.
    counts[(counts * entry.itemsize == ends - starts) & (file_bytes > ends - starts)] = -1
    # A lone entry of zeros may be genuine in one of them: time 0 at the base offset.
    counts[(counts == 0) & (file_bytes == entry.itemsize)] = -1
    indexes = np.flatnonzero(counts > 0)
    places = starts[indexes] + (counts[indexes] - 1) * entry.itemsize
    last = buf[places[:, np.newaxis] + np.arange(entry.itemsize)]
    return _Entries(counts, indexes, last.reshape(-1).view(entry))


def _lead_to_batches(
    entries: _Entries, files: SegmentFiles, next_offsets: I64s, starts: I64s
) -> Flags:
    """Whether each offset index has no entry, or its last one names a batch of its log; `starts`:
    where all begin in the array, rising.
    """
    own, positions = entries.indexes, entries.last["position"].astype(np.int64)
    places = files.logs[0][own] + positions
    is_batch = np.append(starts, -1)[np.searchsorted(starts, places)] == places
    is_batch &= (positions > 0) & (places < files.logs[1][own])
    found = entries.counts >= 0
    found[own] &= is_batch & _are_within(entries, files, next_offsets)
    return found


def _are_times_within(entries: _Entries, files: SegmentFiles, next_offsets: I64s) -> Flags:
    """Whether each time index has no entry, or its last one has a time and an offset of its log."""
    found = entries.counts >= 0
    found[entries.indexes] &= entries.last["timestamp"] >= 0
    found[entries.indexes] &= _are_within(entries, files, next_offsets)
    return found


def _are_within(entries: _Entries, files: SegmentFiles, next_offsets: I64s) -> Flags:
    own, relative = entries.indexes, entries.last["relative_offset"].astype(np.int64)
    within: Flags = (relative >= 0) & (relative < next_offsets[own] - files.base_offsets[own])
    return within


def _conditions(entries: _Entries, file_bytes: I64s, entry_bytes: int) -> I64s:
    """Places in INDEX_CONDITIONS."""
    is_whole = entries.counts * entry_bytes == file_bytes
    padded = np.where(entries.counts > 0, _ZERO_TAIL, _NEVER_WRITTEN)
    return np.where(file_bytes == 0, _EMPTY, np.where(is_whole, _WHOLE, padded))


def _numbers(
    files: SegmentFiles, sums: I64s, rows: NDArray[np.void], firsts: I64s, row_ends: I64s,
    next_offsets: I64s, indexes: _Entries, times: _Entries,
) -> I64s:  # fmt: skip
    has_batches = row_ends > firsts
    # Any row where there is none: it does not count.
    largest_at = np.minimum(firsts + sums[:, header_sums.LARGEST_AT], max(rows.size - 1, 0))
    largest = rows[largest_at] if rows.size else np.zeros(len(firsts), BATCH_ROW)
    codec_bytes = sums[:, header_sums.CODEC_BYTES :]
    log_bytes = files.logs[1] - files.logs[0]
    index_bytes, time_bytes = files.offset_index_bytes, files.time_index_bytes
    indexed_ms = np.full(len(firsts), NO_TIMESTAMP, np.int64)
    indexed_ms[times.indexes] = times.last["timestamp"]

    def told(values: NDArray[np.generic]) -> I64s:
        return np.where(has_batches, values, NONE)

    columns = {
        "base_offset": files.base_offsets,
        "next_offset": next_offsets,
        "size_in_bytes": log_bytes,
        "mtime_ns": files.mtimes_ns,
        "inode": files.inodes,
        "offset_index_bytes": indexes.counts * OFFSET_INDEX_ENTRY_BYTES,
        "time_index_bytes": times.counts * TIME_INDEX_ENTRY_BYTES,
        "has_snapshot": files.has_snapshot,
        "indexed_timestamp_ms": indexed_ms,
        "valid_bytes": log_bytes,
        "batches_count": row_ends - firsts,
        "records_count": sums[:, header_sums.RECORDS],
        "min_timestamp_ms": told(sums[:, header_sums.SMALLEST_TIMESTAMP]),
        "max_timestamp_ms": told(sums[:, header_sums.LARGEST_TIMESTAMP]),
        "first_timestamp_ms": told(sums[:, header_sums.FIRST_LARGEST]),
        "largest_timestamp_ms": told(sums[:, header_sums.LARGEST_TIMESTAMP]),
        "largest_timestamp_offset": told(largest["last_offset"]),
        "largest_timestamp_position": told(largest["position"]),
        "codec": told(np.argmax(codec_bytes, axis=1)),
        "codec_bytes": codec_bytes.max(axis=1, initial=0),
        "index_bytes": index_bytes + time_bytes,
        "time_file_bytes": time_bytes,
        "offset_index": _conditions(indexes, index_bytes, OFFSET_INDEX_ENTRY_BYTES),
        "time_index": _conditions(times, time_bytes, TIME_INDEX_ENTRY_BYTES),
    }
    return np.stack([columns[name] for name in SegmentNumbers._fields], axis=1)
