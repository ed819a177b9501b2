"""Sums, extremes and flags over the headers of some batches, in one pass.

Of a small segment arithmetic over columns costs a call of numpy for each number, and a disk has
some hundred thousand small segments. `log.header_sums` names the numbers.
"""

from __future__ import annotations

from kafkalog.format import constants
from kafkalog.kernels.jit import I64, I64_OUT, ROW_IN, I64Array, RowArray, helper, kernel

# Places in `sums`; the bytes of each codec stand last.
RECORDS, BYTES, LARGEST_BATCH, LAST_OFFSET = 0, 1, 2, 3
SMALLEST_TIMESTAMP, LARGEST_TIMESTAMP, FIRST_LARGEST, SMALLEST_LARGEST = 4, 5, 6, 7
LARGEST_AT, ATTRIBUTES, MAGICS, PRODUCERS = 8, 9, 10, 11
TRANSACTIONAL_BYTES, CONTROL_BATCHES, CONTROL_BYTES, DISORDER = 12, 13, 14, 15
CODEC_BYTES = 16
CODECS = constants.COMPRESSION_CODEC_MASK + 1
SUMS_SIZE = CODEC_BYTES + CODECS

_NONE = constants.NO_TIMESTAMP
_CODEC_MASK = constants.COMPRESSION_CODEC_MASK
_CONTROL = constants.CONTROL_FLAG_MASK
_TRANSACTIONAL = constants.TRANSACTIONAL_FLAG_MASK
# Of a batch that is stamped with a delete horizon, or has log-append time, only the largest
# timestamp is known.
_ONLY_LARGEST = constants.DELETE_HORIZON_FLAG_MASK | constants.TIMESTAMP_TYPE_MASK
HAS_SMALLEST, HAS_LARGEST = 1, 2


@helper
def sum_headers(
    rows: RowArray, first: int, end: int, base_offset: int, sums: I64Array, at: int
) -> int:
    """The sums of rows[first:end], at least one, in sums[at:]; see `header_sums`."""
    known = 0
    before = base_offset - 1
    sums[at + DISORDER] = -1
    sums[at + LAST_OFFSET] = rows[first]["last_offset"]
    sums[at + FIRST_LARGEST] = rows[first]["max_timestamp"]
    highest = I64(rows[first]["max_timestamp"])
    for b in range(first, end):
        size = I64(rows[b]["size_in_bytes"])
        attributes = I64(rows[b]["attributes"])
        largest = I64(rows[b]["max_timestamp"])
        base = I64(rows[b]["base_timestamp"])
        begin, last = I64(rows[b]["base_offset"]), I64(rows[b]["last_offset"])
        if (begin <= before or last < begin) and sums[at + DISORDER] < 0:
            sums[at + DISORDER] = b - first
        before = last
        sums[at + LAST_OFFSET] = max(sums[at + LAST_OFFSET], last)
        sums[at + RECORDS] += max(I64(rows[b]["records_count"]), 0)
        sums[at + BYTES] += size
        sums[at + LARGEST_BATCH] = max(sums[at + LARGEST_BATCH], size)
        sums[at + CODEC_BYTES + (attributes & _CODEC_MASK)] += size
        sums[at + ATTRIBUTES] |= attributes
        sums[at + MAGICS] |= 1 << I64(rows[b]["magic"])
        if rows[b]["producer_id"] >= 0:
            sums[at + PRODUCERS] = 1
        if attributes & _TRANSACTIONAL:
            sums[at + TRANSACTIONAL_BYTES] += size
        if attributes & _CONTROL:
            sums[at + CONTROL_BATCHES] += 1
            sums[at + CONTROL_BYTES] += size
        if largest > highest:
            highest = largest
            sums[at + LARGEST_AT] = b - first
        smallest = min(base, largest)
        if attributes & _ONLY_LARGEST or base == _NONE:
            smallest = largest
        if smallest != _NONE:
            if not known & HAS_SMALLEST or smallest < sums[at + SMALLEST_TIMESTAMP]:
                sums[at + SMALLEST_TIMESTAMP] = smallest
            known |= HAS_SMALLEST
        if largest != _NONE:
            if not known & HAS_LARGEST or largest > sums[at + LARGEST_TIMESTAMP]:
                sums[at + LARGEST_TIMESTAMP] = largest
            if not known & HAS_LARGEST or largest < sums[at + SMALLEST_LARGEST]:
                sums[at + SMALLEST_LARGEST] = largest
            known |= HAS_LARGEST
    return known


@kernel((ROW_IN, I64, I64_OUT))
def header_sums(rows: RowArray, base_offset: int, sums: I64Array) -> int:
    """in   rows BATCH_ROW[b], b > 0; base_offset: below it no offset is in order
    out  sums int64[SUMS_SIZE], filled with zeros by the caller. RECORDS: counts below zero count
         as none. SMALLEST_TIMESTAMP: as far as headers tell; LARGEST_TIMESTAMP, SMALLEST_LARGEST:
         of the batches' largest ones that are one, FIRST_LARGEST: of the first batch. LARGEST_AT:
         the first batch with the largest, -1 included. ATTRIBUTES: all of them, or'ed; MAGICS: a
         bit each; PRODUCERS: 1 if any batch has one. DISORDER: the first batch whose offsets do not
         lie behind those before it, -1 without one
    returns which of the two timestamps there are: 1 for the smallest, 2 for the largest
    """
    found: int = sum_headers(rows, I64(0), I64(rows.size), base_offset, sums, I64(0))
    return found
