"""Byte spans to Arrow's binary layout: values in one buffer, int32 offsets, a validity bitmap.

Short values, most keys and many values, are copied by whole vector registers past their end, where
both buffers have the room: the next value overwrites the surplus. Only the last few of a buffer,
and long ones, need an exact copy.
"""

from __future__ import annotations

from kafkalog.format.constants import MAX_INT32
from kafkalog.kernels import status
from kafkalog.kernels.copying import WIDE, copy_bytes, copy_wide
from kafkalog.kernels.jit import (
    I32_IN,
    I32_OUT,
    I64_IN,
    U8,
    U8_IN,
    U8_OUT,
    I32Array,
    I64Array,
    U8Array,
    kernel,
)

_OK = status.OK
_OUTPUT_FULL = status.OUTPUT_FULL
_SPAN_OUT_OF_RANGE = status.SPAN_OUT_OF_RANGE

_MAX_INT32 = MAX_INT32
_WIDE = WIDE
# Measured: from here on the call of memcpy costs less than the loop.
_LONG = 8 * WIDE


@kernel((I32_IN,))
def measure(lengths: I32Array) -> tuple[int, int]:
    """(bytes that `gather` writes for these lengths, how many of them are null)."""
    total = 0
    nulls = 0
    for r in range(lengths.size):
        length = lengths[r]
        # A null has length -1 and no bytes.
        total += max(length, 0)
        nulls += length < 0
    return total, nulls


@kernel((U8_IN, I64_IN, I32_IN, U8_OUT, I32_OUT, U8_OUT))
def gather(
    buf: U8Array,
    starts: I64Array,
    lengths: I32Array,
    values_out: U8Array,
    offsets_out: I32Array,
    validity_out: U8Array,
) -> tuple[int, int, int, int]:
    """Copy spans of `buf` one behind the other.

    in   buf uint8[n] read-only; starts int64[r], lengths int32[r]: -1 null, 0 empty
    out  owned by the caller: values_out uint8[>= sum of lengths], its content past that sum is
    undefined ·
         offsets_out int32[r + 1] · validity_out uint8[>= (r + 7) // 8], bit set = not null
    returns (values done, status, bytes written, nulls among them); OUTPUT_FULL if an output is too
    small or the bytes pass int32, SPAN_OUT_OF_RANGE if a span is not inside buf
    """
    n = lengths.size
    if starts.size < n or offsets_out.size < n + 1 or validity_out.size < (n + 7) // 8:
        return 0, _OUTPUT_FULL, 0, 0
    nulls = 0
    end = 0
    bits = 0
    capacity = min(values_out.size, _MAX_INT32)
    # Where a wide copy may start in either buffer without leaving it.
    last_wide = buf.size - _WIDE
    last_wide_out = values_out.size - _WIDE
    offsets_out[0] = 0
    # Spans are held against the buffer once more, whoever made them: here is where bytes are read.
    for r in range(n):
        length = int(lengths[r])
        if length >= 0:
            bits |= 1 << (r & 7)
            start = int(starts[r])
            if start < 0 or length > buf.size - start:
                return r, _SPAN_OUT_OF_RANGE, end, nulls
            if length > capacity - end:
                return r, _OUTPUT_FULL, end, nulls
            # The last wide copy of a value begins at or before its last byte, so both buffers need
            # room for one register from there.
            last = length - 1
            if length <= _LONG and start + last <= last_wide and end + last <= last_wide_out:
                for i in range(0, length, _WIDE):
                    copy_wide(values_out, end + i, buf, start + i)
            else:
                copy_bytes(values_out, end, buf, start, length)
            end += length
        else:
            # A null repeats the end of the value before it, as Arrow asks.
            nulls += 1
        offsets_out[r + 1] = end
        if (r & 7) == 7:
            # Arrow's bitmap has the least significant bit first: a byte is written when its eight
            # are known.
            validity_out[r >> 3] = U8(bits)
            bits = 0
    if (n & 7) != 0:
        validity_out[n >> 3] = U8(bits)
    return n, _OK, end, nulls
