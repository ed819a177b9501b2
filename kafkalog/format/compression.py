"""Compressed payloads: bytes ↔ bytes for each codec; with the room `native` the place that knows
the libraries.

The format does not bound what a payload may grow to, and a forged length or a bomb is a few bytes
long. So every decoder works against `max_bytes`: lengths are compared with the bytes in hand before
anything is allocated by them, and output stops at most one codec block (4 MiB) past the cap.

What is accepted is what Kafka accepts: several gzip members with garbage after the last one, snappy
with or without the xerial header, lz4 frames of independent blocks up to their end mark, any number
of zstd frames. What is written has Kafka's framing and default levels. Other libraries' bytes
differ within a block and are as valid.

Source: Kafka GzipCompression, SnappyCompression, Lz4Compression, ZstdCompression, CompressionType.
"""

from __future__ import annotations

import struct
import threading
import zlib

import lz4.block
import lz4.frame
import zstandard

from kafkalog.errors import (
    CorruptRecordError,
    KafkaLogError,
    RecordTooLargeError,
    UnsupportedCompressionTypeError,
)
from kafkalog.format.buffers import BytesLike, as_view
from kafkalog.format.compression_framing import (
    LZ4_END_MARK,
    LZ4_MAGIC,
    XERIAL_HEADER,
    lz4_header_checksum,
    parse_lz4_header,
    scan_lz4_blocks,
    scan_xerial,
    scan_zstd_frames,
    with_wrong_lz4_checksum,
)
from kafkalog.format.constants import MAGIC_VALUE_V0, MAGIC_VALUE_V2, CompressionType

GZIP_LEVEL = 6
ZSTD_LEVEL = 3
SNAPPY_BLOCK_BYTES = 32 * 1024

# The header that Java writes: no mtime, no extra flags, operating system "unknown".
_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_GZIP_MEMBER_START = _GZIP_HEADER[:3]
_GZIP_NEXT_MEMBER_BYTES = 64
# zstd's own limit for a decoder that was not told otherwise (ZSTD_WINDOWLOG_LIMIT_DEFAULT); Kafka
# leaves it there.
_ZSTD_MAX_WINDOW_BYTES = 1 << 27
# A snappy copy element makes at most 64 bytes of 3.
_SNAPPY_MAX_GROWTH = 64


class _Codecs(threading.local):
    """Contexts are expensive to create and not safe to share: one set a thread, on first use."""

    def __init__(self) -> None:
        self.zstd_compressor = zstandard.ZstdCompressor(
            level=ZSTD_LEVEL, write_content_size=False, write_checksum=False
        )
        self.zstd_decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW_BYTES)


_codecs = _Codecs()


def decompress(
    codec: int,
    payload: BytesLike,
    *,
    max_bytes: int,
    magic: int = MAGIC_VALUE_V2,
    path: str | None = None,
    position: int | None = None,
    offset: int | None = None,
) -> bytes | memoryview:
    """The uncompressed payload of a batch; for codec 0 a view of `payload` itself. See
    `decompress_parts`.
    """
    parts = decompress_parts(
        codec,
        payload,
        max_bytes=max_bytes,
        magic=magic,
        path=path,
        position=position,
        offset=offset,
    )
    return parts[0] if len(parts) == 1 else b"".join(parts)


def decompress_parts(
    codec: int,
    payload: BytesLike,
    *,
    max_bytes: int,
    magic: int = MAGIC_VALUE_V2,
    path: str | None = None,
    position: int | None = None,
    offset: int | None = None,
) -> list[bytes | memoryview]:
    """The uncompressed payload of a batch, part by part as the codec gives it: a large batch need
    not lie in memory twice. `magic` is the batch's: in magic 0 the header checksum of an lz4 frame
    is not looked at (KAFKA-3160).

    Raises RecordTooLargeError past `max_bytes`, CorruptRecordError for what the codec does not
    understand and UnsupportedCompressionTypeError for codecs 5-7; `path`, `position`, `offset` say
    in them which batch it is.
    """
    try:
        data = as_view(payload)
        if codec == CompressionType.NONE:
            if len(data) > max_bytes:
                raise _too_large("none", max_bytes)
            return [data]
        # Each codec bounds its output before or while it is made: no length in the payload is
        # trusted.
        if codec == CompressionType.GZIP:
            return _decompress_gzip(data, max_bytes)
        if codec == CompressionType.SNAPPY:
            return _decompress_snappy(data, max_bytes)
        if codec == CompressionType.LZ4:
            return _decompress_lz4(data, max_bytes, magic != MAGIC_VALUE_V0)
        if codec == CompressionType.ZSTD:
            return _decompress_zstd(data, max_bytes)
        raise UnsupportedCompressionTypeError(f"compression codec {codec} is not known")
    except KafkaLogError as error:
        error.path, error.position, error.offset = path, position, offset
        raise


