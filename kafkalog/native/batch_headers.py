"""Read batch headers where bodies are large: one small read a batch, from header to header.

Stops in front of whatever is not a whole and sound magic 2 batch: `scan_batches`, over a window
that is read as a whole, says what it is.
"""

from __future__ import annotations

import os

import numpy as np

from kafkalog.format import constants
from kafkalog.format.record_batch import HEADER, field_position, pack_batch
from kafkalog.kernels.big_endian import read_i32
from kafkalog.kernels.jit import I64, I64_OUT, U8_OUT, I64Array, U8Array, kernel
from kafkalog.native.calls import call_4
from kafkalog.native.functions import Pread, address_of, tried_out

_BATCH_LENGTH = field_position("batch_length")
_MAGIC = field_position("magic")
_RECORDS_COUNT = field_position("records_count")
_HEADER_BYTES = HEADER.itemsize
_OVERHEAD = constants.LOG_OVERHEAD
_MAGIC_V2 = constants.MAGIC_VALUE_V2


def read_headers(
    descriptor: int, position: int, end: int, headers: U8Array, positions: I64Array
) -> tuple[int, int]:
    """The first bytes of the batches from `position` of a file on, as they lie on disk.

    in   descriptor: of the file; end: a batch must end there or before
    out  headers uint8[s * b]: of each batch the first s >= 61 bytes, as far as it goes; positions
         int64[b]
    returns (how many, the position behind their batches). IndexError for s < 61
    """
    if headers.size < positions.size * _HEADER_BYTES:
        raise IndexError(f"{headers.size} bytes for the headers of {positions.size} batches")
    if not _pread:
        return 0, position
    done: tuple[int, int] = _read(_pread, descriptor, position, end, headers, positions)
    return done


@kernel((I64, I64, I64, I64, U8_OUT, I64_OUT))
def _read(
    pread: Pread, descriptor: int, position: int, end: int, headers: U8Array, positions: I64Array
) -> tuple[int, int]:
    # The address of the array's memory: room for all headers was checked before, and each call
    # writes no more than one stride.
    target = I64(headers.ctypes.data)
    stride = headers.size // max(positions.size, 1)
    for b in range(positions.size):
        at = b * stride
        # Less than a header: the end of the file, or an error, which the slower way finds out.
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


def _find() -> Pread:
    return Pread(address_of(None, "pread"))


def _works(pread: Pread) -> bool:
    """Whether it reads a batch of a file in memory, from its position on and no further."""
    batch = pack_batch([], base_offset=7)
    headers, positions = np.zeros(2 * _HEADER_BYTES, np.uint8), np.zeros(2, np.int64)
    descriptor = os.memfd_create("kafkalog")
    try:
        os.pwrite(descriptor, b"before" + batch, 0)
        found = _read(pread, descriptor, 6, 6 + len(batch), headers, positions)
    finally:
        os.close(descriptor)
    read = headers[:_HEADER_BYTES].tobytes()
    return found == (1, 6 + len(batch)) and read == batch and not headers[_HEADER_BYTES:].any()


_pread = tried_out("pread of the C library", _find, _works)
