"""The records that stay of a batch, encoded under the base timestamp that their new batch gets.

Record timestamps are deltas against the base timestamp: the delete horizon if there is one, else
the timestamp of the first record that stays. When it moves each record's delta and length are
written anew; when it does not, whole runs of records are copied. Offset deltas, keys, values and
headers are never touched.

Source: Kafka MemoryRecords.filterTo, MemoryRecordsBuilder.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kafkalog.format.constants import TIMESTAMP_TYPE_MASK
from kafkalog.kernels import status
from kafkalog.kernels.copying import copy_bytes
from kafkalog.kernels.decide_batches import NO_HORIZON
from kafkalog.kernels.fold import mix_record
from kafkalog.kernels.hash_keys import SUPERSEDED
from kafkalog.kernels.jit import (
    I64,
    I64_IN,
    I64_OUT,
    ROW_IN,
    U8_IN,
    U8_OUT,
    I64Array,
    RowArray,
    U8Array,
    helper,
    inlined,
    kernel,
)
from kafkalog.kernels.prefetch import prefetch_record
from kafkalog.kernels.record_walk import read_bounds, read_deltas
from kafkalog.kernels.varints import varint_size, write_varint

# A record grows by at most this when its timestamp delta is written anew: 9 bytes of delta, 4 of
# length.
RECORD_GROWTH_BYTES = 13

# What encode_records tells of a batch.
FACTS = 3


class EncodedRecords(NamedTuple):
    """The records of a batch in the output: where they end, what the header says of them, their
    fold (kernels.fold; bits of a uint64).
    """

    status: int
    end: int
    base_timestamp: int
    max_timestamp: int
    fold: int


@inlined
def copy_range(out: U8Array, to: int, buf: U8Array, start: int, end: int) -> int:
    """Copy buf[start:end] to out[to:]; returns the position behind it."""
    copy_bytes(out, to, buf, start, end - start)
    return to + end - start


@inlined
def _write_anew(
    buf: U8Array, body: int, offset_at: int, end: int, new_delta: int, out: U8Array, w: int
) -> int:
    """The record in buf[body:end] with another timestamp delta; returns the position behind it.
    From `offset_at` on it stays as it is.
    """
    # Behind the attributes byte only the timestamp delta changes, so the record's length changes by
    # the difference of the two varints' sizes; all behind the delta is copied as it is.
    old_bytes = offset_at - body - 1
    w = write_varint(out, w, end - body - old_bytes + varint_size(new_delta))
    out[w] = buf[body]
    w = write_varint(out, w + 1, new_delta)
    return copy_range(out, w, buf, offset_at, end)


@helper
def encode_batch(
    buf: U8Array, pos: int, end: int, row: Any, flags: U8Array, first: int, horizon: int,
    out: U8Array, w: int,
) -> EncodedRecords:  # fmt: skip
    """The records that stay of a batch, whose records are buf[pos:end] and whose flags begin at
    `first`, to out[w:].
    """
    base_offset, base_timestamp = row["base_offset"], row["base_timestamp"]
    # With log-append time every record has the batch's maximum, and its own delta means nothing:
    # the maximum stays whatever goes.
    append_time = (row["attributes"] & TIMESTAMP_TYPE_MASK) != 0
    max_timestamp: Any = row["max_timestamp"] if append_time else I64(-1)
    base: Any = I64(horizon)
    base_known = horizon != NO_HORIZON
    fold: Any = np.uint64(0)
    # Records whose bytes stay and that lie one behind the other are one copy: buf[run:run_end].
    run, run_end = pos, pos
    for r in range(first, first + row["records_count"]):
        code, body, record_end = read_bounds(buf, pos, end)
        if code != status.OK:
            return EncodedRecords(code, w, base, max_timestamp, I64(fold))
        prefetch_record(buf, pos, record_end)
        if flags[r] & SUPERSEDED:
            pos = record_end
            continue
        code, delta, offset_at, offset_delta, _ = read_deltas(buf, body, record_end)
        if code != status.OK:
            return EncodedRecords(code, w, base, max_timestamp, I64(fold))
        timestamp: Any = max_timestamp if append_time else base_timestamp + delta
        max_timestamp = max(max_timestamp, timestamp)
        # Without a horizon the first record that stays gives the base timestamp, as Kafka's builder
        # takes it from the first record that it is handed.
        if not base_known:
            base, base_known = timestamp, True
        fold = mix_record(fold, base_offset + offset_delta, timestamp)
        # What must be written anew ends the run of copied bytes; the next run begins behind it.
        if timestamp - base != delta:
            w = copy_range(out, w, buf, run, run_end)
            w = _write_anew(buf, body, offset_at, record_end, timestamp - base, out, w)
            run, run_end = record_end, record_end
        else:
            if run_end != pos:
                w = copy_range(out, w, buf, run, run_end)
                run = pos
            run_end = record_end
        pos = record_end
    # The last run, which no record has ended.
    w = copy_range(out, w, buf, run, run_end)
    code = status.OK if pos == end else status.TRAILING_BYTES
    return EncodedRecords(code, w, base, max_timestamp, I64(fold))


@kernel((U8_IN, I64_IN, I64_IN, ROW_IN, U8_IN, I64_IN, I64_IN, U8_OUT, I64_OUT, I64_OUT))
def encode_records(
    buf: U8Array,
    starts: I64Array,
    ends: I64Array,
    rows: RowArray,
    flags: U8Array,
    first_records: I64Array,
    horizons: I64Array,
    out: U8Array,
    ends_out: I64Array,
    facts_out: I64Array,
) -> tuple[int, int]:
    """The records that stay of b batches, whose uncompressed records are buf[starts[i]:ends[i]], to
    out, one batch behind the other.

    in   out uint8[n], n >= sum(ends - starts) + sum(records_count) * RECORD_GROWTH_BYTES
         flags uint8[r], first_records int64[b] where those of a batch begin; horizons int64[b],
         NO_HORIZON for none
    out  ends_out int64[b]: where they end in out; facts_out int64[b * FACTS]: base timestamp, max
         timestamp, fold of offsets and timestamps (bits of a uint64)
    returns (batches done, status)
    """
    w: Any = I64(0)
    for b in range(rows.size):
        # Outputs lie one behind the other: where a batch ends is where the next one begins.
        made = encode_batch(
            buf, starts[b], ends[b], rows[b], flags, first_records[b], horizons[b], out, w
        )
        if made.status != status.OK:
            return b, made.status
        w = made.end
        ends_out[b] = w
        facts_out[b * FACTS] = made.base_timestamp
        facts_out[b * FACTS + 1] = made.max_timestamp
        facts_out[b * FACTS + 2] = made.fold
    return rows.size, status.OK


@kernel((I64_IN, I64_IN, I64_IN, I64_OUT))
def fold_records(
    offsets: I64Array, timestamps: I64Array, ends: I64Array, folds_out: I64Array
) -> None:
    """The fold of each of b batches from its decoded records.

    in   offsets, timestamps int64[r]; ends int64[b]: batch b's records end before this index, <= r
    out  folds_out int64[b], bits of a uint64
    """
    r = 0
    for b in range(ends.size):
        fold = np.uint64(0)
        # The same fold as `encode_batch` makes while it writes: equal ones show that the new batch
        # has the offsets and timestamps that were meant to stay.
        while r < ends[b]:
            fold = mix_record(fold, offsets[r], timestamps[r])
            r += 1
        folds_out[b] = np.int64(fold)
