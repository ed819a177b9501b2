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


def crc32c(data: BytesLike) -> int:
    """Unsigned CRC-32C of `data`; nothing is copied."""
    # The library takes read-only buffers and arrays, but no bytearray and no view of one.
    return int(google_crc32c.value(data if type(data) is bytes else np.frombuffer(data, np.uint8)))


def extend_crc32c(crc: int, data: BytesLike) -> int:
    """Unsigned CRC-32C of the bytes that gave `crc` (0 for none) with `data` behind them."""
    contiguous = data if type(data) is bytes else np.frombuffer(data, np.uint8)
    return int(google_crc32c.extend(crc, contiguous))


def crc32c_of_ranges(
    buf: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.int64]:
    """CRC-32C of buf[starts[b]:ends[b]] for each b, int64[b]; once per batch on every path, hence
    without detours.
    """
    checksum = google_crc32c.value
    return np.array(
        [
            checksum(buf[start:end])
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ],
        np.int64,
    )


def crc32(data: BytesLike) -> int:
    """Unsigned CRC-32 of `data`; nothing is copied."""
    return zlib.crc32(as_view(data))


def crc32_of_ranges(
    buf: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.int64]:
    """CRC-32 of buf[starts[b]:ends[b]] for each b, int64[b]."""
    checksum, view = zlib.crc32, buf.data
    return np.array(
        [
            checksum(view[start:end])
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ],
        np.int64,
    )


def adler32(data: BytesLike) -> int:
    """Unsigned Adler-32 of `data`, which guards ZooKeeper's files; nothing is copied."""
    return zlib.adler32(as_view(data))
