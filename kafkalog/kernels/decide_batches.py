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

from typing import Any, NamedTuple

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
    inlined,
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
# go; some replica has not got it, so that its tombstones stay whatever the time.
RETAIN_EMPTY = 1
DISCARD = 2
CONTROL = 4
EMPTY_TRANSACTION = 8
LEGACY_EXPIRED = 16
NOT_REPLICATED = 32

# Where the counts of removed records are in `removed_out`.
REMOVED_NO_KEY = 0
REMOVED_SUPERSEDED = 1
REMOVED_TOMBSTONE = 2
REMOVED_ABORTED = 3
REMOVED_MARKER = 4
REMOVED_REASONS = 5

NO_HORIZON = -(2**63)
_NO_HORIZON = I64(NO_HORIZON)

_GONE = KEYLESS | SUPERSEDED


class Decided(NamedTuple):
    """Of a batch's records: how many stay; whether one of them is a tombstone; whether one is not
    encoded as Kafka encodes it.
    """

    retained: int
    tombstone: bool
    foreign: bool


@inlined
def _decide_records(
    flags: U8Array, start: int, end: int, expired: bool, removed_out: I64Array
) -> Decided:
    """Which of the records flags[start:end] go, and why: the first reason that holds is counted.
    A record that goes gets SUPERSEDED whatever the reason, so that the rewrite asks one bit.
    """
    retained, tombstone, foreign = 0, False, False
    for r in range(start, end):
        flag = flags[r]
        # Past the end of a bounded map nothing is known of later records, so all stay.
        if flag & _GONE and not flag & PAST_MAP:
            if flag & KEYLESS:
                removed_out[REMOVED_NO_KEY] += 1
                flags[r] = flag | SUPERSEDED
            else:
                removed_out[REMOVED_SUPERSEDED] += 1
        elif flag & TOMBSTONE and expired and not flag & PAST_MAP:
            removed_out[REMOVED_TOMBSTONE] += 1
            flags[r] = flag | SUPERSEDED
        else:
            retained += 1
            tombstone = tombstone or (flag & TOMBSTONE) != 0
            foreign = foreign or (flag & FOREIGN) != 0
    return Decided(retained, tombstone, foreign)


@inlined
def _choose(row: Any, rules: int, decided: Decided, horizon_ms: int, new_horizon_ms: int) -> Any:
    """(action, delete horizon) of a batch. `horizon_ms`: the one it has, NO_HORIZON for none."""
    # What is left of a batch without records is its header, for a producer whose last batch it is;
    # else it goes as a whole.
    if decided.retained == 0:
        return I64(EMPTY if rules & RETAIN_EMPTY else DROP), _NO_HORIZON
    # Two kinds of batches get a horizon: those that keep a tombstone, and markers of transactions
    # of which nothing is left. One that has a horizon keeps it, or it would never pass.
    stamp = decided.tombstone or (rules & EMPTY_TRANSACTION) != 0
    needs_horizon = stamp and not row["attributes"] & DELETE_HORIZON_FLAG_MASK
    horizon = new_horizon_ms if needs_horizon else horizon_ms
    if horizon < 0:
        # Kafka writes none then. delete.retention.ms may be so large that a new one passes 64
        # bits: its tombstones never expire.
        horizon = _NO_HORIZON
    # Kafka copies a batch byte for byte only if all of it stays and its header need not change.
    # Legacy entries are written anew whatever stays.
    action = REENCODE if decided.foreign or row["magic"] < MAGIC_VALUE_V2 else REBUILD
    is_whole = decided.retained == row["records_count"] and not needs_horizon
    if is_whole and row["magic"] >= MAGIC_VALUE_V2:
        action = COPY
    return I64(action), horizon


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
         a record that goes gets SUPERSEDED set here
         new_horizon_ms: the delete horizon of a batch that gets one in this round
    out  actions_out uint8[b]; horizons_out int64[b], NO_HORIZON for none; retained_out int32[b]
         removed_out int64[REMOVED_REASONS]: records removed by reason, added to what is there
    returns the index of the first record after these batches
    """
    f = first_record
    for b in range(rows.size):
        row, rule, count = rows[b], rules[b], rows[b]["records_count"]
        # With the delete-horizon bit the base timestamp is the horizon: the time from which
        # tombstones may go. Without it a tombstone stays in this round, and its batch is stamped.
        has_horizon = (row["attributes"] & DELETE_HORIZON_FLAG_MASK) != 0
        horizon = row["base_timestamp"] if has_horizon else _NO_HORIZON
        # All records go, whatever their flags: those of an aborted transaction, and an expired
        # marker.
        if rule & DISCARD:
            removed_out[REMOVED_MARKER if rule & CONTROL else REMOVED_ABORTED] += count
            decided = Decided(0, False, False)
        else:
            expired = (has_horizon and now_ms >= horizon) or (rule & LEGACY_EXPIRED) != 0
            expired = expired and not rule & NOT_REPLICATED
            decided = _decide_records(flags, f, f + count, expired, removed_out)
        # Flags are by record and in log order, so that of a batch they begin where those of the
        # last one ended, whether it stays or goes.
        f += count
        retained_out[b] = decided.retained
        actions_out[b], horizons_out[b] = _choose(row, rule, decided, horizon, new_horizon_ms)
    return f
