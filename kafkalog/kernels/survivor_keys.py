"""Keys of `--verify deep`: hashed in a way of their own, and who of a run of equal hashes goes.

Multilinear hashing: a random word for each place times the byte there, summed, and one for the
length. Nothing here is shared with the kernels that decide in a round: neither hash nor table.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kafkalog.kernels import status
from kafkalog.kernels.jit import (
    I64,
    I64_IN,
    U8_IN,
    U8_OUT,
    U64_IN,
    U64_OUT,
    I64Array,
    U8Array,
    U64Array,
    kernel,
)

# hash, hash, record number << 1 | whether it may supersede
WORDS = 3
# In place of a status: see mark_below_latest.
HASHES_MIXED = -1
_ONE = np.uint64(1)
_ZERO = np.uint64(0)


@kernel((U8_IN, I64_IN, I64_IN, U64_IN, U64_IN, U64_OUT))
def multilinear_hashes(
    buf: U8Array,
    starts: I64Array,
    lengths: I64Array,
    words: U64Array,
    length_words: U64Array,
    hashes_out: U64Array,
) -> tuple[int, int]:
    """Hash keys of up to so many bytes as there are words; longer ones are left as they are.

    in   buf uint8[n]; starts, lengths int64[r]: buf[starts[r]:starts[r] + lengths[r]]
         words uint64[2 * m]: of each half of the hash one for each place; length_words
         uint64[2 * m]: likewise for each length below m
    out  hashes_out uint64[>= 2 * r]
    returns (keys done, status)
    """
    places = I64(words.size // 2)
    if lengths.size != starts.size or hashes_out.size < 2 * lengths.size:
        return 0, status.OUTPUT_FULL
    if length_words.size != words.size:
        return 0, status.OUTPUT_FULL
    for r in range(lengths.size):
        start, length = I64(starts[r]), I64(lengths[r])
        if start < 0 or length < 0 or start > buf.size or length > buf.size - start:
            return r, status.SPAN_OUT_OF_RANGE
        if length >= places:
            continue
        first, second = length_words[length], length_words[places + length]
        for at in range(length):
            value = np.uint64(buf[start + at]) + _ONE
            first += value * words[at]
            second += value * words[places + at]
        hashes_out[2 * r], hashes_out[2 * r + 1] = first, second
    return lengths.size, status.OK


@kernel((U64_IN, I64_IN, I64, I64_IN, U8_OUT))
def mark_below_latest(
    rows: U64Array,
    order: I64Array,
    by_both: int,
    window: I64Array,
    marks_out: U8Array,
) -> tuple[int, int]:
    """Mark the records that a later one of their hash supersedes.

    in   rows uint64[WORDS * n]; order int64[n]: sorted by the first word of their hashes, or
         with by_both by both
         window int64[2]: the first record that is marked, and how many
    i/o  marks_out uint8[>= window[1] / 8 rounded up], a bit a record of the window
    returns (rows done, status); SPAN_OUT_OF_RANGE for an order or marks that do not fit,
            HASHES_MIXED where two hashes share the first word: the order has to be by both
    """
    first_record, count = I64(window[0]), I64(window[1])
    n = I64(rows.size // WORDS)
    if order.size != n or marks_out.size < (count + 7) // 8:
        return 0, status.SPAN_OUT_OF_RANGE
    start: Any = I64(0)
    while start < n:
        if order[start] < 0 or order[start] >= n:
            return start, status.SPAN_OUT_OF_RANGE
        at = WORDS * order[start]
        first, second = rows[at], rows[at + 1]
        latest: Any = I64(-1)
        end: Any = I64(start)
        # A run is walked twice: which is the last that may supersede, then who lies before it.
        while end < n:
            if order[end] < 0 or order[end] >= n:
                return end, status.SPAN_OUT_OF_RANGE
            at = WORDS * order[end]
            if rows[at] != first or rows[at + 1] != second:
                if rows[at] == first and by_both == 0:
                    return start, HASHES_MIXED
                break
            word = rows[at + 2]
            if word & _ONE != _ZERO:
                latest = max(latest, I64(word >> _ONE))
            end += 1
        for i in range(start, end):
            record = I64(rows[WORDS * order[i] + 2] >> _ONE)
            place = record - first_record
            if record < latest and place >= 0 and place < count:
                marks_out[place >> 3] |= np.uint8(1 << (place & 7))
        start = end
    return n, status.OK
