"""The records of many batches through zstd and lz4, one behind the other in one memory.

What else there is (other codecs, payloads that are not one block, damage, large batches) stops the
kernel at that batch, and its caller does it by `format.compression`. Arguments called functions,
contexts and preferences are numbers of `format.codec_calls`.
"""

from __future__ import annotations

from kafkalog.format.constants import MAX_INT32, CompressionType
from kafkalog.kernels.jit import I64, I64_IN, I64_OUT, U8_IN, U8_OUT, I64Array, U8Array, kernel
from kafkalog.kernels.native_calls import call_4, call_5

_INT_BITS, _MAX_INT = 0xFFFFFFFF, MAX_INT32
_LZ4, _ZSTD = int(CompressionType.LZ4), int(CompressionType.ZSTD)


@kernel((I64, I64, I64, U8_IN, I64_IN, I64_IN, I64_IN, I64_IN, I64, U8_OUT, I64, I64, I64_OUT))
def decompress_batches(
    zstd_function: int,
    zstd_context: int,
    lz4_function: int,
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
    returns the batch where it stopped: one that is no such block, has no room, or is damaged
    """
    source, target = I64(buf.ctypes.data), I64(out.ctypes.data)
    for b in range(first, codecs.size):
        room = rooms[b]
        if room == 0 or room > out.size - size or size >= enough:
            return b
        block, length = source + starts[b], ends[b] - starts[b]
        if codecs[b] == _ZSTD:
            done = call_5(zstd_function, zstd_context, target + size, room, block, length)
        elif codecs[b] == _LZ4:
            done = call_4(lz4_function, block, target + size, length, room) & _INT_BITS
            if done > _MAX_INT:
                return b
        else:
            return b
        if done < 0:
            return b
        size += done
        edges[b + 1] = size
    return codecs.size


@kernel((I64, I64, I64, I64, U8_IN, I64_IN, I64_IN, I64, I64, U8_OUT, I64, I64_OUT))
def compress_batches(
    zstd_function: int,
    zstd_context: int,
    lz4_function: int,
    lz4_preferences: int,
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
    out  out, edges, returns: as in `decompress_batches`
    """
    source, target = I64(buf.ctypes.data), I64(out.ctypes.data)
    for b in range(first, codecs.size):
        start = ends[b - 1] if b else I64(0)
        length = ends[b] - start
        # What incompressible bytes grow to at most: ZSTD_compressBound, LZ4F_compressFrameBound.
        room = length + (length >> 7) + 128
        if length > most_bytes or room > out.size - size:
            return b
        records, place = source + start, target + size
        if codecs[b] == _ZSTD:
            done = call_5(zstd_function, zstd_context, place, room, records, length)
        elif codecs[b] == _LZ4:
            done = call_5(lz4_function, place, room, records, length, lz4_preferences)
        else:
            return b
        if done < 0:
            return b
        size += done
        edges[b + 1] = size
    return codecs.size
