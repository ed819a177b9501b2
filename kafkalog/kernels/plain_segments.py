"""The batch headers of many small segments that lie in memory one behind the other.

A plain segment is one as a leader writes it without transactions, and nobody changed it: batches of
magic 2 one behind the other to its last byte, offsets without a gap from its base on, each batch
with as many records as offsets, no marker, no delete horizon, times from 1970 on. Of any other
nothing is said here: who reads a segment by itself says what it is.
"""

from __future__ import annotations

from kafkalog.format import constants
from kafkalog.kernels import status
from kafkalog.kernels.header_slices import SLICE_COLUMNS, SLICES, slice_headers
from kafkalog.kernels.header_sums import (
    LARGEST_TIMESTAMP,
    SMALLEST_LARGEST,
    SUMS_SIZE,
    sum_headers,
)
from kafkalog.kernels.jit import (
    F64,
    I64,
    I64_IN,
    I64_OUT,
    ROW_IN,
    ROW_OUT,
    U8_IN,
    I64Array,
    RowArray,
    U8Array,
    helper,
    kernel,
)
from kafkalog.kernels.scan_batches import check_entry, copy_header

# As `log.header_sums` cuts the time of a scan.
PARTS = SLICES - 2
_CODEC_MASK = constants.COMPRESSION_CODEC_MASK
_ODD_FLAGS = (
    constants.CONTROL_FLAG_MASK
    | constants.TRANSACTIONAL_FLAG_MASK
    | constants.DELETE_HORIZON_FLAG_MASK
)
_MOST_CODEC = max(constants.CompressionType)
_MAGIC_V2 = constants.MAGIC_VALUE_V2
_MAGIC_AT = constants.HEADER_SIZE_UP_TO_MAGIC - 1
# So that the distance of two times is one of 64 bits.
_MOST_MS = 1 << 61


@helper
def _is_plain(rows: RowArray, b: int, next_offset: int) -> bool:
    """Whether a batch is as a leader writes it that has given out the offsets in front of it."""
    base, last = I64(rows[b]["base_offset"]), I64(rows[b]["last_offset"])
    attributes = I64(rows[b]["attributes"])
    first_ms, largest_ms = I64(rows[b]["base_timestamp"]), I64(rows[b]["max_timestamp"])
    is_plain: bool = (
        base == next_offset
        and last >= base
        and I64(rows[b]["records_count"]) == last - base + 1
        and attributes & _ODD_FLAGS == 0
        and attributes & _CODEC_MASK <= _MOST_CODEC
        and 0 <= first_ms <= _MOST_MS
        and 0 <= largest_ms <= _MOST_MS
    )
    return is_plain


@helper
def _walk(
    buf: U8Array, start: int, end: int, base_offset: int, rows_out: RowArray, count: int
) -> int:
    """How many rows there are with those of a segment; -1 of one that is not plain."""
    pos, next_offset = start, base_offset
    while pos < end:
        code, size = check_entry(buf, pos, end, end)
        if code != status.OK or size == 0 or count == rows_out.size:
            return -1
        if buf[pos + _MAGIC_AT] != _MAGIC_V2:
            return -1
        copy_header(buf, pos, rows_out, count)
        rows_out[count]["position"] = I64(pos - start)
        rows_out[count]["size_in_bytes"] = size
        if not _is_plain(rows_out, count, next_offset):
            return -1
        next_offset = I64(rows_out[count]["last_offset"]) + 1
        count += 1
        pos += size
    return count


@kernel((U8_IN, I64_IN, I64_IN, I64_IN, ROW_OUT, I64_OUT))
def walk_segments(
    buf: U8Array, starts: I64Array, ends: I64Array, base_offsets: I64Array, rows_out: RowArray,
    row_ends: I64Array,
) -> None:  # fmt: skip
    """in   buf uint8[n] has segment s in buf[starts[s]:ends[s]], int64[s]; its base_offsets
    out  rows_out BATCH_ROW[], one for each 61 bytes of the segments; row_ends int64[s]: where its
         rows end, which lie behind those of the plain one before it; -1 of one that is not plain
    """
    count = I64(0)
    for s in range(starts.size):
        found = I64(-1)
        if 0 <= starts[s] <= ends[s] <= buf.size:
            found = _walk(buf, starts[s], ends[s], base_offsets[s], rows_out, count)
        row_ends[s] = found
        if found >= 0:
            count = found


@kernel((ROW_IN, I64_IN, I64_IN, I64_OUT, I64_OUT))
def sum_segments(
    rows: RowArray, row_ends: I64Array, base_offsets: I64Array, sums: I64Array, slices: I64Array
) -> None:
    """Of plain segments what `header_sums` and `header_slices` say of each.

    in   rows BATCH_ROW[b], row_ends int64[s] and base_offsets as of `walk_segments`
    out  sums int64[s * SUMS_SIZE], slices int64[s * SLICES * SLICE_COLUMNS], filled with zeros by
         the caller; they stay so of a segment that has no batch, or is not plain
    """
    first = I64(0)
    for s in range(row_ends.size):
        end = row_ends[s]
        if end < 0:
            continue
        if end > first:
            at = s * SUMS_SIZE
            sum_headers(rows, first, end, base_offsets[s], sums, at)
            from_ms = sums[at + SMALLEST_LARGEST]
            width_ms = (sums[at + LARGEST_TIMESTAMP] - from_ms) // PARTS + 1
            place = s * SLICES * SLICE_COLUMNS
            slice_headers(rows, first, end, F64(from_ms), F64(width_ms), slices, place)
        first = end


@kernel((U8_IN, I64_IN, I64_IN, I64, I64_OUT))
def check_entries(
    buf: U8Array, starts: I64Array, ends: I64Array, entry_bytes: int, counts: I64Array
) -> None:
    """in   index i in buf[starts[i]:ends[i]], int64[i]; entry_bytes: of each of its entries, > 0
    out  counts int64[i]: of its entries in front of those that are all zeros; -1 of one that is not
         whole entries, or has one that is not zero behind one that is
    """
    for i in range(starts.size):
        start, end, count = starts[i], ends[i], I64(0)
        is_written = True
        if start < 0 or end > buf.size or (end - start) % entry_bytes != 0:
            count, end = I64(-1), start
        while start < end:
            is_zero = True
            for place in range(start, start + entry_bytes):
                if buf[place] != 0:
                    is_zero = False
            if is_zero:
                is_written = False
            elif is_written:
                count += 1
            else:
                count, end = I64(-1), start
            start += entry_bytes
        counts[i] = count
