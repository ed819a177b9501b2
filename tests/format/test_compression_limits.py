"""Bombs, cut streams and forged lengths: a named error within the cap, never a crash or a hang."""

from __future__ import annotations

import contextlib
import gzip
import random
import struct
import time
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.errors import (
    CorruptRecordError,
    KafkaLogError,
    RecordTooLargeError,
    UnsupportedCompressionTypeError,
)
from kafkalog.format.compression import compress, decompress
from kafkalog.format.compression_framing import lz4_header_checksum
from kafkalog.format.constants import CompressionType
from kafkalog.format.varint import pack_unsigned_varint
from tests.format import vectors

NONE, GZIP, SNAPPY, LZ4, ZSTD = CompressionType
REAL_CODECS = [GZIP, SNAPPY, LZ4, ZSTD]
MIB = 1 << 20
ZEROS = bytes(32 * MIB)
PAYLOAD = random.Random(1).randbytes(3000) * 40


def lz4_frame(data: bytes, **options: Any) -> bytes:
    """A frame as Kafka takes it, with more options than Kafka's own."""
    return bytes(lz4.frame.compress(data, block_linked=False, store_size=False, **options))


def frame_lz4(blocks: bytes, descriptor: str = "6040") -> bytes:
    """Anything under a header whose checksum is right."""
    raw = bytes.fromhex(descriptor)
    return bytes.fromhex("04224d18") + raw + bytes([lz4_header_checksum(raw)]) + blocks


def frame_zstd(blocks: bytes, descriptor: int = 0, rest: bytes = b"\x58") -> bytes:
    return bytes.fromhex("28b52ffd") + bytes([descriptor]) + rest + blocks


def zstd_block(kind: int, size: int, data: bytes, *, last: bool = True) -> bytes:
    return (size << 3 | kind << 1 | last).to_bytes(3, "little") + data


# -- the cap -------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", CompressionType)
def test_payload_of_exactly_the_cap_passes_and_one_byte_more_does_not(codec: int) -> None:
    packed = compress(codec, PAYLOAD)
    assert bytes(decompress(codec, packed, max_bytes=len(PAYLOAD))) == PAYLOAD
    with pytest.raises(RecordTooLargeError, match=f"larger than {len(PAYLOAD) - 1} bytes"):
        decompress(codec, packed, max_bytes=len(PAYLOAD) - 1)


BOMBS: dict[str, tuple[CompressionType, Callable[[], bytes]]] = {
    "gzip": (GZIP, lambda: gzip.compress(ZEROS)),
    "gzip members": (GZIP, lambda: gzip.compress(bytes(MIB)) * 40),
    "snappy": (SNAPPY, lambda: compress(SNAPPY, ZEROS)),
    "lz4": (LZ4, lambda: compress(LZ4, ZEROS)),
    "lz4 blocks of 4 MiB": (LZ4, lambda: lz4_frame(ZEROS, block_size=7)),
    "zstd": (ZSTD, lambda: compress(ZSTD, ZEROS)),
    "zstd with content size": (ZSTD, lambda: zstandard.ZstdCompressor().compress(ZEROS)),
    "zstd frames": (ZSTD, lambda: compress(ZSTD, bytes(MIB)) * 40),
    "zstd repeated bytes": (
        ZSTD,
        lambda: frame_zstd(zstd_block(1, 131072, b"z", last=False) * 320 + zstd_block(0, 0, b"")),
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bomb_stops_at_the_cap(name: str) -> None:
    codec, build = BOMBS[name]
    bomb = build()
    tracemalloc.start()
    try:
        with pytest.raises(RecordTooLargeError):
            decompress(codec, bomb, max_bytes=4 * MIB)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The cap, a growing buffer's copy of it, and one block of the codec.
    assert peak < 13 * MIB


def test_many_tiny_gzip_members_take_linear_time() -> None:
    def seconds(count: int) -> float:
        packed = gzip.compress(b"") * count
        start = time.process_time()
        assert decompress(GZIP, packed, max_bytes=10) == b""
        return time.process_time() - start

    few = max(seconds(2000) for _ in range(3))
    # Quadratic would be 256 times as long.
    assert min(seconds(32_000) for _ in range(3)) < 100 * few


# -- cut and damaged streams ---------------------------------------------------------------------


@pytest.mark.parametrize("codec", REAL_CODECS)
def test_cut_stream_is_corrupt_or_shorter_never_longer(codec: int) -> None:
    packed = compress(codec, PAYLOAD)
    cuts = {0, 1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 20, len(packed) - 1, len(packed) - 4}
    for cut in cuts | set(range(25, len(packed), 997)):
        try:
            part = decompress(codec, packed[:cut], max_bytes=MIB)
        except CorruptRecordError:
            continue
        # Only snappy has no end: cut at or just behind a chunk it is a shorter stream, and the
        # record count of the batch must tell.
        assert codec == SNAPPY
        assert PAYLOAD.startswith(part)


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD])
def test_stream_cut_anywhere_is_corrupt_if_the_codec_has_an_end(codec: int) -> None:
    packed = compress(codec, b"a short payload, " * 3)
    for cut in range(len(packed)):
        with pytest.raises(CorruptRecordError):
            decompress(codec, packed[:cut], max_bytes=MIB)


