"""CRC-32C of many ranges: libraries' functions, called once a range without Python between.

crc-fast, a Rust library in the module of obstore, takes vectors of 512 bits where the processor has
them; it begins anew with each call. google-crc32c goes on from a checksum, and does the work of
both where crc-fast is not there.

What a batch states of itself, once it was checked, need not be computed again for the file the
batch is in: the checksum of two parts one behind the other follows from theirs and the length of
the second (kernels.join_checksums).

Source: libcrc_fast.h, crc_fast_crc32_iscsi (CRC-32C by its name in iSCSI, RFC 3720).
"""

from __future__ import annotations

from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from kafkalog.format.checksum import crc32c, extend_crc32c
from kafkalog.format.record_batch import CRC_START
from kafkalog.kernels.jit import I64, I64_IN, I64_OUT, U8_IN, I64Array, U8Array, helper, kernel
from kafkalog.kernels.join_checksums import POWERS, join_checksums
from kafkalog.native.calls import call_2, call_3
from kafkalog.native.functions import Crc32c, Crc32cExtend, address_of, tried_out

# Measured: computing the checksum of fewer bytes takes no longer than joining it.
_JOINED_BYTES = 4096
# And of fewer than these google-crc32c has gone on before crc-fast and the join are through.
_EXTENDED_BYTES = 16 * 1024
_BITS = 0xFFFFFFFF


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
        _checksum_ranges(_whole, _extend, buf, starts, ends, found)
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
    if _extend:
        found = int(_extend_by_batches(_whole, _extend, before, buf, sizes, crcs, POWERS))
    elif sizes.size != crcs.size or (sizes < 0).any() or int(sizes.sum()) != buf.size:
        found = -1
    else:
        found = extend_crc32c(before, buf)
    if found < 0:
        raise IndexError(f"{sizes.size} batches, {crcs.size} checksums, in {buf.size} bytes")
    return found


@helper
def _extended(
    whole: Crc32c, extend: Crc32cExtend, before: int, source: int, size: int, powers: I64Array
) -> int:
    """CRC-32C of the bytes that gave `before` with the `size` bytes at `source` behind them."""
    if whole == 0 or size < _EXTENDED_BYTES:
        found: int = call_3(extend, before, source, size) & I64(_BITS)
        return found
    behind = call_2(whole, source, size) & I64(_BITS)
    joined: int = join_checksums(before, behind, size, powers)
    return joined


@kernel((I64, I64, I64, U8_IN, I64_IN, I64_IN, I64_IN))
def _extend_by_batches(
    whole: Crc32c,
    extend: Crc32cExtend,
    before: int,
    buf: U8Array,
    sizes: I64Array,
    crcs: I64Array,
    powers: I64Array,
) -> int:
    # What is read lies in the buffer, whatever the sizes say; -1 if they are not those of it.
    left = I64(buf.size)
    for b in range(sizes.size):
        if sizes[b] < 0 or sizes[b] > left:
            return -1
        left -= sizes[b]
    if left or sizes.size != crcs.size:
        return -1
    # Batches that are not joined are computed with those before them.
    source, pending, checksum = I64(buf.ctypes.data), I64(0), before
    for b in range(sizes.size):
        pending += sizes[b]
        if crcs[b] >= 0 and sizes[b] >= _JOINED_BYTES:
            joined = sizes[b] - CRC_START
            checksum = _extended(whole, extend, checksum, source, pending - joined, powers)
            checksum = join_checksums(checksum, crcs[b], joined, powers)
            source, pending = source + pending, I64(0)
    return _extended(whole, extend, checksum, source, pending, powers)


@kernel((I64, I64, U8_IN, I64_IN, I64_IN, I64_OUT))
def _checksum_ranges(
    whole: Crc32c,
    extend: Crc32cExtend,
    buf: U8Array,
    starts: I64Array,
    ends: I64Array,
    checksums_out: I64Array,
) -> None:
    source = I64(buf.ctypes.data)
    for b in range(checksums_out.size):
        # Clamped against the buffer, whatever is asked for: the function reads where it is told to.
        start = min(max(starts[b], I64(0)), I64(buf.size))
        size = max(min(ends[b], I64(buf.size)) - start, I64(0))
        # Measured: of a few bytes one takes as long as the other.
        if whole != 0:
            found = call_2(whole, source + start, size)
        else:
            found = call_3(extend, I64(0), source + start, size)
        checksums_out[b] = found & I64(_BITS)


def _find_whole() -> Crc32c:
    """uint32_t crc_fast_crc32_iscsi(const char *data, size_t len). The module that has it is not
    run: that takes longer, and with obstore in it a process is not forked any more.
    """
    package = find_spec("obstore")
    module = package and PathFinder.find_spec("_obstore", package.submodule_search_locations)
    if not module:
        raise ImportError("no module obstore._obstore")
    return Crc32c(address_of(module.origin, "crc_fast_crc32_iscsi"))


def _is_right(whole: Crc32c) -> bool:
    """Whether it agrees with google-crc32c around the lengths where libraries take other ways, at
    any alignment.
    """
    lengths = [edge + more for edge in _EDGES for more in (-1, 0, 1)]
    starts = np.arange(len(lengths)) % 67
    ends = starts + np.array(lengths)
    # Bytes of no order, and not by numpy.random, whose import takes as long as all else here.
    buf = (np.arange(ends.max(), dtype=np.uint32) * np.uint32(2654435761) >> 24).astype(np.uint8)
    found = np.empty(starts.size, np.int64)
    _checksum_ranges(whole, Crc32cExtend(0), buf, starts, ends, found)
    ranges = zip(starts.tolist(), ends.tolist(), strict=True)
    return found.tolist() == [crc32c(buf[start:end]) for start, end in ranges]


# Of vectors of 16, 32 and 64 bytes, of blocks of several of them, of strides of pages.
_EDGES = (1, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 8192, 65536)


def _find() -> Crc32cExtend:
    """uint32_t crc32c_extend(uint32_t crc, const uint8_t *data, size_t count), of the library
    behind the module.
    """
    module = import_module("google_crc32c._crc32c")
    return Crc32cExtend(address_of(module.__file__, "crc32c_extend"))


def _works(function: Crc32cExtend) -> bool:
    found = np.empty(1, np.int64)
    digits = np.frombuffer(b"(123456789)", np.uint8)
    _checksum_ranges(Crc32c(0), function, digits, np.array([1]), np.array([10]), found)
    return int(found[0]) == 0xE3069283  # the check value of RFC 3720's polynomial


def find_whole() -> Crc32c:
    """crc-fast's function; 0 where it is not, or does not agree with google-crc32c."""
    name = "crc_fast_crc32_iscsi of obstore"
    return tried_out(name, _find_whole, _is_right, "google-crc32c does its work")


_extend = tried_out("crc32c_extend of google-crc32c", _find, _works)
# Where Python computes checksums there is nothing to do for it.
_whole = find_whole() if _extend else Crc32c(0)
