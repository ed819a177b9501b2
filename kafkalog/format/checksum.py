"""CRCs of the on-disk structures; the one place that knows the libraries.

CRC-32C (Castagnoli) guards magic 2 batches and producer snapshots, CRC-32 (IEEE) guards magic 0 and
1 messages.
"""

from __future__ import annotations

import zlib

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from kafkalog.format.buffers import BytesLike, as_view

# Where a system has no wheel with the C library, the package brings a slow implementation, which
# takes nothing but bytes.
_TAKES_ARRAYS = google_crc32c.implementation == "c"


def _contiguous(data: BytesLike) -> bytes | NDArray[np.uint8]:
    # The library takes read-only buffers and arrays, but no bytearray and no view of one.
    if type(data) is bytes:
        return data
    return np.frombuffer(data, np.uint8) if _TAKES_ARRAYS else bytes(data)


def crc32c(data: BytesLike) -> int:
    """Unsigned CRC-32C of `data`; nothing is copied."""
    return int(google_crc32c.value(_contiguous(data)))


def extend_crc32c(crc: int, data: BytesLike) -> int:
    """Unsigned CRC-32C of the bytes that gave `crc` (0 for none) with `data` behind them."""
    return int(google_crc32c.extend(crc, _contiguous(data)))


def crc32(data: BytesLike) -> int:
    """Unsigned CRC-32 of `data`; nothing is copied."""
    return zlib.crc32(as_view(data))


def extend_crc32(crc: int, data: BytesLike) -> int:
    """Unsigned CRC-32 of the bytes that gave `crc` (0 for none) with `data` behind them."""
    return zlib.crc32(as_view(data), crc)


def adler32(data: BytesLike) -> int:
    """Unsigned Adler-32 of `data`, which guards ZooKeeper's files; nothing is copied."""
    return zlib.adler32(as_view(data))
