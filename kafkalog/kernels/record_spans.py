"""Find where the parts of each magic 2 record are, for the records of many batches in one call.

 length varint | attributes i8 | timestamp delta varlong | offset delta varint
 key length varint, key | value length varint, value
 header count varint | per header: key length varint, key, value length varint, value

Nothing is copied: a span is a start in `buf` and a length. The walk checks what Kafka's
DefaultRecord checks: each record uses exactly its length, the record area is used up after the last
record, and no length is taken on trust.

Source: Kafka DefaultRecord.readFrom, DefaultRecordBatch.
"""

from __future__ import annotations

from kafkalog.format.constants import MAGIC_VALUE_V2, TIMESTAMP_TYPE_MASK
from kafkalog.kernels import status
from kafkalog.kernels.jit import (
    I32_OUT,
    I64,
    I64_IN,
    I64_OUT,
    ROW_IN,
    U8_IN,
    I32Array,
    I64Array,
    RowArray,
    U8Array,
    helper,
    kernel,
)
from kafkalog.kernels.varints import failure_status, read_varint, read_varlong

_TIMESTAMP_TYPE_MASK = TIMESTAMP_TYPE_MASK
_MAGIC_V2 = MAGIC_VALUE_V2

_OK = status.OK
_OUTPUT_FULL = status.OUTPUT_FULL
_NEGATIVE_COUNT = status.NEGATIVE_COUNT
_RECORD_TRUNCATED = status.RECORD_TRUNCATED
_NEGATIVE_LENGTH = status.NEGATIVE_LENGTH
_LENGTH_MISMATCH = status.LENGTH_MISMATCH
_TRAILING_BYTES = status.TRAILING_BYTES
_HEADER_COUNT = status.HEADER_COUNT
_SPAN_OUT_OF_RANGE = status.SPAN_OUT_OF_RANGE


@helper
def skip_headers(buf: U8Array, pos: int, end: int, count: int) -> tuple[int, int]:
    """Walk over `count` record headers in buf[pos:end]; returns (position behind them, status)."""
    for _ in range(count):
        length, pos = read_varint(buf, pos, end)
        if pos < 0:
            return 0, failure_status(pos)
        if length < 0:
            return 0, _NEGATIVE_LENGTH
        if length > end - pos:
            return 0, _RECORD_TRUNCATED
        length, pos = read_varint(buf, pos + length, end)
        if pos < 0:
            return 0, failure_status(pos)
        if length > end - pos:
            return 0, _RECORD_TRUNCATED
        if length > 0:
            pos += length
    return pos, _OK


@kernel(
    (
        *(U8_IN, ROW_IN, I64_IN, I64_IN),
        *(I64_OUT, I64_OUT, I64_OUT, I32_OUT, I64_OUT, I32_OUT, I64_OUT, I32_OUT, I32_OUT),
    )
)
def record_spans(
    buf: U8Array,
    rows: RowArray,
    area_starts: I64Array,
    area_ends: I64Array,
    offsets_out: I64Array,
    timestamps_out: I64Array,
    key_starts_out: I64Array,
    key_lengths_out: I32Array,
    value_starts_out: I64Array,
    value_lengths_out: I32Array,
    header_starts_out: I64Array,
    header_counts_out: I32Array,
    batch_indexes_out: I32Array,
) -> tuple[int, int, int, int]:
    """Find the spans of all records of the batches `rows`.

    in   buf uint8[n] read-only: where the uncompressed records are
         rows BATCH_ROW[b]; area_starts, area_ends int64[b]: the record area of each batch in buf
    out  *_out[>= sum of records_count], owned by the caller; rows from the failing record on are
    undefined
         key_lengths_out, value_lengths_out: -1 null, 0 empty, else bytes
         header_starts_out: position of the first header, behind the header count
         batch_indexes_out: index of the record's batch in rows
    returns (records done, status, position of the record that failed, index of its batch)
    """
    r = 0
    capacity = offsets_out.size
    for b in range(rows.size):
        pos = I64(area_starts[b])
        end = I64(area_ends[b])
        if pos < 0 or end < pos or end > buf.size:
            return r, _SPAN_OUT_OF_RANGE, pos, b
        count = I64(rows[b]["records_count"])
        if count < 0:
            return r, _NEGATIVE_COUNT, pos, b
        if count > capacity - r:
            return r, _OUTPUT_FULL, pos, b
        base_offset = rows[b]["base_offset"]
        base_timestamp = rows[b]["base_timestamp"]
        # Records of legacy entries come with the timestamps they have (kernels.legacy_records).
        is_log_append_time = (rows[b]["attributes"] & _TIMESTAMP_TYPE_MASK) != 0 and (
            rows[b]["magic"] == _MAGIC_V2
        )
        if is_log_append_time:
            base_timestamp = rows[b]["max_timestamp"]

        for _ in range(count):
            record_pos = pos
            length, pos = read_varint(buf, pos, end)
            if pos < 0:
                return r, failure_status(pos), record_pos, b
            if length < 0:
                return r, _NEGATIVE_LENGTH, record_pos, b
            if length > end - pos:
                return r, _RECORD_TRUNCATED, record_pos, b
            record_end = pos + length

            # The attributes byte is not used by any version, and not looked at.
            timestamp_delta, pos = read_varlong(buf, pos + 1, record_end)
            if pos < 0:
                return r, failure_status(pos), record_pos, b
            offset_delta, pos = read_varint(buf, pos, record_end)
            if pos < 0:
                return r, failure_status(pos), record_pos, b

            key_length, pos = read_varint(buf, pos, record_end)
            if pos < 0:
                return r, failure_status(pos), record_pos, b
            if key_length > record_end - pos:
                return r, _RECORD_TRUNCATED, record_pos, b
            key_lengths_out[r] = max(key_length, -1)
            key_starts_out[r] = pos
            pos += max(key_length, 0)

            value_length, pos = read_varint(buf, pos, record_end)
            if pos < 0:
                return r, failure_status(pos), record_pos, b
            if value_length > record_end - pos:
                return r, _RECORD_TRUNCATED, record_pos, b
            value_lengths_out[r] = max(value_length, -1)
            value_starts_out[r] = pos
            pos += max(value_length, 0)

            header_count, pos = read_varint(buf, pos, record_end)
            if pos < 0:
                return r, failure_status(pos), record_pos, b
            if header_count < 0 or header_count > record_end - pos:
                return r, _HEADER_COUNT, record_pos, b
            header_starts_out[r] = pos
            header_counts_out[r] = header_count
            if header_count > 0:
                pos, header_status = skip_headers(buf, pos, record_end, header_count)
                if header_status != _OK:
                    return r, header_status, record_pos, b
            if pos != record_end:
                return r, _LENGTH_MISMATCH, record_pos, b

            offsets_out[r] = base_offset + offset_delta
            timestamps_out[r] = (
                base_timestamp if is_log_append_time else base_timestamp + timestamp_delta
            )
            batch_indexes_out[r] = b
            r += 1
        # An empty batch is empty whatever its bytes say: Kafka does not look at them.
        if count > 0 and pos != end:
            return r, _TRAILING_BYTES, pos, b
    return r, _OK, 0, 0
