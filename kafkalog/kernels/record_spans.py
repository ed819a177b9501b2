"""Find where the parts of each magic 2 record are, for the records of many batches in one call.

Nothing is copied: a span is a start in `buf` and a length. The walk (`record_walk`) checks what
Kafka's DefaultRecord checks: each record uses exactly its length, the record area is used up after
the last record, and no length is taken on trust.

Source: Kafka DefaultRecord.readFrom, DefaultRecordBatch.
"""

from __future__ import annotations

from kafkalog.kernels import status
from kafkalog.kernels.jit import (
    I32_OUT,
    I64_IN,
    I64_OUT,
    ROW_IN,
    U8_IN,
    I32Array,
    I64Array,
    RowArray,
    U8Array,
    kernel,
)
from kafkalog.kernels.record_walk import check_area, check_headers, has_append_time, read_record


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
    out  *_out[>= sum of records_count], owned by the caller; from the failing record on undefined
         key_lengths_out, value_lengths_out: -1 null, 0 empty, else bytes
         header_starts_out: position of the first header, behind the header count
         batch_indexes_out: index of the record's batch in rows
    returns (records done, status, position of the record that failed, index of its batch)
    """
    r = 0
    for b in range(rows.size):
        code, pos, end, count = check_area(buf, rows, b, area_starts, area_ends)
        if code != status.OK:
            return r, code, pos, b
        if count > offsets_out.size - r:
            return r, status.OUTPUT_FULL, pos, b
        # With log-append time deltas mean nothing, and each record has the batch's maximum.
        append_time, base_offset = has_append_time(rows[b]), rows[b]["base_offset"]
        base_timestamp = rows[b]["max_timestamp"] if append_time else rows[b]["base_timestamp"]
        for _ in range(count):
            record = read_record(buf, pos, end)
            code = record.status if record.status != status.OK else check_headers(buf, record)
            if code != status.OK:
                return r, code, pos, b
            offsets_out[r] = base_offset + record.offset_delta
            timestamps_out[r] = base_timestamp + (0 if append_time else record.timestamp_delta)
            key_starts_out[r], key_lengths_out[r] = record.key, max(record.key_length, -1)
            value_starts_out[r], value_lengths_out[r] = record.value, max(record.value_length, -1)
            header_starts_out[r], header_counts_out[r] = record.headers, record.header_count
            batch_indexes_out[r] = b
            r += 1
            pos = record.end
        # An empty batch is empty whatever its bytes say: Kafka does not look at them.
        if count > 0 and pos != end:
            return r, status.TRAILING_BYTES, pos, b
    return r, status.OK, 0, 0
