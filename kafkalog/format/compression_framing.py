"""Where the blocks of a compressed payload are; found without any codec.

The frames say how long their blocks are and, roughly, how much they hold. Walking them first means
that nothing is allocated by a length we have not compared with the bytes in hand, and that a cut
stream is told apart from bad data. Errors here carry only a reason: the caller knows the batch.

 snappy   82 "SNAPPY" 00 | version i32 | compatible i32 | { length i32 | raw block } to the end
 lz4      04 22 4d 18 | FLG | BD | [content size u64] | HC
          { size u32 | block | [xxh32] } | 00 00 00 00 | [xxh32]
 zstd     28 b5 2f fd | descriptor | [window] | [dictionary] | [content size]
          { last, type, size u24 | block } | [xxh64]

Only lz4 and zstd are little-endian.

Source: snappy-java SnappyInputStream; Kafka Lz4BlockInputStream (KAFKA-3160 for the header
checksum); RFC 8878.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from kafkalog.errors import CorruptRecordError

XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER = XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_MAX_XERIAL_CHUNK = 512 * 1024 * 1024

LZ4_MAGIC = b"\x04\x22\x4d\x18"
LZ4_END_MARK = bytes(4)
_LZ4_STORED = 0x8000_0000

_ZSTD_MAGIC = 0xFD2F_B528
_ZSTD_SKIPPABLE_MAGIC = 0x184D_2A50
_ZSTD_MAX_BLOCK = 128 * 1024

_U32_LE = struct.Struct("<I")
_I32_BE = struct.Struct(">i")


# -- snappy --------------------------------------------------------------------------------------


def scan_xerial(payload: memoryview) -> Iterator[memoryview]:
    """The raw blocks of a snappy payload; without a xerial header it is one block (librdkafka)."""
    if len(payload) == 0:
        raise CorruptRecordError("snappy stream is empty")
    if len(payload) < len(XERIAL_HEADER) or payload[:8] != XERIAL_MAGIC:
        yield payload
        return
    # Chunks to the end, each with a length; a second stream may follow, with a header of its own.
    at = len(XERIAL_HEADER)
    while at + 4 <= len(payload):
        # Read as a length, the first four bytes of a header are negative: they cannot be taken for
        # one.
        (length,) = _I32_BE.unpack_from(payload, at)
        if payload[at : at + 4] == XERIAL_MAGIC[:4]:  # a second stream was appended to the first
            _check_appended_xerial_header(payload[at : at + len(XERIAL_HEADER)])
            at += len(XERIAL_HEADER)
            continue
        at += 4
        if not 0 <= length <= min(_MAX_XERIAL_CHUNK, len(payload) - at):
            raise CorruptRecordError(
                f"snappy chunk length {length}, but {len(payload) - at} bytes are left"
            )
        yield payload[at : at + length]
        at += length


def _check_appended_xerial_header(header: memoryview) -> None:
    # The versions of a first header are not looked at, those of an appended one are: so does
    # snappy-java.
    if len(header) < len(XERIAL_HEADER) or header[:8] != XERIAL_MAGIC:
        raise CorruptRecordError("snappy header of an appended stream is cut off or wrong")
    if _I32_BE.unpack_from(header, 8)[0] < 1:
        raise CorruptRecordError("snappy header of an appended stream has a version below 1")


# -- lz4 -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lz4Frame:
    """A checked frame header; `blocks_start` is the position after it."""

    max_block_bytes: int
    has_block_checksums: bool
    has_content_checksum: bool
    blocks_start: int


def parse_lz4_header(payload: memoryview, *, check_header: bool = True) -> Lz4Frame:
    """The frame header; refuses what Kafka does: dependent blocks, dictionaries, and, with
    `check_header`, a wrong HC.
    """
    if len(payload) < 7:
        raise CorruptRecordError("lz4 frame header is cut off")
    if payload[:4] != LZ4_MAGIC:
        raise CorruptRecordError(f"lz4 frame starts with {bytes(payload[:4]).hex()}")
    flags, block_descriptor = payload[4], payload[5]
    # Bits of FLG: 6-7 version, 5 independent blocks, 4 block checksums, 3 content size, 2 content
    # checksum, 1 reserved, 0 dictionary.
    if flags >> 6 != 1 or flags & 0x03 or not flags & 0x20:
        raise CorruptRecordError(
            f"lz4 frame flags {flags:#04x}: want version 1, independent blocks, no dictionary"
        )
    size_id = block_descriptor >> 4
    # BD: bits 4-6 say the largest block, 4 to 7 for 64 KiB to 4 MiB; all others are reserved.
    if block_descriptor & 0x8F or size_id < 4:
        raise CorruptRecordError(f"lz4 block descriptor {block_descriptor:#04x} is not valid")
    # Behind magic, FLG and BD the content size, if there is one; then HC.
    descriptor_end = 14 if flags & 0x08 else 6
    if len(payload) <= descriptor_end:
        raise CorruptRecordError("lz4 frame header is cut off")
    found, expected = payload[descriptor_end], lz4_header_checksum(bytes(payload[4:descriptor_end]))
    if check_header and found != expected:
        raise CorruptRecordError(f"lz4 header checksum {found:#04x}, computed {expected:#04x}")
    return Lz4Frame(
        max_block_bytes=1 << 8 + 2 * size_id,
        has_block_checksums=bool(flags & 0x10),
        has_content_checksum=bool(flags & 0x04),
        blocks_start=descriptor_end + 1,
    )


def with_wrong_lz4_checksum(frame: bytes) -> bytes:
    """The frame with the HC of magic 0: computed over the frame's magic too (KAFKA-3160)."""
    checksum = lz4_header_checksum(frame[:6])
    return frame[:6] + bytes((checksum,)) + frame[7:]


