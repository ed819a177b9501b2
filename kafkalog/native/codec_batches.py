"""The records of many batches through zstd and lz4, one behind the other in one memory.

What else there is (other codecs, payloads that are not one block, damage, large batches) stops the
call at that batch, and its caller does it by `format.compression`. So does a function that is not
there: `decompresses` and `compresses` tell before.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kafkalog.format.compression import compress
from kafkalog.format.constants import MAX_INT32, CompressionType
from kafkalog.kernels.jit import (
    I64,
    I64_IN,
    I64_OUT,
    U8_IN,
    U8_OUT,
    I64Array,
    U8Array,
    inlined,
    kernel,
)
from kafkalog.kernels.single_blocks import find_single_blocks
from kafkalog.native import codec_functions
from kafkalog.native.calls import call_4, call_5
from kafkalog.native.functions import (
    Lz4Compress,
    Lz4Decompress,
    ZstdCompress,
    ZstdDecompress,
    tried_out,
)

_INT_BITS, _MAX_INT = 0xFFFFFFFF, MAX_INT32
_LZ4, _ZSTD = int(CompressionType.LZ4), int(CompressionType.ZSTD)
# Up to one block of a frame, lz4's own defaults make the frames that Kafka writes.
_LZ4_BLOCK_BYTES = 64 * 1024


class Functions(NamedTuple):
    """The codecs' functions; 0 is one that is not called."""

    zstd_decompress: ZstdDecompress = ZstdDecompress(0)
    zstd_compress: ZstdCompress = ZstdCompress(0)
    lz4_decompress: Lz4Decompress = Lz4Decompress(0)
    lz4_compress: Lz4Compress = Lz4Compress(0)


