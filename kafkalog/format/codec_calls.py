"""zstd and lz4 as kernels call them: addresses of the libraries' functions, and what to call them
with.

The libraries are those in the wheels of `zstandard` and `lz4`. Their classes cost a call from
Python a batch and a `bytes` to copy from: for batches of 16 KiB a third to a half of what the
codecs take.

Source: zstd.h, ZSTD_decompressDCtx, ZSTD_compress2; lz4.h, LZ4_decompress_safe; lz4frame.h,
LZ4F_compressFrame.
"""

from __future__ import annotations

import ctypes
import threading
from importlib import import_module
from typing import Any

from lz4.block import _block
from lz4.frame import _frame

from kafkalog.format.compression import ZSTD_LEVEL
from kafkalog.format.native_functions import address_of

# The module behind zstandard's backend `cffi`, which has the C functions under their own names.
_zstd: Any = import_module("zstandard._cffi")
_lib, _ffi = _zstd.lib, _zstd.ffi

_LZ4F_MAX_64_KIB = 4
_LZ4F_INDEPENDENT_BLOCKS = 1


def _address(pointer: Any) -> int:
    return int(_ffi.cast("intptr_t", pointer))


class _Lz4Preferences(ctypes.Structure):
    """LZ4F_preferences_t; zeros are the library's defaults."""

    _fields_ = (
        ("block_size_id", ctypes.c_int),
        ("block_mode", ctypes.c_int),
        ("content_checksum", ctypes.c_int),
        ("frame_type", ctypes.c_int),
        ("content_size", ctypes.c_ulonglong),
        ("dictionary_id", ctypes.c_uint),
        ("block_checksum", ctypes.c_int),
        ("level", ctypes.c_int),
        ("auto_flush", ctypes.c_uint),
        ("favor_decompression", ctypes.c_uint),
        ("reserved", ctypes.c_uint * 3),
    )


# (context, out, room in out, data, size of data) -> bytes written, below 0 where it failed.
ZSTD_DECOMPRESS = _address(_ffi.addressof(_lib, "ZSTD_decompressDCtx"))
ZSTD_COMPRESS = _address(_ffi.addressof(_lib, "ZSTD_compress2"))
# (data, out, size of data, room in out) -> int of bytes written, below 0 where it failed.
LZ4_DECOMPRESS = address_of(_block.__file__, "LZ4_decompress_safe")
# (out, room in out, data, size of data, preferences) -> bytes written, below 0 where it failed.
LZ4_COMPRESS = address_of(_frame.__file__, "LZ4F_compressFrame")

# Kafka's frames: independent blocks of 64 KiB, no checksums, the library's usual level.
_lz4_preferences = _Lz4Preferences(_LZ4F_MAX_64_KIB, _LZ4F_INDEPENDENT_BLOCKS)
LZ4_PREFERENCES = ctypes.addressof(_lz4_preferences)


class _Contexts(threading.local):
    """Dear to create and not safe to share: one set a thread, made on first use."""

    def __init__(self) -> None:
        decompressor = _ffi.gc(_lib.ZSTD_createDCtx(), _lib.ZSTD_freeDCtx)
        compressor = _ffi.gc(_lib.ZSTD_createCCtx(), _lib.ZSTD_freeCCtx)
        if not decompressor or not compressor:
            raise MemoryError("no memory for zstd")
        for setting, value in (
            (_lib.ZSTD_c_compressionLevel, ZSTD_LEVEL),
            (_lib.ZSTD_c_contentSizeFlag, 0),
            (_lib.ZSTD_c_checksumFlag, 0),
        ):
            _lib.ZSTD_CCtx_setParameter(compressor, setting, value)
        self._owners = decompressor, compressor  # freed with them
        self.decompressor, self.compressor = _address(decompressor), _address(compressor)


_contexts = _Contexts()


def zstd_decompressor() -> int:
    """The context of this thread for `ZSTD_DECOMPRESS`."""
    return _contexts.decompressor


def zstd_compressor() -> int:
    """The context of this thread for `ZSTD_COMPRESS`: Kafka's level, frames as Kafka's stream has
    them, without content size and checksum.
    """
    return _contexts.compressor
