"""Sums, extremes and flags over the headers of some batches, in one pass.

Of a small segment arithmetic over columns costs a call of numpy for each number, and a disk has
some hundred thousand small segments. `log.header_sums` names the numbers.
"""

from __future__ import annotations

from kafkalog.format import constants
from kafkalog.kernels.jit import I64, I64_OUT, ROW_IN, I64Array, RowArray, kernel

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
    known = 0
    before = base_offset - 1
    sums[DISORDER] = -1
    sums[LAST_OFFSET] = rows[0]["last_offset"]
    sums[FIRST_LARGEST] = rows[0]["max_timestamp"]
    highest = I64(rows[0]["max_timestamp"])
    for b in range(rows.size):
        size = I64(rows[b]["size_in_bytes"])
        attributes = I64(rows[b]["attributes"])
        largest = I64(rows[b]["max_timestamp"])
        base = I64(rows[b]["base_timestamp"])
        first, last = I64(rows[b]["base_offset"]), I64(rows[b]["last_offset"])
        if (first <= before or last < first) and sums[DISORDER] < 0:
            sums[DISORDER] = b
        before = last
        sums[LAST_OFFSET] = max(sums[LAST_OFFSET], last)
        sums[RECORDS] += max(I64(rows[b]["records_count"]), 0)
        sums[BYTES] += size
        sums[LARGEST_BATCH] = max(sums[LARGEST_BATCH], size)
        sums[CODEC_BYTES + (attributes & _CODEC_MASK)] += size
        sums[ATTRIBUTES] |= attributes
        sums[MAGICS] |= 1 << I64(rows[b]["magic"])
        if rows[b]["producer_id"] >= 0:
            sums[PRODUCERS] = 1
        if attributes & _TRANSACTIONAL:
            sums[TRANSACTIONAL_BYTES] += size
        if attributes & _CONTROL:
            sums[CONTROL_BATCHES] += 1
            sums[CONTROL_BYTES] += size
        if largest > highest:
            highest = largest
            sums[LARGEST_AT] = b
        smallest = min(base, largest)
        if attributes & _ONLY_LARGEST or base == _NONE:
            smallest = largest
        if smallest != _NONE:
            if not known & HAS_SMALLEST or smallest < sums[SMALLEST_TIMESTAMP]:
                sums[SMALLEST_TIMESTAMP] = smallest
            known |= HAS_SMALLEST
        if largest != _NONE:
            if not known & HAS_LARGEST or largest > sums[LARGEST_TIMESTAMP]:
                sums[LARGEST_TIMESTAMP] = largest
            if not known & HAS_LARGEST or largest < sums[SMALLEST_LARGEST]:
                sums[SMALLEST_LARGEST] = largest
            known |= HAS_LARGEST
    return known
