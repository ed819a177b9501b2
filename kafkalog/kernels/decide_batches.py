"""What becomes of each batch in a round, from one flag byte per record.

A record goes if it has no key, if a later record of its key supersedes it, or if it is a tombstone
whose batch has a delete horizon at or before now. All records of an aborted transaction's batch go,
and markers by the horizon alone; records past the map's end stay otherwise. A batch is copied as it
is when nothing goes and no horizon must be set; else it is rebuilt from what stays, or reduced to
its header, or dropped.

Legacy entries (magic 0 and 1) have no delete horizon: their segment's time decides on tombstones,
and what stays of them always becomes a magic 2 batch.

Source: Kafka Cleaner.cleanInto and shouldRetainRecord, MemoryRecords.filterTo; KIP-534.
"""

from __future__ import annotations

import numpy as np

from kafkalog.format.constants import DELETE_HORIZON_FLAG_MASK, MAGIC_VALUE_V2
from kafkalog.kernels.hash_keys import FOREIGN, KEYLESS, PAST_MAP, SUPERSEDED, TOMBSTONE
from kafkalog.kernels.jit import (
    I32_OUT,
    I64,
    I64_OUT,
    ROW_IN,
    U8_IN,
    U8_OUT,
    I32Array,
    I64Array,
    RowArray,
    U8Array,
    kernel,
)

# Actions.
DROP = 0
COPY = 1
EMPTY = 2
REBUILD = 3
REENCODE = 4  # rebuild, and encode each record again: not as Kafka writes them now

# What is asked of a batch, bits of `rules`: keep at least its header; let all its records go (data
# of an aborted transaction, a marker whose horizon passed); it is a control batch; it is a marker
# with nothing left to mark, which gets a delete horizon; it is a legacy entry whose tombstones may
# go.
RETAIN_EMPTY = 1
DISCARD = 2
CONTROL = 4
EMPTY_TRANSACTION = 8
LEGACY_EXPIRED = 16

# Where the counts of removed records are in `removed_out`.
REMOVED_NO_KEY = 0
REMOVED_SUPERSEDED = 1
REMOVED_TOMBSTONE = 2
REMOVED_ABORTED = 3
REMOVED_MARKER = 4
REMOVED_REASONS = 5

NO_HORIZON = -(2**63)

_DROP, _COPY, _EMPTY, _REBUILD, _REENCODE = DROP, COPY, EMPTY, REBUILD, REENCODE
_KEYLESS = np.uint8(KEYLESS)
_TOMBSTONE = np.uint8(TOMBSTONE)
_SUPERSEDED = np.uint8(SUPERSEDED)
_FOREIGN = np.uint8(FOREIGN)
_PAST_MAP = np.uint8(PAST_MAP)
_GONE = np.uint8(KEYLESS | SUPERSEDED)
_HORIZON_BIT = DELETE_HORIZON_FLAG_MASK
_NO_HORIZON = np.int64(NO_HORIZON)
_NO_KEY = REMOVED_NO_KEY
_REMOVED_SUPERSEDED = REMOVED_SUPERSEDED
_REMOVED_TOMBSTONE = REMOVED_TOMBSTONE
_REMOVED_ABORTED = REMOVED_ABORTED
_REMOVED_MARKER = REMOVED_MARKER
_RETAIN_EMPTY, _DISCARD, _CONTROL, _EMPTY_TRANSACTION, _LEGACY_EXPIRED = (
    RETAIN_EMPTY,
    DISCARD,
    CONTROL,
    EMPTY_TRANSACTION,
    LEGACY_EXPIRED,
)
_MAGIC_V2 = MAGIC_VALUE_V2


@kernel((ROW_IN, U8_OUT, I64, U8_IN, I64, I64, U8_OUT, I64_OUT, I32_OUT, I64_OUT))
def decide_batches(
    rows: RowArray,
    flags: U8Array,
    first_record: int,
    rules: U8Array,
    now_ms: int,
    new_horizon_ms: int,
    actions_out: U8Array,
    horizons_out: I64Array,
    retained_out: I32Array,
    removed_out: I64Array,
) -> int:
    """Decide on consecutive batches.

    in   rows BATCH_ROW[b]; rules uint8[b]: what is asked of each batch, bits
         flags uint8[r] of the partition, first_record the index of the first batch's first record;
         a record that goes gets SUPERSEDED set here, whatever the reason, so that the rewrite asks
         one bit
         new_horizon_ms: the delete horizon of a batch that gets one in this round
    out  actions_out uint8[b]; horizons_out int64[b], NO_HORIZON for none; retained_out int32[b]
         removed_out int64[REMOVED_REASONS]: records removed by reason, added to what is there
    returns the index of the first record after these batches
    """
    f = first_record
    for b in range(rows.size):
        count = rows[b]["records_count"]
        has_horizon = (rows[b]["attributes"] & _HORIZON_BIT) != 0
        horizon = rows[b]["base_timestamp"] if has_horizon else _NO_HORIZON
        expired = (has_horizon and now_ms >= horizon) or (rules[b] & _LEGACY_EXPIRED) != 0
        is_control = (rules[b] & _CONTROL) != 0
        retained = 0
        foreign = False
        stamp = (rules[b] & _EMPTY_TRANSACTION) != 0
        if rules[b] & _DISCARD:
            removed_out[_REMOVED_MARKER if is_control else _REMOVED_ABORTED] += count
        else:
            for r in range(f, f + count):
                flag = flags[r]
                if flag & _GONE and not flag & _PAST_MAP:
                    if flag & _KEYLESS:
                        removed_out[_NO_KEY] += 1
                        flags[r] = flag | _SUPERSEDED
                    else:
                        removed_out[_REMOVED_SUPERSEDED] += 1
                elif flag & _TOMBSTONE and expired and not flag & _PAST_MAP:
                    removed_out[_REMOVED_TOMBSTONE] += 1
                    flags[r] = flag | _SUPERSEDED
                else:
                    retained += 1
                    stamp = stamp or (flag & _TOMBSTONE) != 0
                    foreign = foreign or (flag & _FOREIGN) != 0
        f += count
        retained_out[b] = retained
        if retained == 0:
            actions_out[b] = _EMPTY if rules[b] & _RETAIN_EMPTY else _DROP
            horizons_out[b] = _NO_HORIZON
            continue
        needs_horizon = stamp and not has_horizon
        horizons_out[b] = new_horizon_ms if needs_horizon else horizon
        if horizons_out[b] < 0:
            # Kafka writes none then. delete.retention.ms may be so large that a new one passes 64
            # bits: its tombstones never expire.
            horizons_out[b] = _NO_HORIZON
        if rows[b]["magic"] < _MAGIC_V2:
            actions_out[b] = _REENCODE
        elif retained == count and not needs_horizon:
            actions_out[b] = _COPY
        else:
            actions_out[b] = _REENCODE if foreign else _REBUILD
    return f
