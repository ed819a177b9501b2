"""CRC-32C of many ranges: the library's function, called once a range without Python between."""

from __future__ import annotations

from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from kafkalog.format.checksum import crc32c
from kafkalog.kernels.jit import I64, I64_IN, I64_OUT, U8_IN, I64Array, U8Array, kernel
from kafkalog.native.calls import call_3
from kafkalog.native.functions import Crc32cExtend, address_of, tried_out


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
