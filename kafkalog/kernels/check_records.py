"""Walk the magic 2 records of many batches and check them, keeping nothing but each batch's largest
timestamp and fold.

The same walk as `record_spans`, for readers that want to know whether records are sound and not
where they are: no array with a row a record is written. On top of the structure the order is
checked: offsets rise from record to record and stay within their batch. Kafka checks that when a
batch is appended, and nobody ever after.

Source: Kafka DefaultRecord.readFrom, DefaultRecordBatch, LogValidator.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kafkalog.kernels import status
from kafkalog.kernels.fold import mix_record
from kafkalog.kernels.jit import (
    I64,
    I64_IN,
    I64_OUT,
    ROW_IN,
    U8_IN,
    I64Array,
    RowArray,
    U8Array,
    inlined,
    kernel,
)
from kafkalog.kernels.prefetch import prefetch_record
from kafkalog.kernels.record_walk import check_area, check_headers, has_append_time, read_record


@inlined
def check_batch(
    buf: U8Array, row: Any, start: int, end: int, count: int
) -> tuple[int, int, int, int, int]:
    """Check the `count` records of a batch, which are buf[start:end]: (status, position of the
    record that failed, its number, the largest timestamp, the fold).
    """
    base_offset, base_timestamp = row["base_offset"], row["base_timestamp"]
    last_delta = row["last_offset"] - base_offset
    append_time = has_append_time(row)
    # What the header says stands until a record says otherwise: a batch without records keeps it.
    largest: Any = I64(row["max_timestamp"])
    fold: Any = np.uint64(0)
    previous_delta: Any = I64(-1)
    code: Any = I64(status.OK)
    pos: Any = I64(start)
    r: Any = I64(0)
    while r < count:
        record = read_record(buf, pos, end)
        code = record.status if record.status != status.OK else check_headers(buf, record)
        if code != status.OK:
            break
        prefetch_record(buf, pos, record.end)
        # Deltas have gaps after compaction, so rising is all that can be asked of them.
        if record.offset_delta <= previous_delta or record.offset_delta > last_delta:
            code = status.OFFSET_ORDER
            break
        previous_delta = record.offset_delta
        timestamp: Any = largest
        if not append_time:
            timestamp = base_timestamp + record.timestamp_delta
            largest = timestamp if r == 0 else max(largest, timestamp)
        fold = mix_record(fold, base_offset + record.offset_delta, timestamp)
        pos = record.end
        r += 1
    # An empty batch is empty whatever its bytes say: Kafka does not look at them.
    if code == status.OK and count > 0 and pos != end:
        code = status.TRAILING_BYTES
    bits: Any = np.int64(fold)
    return code, pos, r, largest, bits


@kernel((U8_IN, ROW_IN, I64_IN, I64_IN, I64_OUT, I64_OUT))
def check_records(
    buf: U8Array,
    rows: RowArray,
    area_starts: I64Array,
    area_ends: I64Array,
    max_timestamps_out: I64Array,
    folds_out: I64Array,
) -> tuple[int, int, int, int]:
    """Check all records of the batches `rows`, up to the first batch that is not sound.

    in   buf uint8[n] read-only: where the uncompressed records are
         rows BATCH_ROW[b]; area_starts, area_ends int64[b]: the record area of each batch in buf
    out  max_timestamps_out int64[b]: the largest record timestamp of each batch checked; of one
         with log-append time, or without records, what its header says; folds_out int64[b]: see
         kernels.fold, bits of a uint64
    returns (batches checked, status, position of the record that failed, its number in its batch)
    """
    for b in range(rows.size):
        code, start, end, count = check_area(buf, rows, b, area_starts, area_ends)
        if code != status.OK:
            return b, code, start, 0
        code, pos, r, largest, fold = check_batch(buf, rows[b], start, end, count)
        if code != status.OK:
            return b, code, pos, r
        max_timestamps_out[b], folds_out[b] = largest, fold
    return rows.size, status.OK, 0, 0
