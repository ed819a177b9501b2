"""Where the functions of zstd and lz4 are, and the contexts that zstd wants.

The libraries are those in the wheels of `zstandard` and `lz4`. Their classes cost a call from
Python a batch and a `bytes` to copy from: for batches of 16 KiB a third to a half of what the
codecs take.

Only functions that their libraries promise to keep are used, and only of a version 1.

Source: zstd.h, ZSTD_decompressDCtx, ZSTD_compress2; lz4.h, LZ4_decompress_safe; lz4frame.h,
LZ4F_compressFrame.
"""

from __future__ import annotations

import threading
from importlib import import_module
from typing import Any

import lz4

from kafkalog.format.compression import ZSTD_LEVEL
from kafkalog.native.functions import (
    Lz4Compress,
    Lz4Decompress,
    ZstdCompress,
    ZstdDecompress,
    address_of,
)

_VERSION_1 = 10_000


def _zstd() -> Any:
    """The module behind zstandard's backend `cffi`: the C functions under their own names."""
    module: Any = import_module("zstandard._cffi")
    number = module.lib.ZSTD_versionNumber()
    if number // _VERSION_1 != 1:
        raise ImportError(f"zstd of version number {number}")
    return module


def _lz4_address(module: str, name: str) -> int:
    number = lz4.library_version_number()
    if number // _VERSION_1 != 1:
        raise ImportError(f"lz4 of version number {number}")
    return address_of(import_module(module).__file__, name)


def _zstd_address(name: str) -> int:
    module = _zstd()
    return _number(module, module.ffi.addressof(module.lib, name))


def _number(module: Any, pointer: Any) -> int:
    return int(module.ffi.cast("intptr_t", pointer))


def find_zstd_decompress() -> ZstdDecompress:
    """AttributeError or ImportError where it is not."""
    return ZstdDecompress(_zstd_address("ZSTD_decompressDCtx"))


def find_zstd_compress() -> ZstdCompress:
    """AttributeError or ImportError where it is not."""
    return ZstdCompress(_zstd_address("ZSTD_compress2"))


def find_lz4_decompress() -> Lz4Decompress:
    """AttributeError, ImportError or OSError where it is not."""
    return Lz4Decompress(_lz4_address("lz4.block._block", "LZ4_decompress_safe"))


def find_lz4_compress() -> Lz4Compress:
    """AttributeError, ImportError or OSError where it is not."""
    return Lz4Compress(_lz4_address("lz4.frame._frame", "LZ4F_compressFrame"))


class _Contexts:
    """Expensive to create and not safe to share: one set a thread."""

    def __init__(self) -> None:
        module = _zstd()
        lib, ffi = module.lib, module.ffi
        decompressor = ffi.gc(lib.ZSTD_createDCtx(), lib.ZSTD_freeDCtx)
        compressor = ffi.gc(lib.ZSTD_createCCtx(), lib.ZSTD_freeCCtx)
        if not decompressor or not compressor:
            raise MemoryError("no memory for zstd")
        for setting, value in (
            (lib.ZSTD_c_compressionLevel, ZSTD_LEVEL),
            (lib.ZSTD_c_contentSizeFlag, 0),
            (lib.ZSTD_c_checksumFlag, 0),
        ):
            lib.ZSTD_CCtx_setParameter(compressor, setting, value)
        self._owners = decompressor, compressor  # freed with them
        self.decompressor = _number(module, decompressor)
        self.compressor = _number(module, compressor)


_of_thread = threading.local()


def _contexts() -> _Contexts:
    found: _Contexts | None = getattr(_of_thread, "contexts", None)
    if found is None:
        found = _of_thread.contexts = _Contexts()
    return found


def zstd_decompressor() -> int:
    """The context of this thread for ZstdDecompress."""
    return _contexts().decompressor


def zstd_compressor() -> int:
    """The context of this thread for ZstdCompress: Kafka's level, frames as Kafka's stream has
    them, without content size and checksum.
    """
    return _contexts().compressor
