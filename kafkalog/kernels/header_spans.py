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
from kafkalog.kernels.record_walk import read_header


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
         list_offsets_out[i] to list_offsets_out[i + 1]; key_* and value_* [>= sum of
         header_counts]; value_lengths_out -1 null
    returns (headers done, status, position of the first byte not understood, index of the record)
    """
    if header_starts.size < header_counts.size or list_offsets_out.size < header_counts.size + 1:
        return 0, status.OUTPUT_FULL, 0, 0
    h = 0
    end = buf.size
    capacity = key_starts_out.size
    # Arrow's lists: record i has the headers from its own offset to the next one's, so that a
    # record without headers repeats the number.
    list_offsets_out[0] = 0
    for r in range(header_counts.size):
        pos = I64(header_starts[r])
        count = I64(header_counts[r])
        if count < 0:
            return h, status.HEADER_COUNT, pos, r
        # Counts were read from the file: they are compared with the room for them before anything
        # is written.
        if count > capacity - h:
            return h, status.OUTPUT_FULL, pos, r
        if pos < 0 or pos > end:
            return h, status.SPAN_OUT_OF_RANGE, pos, r
        for _ in range(count):
            header = read_header(buf, pos, end)
            if header.status != status.OK:
                return h, header.status, pos, r
            key_starts_out[h], key_lengths_out[h] = header.key, header.key_length
            # Any length below 0 is null to Kafka; Arrow's layout here knows -1 alone.
            value_starts_out[h], value_lengths_out[h] = header.value, max(header.value_length, -1)
            pos = header.end
            h += 1
        list_offsets_out[r + 1] = h
    return h, status.OK, 0, 0
