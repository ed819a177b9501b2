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

from kafkalog.format.constants import MAGIC_VALUE_V2, TIMESTAMP_TYPE_MASK
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
    helper,
    kernel,
)
from kafkalog.kernels.record_spans import skip_headers
from kafkalog.kernels.varints import failure_status, read_varint, read_varlong

_TIMESTAMP_TYPE_MASK = TIMESTAMP_TYPE_MASK
_MAGIC_V2 = MAGIC_VALUE_V2

_OK = status.OK
_NEGATIVE_COUNT = status.NEGATIVE_COUNT
_RECORD_TRUNCATED = status.RECORD_TRUNCATED
_NEGATIVE_LENGTH = status.NEGATIVE_LENGTH
_LENGTH_MISMATCH = status.LENGTH_MISMATCH
_TRAILING_BYTES = status.TRAILING_BYTES
_HEADER_COUNT = status.HEADER_COUNT
_SPAN_OUT_OF_RANGE = status.SPAN_OUT_OF_RANGE
_OFFSET_ORDER = status.OFFSET_ORDER


@helper
def _check_body(buf: U8Array, pos: int, end: int) -> tuple[int, int, int]:
    """The body of a record in buf[pos:end]: (timestamp delta, offset delta, status)."""
    # The attributes byte is not used by any version, and not looked at.
    timestamp_delta, pos = read_varlong(buf, pos + 1, end)
    if pos < 0:
        return 0, 0, failure_status(pos)
    offset_delta, pos = read_varint(buf, pos, end)
    if pos < 0:
        return 0, 0, failure_status(pos)
    for _ in range(2):  # key, value
        length, pos = read_varint(buf, pos, end)
        if pos < 0:
            return 0, 0, failure_status(pos)
        if length > end - pos:
            return 0, 0, _RECORD_TRUNCATED
        pos += max(length, 0)
    header_count, pos = read_varint(buf, pos, end)
    if pos < 0:
        return 0, 0, failure_status(pos)
    if header_count < 0 or header_count > end - pos:
        return 0, 0, _HEADER_COUNT
    if header_count > 0:
        pos, code = skip_headers(buf, pos, end, header_count)
        if code != _OK:
            return 0, 0, code
    if pos != end:
        return 0, 0, _LENGTH_MISMATCH
    return timestamp_delta, offset_delta, _OK


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
        pos = I64(area_starts[b])
        end = I64(area_ends[b])
        if pos < 0 or end < pos or end > buf.size:
            return b, _SPAN_OUT_OF_RANGE, pos, 0
        count = I64(rows[b]["records_count"])
        if count < 0:
            return b, _NEGATIVE_COUNT, pos, 0
        base_timestamp = rows[b]["base_timestamp"]
        last_delta = rows[b]["last_offset"] - rows[b]["base_offset"]
        # Records of legacy entries come with the timestamps they have (kernels.legacy_records).
        is_log_append_time = (rows[b]["attributes"] & _TIMESTAMP_TYPE_MASK) != 0 and (
            rows[b]["magic"] == _MAGIC_V2
        )
        largest: Any = rows[b]["max_timestamp"]
        base_offset = rows[b]["base_offset"]
        fold: Any = np.uint64(0)
        previous_delta: Any = I64(-1)
        for r in range(count):
            record_pos = pos
            length, pos = read_varint(buf, pos, end)
            if pos < 0:
                return b, failure_status(pos), record_pos, r
            if length < 0:
                return b, _NEGATIVE_LENGTH, record_pos, r
            if length > end - pos:
                return b, _RECORD_TRUNCATED, record_pos, r
            timestamp_delta, offset_delta, code = _check_body(buf, pos, pos + length)
            if code != _OK:
                return b, code, record_pos, r
            if offset_delta <= previous_delta or offset_delta > last_delta:
                return b, _OFFSET_ORDER, record_pos, r
            previous_delta = offset_delta
            pos += length
            timestamp: Any = largest
            if not is_log_append_time:
                timestamp = base_timestamp + timestamp_delta
                largest = timestamp if r == 0 else max(largest, timestamp)
            fold = mix_record(fold, base_offset + offset_delta, timestamp)
        # An empty batch is empty whatever its bytes say: Kafka does not look at them.
        if count > 0 and pos != end:
            return b, _TRAILING_BYTES, pos, count
        max_timestamps_out[b] = largest
        folds_out[b] = np.int64(fold)
    return rows.size, _OK, I64(0), 0
