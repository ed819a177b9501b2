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
    kernel,
)
from kafkalog.kernels.siphash import siphash_128
from kafkalog.kernels.varints import failure_status, read_varint, read_varlong

# `state`, carried from chunk to chunk.
DISTINCT_KEYS = 0
LATEST_OFFSET = 1
STATE_SIZE = 2

_DATA = DATA
_DISTINCT, _LATEST = DISTINCT_KEYS, LATEST_OFFSET
_OK = status.OK
_OUTPUT_FULL = status.OUTPUT_FULL
_RECORD_TRUNCATED = status.RECORD_TRUNCATED
_ONE = np.uint64(1)


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
    map's last offset; another
            status for a record that cannot be read
    """
    mask = np.uint64(keys.size // 2 - 1)
    for b in range(rows.size):
        pos = starts[b]
        end = ends[b]
        for _ in range(rows[b]["records_count"] if roles[b] == _DATA else 0):
            length, body = read_varint(buf, pos, end)
            if body < 0 or length < 1 or length > end - body:
                return _RECORD_TRUNCATED, b
            pos = body + length
            _, at = read_varlong(buf, body + 1, pos)
            if at < 0:
                return failure_status(at), b
            delta, at = read_varint(buf, at, pos)
            if at < 0:
                return failure_status(at), b
            key_length, key = read_varint(buf, at, pos)
            if key < 0:
                return failure_status(key), b
            if key_length > pos - key:
                return _RECORD_TRUNCATED, b
            offset = rows[b]["base_offset"] + delta
            if key_length < 0 or offset < first_dirty_offset:
                continue
            if state[_DISTINCT] >= most_keys:
                return _OUTPUT_FULL, b
            first, second = siphash_128(buf, key, key_length, k0, k1)
            # An empty slot is zero, so one bit is set in every key.
            second |= _ONE
            slot = first & mask
            while keys[slot + slot + _ONE] != 0 and not (
                keys[slot + slot] == first and keys[slot + slot + _ONE] == second
            ):
                slot = (slot + _ONE) & mask
            if keys[slot + slot + _ONE] == 0:
                keys[slot + slot] = first
                keys[slot + slot + _ONE] = second
                state[_DISTINCT] += 1
            state[_LATEST] = offset
        if rows[b]["last_offset"] >= first_dirty_offset:
            state[_LATEST] = rows[b]["last_offset"]
    return _OK, rows.size
