"""Find where the parts of each magic 2 record are, for the records of many batches in one call.

Nothing is copied: a span is a start in `buf` and a length. Where only records of certain keys are
wanted, keys are compared where they lie, and of other records nothing is written. The walk
(`record_walk`) checks what Kafka's DefaultRecord checks: each record uses exactly its length, the
record area is used up after the last record, and no length is taken on trust.

Source: Kafka DefaultRecord.readFrom, DefaultRecordBatch.
"""

from __future__ import annotations

from typing import Any

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
from kafkalog.kernels.record_walk import check_area, check_headers, has_append_time, read_record


@helper
def _is_one_of(buf: U8Array, start: int, length: int, keys: U8Array, key_edges: I64Array) -> bool:
    """Whether buf[start:start + length] is one of the keys, by halves: they rise by their lengths,
    and keys of one length by their bytes from the last one on, where keys differ soonest.
    """
    low, high = I64(0), I64(key_edges.size - 1)
    while low < high:
        middle = (low + high) >> 1
        first = key_edges[middle]
        at: Any = I64(length) - 1
        difference = I64(length) - (key_edges[middle + 1] - first)
        if difference == 0:
            while at >= 0 and buf[start + at] == keys[first + at]:
                at -= 1
            if at < 0:
                return True
            difference = I64(buf[start + at]) - I64(keys[first + at])
        if difference < 0:
            high = middle
        else:
            low = middle + 1
    return False


@kernel(
    (
        *(U8_IN, ROW_IN, I64_IN, I64_IN, U8_IN, I64_IN),
        *(I64_OUT, I64_OUT, I64_OUT, I32_OUT, I64_OUT, I32_OUT, I64_OUT, I32_OUT, I32_OUT),
    )
)
def record_spans(
    buf: U8Array,
    rows: RowArray,
    area_starts: I64Array,
    area_ends: I64Array,
    keys: U8Array,
    key_edges: I64Array,
    offsets_out: I64Array,
    timestamps_out: I64Array,
    key_starts_out: I64Array,
    key_lengths_out: I32Array,
    value_starts_out: I64Array,
    value_lengths_out: I32Array,
    header_starts_out: I64Array,
    header_counts_out: I32Array,
    batch_indexes_out: I32Array,
) -> tuple[int, int, int, int, int]:
    """Find the spans of the records of the batches `rows`: of all, or of those with certain keys.

    in   buf uint8[n] read-only: where the uncompressed records are
         rows BATCH_ROW[b]; area_starts, area_ends int64[b]: the record area of each batch in buf
         keys uint8, key_edges int64[k + 1]: the wanted keys one behind the other, in the order of
         `_is_one_of`, each once; no edge at all: every record is wanted
    out  *_out[>= sum of records_count], owned by the caller; from the failing record on undefined
         key_lengths_out, value_lengths_out: -1 null, 0 empty, else bytes
         header_starts_out: position of the first header, behind the header count
         batch_indexes_out: index of the record's batch in rows
    returns (records walked, status, position of the record that failed, index of its batch,
    records written)
    """
    r = walked = 0
    for b in range(rows.size):
        code, pos, end, count = check_area(buf, rows, b, area_starts, area_ends)
        if code != status.OK:
            return walked, code, pos, b, r
        if count > offsets_out.size - r:
            return walked, status.OUTPUT_FULL, pos, b, r
        # With log-append time deltas mean nothing, and each record has the batch's maximum.
        append_time, base_offset = has_append_time(rows[b]), rows[b]["base_offset"]
        base_timestamp = rows[b]["max_timestamp"] if append_time else rows[b]["base_timestamp"]
        for _ in range(count):
            record = read_record(buf, pos, end)
            code = record.status if record.status != status.OK else check_headers(buf, record)
            if code != status.OK:
                return walked, code, pos, b, r
            walked += 1
            pos = record.end
            if key_edges.size > 0 and (
                record.key_length < 0
                or not _is_one_of(buf, record.key, record.key_length, keys, key_edges)
            ):
                continue
            offsets_out[r] = base_offset + record.offset_delta
            timestamps_out[r] = base_timestamp + (0 if append_time else record.timestamp_delta)
            key_starts_out[r], key_lengths_out[r] = record.key, max(record.key_length, -1)
            value_starts_out[r], value_lengths_out[r] = record.value, max(record.value_length, -1)
            header_starts_out[r], header_counts_out[r] = record.headers, record.header_count
            batch_indexes_out[r] = b
            r += 1
        # An empty batch is empty whatever its bytes say: Kafka does not look at them.
        if count > 0 and pos != end:
            return walked, status.TRAILING_BYTES, pos, b, r
    return walked, status.OK, 0, 0, r