@dataclass(frozen=True, slots=True)
class Lz4Block:
    """The bytes of one block, alone and as they stand between its neighbours."""

    data: memoryview
    with_size_and_checksum: memoryview
    is_stored: bool


def scan_lz4_blocks(payload: memoryview, frame: Lz4Frame) -> Iterator[Lz4Block]:
    """Blocks up to the end mark, which must be there; what follows it is ignored, as in Kafka."""
    at = frame.blocks_start
    while True:
        if at + 4 > len(payload):
            raise CorruptRecordError("lz4 frame has no end mark")
        (word,) = _U32_LE.unpack_from(payload, at)
        size = word & ~_LZ4_STORED
        if size == 0:
            break
        end = at + 4 + size
        after = end + 4 if frame.has_block_checksums else end
        if size > frame.max_block_bytes or after > len(payload):
            raise CorruptRecordError(
                f"lz4 block size {size}, but {len(payload) - at - 4} bytes are left"
                f" and {frame.max_block_bytes} is the largest"
            )
        yield Lz4Block(payload[at + 4 : end], payload[at:after], bool(word & _LZ4_STORED))
        at = after
    if frame.has_content_checksum and at + 8 > len(payload):
        raise CorruptRecordError("lz4 content checksum is cut off")


@lru_cache(maxsize=256)
def lz4_header_checksum(descriptor: bytes) -> int:
    """HC byte: the second byte of the descriptor's xxHash32, seed 0; for less than 16 bytes."""
    # xxHash32 of fewer than 16 bytes: no lanes, only the words and bytes of the tail, then the
    # final mix.
    mask = 0xFFFF_FFFF
    prime_1, prime_2, prime_3 = 0x9E37_79B1, 0x85EB_CA77, 0xC2B2_AE3D
    prime_4, prime_5 = 0x27D4_EB2F, 0x1656_67B1

    def rotated(value: int, bits: int) -> int:
        return (value << bits | value >> 32 - bits) & mask

    digest = prime_5 + len(descriptor)
    words_end = len(descriptor) // 4 * 4
    for (word,) in _U32_LE.iter_unpack(descriptor[:words_end]):
        digest = rotated(digest + word * prime_3 & mask, 17) * prime_4 & mask
    for byte in descriptor[words_end:]:
        digest = rotated(digest + byte * prime_5 & mask, 11) * prime_1 & mask
    digest = (digest ^ digest >> 15) * prime_2 & mask
    digest = (digest ^ digest >> 13) * prime_3 & mask
    return (digest ^ digest >> 16) >> 8 & 0xFF


# -- zstd ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ZstdFrame:
    """One whole frame and the most it can hold by the sizes of its blocks."""

    data: memoryview
    content_size: int | None
    max_content_bytes: int


def scan_zstd_frames(payload: memoryview) -> Iterator[ZstdFrame]:
    """All frames of a payload, skippable ones left out; bytes that are no frame are an error."""
    if len(payload) == 0:
        raise CorruptRecordError("zstd stream is empty")
    at = 0
    while at < len(payload):
        if at + 8 > len(payload):
            raise CorruptRecordError("zstd frame header is cut off")
        (magic,) = _U32_LE.unpack_from(payload, at)
        if magic & 0xFFFF_FFF0 == _ZSTD_SKIPPABLE_MAGIC:
            at += 8 + _U32_LE.unpack_from(payload, at + 4)[0]
            if at > len(payload):
                raise CorruptRecordError("zstd skippable frame is cut off")
            continue
        if magic != _ZSTD_MAGIC:
            raise CorruptRecordError(f"zstd frame starts with {magic:#010x}")
        frame = _parse_zstd_frame(payload[at:])
        yield frame
        at += len(frame.data)


def _parse_zstd_frame(data: memoryview) -> ZstdFrame:
    descriptor = data[4]
    is_single_segment = bool(descriptor & 0x20)
    # Bits of the descriptor: 0-1 size of the dictionary id, 2 checksum, 5 single segment, 6-7 size
    # of the content size (RFC 8878, 3.1.1.1.1). A single segment has no window byte, and always a
    # content size.
    size_flag = descriptor >> 6
    size_bytes = 1 << size_flag if size_flag or is_single_segment else 0
    size_start = 5 + (not is_single_segment) + (0, 1, 2, 4)[descriptor & 3]
    at = size_start + size_bytes
    if at > len(data):
        raise CorruptRecordError("zstd frame header is cut off")
    content_size = None
    if size_bytes:
        content_size = int.from_bytes(data[size_start:at], "little") + (
            256 if size_bytes == 2 else 0
        )
    # Block by block to the last one, which finds where the frame ends and the most it can hold.
    most, is_last = 0, False
    while not is_last:
        if at + 3 > len(data):
            raise CorruptRecordError("zstd frame is cut off before its last block")
        word = int.from_bytes(data[at : at + 3], "little")
        is_last, kind, size = bool(word & 1), word >> 1 & 3, word >> 3
        if kind == 3 or size > _ZSTD_MAX_BLOCK:
            raise CorruptRecordError(f"zstd block of type {kind} and size {size} is not valid")
        at += 3 + (1 if kind == 1 else size)  # type 1: one byte, repeated `size` times
        most += _ZSTD_MAX_BLOCK if kind == 2 else size
    at += 4 if descriptor & 0x04 else 0
    if at > len(data):
        raise CorruptRecordError("zstd frame is cut off in its last block or checksum")
    return ZstdFrame(data[:at], content_size, most)
