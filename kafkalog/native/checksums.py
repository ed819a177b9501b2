"""CRC-32C of many ranges: the library's function, called once a range without Python between.

What a batch states of itself, once it was checked, need not be computed again for the file the
batch is in: the checksum of two parts one behind the other follows from theirs and the length of
the second (kernels.join_checksums).
"""

from __future__ import annotations

from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from kafkalog.format.checksum import crc32c, extend_crc32c
from kafkalog.format.record_batch import CRC_START
from kafkalog.kernels.jit import I64, I64_IN, I64_OUT, U8_IN, I64Array, U8Array, kernel
from kafkalog.kernels.join_checksums import POWERS, join_checksums
from kafkalog.native.calls import call_3
from kafkalog.native.functions import Crc32cExtend, address_of, tried_out

# Measured: computing the checksum of fewer bytes takes no longer than joining it.
_JOINED_BYTES = 4096


def crc32c_of_ranges(
    buf: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Unsigned CRC-32C of what there is of buf[starts[b]:ends[b]] for each b, int64[b]. IndexError
    if there are not as many starts as ends.
    """
    if starts.size != ends.size:
        raise IndexError(f"{starts.size} starts and {ends.size} ends of ranges")
    found = np.empty(starts.size, np.int64)
    if _extend:
        _checksum_ranges(_extend, buf, starts, ends, found)
    else:
        ranges = zip(np.maximum(starts, 0).tolist(), np.maximum(ends, 0).tolist(), strict=True)
        found[:] = [crc32c(buf[start:end]) for start, end in ranges]
    return found


def extend_by_batches(
    before: int, buf: NDArray[np.uint8], sizes: NDArray[np.int64], crcs: NDArray[np.int64]
) -> int:
    """Unsigned CRC-32C of the bytes that gave `before` with buf behind them, which is batches of
    these `sizes` int64[b], one behind the other from buf[0] to its end. `crcs` int64[b]: CRC-32C
    of each from CRC_START on, known to be right; -1 where it is not known. IndexError if the sizes
    are not those of buf.
    """
    if sizes.size != crcs.size or (sizes < 0).any() or int(sizes.sum()) != buf.size:
        raise IndexError(f"{sizes.size} batches, {crcs.size} checksums, in {buf.size} bytes")
    if not _extend:
        return extend_crc32c(before, buf)
    return int(_extend_by_batches(_extend, before, buf, sizes, crcs, POWERS))


@kernel((I64, I64, U8_IN, I64_IN, I64_IN, I64_IN))
def _extend_by_batches(
    function: Crc32cExtend,
    before: int,
    buf: U8Array,
    sizes: I64Array,
    crcs: I64Array,
    powers: I64Array,
) -> int:
    source, checksum = I64(buf.ctypes.data), before
    for b in range(sizes.size):
        size = sizes[b]
        is_known = crcs[b] >= 0 and size >= _JOINED_BYTES
        # The sizes are those of the buffer, as was seen before.
        found = call_3(function, checksum, source, I64(CRC_START) if is_known else size)
        checksum = found & I64(0xFFFFFFFF)
        if is_known:
            checksum = join_checksums(checksum, crcs[b], size - CRC_START, powers)
        source += size
    return checksum


@kernel((I64, U8_IN, I64_IN, I64_IN, I64_OUT))
def _checksum_ranges(
    function: Crc32cExtend, buf: U8Array, starts: I64Array, ends: I64Array, checksums_out: I64Array
) -> None:
    source = I64(buf.ctypes.data)
    for b in range(checksums_out.size):
        # Clamped against the buffer, whatever is asked for: the function reads where it is told to.
        start = min(max(starts[b], I64(0)), I64(buf.size))
        size = max(min(ends[b], I64(buf.size)) - start, I64(0))
        found = call_3(function, I64(0), source + start, size)
        checksums_out[b] = found & I64(0xFFFFFFFF)


def _find() -> Crc32cExtend:
    """uint32_t crc32c_extend(uint32_t crc, const uint8_t *data, size_t count), of the library
    behind the module.
    """
    module = import_module("google_crc32c._crc32c")
    return Crc32cExtend(address_of(module.__file__, "crc32c_extend"))


def _works(function: Crc32cExtend) -> bool:
    found = np.empty(1, np.int64)
    digits = np.frombuffer(b"(123456789)", np.uint8)
    _checksum_ranges(function, digits, np.array([1]), np.array([10]), found)
    return int(found[0]) == 0xE3069283  # the check value of RFC 3720's polynomial


_extend = tried_out("crc32c_extend of google-crc32c", _find, _works)