@given(st.sampled_from(REAL_CODECS), st.data())
def test_damaged_stream_yields_bytes_or_a_named_error(codec: int, data: st.DataObject) -> None:
    packed = bytearray(compress(codec, PAYLOAD[:2000] + bytes(3000)))
    for _ in range(data.draw(st.integers(1, 5))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(KafkaLogError):
        assert len(decompress(codec, packed, max_bytes=MIB)) <= MIB


@given(st.sampled_from(REAL_CODECS), st.binary(max_size=60))
def test_garbage_yields_bytes_or_a_named_error(codec: int, garbage: bytes) -> None:
    starts = {
        GZIP: b"\x1f\x8b\x08\x00",
        SNAPPY: b"\x82SNAPPY\0" + bytes(8),
        LZ4: vectors.SPEC_LZ4_HEADER,
        ZSTD: b"\x28\xb5\x2f\xfd",
    }
    for start in (b"", starts[CompressionType(codec)]):
        with contextlib.suppress(KafkaLogError):
            decompress(codec, start + garbage, max_bytes=MIB)


FORGED = {
    "gzip is not gzip": (GZIP, b"PK\x03\x04", "gzip stream"),
    "snappy is empty": (SNAPPY, b"", "snappy stream is empty"),
    "snappy chunk is longer than the rest": (
        SNAPPY,
        compress(SNAPPY, b"")[:16] + struct.pack(">i", 2**31 - 1) + b"abc",
        "chunk length 2147483647, but 3 bytes are left",
    ),
    "snappy chunk length is negative": (
        SNAPPY,
        compress(SNAPPY, b"")[:16] + struct.pack(">i", -5) + b"abc",
        "chunk length -5",
    ),
    "snappy block of no bytes": (SNAPPY, compress(SNAPPY, b"") + bytes(4), "snappy block"),
    "snappy appended header is cut": (
        SNAPPY,
        compress(SNAPPY, b"abc") + b"\x82SNAPPY\0",
        "appended stream is cut off",
    ),
    "snappy block promises 4 GiB": (
        SNAPPY,
        pack_unsigned_varint(2**32 - 1) + b"\x00a",
        "cannot hold 4294967295",
    ),
    "snappy length has no end": (SNAPPY, b"\xff" * 8, "snappy block"),
    "lz4 magic": (LZ4, b"\x05" + compress(LZ4, b"abc")[1:], "lz4 frame starts with 05224d18"),
    "lz4 broken header checksum": (
        LZ4,
        vectors.SPEC_LZ4_HEADER_BROKEN_CHECKSUM + bytes(4),
        "header checksum 0x1a, computed 0x82",
    ),
    "lz4 dependent blocks": (LZ4, frame_lz4(bytes(4), "4040"), "independent blocks"),
    "lz4 version": (LZ4, frame_lz4(bytes(4), "a040"), "want version 1"),
    "lz4 dictionary": (LZ4, frame_lz4(bytes(4), "6140"), "no dictionary"),
    "lz4 reserved bit": (LZ4, frame_lz4(bytes(4), "6240"), "lz4 frame flags"),
    "lz4 block size id": (LZ4, frame_lz4(bytes(4), "6030"), "block descriptor"),
    "lz4 reserved block bits": (LZ4, frame_lz4(bytes(4), "6041"), "block descriptor"),
    "lz4 no end mark": (LZ4, compress(LZ4, b"abc")[:-4], "no end mark"),
    "lz4 block above its maximum": (
        LZ4,
        frame_lz4(struct.pack("<I", 65537) + bytes(65537 + 4)),
        "block size 65537",
    ),
    "lz4 block longer than the rest": (
        LZ4,
        frame_lz4(struct.pack("<I", 60000)),
        "block size 60000, but 0 bytes are left",
    ),
    "lz4 block holds more than its maximum": (
        LZ4,
        frame_lz4(
            lz4.frame.compress(bytes(200_000), block_size=5, block_linked=False, store_size=False)[
                7:
            ]
        ),
        "lz4 block",
    ),
    "lz4 content checksum is cut": (
        LZ4,
        lz4.frame.compress(b"abc", block_linked=False, content_checksum=True, store_size=False)[
            :-1
        ],
        "content checksum is cut off",
    ),
    "zstd is empty": (ZSTD, b"", "zstd stream is empty"),
    "zstd magic": (ZSTD, b"\x27" + compress(ZSTD, b"abc")[1:], "zstd frame starts with 0xfd2fb527"),
    "zstd trailing bytes": (ZSTD, compress(ZSTD, b"abc") + b"\0\0\0", "header is cut off"),
    "zstd trailing garbage": (ZSTD, compress(ZSTD, b"abc") + bytes(20), "frame starts with"),
    "zstd reserved block type": (ZSTD, frame_zstd(zstd_block(3, 5, b"hello")), "block of type 3"),
    "zstd block above its maximum": (
        ZSTD,
        frame_zstd(zstd_block(1, 128 * 1024 + 1, b"x")),
        "size 131073",
    ),
    "zstd block longer than the rest": (ZSTD, frame_zstd(zstd_block(0, 50, b"hello")), "cut off"),
    "zstd skippable frame longer than the rest": (
        ZSTD,
        struct.pack("<II", 0x184D2A50, 2**32 - 1) + b"abc",
        "skippable frame is cut off",
    ),
    "zstd forged content size": (
        ZSTD,
        frame_zstd(zstd_block(0, 5, b"hello"), 0xE0, struct.pack("<Q", 2**60)),
        "says 1152921504606846976 bytes, its blocks hold at most 5",
    ),
    "zstd content size that is not met": (
        ZSTD,
        frame_zstd(zstd_block(1, 100, b"h"), 0xA0, struct.pack("<I", 99)),
        "zstd frame",
    ),
    "zstd checksum": (
        ZSTD,
        zstandard.ZstdCompressor(write_checksum=True).compress(b"abc")[:-1] + b"?",
        "zstd frame",
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_stream_is_corrupt_and_says_what_was_found(name: str) -> None:
    codec, payload, reason = FORGED[name]
    with pytest.raises(CorruptRecordError, match=reason) as caught:
        decompress(codec, payload, max_bytes=MIB, path="t-0/0.log", position=9, offset=8)
    error = caught.value
    assert (error.path, error.position, error.offset) == ("t-0/0.log", 9, 8)


@pytest.mark.parametrize("codec", [5, 6, 7, -1, 8])
def test_codec_without_a_name_is_unsupported(codec: int) -> None:
    with pytest.raises(UnsupportedCompressionTypeError, match=f"codec {codec} ") as caught:
        decompress(codec, b"abc", max_bytes=10, position=9)
    assert caught.value.position == 9
    with pytest.raises(UnsupportedCompressionTypeError):
        compress(codec, b"abc")


def test_thread_state_survives_a_damaged_stream() -> None:
    good = compress(ZSTD, PAYLOAD)
    for _ in range(3):
        with pytest.raises(CorruptRecordError):
            decompress(ZSTD, frame_zstd(zstd_block(2, 5, b"hello")), max_bytes=MIB)
        assert decompress(ZSTD, good, max_bytes=MIB) == PAYLOAD
    assert zlib.crc32(PAYLOAD) == zlib.crc32(decompress(ZSTD, good, max_bytes=MIB))
