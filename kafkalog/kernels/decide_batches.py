"""What becomes of each batch in a round, from one flag byte per record.

A record goes if it has no key, if a later record of its key supersedes it, or if it is a tombstone
whose batch has a delete horizon at or before now. A batch is copied as it is when nothing goes and
no horizon must be set; else it is rebuilt from what stays, or reduced to its header, or dropped.

Source: Kafka Cleaner.cleanInto and shouldRetainRecord, MemoryRecords.filterTo; KIP-534.
"""

from __future__ import annotations

import numpy as np

from kafkalog.format.constants import DELETE_HORIZON_FLAG_MASK
from kafkalog.kernels.hash_keys import FOREIGN, KEYLESS, SUPERSEDED, TOMBSTONE
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
REENCODE = 4  # rebuild, and encode each record again: some of them are not as Kafka writes them

# Where the counts of removed records are in `removed_out`.
REMOVED_NO_KEY = 0
REMOVED_SUPERSEDED = 1
REMOVED_TOMBSTONE = 2

NO_HORIZON = -(2**63)

_DROP, _COPY, _EMPTY, _REBUILD, _REENCODE = DROP, COPY, EMPTY, REBUILD, REENCODE
_KEYLESS = np.uint8(KEYLESS)
_TOMBSTONE = np.uint8(TOMBSTONE)
_SUPERSEDED = np.uint8(SUPERSEDED)
_FOREIGN = np.uint8(FOREIGN)
_GONE = np.uint8(KEYLESS | SUPERSEDED)
_HORIZON_BIT = DELETE_HORIZON_FLAG_MASK
_NO_HORIZON = np.int64(NO_HORIZON)
_NO_KEY = REMOVED_NO_KEY
_REMOVED_SUPERSEDED = REMOVED_SUPERSEDED
_REMOVED_TOMBSTONE = REMOVED_TOMBSTONE


@kernel((ROW_IN, U8_OUT, I64, U8_IN, I64, I64, U8_OUT, I64_OUT, I32_OUT, I64_OUT))
def decide_batches(
    rows: RowArray,
    flags: U8Array,
    first_record: int,
    retain_empty: U8Array,
    now_ms: int,
    new_horizon_ms: int,
    actions_out: U8Array,
    horizons_out: I64Array,
    retained_out: I32Array,
    removed_out: I64Array,
) -> int:
    """Decide on consecutive data batches.

    in   rows BATCH_ROW[b]; retain_empty uint8[b]: keep at least the header of this batch
         flags uint8[r] of the partition, first_record the index of the first batch's first record;
         a record that goes gets SUPERSEDED set here, whatever the reason, so that the rewrite asks
         one bit new_horizon_ms: the delete horizon of a batch that gets one in this round
    out  actions_out uint8[b]; horizons_out int64[b], NO_HORIZON for none; retained_out int32[b]
         removed_out int64[3]: records removed by reason, added to what is there
    returns the index of the first record after these batches
    """
    f = first_record
    for b in range(rows.size):
        count = rows[b]["records_count"]
        has_horizon = (rows[b]["attributes"] & _HORIZON_BIT) != 0
        horizon = rows[b]["base_timestamp"] if has_horizon else _NO_HORIZON
        expired = has_horizon and now_ms >= horizon
        retained = 0
        foreign = False
        tombstone_stays = False
        for r in range(f, f + count):
            flag = flags[r]
            if flag & _GONE:
                if flag & _KEYLESS:
                    removed_out[_NO_KEY] += 1
                    flags[r] = flag | _SUPERSEDED
                else:
                    removed_out[_REMOVED_SUPERSEDED] += 1
            elif flag & _TOMBSTONE and expired:
                removed_out[_REMOVED_TOMBSTONE] += 1
                flags[r] = flag | _SUPERSEDED
            else:
                retained += 1
                tombstone_stays = tombstone_stays or (flag & _TOMBSTONE) != 0
                foreign = foreign or (flag & _FOREIGN) != 0
        f += count
        retained_out[b] = retained
        if retained == 0:
            actions_out[b] = _EMPTY if retain_empty[b] else _DROP
            horizons_out[b] = _NO_HORIZON
            continue
        needs_horizon = tombstone_stays and not has_horizon
        horizons_out[b] = new_horizon_ms if needs_horizon else horizon
        if horizons_out[b] < 0:
            # Kafka writes none then. delete.retention.ms may be so large that a new one passes 64
            # bits: its tombstones never expire.
            horizons_out[b] = _NO_HORIZON
        if retained == count and not needs_horizon:
            actions_out[b] = _COPY
        else:
            actions_out[b] = _REENCODE if foreign else _REBUILD
    return f
