"""CRCs of the on-disk structures; the one place that knows the libraries.

CRC-32C (Castagnoli) guards magic 2 batches and producer snapshots, CRC-32 (IEEE) guards magic 0 and
1 messages.
"""

from __future__ import annotations

import zlib
from importlib import import_module

import google_crc32c
import numpy as np

from kafkalog.format.buffers import BytesLike, as_view
from kafkalog.format.native_functions import address_of

# By address, for kernels: uint32_t crc32c_extend(uint32_t crc, const uint8_t *data, size_t count)
# of the library behind that module.
if google_crc32c.implementation != "c":
    raise ImportError("kafkalog needs google-crc32c with its C library, which its wheels have")
CRC32C_EXTEND = address_of(import_module("google_crc32c._crc32c").__file__, "crc32c_extend")


def crc32c(data: BytesLike) -> int:
    """Unsigned CRC-32C of `data`; nothing is copied."""
    # The library takes read-only buffers and arrays, but no bytearray and no view of one.
    return int(google_crc32c.value(data if type(data) is bytes else np.frombuffer(data, np.uint8)))


def extend_crc32c(crc: int, data: BytesLike) -> int:
    """Unsigned CRC-32C of the bytes that gave `crc` (0 for none) with `data` behind them."""
    contiguous = data if type(data) is bytes else np.frombuffer(data, np.uint8)
    return int(google_crc32c.extend(crc, contiguous))


def crc32(data: BytesLike) -> int:
    """Unsigned CRC-32 of `data`; nothing is copied."""
    return zlib.crc32(as_view(data))


def extend_crc32(crc: int, data: BytesLike) -> int:
    """Unsigned CRC-32 of the bytes that gave `crc` (0 for none) with `data` behind them."""
    return zlib.crc32(as_view(data), crc)


def adler32(data: BytesLike) -> int:
    """Unsigned Adler-32 of `data`, which guards ZooKeeper's files; nothing is copied."""
    return zlib.adler32(as_view(data))