def decompress_snappy_block(block: memoryview, out: memoryview) -> int:
    """Decompress one block straight into `out`; the bytes written. For zstd and lz4 see
    `native.codec_batches`.

    -1 if it does not decompress, or needs more room than that: `decompress_parts` says why.
    """
    import cramjam  # late, as below

    try:
        return cramjam.snappy.decompress_raw_into(block, out)
    except (cramjam.DecompressionError, ValueError):
        return -1


def compress(codec: int, payload: BytesLike, *, magic: int = MAGIC_VALUE_V2) -> bytes:
    """`payload` in Kafka's framing for `codec`, at Kafka's default level; codec 0 copies it. For a
    batch of magic 0 an lz4 frame gets the wrong header checksum that Kafka gives it there.
    """
    if codec == CompressionType.NONE:
        return bytes(payload)
    if codec == CompressionType.GZIP:
        return _compress_gzip(as_view(payload))
    if codec == CompressionType.SNAPPY:
        return _compress_snappy(as_view(payload))
    if codec == CompressionType.LZ4:
        frame = _compress_lz4(as_view(payload))
        return with_wrong_lz4_checksum(frame) if magic == MAGIC_VALUE_V0 else frame
    if codec == CompressionType.ZSTD:
        return _codecs.zstd_compressor.compress(as_view(payload))
    raise UnsupportedCompressionTypeError(f"compression codec {codec} is not known")


# -- gzip ----------------------------------------------------------------------------------------


def _decompress_gzip(data: memoryview, max_bytes: int) -> list[bytes | memoryview]:
    parts: list[bytes | memoryview] = []
    total, at = 0, 0
    # The first member gets all bytes at once. zlib copies what a member leaves over, so later ones
    # are fed in growing pieces: otherwise many tiny members would cost a copy of the rest each.
    piece_bytes = len(data)
    while True:
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            piece = data[at : at + piece_bytes]
            if len(piece) == 0:
                raise CorruptRecordError("gzip stream is cut off")
            try:
                part = member.decompress(piece, max_bytes - total + 1)
            except zlib.error as error:
                raise CorruptRecordError(f"gzip stream: {error}") from None
            total += len(part)
            if total > max_bytes:
                raise _too_large("gzip", max_bytes)
            parts.append(part)
            at += len(piece) - len(member.unused_data)
            piece_bytes *= 2
        if data[at : at + len(_GZIP_MEMBER_START)] != _GZIP_MEMBER_START:
            return parts
        piece_bytes = _GZIP_NEXT_MEMBER_BYTES


def _compress_gzip(data: memoryview) -> bytes:
    # Raw deflate, between the header that Java writes and a trailer: zlib would write a header of
    # its own.
    deflater = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    trailer = struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFF_FFFF)
    return b"".join((_GZIP_HEADER, deflater.compress(data), deflater.flush(), trailer))


# -- snappy --------------------------------------------------------------------------------------
# cramjam has many codecs, and takes a fiftieth of a short command to import: few have snappy.


def _decompress_snappy(data: memoryview, max_bytes: int) -> list[bytes | memoryview]:
    import cramjam

    parts: list[bytes | memoryview] = []
    total = 0
    for block in scan_xerial(data):
        try:
            length = cramjam.snappy.decompress_raw_len(block)
        except cramjam.DecompressionError as error:
            raise CorruptRecordError(f"snappy block: {error}") from None
        # The block says first how long its output is; more than its bytes can make is damage.
        if length > len(block) * _SNAPPY_MAX_GROWTH:
            raise CorruptRecordError(f"snappy block of {len(block)} bytes cannot hold {length}")
        total += length
        if total > max_bytes:
            raise _too_large("snappy", max_bytes)
        try:
            parts.append(memoryview(cramjam.snappy.decompress_raw(block)))
        except cramjam.DecompressionError as error:
            raise CorruptRecordError(f"snappy block: {error}") from None
    return parts


def _compress_snappy(data: memoryview) -> bytes:
    import cramjam

    parts: list[bytes | memoryview] = [XERIAL_HEADER]
    # Blocks of the size that snappy-java writes, each with its length in front.
    for start in range(0, len(data), SNAPPY_BLOCK_BYTES):
        block = cramjam.snappy.compress_raw(data[start : start + SNAPPY_BLOCK_BYTES])
        parts += (struct.pack(">i", len(block)), memoryview(block))
    return b"".join(parts)


