"""Compressed batches that are one block of their codec, found for many batches at once.

What producers write is nearly always that: a frame header, one block, the frame's end. Such a
payload is handed to the codec as it lies. Whatever else there is (several blocks or frames,
checksums, headers of other writers, damage) is left to `format.compression`, which walks it step by
step and says what is wrong. For the layouts see `format.compression_framing`.

Source: RFC 8878; Kafka Lz4BlockOutputStream; snappy-java SnappyOutputStream.
"""

from __future__ import annotations

from kafkalog.format.constants import CompressionType
from kafkalog.kernels.big_endian import read_i32
from kafkalog.kernels.jit import I64, I64_IN, I64_OUT, U8_IN, I64Array, U8Array, helper, kernel
from kafkalog.kernels.varints import read_uvarint

_SNAPPY, _LZ4, _ZSTD = (
    int(codec) for codec in (CompressionType.SNAPPY, CompressionType.LZ4, CompressionType.ZSTD)
)

# The header of Java's frames: independent blocks of at most 64 KiB, no checksums.
_LZ4_HEADER_HIGH, _LZ4_HEADER_LOW = 0x04224D18, 0x604082
_LZ4_HEADER_BYTES = 7
_LZ4_BLOCK_BYTES = 64 * 1024
_ZSTD_MAGIC = 0x28B52FFD  # as it lies, read as if it were big-endian
_ZSTD_MAX_BLOCK = 128 * 1024
# Windows of less than 128 MiB, the most that Kafka takes (its decoder is not told otherwise).
_ZSTD_MAX_WINDOW_EXPONENT = 26 - 10
_XERIAL_HIGH, _XERIAL_LOW = 0x82534E41 - (1 << 32), 0x50505900
_XERIAL_HEADER_BYTES = 16
# A copy element of snappy makes at most 64 bytes of 3.
_SNAPPY_MAX_GROWTH = 64


@helper
def _read_little_endian(buf: U8Array, pos: int, size: int) -> int:
    # Codecs are little-endian where Kafka is not.
    value: int = I64(0)
    for byte in range(size):
        value |= I64(buf[pos + byte]) << (8 * byte)
    return value


@helper
def _lz4_block(buf: U8Array, start: int, end: int) -> tuple[int, int, int]:
    # Around the block: its size in front, and the end mark of four zero bytes behind it. The size
    # compared below is of a compressed block: an uncompressed one has the top bit set, so never
    # fits.
    size = end - start - _LZ4_HEADER_BYTES - 8
    if (
        size < 1
        or read_i32(buf, start) != _LZ4_HEADER_HIGH
        or read_i32(buf, start + 3) & 0xFFFFFF != _LZ4_HEADER_LOW
        or _read_little_endian(buf, start + _LZ4_HEADER_BYTES, 4) != size
        or read_i32(buf, end - 4) != 0
    ):
        return start, end, 0
    return start + _LZ4_HEADER_BYTES + 4, end - 4, _LZ4_BLOCK_BYTES


@helper
def _snappy_block(buf: U8Array, start: int, end: int) -> tuple[int, int, int]:
    # Raw snappy, or a xerial stream (16 bytes of header, then blocks with their size in front)
    # whose only block reaches to the end.
    block = start
    if (
        end - start >= _XERIAL_HEADER_BYTES
        and read_i32(buf, start) == _XERIAL_HIGH
        and read_i32(buf, start + 4) == _XERIAL_LOW
    ):
        block = start + _XERIAL_HEADER_BYTES + 4
        if block > end or read_i32(buf, block - 4) != end - block:
            return start, end, 0
    # Snappy says its uncompressed size first. One that its bytes cannot grow to is damage, or an
    # attempt to have memory allocated.
    room, after = read_uvarint(buf, block, end)
    if after < 0 or room > (end - block) * _SNAPPY_MAX_GROWTH:
        return start, end, 0
    return block, end, room


