"""What each codec accepts and writes, against other implementations of the same formats."""

from __future__ import annotations

import gzip
import random
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor

import cramjam
import lz4.frame
import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.errors import CorruptRecordError
from kafkalog.format.compression import compress, decompress
from kafkalog.format.compression_framing import lz4_header_checksum
from kafkalog.format.constants import CompressionType
from tests.format import vectors
from tests.support import kafka_python

NONE, GZIP, SNAPPY, LZ4, ZSTD = CompressionType
CAP = 4 << 20

PROSE = b" ".join(b"record %d of a batch" % (i * i % 977) for i in range(20_000))
NOISE = random.Random(3).randbytes(150_000)
PAYLOADS = {"empty": b"", "byte": b"x", "prose": PROSE, "noise": NOISE, "zeros": bytes(300_000)}

OTHER_ENCODERS = {
    "gzip": (GZIP, kafka_python.codec.gzip_encode),
    "gzip of the stdlib": (GZIP, gzip.compress),
    "snappy xerial": (SNAPPY, kafka_python.codec.snappy_encode),
    "snappy xerial 1 KiB": (
        SNAPPY,
        lambda data: kafka_python.codec.snappy_encode(data, xerial_blocksize=1024),
    ),
    "snappy raw": (SNAPPY, lambda data: bytes(cramjam.snappy.compress_raw(data))),
    "lz4": (LZ4, kafka_python.codec.lz4_encode),
    "zstd with content size": (ZSTD, kafka_python.codec.zstd_encode),
    "zstd with checksum": (
        ZSTD,
        zstandard.ZstdCompressor(write_checksum=True, write_content_size=False).compress,
    ),
}
OTHER_DECODERS = {
    GZIP: gzip.decompress,
    SNAPPY: kafka_python.codec.snappy_decode,
    LZ4: lz4.frame.decompress,
    ZSTD: kafka_python.codec.zstd_decode,
}


def unpacked(codec: int, payload: bytes, max_bytes: int = CAP) -> bytes:
    return bytes(decompress(codec, payload, max_bytes=max_bytes))


@pytest.mark.parametrize("name", PAYLOADS)
@pytest.mark.parametrize("codec", CompressionType)
def test_payload_round_trip(codec: CompressionType, name: str) -> None:
    assert unpacked(codec, compress(codec, PAYLOADS[name])) == PAYLOADS[name]


@pytest.mark.parametrize("name", [name for name in PAYLOADS if name != "empty"])
@pytest.mark.parametrize("encoder", OTHER_ENCODERS)
def test_payload_of_another_implementation_is_read(encoder: str, name: str) -> None:
    codec, encode = OTHER_ENCODERS[encoder]
    assert unpacked(codec, encode(PAYLOADS[name])) == PAYLOADS[name]


@pytest.mark.parametrize("name", [name for name in PAYLOADS if name != "empty"])
@pytest.mark.parametrize("codec", OTHER_DECODERS)
def test_another_implementation_reads_our_payload(codec: CompressionType, name: str) -> None:
    assert OTHER_DECODERS[codec](compress(codec, PAYLOADS[name])) == PAYLOADS[name]


@given(st.sampled_from(CompressionType), st.binary(max_size=300), st.integers(1, 400))
def test_any_payload_round_trips_from_any_buffer(
    codec: CompressionType, piece: bytes, times: int
) -> None:
    payload = np.frombuffer(piece * times, np.uint8)
    packed = bytearray(compress(codec, payload))
    assert bytes(decompress(codec, memoryview(packed), max_bytes=CAP)) == piece * times


def test_codec_none_is_a_view_not_a_copy() -> None:
    data = bytearray(b"abc")
    view = decompress(NONE, data, max_bytes=3)
    data[0] = ord("x")
    assert bytes(view) == b"xbc"


def test_threads_do_not_share_a_codec() -> None:
    def round_trip(seed: int) -> bool:
        payload = random.Random(seed).randbytes(1000) * 50
        return all(unpacked(codec, compress(codec, payload)) == payload for codec in (ZSTD, LZ4))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(round_trip, range(40)))


# -- gzip ----------------------------------------------------------------------------------------


def test_gzip_is_written_with_javas_header() -> None:
    packed = compress(GZIP, PROSE)
    assert packed[:10].hex() == "1f8b08000000000000ff"
    assert packed == compress(GZIP, PROSE)


def test_gzip_members_are_read_as_one_stream() -> None:
    members = [PROSE, b"", b"tail", NOISE]
    assert unpacked(GZIP, b"".join(map(gzip.compress, members))) == b"".join(members)


@pytest.mark.parametrize(
    "garbage", [b"\0\0\0", b"\x1f", b"\x1f\x8b", b"anything", b"\x1f\x8b\x07x"]
)
def test_garbage_after_the_last_gzip_member_is_ignored(garbage: bytes) -> None:
    assert unpacked(GZIP, gzip.compress(PROSE) + garbage) == PROSE


# -- snappy --------------------------------------------------------------------------------------


