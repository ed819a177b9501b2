"""Where a bounded offset map is full: Kafka's own limit, on request.

Kafka maps the dirty records in offset order until the map holds as many distinct keys as it may,
and stops the scan at the next keyed record, even if that record's key is in the map already. Only
the offset where it stopped matters afterwards, so keys are kept as hashes in a set, nothing else.

Source: Kafka Cleaner.buildOffsetMapForSegment, SkimpyOffsetMap.
"""

from __future__ import annotations

import numpy as np

from kafkalog.kernels import status
from kafkalog.kernels.hash_keys import DATA
from kafkalog.kernels.jit import (
    I64,
    I64_IN,
    I64_OUT,
    ROW_IN,
    U8_IN,
    U64,
    U64_OUT,
    I64Array,
    RowArray,
    U8Array,
    U64Array,
    inlined,
    kernel,
)
from kafkalog.kernels.record_walk import read_bounds, read_deltas, read_span
from kafkalog.kernels.siphash import siphash_128

# `state`, carried from chunk to chunk.
DISTINCT_KEYS = 0
LATEST_OFFSET = 1
STATE_SIZE = 2

_ONE = np.uint64(1)


@inlined
def _add(keys: U64Array, first: np.uint64, second: np.uint64) -> int:
    """Put a hash into the set; how many it grows by. The caller keeps a slot empty, so the search
    for one ends.
    """
    # Open addressing with two words a slot. The set only grows, so a search that meets an empty
    # slot has seen every place where the key could be.
    mask = np.uint64(keys.size // 2 - 1)
    # An empty slot is zero, so one bit is set in every key.
    second |= _ONE
    slot = first & mask
    while keys[slot + slot + _ONE] != 0:
        if keys[slot + slot] == first and keys[slot + slot + _ONE] == second:
            return 0
        slot = (slot + _ONE) & mask
    keys[slot + slot] = first
    keys[slot + slot + _ONE] = second
    return 1


@inlined
def _read_key(buf: U8Array, pos: int, end: int) -> tuple[int, int, int, int, int]:
    """(status, end of the record, offset delta, key, its length) of the record at `pos`."""
    code, body, record_end = read_bounds(buf, pos, end)
    if code != status.OK:
        return code, I64(0), I64(0), I64(0), I64(0)
    code, _, _, offset_delta, key_at = read_deltas(buf, body, record_end)
    if code != status.OK:
        return code, I64(0), I64(0), I64(0), I64(0)
    code, key, key_length = read_span(buf, key_at, record_end)
    return code, record_end, offset_delta, key, key_length


@kernel((U8_IN, ROW_IN, I64_IN, I64_IN, U8_IN, U64, U64, I64, I64, U64_OUT, I64_OUT))
def find_map_end(
    buf: U8Array,
    rows: RowArray,
    starts: I64Array,
    ends: I64Array,
    roles: U8Array,
    k0: np.uint64,
    k1: np.uint64,
    first_dirty_offset: int,
    most_keys: int,
    keys: U64Array,
    state: I64Array,
) -> tuple[int, int]:
    """Add the keys of some batches to the set, until it may hold no more.

    in   buf, rows, starts, ends, roles: as hash_keys.map_records
    i/o  keys uint64[2 * 2^k], zero at first, 2^k > most_keys: the set; state int64[STATE_SIZE]
    returns (status, batch): OUTPUT_FULL when the map is full, state[LATEST_OFFSET] is then the
            map's last offset; another status for a record that cannot be read
    """
    for b in range(rows.size):
        pos = starts[b]
        for _ in range(rows[b]["records_count"] if roles[b] == DATA else 0):
            code, pos, offset_delta, key, key_length = _read_key(buf, pos, ends[b])
            if code != status.OK:
                return code, b
            offset = rows[b]["base_offset"] + offset_delta
            # Kafka maps keyed records from the first dirty offset on, and no others.
            if key_length < 0 or offset < first_dirty_offset:
                continue
            # Kafka asks before it looks for the key: a full map ends at a key that it has, too.
            if state[DISTINCT_KEYS] >= most_keys:
                return status.OUTPUT_FULL, b
            first, second = siphash_128(buf, key, key_length, k0, k1)
            state[DISTINCT_KEYS] += _add(keys, first, second)
            state[LATEST_OFFSET] = offset
        # Behind the last record of a batch the map reaches to the batch's last offset: compaction
        # may have left no record there.
        if rows[b]["last_offset"] >= first_dirty_offset:
            state[LATEST_OFFSET] = rows[b]["last_offset"]
    return status.OK, rows.size