@helper
def _zstd_frame(buf: U8Array, start: int, end: int) -> tuple[int, int, int]:
    if end - start < 8 or read_i32(buf, start) != _ZSTD_MAGIC:
        return start, end, 0
    # Frame header descriptor: bits 0-1 size of a dictionary id, 2 checksum at the end, 5 single
    # segment (no window descriptor), 6-7 size of the content size field (RFC 8878, 3.1.1.1.1).
    descriptor = I64(buf[start + 4])
    is_single_segment = (descriptor >> 5) & 1
    size_flag = descriptor >> 6
    size_bytes = I64(1) << size_flag if size_flag or is_single_segment else I64(0)
    dictionary = descriptor & 3
    if dictionary:
        return start, end, 0
    if not is_single_segment and I64(buf[start + 5]) >> 3 > _ZSTD_MAX_WINDOW_EXPONENT:
        return start, end, 0
    # Behind magic and descriptor there is a window descriptor of one byte, unless it is a single
    # segment.
    at = start + 6 - is_single_segment
    content_bytes: int = I64(-1)
    if size_bytes:
        if at + size_bytes > end:
            return start, end, 0
        # Of two bytes the field counts from 256 on (RFC 8878, 3.1.1.1.4).
        content_bytes = _read_little_endian(buf, at, size_bytes) + 256 * (size_bytes == 2)
    at += size_bytes
    most: int = I64(0)
    is_last: int = I64(0)
    # Several blocks of one frame are walked only to know the room: the frame is decompressed as a
    # whole.
    while not is_last:
        if at + 3 > end:
            return start, end, 0
        # Block header: bit 0 last block, 1-2 type (0 raw, 1 one byte repeated, 2 compressed, 3
        # reserved), then the block's size; of a repeated byte one byte lies there.
        word = _read_little_endian(buf, at, 3)
        is_last, kind, size = word & 1, (word >> 1) & 3, word >> 3
        if kind == 3 or size > _ZSTD_MAX_BLOCK:
            return start, end, 0
        at += 3 + (1 if kind == 1 else size)
        most += _ZSTD_MAX_BLOCK if kind == 2 else size
    # A content checksum, if bit 2 says so, has four bytes.
    at += descriptor & 4
    if at != end or content_bytes > most:
        return start, end, 0
    return start, end, most if content_bytes < 0 else content_bytes


@kernel((U8_IN, I64_IN, I64_IN, I64_IN, I64, I64_OUT, I64_OUT, I64_OUT))
def find_single_blocks(
    buf: U8Array,
    codecs: I64Array,
    starts: I64Array,
    ends: I64Array,
    max_bytes: int,
    starts_out: I64Array,
    ends_out: I64Array,
    rooms_out: I64Array,
) -> None:
    """What to hand to the codec of each of b batches, and the memory that the result needs.

    in   buf uint8[n]; codecs int64[b], CompressionType; the payload of batch b is
         buf[starts[b]:ends[b]], within buf; max_bytes caps the room
    out  starts_out, ends_out int64[b]: the block (for zstd the frame) of a payload that is one;
         rooms_out int64[b]: it holds at most so many bytes, by what its header and size say. 0: it
         is something else, and the other two are the whole payload
    """
    for b in range(codecs.size):
        start, end, room = starts[b], ends[b], I64(0)
        if codecs[b] == _LZ4:
            start, end, room = _lz4_block(buf, starts[b], ends[b])
        elif codecs[b] == _SNAPPY:
            start, end, room = _snappy_block(buf, starts[b], ends[b])
        elif codecs[b] == _ZSTD:
            start, end, room = _zstd_frame(buf, starts[b], ends[b])
        # What would pass the cap goes the slow way, which finds out while it decompresses and
        # raises.
        if room == 0 or room > max_bytes:
            start, end, room = starts[b], ends[b], I64(0)
        starts_out[b], ends_out[b], rooms_out[b] = start, end, room