def decompresses(codecs: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which batches, by their codecs int64[b], `decompress_batches` can do."""
    return _are_of(codecs, bool(_functions.zstd_decompress), bool(_functions.lz4_decompress))


def compresses(codecs: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which batches, by their codecs int64[b], `compress_batches` can do."""
    return _are_of(codecs, bool(_functions.zstd_compress), bool(_functions.lz4_compress))


def _are_of(codecs: NDArray[np.int64], zstd: bool, lz4: bool) -> NDArray[np.bool_]:
    wanted: NDArray[np.bool_] = ((codecs == _ZSTD) & zstd) | ((codecs == _LZ4) & lz4)
    return wanted


def functions_found() -> Functions:
    """What is called."""
    return _functions


def decompress_batches(
    buf: U8Array,
    codecs: I64Array,
    starts: I64Array,
    ends: I64Array,
    rooms: I64Array,
    first: int,
    out: U8Array,
    size: int,
    enough: int,
    edges: I64Array,
) -> int:
    """Decompress batches from `first` on behind the `size` bytes in `out`.

    in   buf uint8[n]; codecs, starts, ends, rooms int64[b] as `find_single_blocks` left them
         enough: no further batch once `out` holds so many bytes
    out  out uint8[]: what is behind the last batch is undefined; edges int64[b + 1]: batch b ends
         at edges[b + 1]
    returns the batch where it stopped: one that is no such block, has no room, or is damaged.
    IndexError for a batch that is not within buf, and for arrays that do not fit each other
    """
    return _decompress_with(
        _functions, buf, codecs, starts, ends, rooms, first, out, size, enough, edges
    )


def compress_batches(
    buf: U8Array,
    codecs: I64Array,
    ends: I64Array,
    most_bytes: int,
    first: int,
    out: U8Array,
    size: int,
    edges: I64Array,
) -> int:
    """Compress batches from `first` on behind the `size` bytes in `out`.

    in   buf uint8[n]; codecs int64[b]; batch b is buf[ends[b - 1] or 0:ends[b]]
         most_bytes: no batch of more, uncompressed
    out  out, edges, returns, IndexError: as in `decompress_batches`
    """
    return _compress_with(_functions, buf, codecs, ends, most_bytes, first, out, size, edges)


def _decompress_with(
    functions: Functions,
    buf: U8Array,
    codecs: I64Array,
    starts: I64Array,
    ends: I64Array,
    rooms: I64Array,
    first: int,
    out: U8Array,
    size: int,
    enough: int,
    edges: I64Array,
) -> int:
    if not codecs.size == starts.size == ends.size == rooms.size == edges.size - 1:
        raise IndexError("arrays of batches of different lengths")
    _check_places(codecs.size, first, out.size, size)
    context = codec_functions.zstd_decompressor() if functions.zstd_decompress else 0
    stopped = _decompress(
        functions.zstd_decompress, context, functions.lz4_decompress,
        buf, codecs, starts, ends, rooms, first, out, size, enough, edges,
    )  # fmt: skip
    return _checked(stopped, buf.size)


def _compress_with(
    functions: Functions,
    buf: U8Array,
    codecs: I64Array,
    ends: I64Array,
    most_bytes: int,
    first: int,
    out: U8Array,
    size: int,
    edges: I64Array,
) -> int:
    if not codecs.size == ends.size == edges.size - 1:
        raise IndexError("arrays of batches of different lengths")
    _check_places(codecs.size, first, out.size, size)
    context = codec_functions.zstd_compressor() if functions.zstd_compress else 0
    stopped = _compress(
        functions.zstd_compress, context, functions.lz4_compress,
        buf, codecs, ends, most_bytes, first, out, size, edges,
    )  # fmt: skip
    return _checked(stopped, buf.size)


def _check_places(batches: int, first: int, out_bytes: int, size: int) -> None:
    if not 0 <= first <= batches:
        raise IndexError(f"batch {first} of {batches}")
    if not 0 <= size <= out_bytes:
        raise IndexError(f"{size} bytes in memory of {out_bytes}")


def _checked(stopped: int, buf_bytes: int) -> int:
    if stopped < 0:
        raise IndexError(f"batch {-1 - stopped} is not within the {buf_bytes} bytes at hand")
    return stopped


@inlined
def decompress_one(
    zstd_function: ZstdDecompress,
    zstd_context: int,
    lz4_function: Lz4Decompress,
    codec: int,
    block: int,
    length: int,
    target: int,
    room: int,
) -> int:
    """The bytes that a block of `length` at the address `block` becomes at `target`, where there is
    room for so many; below 0 where it fails.
    """
    done: int = I64(-1)
    if codec == _ZSTD and zstd_function != 0:
        done = call_5(zstd_function, zstd_context, target, room, block, length)
    elif codec == _LZ4 and lz4_function != 0:
        # An int: what it returns below 0 looks large here.
        done = call_4(lz4_function, block, target, length, room) & _INT_BITS
    # More than there was room for is no answer of a sound library.
    if done > room:
        done = I64(-1)
    return done


@kernel((I64, I64, I64, U8_IN, I64_IN, I64_IN, I64_IN, I64_IN, I64, U8_OUT, I64, I64, I64_OUT))
def _decompress(
    zstd_function: ZstdDecompress,
    zstd_context: int,
    lz4_function: Lz4Decompress,
    buf: U8Array,
    codecs: I64Array,
    starts: I64Array,
    ends: I64Array,
    rooms: I64Array,
    first: int,
    out: U8Array,
    size: int,
    enough: int,
    edges: I64Array,
) -> int:
    """As `decompress_batches`; -1 - b for a batch b that is not within buf."""
    source, target = I64(buf.ctypes.data), I64(out.ctypes.data)
    for b in range(first, codecs.size):
        # Behind this line nobody looks at places: they are true or the process is gone.
        if starts[b] < 0 or ends[b] < starts[b] or ends[b] > buf.size:
            return -1 - b
        room = rooms[b]
        if room <= 0 or room > out.size - size or size >= enough:
            return b
        done = decompress_one(
            zstd_function, zstd_context, lz4_function, codecs[b],
            source + starts[b], ends[b] - starts[b], target + size, room,
        )  # fmt: skip
        if done < 0:
            return b
        size += done
        edges[b + 1] = size
    return codecs.size


@kernel((I64, I64, I64, U8_IN, I64_IN, I64_IN, I64, I64, U8_OUT, I64, I64_OUT))
def _compress(
    zstd_function: ZstdCompress,
    zstd_context: int,
    lz4_function: Lz4Compress,
    buf: U8Array,
    codecs: I64Array,
    ends: I64Array,
    most_bytes: int,
    first: int,
    out: U8Array,
    size: int,
    edges: I64Array,
) -> int:
    """As `compress_batches`; -1 - b for a batch b that is not within buf."""
    source, target = I64(buf.ctypes.data), I64(out.ctypes.data)
    for b in range(first, codecs.size):
        start = ends[b - 1] if b else I64(0)
        length = ends[b] - start
        if start < 0 or length < 0 or ends[b] > buf.size:
            return -1 - b
        # What incompressible bytes grow to at most: ZSTD_compressBound, LZ4F_compressFrameBound.
        room = length + (length >> 7) + 128
        if length > most_bytes or room > out.size - size:
            return b
        records, place = source + start, target + size
        done = I64(-1)
        if codecs[b] == _ZSTD and zstd_function != 0:
            done = call_5(zstd_function, zstd_context, place, room, records, length)
        elif codecs[b] == _LZ4 and lz4_function != 0 and length <= _LZ4_BLOCK_BYTES:
            done = call_5(lz4_function, place, room, records, length, I64(0))
        if done < 0 or done > room:
            return b
        size += done
        edges[b + 1] = size
    return codecs.size


# -- tried out once, at import -------------------------------------------------------------------

_SAMPLE = b"".join(b"%d: one record like another, " % i for i in range(60))


def _decompresses(codec: int, functions: Functions) -> bool:
    """Whether a payload comes out as it went in, and a cut one does not."""
    payload = np.frombuffer(compress(codec, _SAMPLE), np.uint8)
    codecs, starts, ends, rooms = np.array([[codec], [0], [payload.size], [0]], np.int64)
    find_single_blocks(payload, codecs, starts, ends, MAX_INT32, starts, ends, rooms)
    out, edges = np.empty(rooms[0], np.uint8), np.zeros(2, np.int64)
    where = partial(_decompress_with, functions, payload, codecs, starts)
    if where(ends - 1, rooms, 0, out, 0, MAX_INT32, edges) != 0:
        return False
    done = where(ends, rooms, 0, out, 0, MAX_INT32, edges)
    return done == 1 and out[: int(edges[1])].tobytes() == _SAMPLE


def _compresses(codec: int, functions: Functions) -> bool:
    """Whether the bytes are those that the library's own classes make."""
    records = np.frombuffer(_SAMPLE, np.uint8)
    out, edges = np.empty(2 * records.size, np.uint8), np.zeros(2, np.int64)
    codecs, ends = np.array([[codec], [records.size]], np.int64)
    done = _compress_with(functions, records, codecs, ends, MAX_INT32, 0, out, 0, edges)
    return done == 1 and out[: int(edges[1])].tobytes() == compress(codec, _SAMPLE)


def find_functions() -> Functions:
    """Those that are there and do what they should."""
    return Functions(
        tried_out(
            "ZSTD_decompressDCtx of zstandard",
            codec_functions.find_zstd_decompress,
            lambda found: _decompresses(_ZSTD, Functions(zstd_decompress=found)),
        ),
        tried_out(
            "ZSTD_compress2 of zstandard",
            codec_functions.find_zstd_compress,
            lambda found: _compresses(_ZSTD, Functions(zstd_compress=found)),
        ),
        tried_out(
            "LZ4_decompress_safe of lz4",
            codec_functions.find_lz4_decompress,
            lambda found: _decompresses(_LZ4, Functions(lz4_decompress=found)),
        ),
        tried_out(
            "LZ4F_compressFrame of lz4",
            codec_functions.find_lz4_compress,
            lambda found: _compresses(_LZ4, Functions(lz4_compress=found)),
        ),
    )


_functions = find_functions()