# -- lz4 -----------------------------------------------------------------------------------------


def _decompress_lz4(
    data: memoryview, max_bytes: int, check_header: bool
) -> list[bytes | memoryview]:
    # Block by block: a frame decoder would verify what Kafka skips, accept what Kafka refuses, and
    # is slower.
    frame = parse_lz4_header(data, check_header=check_header)
    parts: list[bytes | memoryview] = []
    total = 0
    for block in scan_lz4_blocks(data, frame):
        part: bytes | memoryview = block.data
        try:
            # Kafka checks these, unlike the content checksum at the end, which it reads past.
            if frame.has_block_checksums:
                part = _decompress_checked_lz4(block.with_size_and_checksum, data[5])
            elif not block.is_stored:
                part = lz4.block.decompress(block.data, uncompressed_size=frame.max_block_bytes)
        except (lz4.block.LZ4BlockError, RuntimeError) as error:
            raise CorruptRecordError(f"lz4 block: {error}") from None
        total += len(part)
        if total > max_bytes:
            raise _too_large("lz4", max_bytes)
        parts.append(part)
    return parts


def _decompress_checked_lz4(block: memoryview, block_descriptor: int) -> bytes:
    """A block with its xxh32, put into a frame of its own so that the library checks it."""
    descriptor = bytes((0x70, block_descriptor))  # version 1, independent, checksum of each block
    header = LZ4_MAGIC + descriptor + bytes((lz4_header_checksum(descriptor),))
    return bytes(lz4.frame.decompress(header + block + LZ4_END_MARK))


def has_sound_lz4_content(payload: BytesLike, *, magic: int = MAGIC_VALUE_V2) -> bool:
    """Whether the content checksum of an lz4 frame, which Kafka reads past, is right; True for a
    frame without one, and for one that cannot be read, which is another matter.

    The caller has decompressed the payload before, against its cap.
    """
    data = as_view(payload)
    try:
        frame = parse_lz4_header(data, check_header=False)
    except CorruptRecordError:
        return True
    if not frame.has_content_checksum:
        return True
    # The header checksum of such frames is wrong on purpose (KAFKA-3160): under a right one the
    # library reads on to the content checksum.
    if magic == MAGIC_VALUE_V0:
        descriptor = bytes(data[4 : frame.blocks_start - 1])
        header = LZ4_MAGIC + descriptor + bytes((lz4_header_checksum(descriptor),))
        data = memoryview(header + bytes(data[frame.blocks_start :]))
    try:
        lz4.frame.LZ4FrameDecompressor().decompress(data)
    except RuntimeError as error:
        return "contentChecksum" not in str(error)
    return True


def _compress_lz4(data: memoryview) -> bytes:
    return bytes(
        lz4.frame.compress(
            data,
            compression_level=0,  # Kafka's default level 9 means "fast" there
            block_size=lz4.frame.BLOCKSIZE_MAX64KB,
            block_linked=False,
            store_size=False,
        )
    )


# -- zstd ----------------------------------------------------------------------------------------


def _decompress_zstd(data: memoryview, max_bytes: int) -> list[bytes | memoryview]:
    parts: list[bytes | memoryview] = []
    left = max_bytes
    for frame in scan_zstd_frames(data):
        # The blocks in hand bound what a frame can hold: a content size above that is a claim, not
        # a fact.
        if frame.content_size is not None:
            if frame.content_size > frame.max_content_bytes:
                raise CorruptRecordError(
                    f"zstd frame says {frame.content_size} bytes, its blocks hold at most"
                    f" {frame.max_content_bytes}"
                )
            if frame.content_size > left:
                raise _too_large("zstd", max_bytes)
        # Without a content size the library allocates this much; 0 would mean "unknown" to it.
        room = max(1, min(frame.max_content_bytes, left))
        try:
            part = _codecs.zstd_decompressor.decompress(frame.data, max_output_size=room)
        except zstandard.ZstdError as error:
            # It did not fit into what the cap left: too large, not corrupt.
            if room < frame.max_content_bytes and "full frame" in str(error):
                raise _too_large("zstd", max_bytes) from None
            raise CorruptRecordError(f"zstd frame: {error}") from None
        left -= len(part)
        if left < 0:
            raise _too_large("zstd", max_bytes)
        parts.append(part)
    return parts


def _too_large(codec: str, max_bytes: int) -> RecordTooLargeError:
    return RecordTooLargeError(
        f"not read: above the limit: {codec} payload is larger than {max_bytes} bytes uncompressed"
    )
