"""Aligned records of all copies as entries of their keys, in the order of the buckets they go to.

An entry has the key's two hash words, the offset, the producer, and a word with four times sixteen
bits: which copies have the record, which lack it, which hide it, and its flags.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kafkalog.kernels.jit import (
    I64,
    I64_OUT,
    I64Array,
    RowArray,
    U64Array,
    kernel,
    records_in,
    records_out,
)
from kafkalog.kernels.record_facts import CONTROL, KEYLESS, RECORD_FACT

ENTRY_WORDS = 5
ABSENT_SHIFT, HIDDEN_SHIFT, FLAGS_SHIFT = 16, 32, 48

_U16_IN = records_in(np.uint16)
_U64_ROWS = records_out(np.uint64, dimensions=2)
_WITHOUT = np.uint32(KEYLESS | CONTROL)
_MASK = np.uint64(0xFFFF)


@kernel(
    (records_in(RECORD_FACT), _U16_IN, _U16_IN, _U16_IN, I64, I64_OUT, _U64_ROWS),
)
def key_entries(
    rows: RowArray,
    present: Any,
    absent: Any,
    hidden: Any,
    bits: int,
    starts: I64Array,
    entries: U64Array,
) -> int:
    """The entries of all rows with a key; control records have none.

    in   rows RECORD_FACT[n]; present, absent, hidden uint16[n]: masks of copies
         bits: of the first hash word, from its highest, that choose the bucket; 0: there is one
    out  starts int64[2**bits + 1], zeros: entries of bucket b are entries[starts[b]:starts[b+1]],
         each bucket's in the order of the rows; entries uint64[n, 5]
    returns how many entries there are
    """
    # A counting sort: how many go to each bucket, where each begins, then each to its place.
    shift = np.uint64(64 - bits)
    for i in range(rows.size):
        if rows[i]["flags"] & _WITHOUT == 0:
            bucket = rows[i]["key_first"] >> shift if bits > 0 else np.uint64(0)
            starts[bucket + np.uint64(1)] += 1
    for b in range(1, starts.size):
        starts[b] += starts[b - 1]
    count = starts[starts.size - 1]
    # While entries are placed starts[b] is where the next one goes; in the end that is where the
    # bucket ends, which is the start of the one behind it.
    for i in range(rows.size):
        row = rows[i]
        if row["flags"] & _WITHOUT != 0:
            continue
        bucket = row["key_first"] >> shift if bits > 0 else np.uint64(0)
        at = starts[bucket]
        starts[bucket] = at + 1
        entries[at, 0] = row["key_first"]
        entries[at, 1] = row["key_second"]
        entries[at, 2] = np.uint64(row["offset"])
        entries[at, 3] = np.uint64(row["producer_id"])
        entries[at, 4] = (
            np.uint64(present[i])
            | np.uint64(absent[i]) << np.uint64(ABSENT_SHIFT)
            | np.uint64(hidden[i]) << np.uint64(HIDDEN_SHIFT)
            | (np.uint64(row["flags"]) & _MASK) << np.uint64(FLAGS_SHIFT)
        )
    for b in range(starts.size - 1, 0, -1):
        starts[b] = starts[b - 1]
    starts[0] = 0
    return int(count)
