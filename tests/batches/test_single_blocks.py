"""The short way to decompress a batch gives what the long way gives, or leaves it to that."""

from __future__ import annotations

import numpy as np
import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafkalog.errors import KafkaLogError
from kafkalog.format.compression import compress, decompress, decompress_snappy_block
from kafkalog.format.constants import CompressionType
from kafkalog.kernels.single_blocks import find_single_blocks
from kafkalog.native.codec_batches import decompress_batches
from tests.format.test_compression import OTHER_ENCODERS

NONE, GZIP, SNAPPY, LZ4, ZSTD = CompressionType
CAP = 1 << 20
TEXTS = st.binary(max_size=40).flatmap(lambda part: st.integers(1, 90).map(lambda n: part * n))
ENCODERS = OTHER_ENCODERS | {
    codec.name: (codec, lambda data, codec=codec: compress(codec, data))
    for codec in CompressionType
}


def by_the_short_way(codec: int, payload: bytes, cap: int = CAP) -> bytes | None:
    """None where the long way is left to do it."""
    buf = np.frombuffer(b"before" + payload + b"behind", np.uint8)
    start, end, room = np.empty((3, 1), np.int64)
    find_single_blocks(
        buf, np.array([codec]), np.array([6]), np.array([6 + len(payload)]), cap, start, end, room
    )
    if not room[0]:
        assert (start[0], end[0]) == (6, 6 + len(payload))
        return None
    assert room[0] <= cap
    out = np.full(int(room[0]) + 1, 0xEE, np.uint8)
    if codec == SNAPPY:
        size = decompress_snappy_block(buf.data[int(start[0]) : int(end[0])], out.data[:-1])
    else:
        edges = np.full(2, -1, np.int64)
        decompress_batches(buf, np.array([codec]), start, end, room, 0, out[:-1], 0, CAP, edges)
        size = int(edges[1])
    assert out[-1] == 0xEE
    return None if size < 0 else out[:size].tobytes()


def by_the_long_way(codec: int, payload: bytes) -> bytes | None:
    try:
        return bytes(decompress(codec, payload, max_bytes=CAP))
    except KafkaLogError:
        return None


@pytest.mark.parametrize(("codec", "encode"), ENCODERS.values(), ids=ENCODERS.keys())
@given(data=TEXTS, xors=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=2))
@example(data=bytes(70_000), xors=[])
@settings(max_examples=150)
def test_what_the_short_way_decompresses_is_what_the_long_way_does(
    codec: int, encode: object, data: bytes, xors: list[tuple[int, int]]
) -> None:
    payload = bytearray(encode(data))  # type: ignore[operator]
    for at, bits in xors if payload else ():
        payload[at % len(payload)] ^= bits
    found = by_the_short_way(codec, bytes(payload))
    assert found is None or found == by_the_long_way(codec, bytes(payload))


@pytest.mark.parametrize("codec", [SNAPPY, LZ4, ZSTD])
def test_batches_of_java_s_and_our_own_framing_go_the_short_way(codec: CompressionType) -> None:
    data = b"one record like another " * 700
    assert by_the_short_way(codec, compress(codec, data)) == data
    assert by_the_short_way(codec, compress(codec, data)[:-1]) is None
    assert by_the_short_way(codec, b"") is None


def test_a_room_above_the_cap_is_left_to_the_long_way() -> None:
    data = bytes(60_000)
    for codec in (SNAPPY, ZSTD):
        payload = zstandard.compress(data) if codec == ZSTD else compress(codec, data[:30_000])
        size = len(by_the_long_way(codec, payload) or b"")
        assert by_the_short_way(codec, payload, size) is not None
        assert by_the_short_way(codec, payload, size - 1) is None