def test_snappy_is_written_as_xerial_stream_of_32_kib_blocks() -> None:
    packed = compress(SNAPPY, NOISE[:70_000])
    assert packed[:16].hex() == "82534e41505059000000000100000001"
    sizes, at = [], 16
    while at < len(packed):
        (length,) = struct.unpack_from(">i", packed, at)
        sizes.append(cramjam.snappy.decompress_raw_len(packed[at + 4 : at + 4 + length]))
        at += 4 + length
    assert sizes == [32768, 32768, 4464]


def test_empty_snappy_payload_is_a_lone_header() -> None:
    assert compress(SNAPPY, b"").hex() == "82534e41505059000000000100000001"


def test_appended_xerial_stream_is_read_on() -> None:
    assert unpacked(SNAPPY, compress(SNAPPY, PROSE) + compress(SNAPPY, NOISE)) == PROSE + NOISE


def test_versions_are_checked_in_an_appended_xerial_header_only() -> None:
    old = struct.pack(">8sii", b"\x82SNAPPY\0", 0, 0) + compress(SNAPPY, b"abc")[16:]
    assert unpacked(SNAPPY, old) == b"abc"
    with pytest.raises(CorruptRecordError, match="version below 1"):
        unpacked(SNAPPY, compress(SNAPPY, b"abc") + old)


def test_up_to_three_bytes_after_the_last_snappy_chunk_end_the_stream() -> None:
    for count in (1, 2, 3):
        assert unpacked(SNAPPY, compress(SNAPPY, PROSE) + b"\0" * count) == PROSE


# -- lz4 -----------------------------------------------------------------------------------------


def test_lz4_is_written_with_kafkas_header_and_end_mark() -> None:
    packed = compress(LZ4, PROSE)
    assert packed.startswith(vectors.SPEC_LZ4_HEADER)
    assert packed.endswith(bytes(4))
    assert compress(LZ4, b"") == vectors.SPEC_LZ4_HEADER + bytes(4)


def test_lz4_block_that_does_not_shrink_is_stored() -> None:
    packed = compress(LZ4, NOISE[:1000])
    assert struct.unpack_from("<I", packed, 7)[0] == 0x80000000 | 1000


@pytest.mark.parametrize("block_size", [4, 5, 6, 7])
@pytest.mark.parametrize("content_size", [False, True])
@pytest.mark.parametrize("checksums", [False, True])
def test_lz4_frame_options_that_kafka_accepts_are_accepted(
    block_size: int, content_size: bool, checksums: bool
) -> None:
    packed = lz4.frame.compress(
        PROSE + NOISE,
        block_size=block_size,
        block_linked=False,
        store_size=content_size,
        block_checksum=checksums,
        content_checksum=checksums,
    )
    assert unpacked(LZ4, packed) == PROSE + NOISE


def test_lz4_content_checksum_is_skipped_and_block_checksum_verified() -> None:
    options = {"block_linked": False, "store_size": False}
    packed = bytearray(lz4.frame.compress(PROSE, content_checksum=True, **options))
    packed[-1] ^= 1
    assert unpacked(LZ4, bytes(packed)) == PROSE
    packed = bytearray(lz4.frame.compress(b"abc", block_checksum=True, **options))
    packed[-5] ^= 1
    with pytest.raises(CorruptRecordError, match="lz4 block"):
        unpacked(LZ4, bytes(packed))


def test_lz4_stops_at_the_end_mark() -> None:
    assert unpacked(LZ4, compress(LZ4, PROSE) + compress(LZ4, NOISE) + b"junk") == PROSE


def test_lz4_header_checksum_is_the_second_byte_of_xxhash32() -> None:
    assert lz4_header_checksum(bytes.fromhex("6040")) == 0x82
    for size in (1, 300, 2**20, 2**40):
        context = lz4.frame.create_compression_context()
        header = lz4.frame.compress_begin(context, source_size=size, block_linked=False)
        assert header[14] == lz4_header_checksum(header[4:14])


# -- zstd ----------------------------------------------------------------------------------------


def test_zstd_is_written_without_content_size_and_checksum() -> None:
    frame = zstandard.get_frame_parameters(compress(ZSTD, PROSE))
    assert frame.content_size == zstandard.CONTENTSIZE_UNKNOWN
    assert not frame.has_checksum
    assert frame.dict_id == 0


def test_zstd_frames_and_skippable_frames_are_read_as_one_stream() -> None:
    skippable = struct.pack("<II", 0x184D2A53, 5) + b"hello"
    stored = zstandard.ZstdCompressor().compress(NOISE)
    packed = skippable + compress(ZSTD, PROSE) + stored + skippable + compress(ZSTD, b"")
    assert unpacked(ZSTD, packed) == PROSE + NOISE


def test_zstd_stream_written_in_pieces_is_read() -> None:
    # As zstd-jni's stream does it: an empty last block.
    writer = zstandard.ZstdCompressor(level=3).compressobj()
    packed = b"".join(
        writer.compress(PROSE[i : i + 10_000]) + writer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        for i in range(0, len(PROSE), 10_000)
    )
    assert unpacked(ZSTD, packed + writer.flush()) == PROSE


def test_gzip_trailer_is_verified() -> None:
    packed = bytearray(compress(GZIP, PROSE))
    packed[-6] ^= 0xFF
    with pytest.raises(CorruptRecordError, match="gzip stream"):
        unpacked(GZIP, bytes(packed))
    assert zlib.crc32(PROSE) != 0
