"""Record headers to flat spans, in the shape of Arrow's list of structs.

 per header: key length varint, key | value length varint, value (negative: null)

Source: Kafka DefaultRecord.readHeaders.
"""

from __future__ import annotations

from kafkalog.kernels import status
from kafkalog.kernels.jit import (
    I32_IN,
    I32_OUT,
    I64,
    I64_IN,
    I64_OUT,
    U8_IN,
    I32Array,
    I64Array,
    U8Array,
    kernel,
)
from kafkalog.kernels.varints import failure_status, read_varint

_OK = status.OK
_OUTPUT_FULL = status.OUTPUT_FULL
_RECORD_TRUNCATED = status.RECORD_TRUNCATED
_NEGATIVE_LENGTH = status.NEGATIVE_LENGTH
_HEADER_COUNT = status.HEADER_COUNT
_SPAN_OUT_OF_RANGE = status.SPAN_OUT_OF_RANGE


@kernel((U8_IN, I64_IN, I32_IN, I32_OUT, I64_OUT, I32_OUT, I64_OUT, I32_OUT))
def header_spans(
    buf: U8Array,
    header_starts: I64Array,
    header_counts: I32Array,
    list_offsets_out: I32Array,
    key_starts_out: I64Array,
    key_lengths_out: I32Array,
    value_starts_out: I64Array,
    value_lengths_out: I32Array,
) -> tuple[int, int, int, int]:
    """Find the header spans of records that `record_spans` has accepted.

    in   buf uint8[n] read-only; header_starts int64[r], header_counts int32[r] as from record_spans
    out  owned by the caller: list_offsets_out int32[r + 1], the headers of record i are those from
    list_offsets_out[i]
         to list_offsets_out[i + 1] · key_* and value_* [>= sum of header_counts]; value_lengths_out
         -1 null
    returns (headers done, status, position of the first byte not understood, index of the record)
    """
    if header_starts.size < header_counts.size or list_offsets_out.size < header_counts.size + 1:
        return 0, _OUTPUT_FULL, 0, 0
    h = 0
    end = buf.size
    capacity = key_starts_out.size
    list_offsets_out[0] = 0
    for r in range(header_counts.size):
        pos = I64(header_starts[r])
        count = I64(header_counts[r])
        if count < 0:
            return h, _HEADER_COUNT, pos, r
        if count > capacity - h:
            return h, _OUTPUT_FULL, pos, r
        if pos < 0 or pos > end:
            return h, _SPAN_OUT_OF_RANGE, pos, r
        for _ in range(count):
            header_pos = pos
            length, pos = read_varint(buf, pos, end)
            if pos < 0:
                return h, failure_status(pos), header_pos, r
            if length < 0:
                return h, _NEGATIVE_LENGTH, header_pos, r
            if length > end - pos:
                return h, _RECORD_TRUNCATED, header_pos, r
            key_starts_out[h] = pos
            key_lengths_out[h] = length
            length, pos = read_varint(buf, pos + length, end)
            if pos < 0:
                return h, failure_status(pos), header_pos, r
            if length > end - pos:
                return h, _RECORD_TRUNCATED, header_pos, r
            value_starts_out[h] = pos
            value_lengths_out[h] = max(length, -1)
            pos += max(length, 0)
            h += 1
        list_offsets_out[r + 1] = h
    return h, _OK, 0, 0
