"""Read batch headers where bodies are large: one small read a batch, from header to header.

Stops in front of whatever is not a whole and sound magic 2 batch: `scan_batches`, over a window
that is read as a whole, says what it is.
"""

from __future__ import annotations

from kafkalog.format import constants
from kafkalog.format.record_batch import HEADER, field_position
from kafkalog.kernels.big_endian import read_i32
from kafkalog.kernels.jit import I64, I64_OUT, U8_OUT, I64Array, U8Array, kernel
from kafkalog.kernels.native_calls import call_4

_BATCH_LENGTH = field_position("batch_length")
_MAGIC = field_position("magic")
_RECORDS_COUNT = field_position("records_count")
_HEADER_BYTES = HEADER.itemsize
_OVERHEAD = constants.LOG_OVERHEAD
_MAGIC_V2 = constants.MAGIC_VALUE_V2


@kernel((I64, I64, I64, I64, U8_OUT, I64_OUT))
def hop_headers(
    pread: int, descriptor: int, position: int, end: int, headers: U8Array, positions: I64Array
) -> tuple[int, int]:
    """The first bytes of the batches from `position` of a file on, as they lie on disk.

    in   pread: the address of pread(2); descriptor: of the file; end: a batch must end there or
         before
    out  headers uint8[s * b]: of each batch the first s >= 61 bytes, as far as it goes; positions
         int64[b]
    returns (how many, the position behind their batches)
    """
    target = I64(headers.ctypes.data)
    stride = headers.size // max(positions.size, 1)
    for b in range(positions.size):
        at = b * stride
        if call_4(pread, descriptor, target + at, I64(stride), position) < _HEADER_BYTES:
            return b, position
        size = read_i32(headers, at + _BATCH_LENGTH) + _OVERHEAD
        if (
            headers[at + _MAGIC] != _MAGIC_V2
            or read_i32(headers, at + _RECORDS_COUNT) < 0
            or size < _HEADER_BYTES
            or size > end - position
        ):
            return b, position
        positions[b] = position
        position += size
    return positions.size, position
