"""CRC-32C of many ranges: the library's function, called once a range without Python between."""

from __future__ import annotations

from kafkalog.kernels.jit import I64, I64_IN, I64_OUT, U8_IN, I64Array, U8Array, kernel
from kafkalog.kernels.native_calls import call_3


@kernel((I64, U8_IN, I64_IN, I64_IN, I64_OUT))
def checksum_ranges(
    function: int, buf: U8Array, starts: I64Array, ends: I64Array, checksums: I64Array
) -> None:
    """The unsigned CRC-32C of each range.

    in   function: `format.checksum.CRC32C_EXTEND`; buf uint8[n]; range b is what there is of
         buf[starts[b]:ends[b]]
    out  checksums int64[b]
    """
    source = I64(buf.ctypes.data)
    for b in range(starts.size):
        start = min(max(starts[b], I64(0)), I64(buf.size))
        size = max(min(ends[b], I64(buf.size)) - start, I64(0))
        found = call_3(function, I64(0), source + start, size)
        checksums[b] = found & I64(0xFFFFFFFF)
