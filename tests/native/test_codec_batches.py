"""Many batches through zstd and lz4 against their own classes, one by one."""

from __future__ import annotations

from itertools import accumulate, pairwise

import lz4.block
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.format.compression import compress, decompress
from kafkalog.format.constants import CompressionType
from kafkalog.native.codec_batches import compress_batches, decompress_batches

NONE, LZ4, ZSTD = (
    int(codec) for codec in (CompressionType.NONE, CompressionType.LZ4, CompressionType.ZSTD)
)
ROOM = 4096
UNTOUCHED = 0xEE
TEXTS = st.lists(
    st.binary(max_size=30).flatmap(lambda part: st.integers(0, 90).map(lambda n: part * n)),
    max_size=6,
)


def block_of(codec: int, text: bytes) -> bytes:
    """What `find_single_blocks` would find of a payload."""
    return lz4.block.compress(text, store_size=False) if codec == LZ4 else compress(codec, text)


def edges_of(parts: list[bytes]) -> list[int]:
    return list(accumulate(map(len, parts), initial=0))


def decompressed(
    frames: list[bytes],
    codecs: list[int],
    *,
    first: int = 0,
    room: int = ROOM,
    out_bytes: int = 64 * 1024,
    enough: int = 1 << 40,
) -> tuple[int, list[bytes]]:
    """(where it stopped, what it wrote), behind seven bytes that were there before."""
    out = np.full(out_bytes + 1, UNTOUCHED, np.uint8)
    edges = np.full(len(frames) + 1, -1, np.int64)
    edges[first] = 7
    at = np.array(edges_of(frames), np.int64)
    stopped = decompress_batches(
        np.frombuffer(b"".join(frames) or b"x", np.uint8),
        np.array(codecs, np.int64),
        at[:-1].copy(),
        at[1:].copy(),
        np.full(len(frames), room, np.int64),
        first,
        out[:-1],
        7,
        enough,
        edges,
    )
    assert (out[:7] == UNTOUCHED).all()
    assert out[-1] == UNTOUCHED
    found = edges[first : stopped + 1].tolist()
    return stopped, [out[a:b].tobytes() for a, b in pairwise(found)]


@given(TEXTS, st.lists(st.sampled_from([LZ4, ZSTD]), min_size=6, max_size=6))
def test_blocks_are_decompressed_one_behind_the_other(texts: list[bytes], kinds: list[int]) -> None:
    codecs = kinds[: len(texts)]
    frames = [block_of(codec, text) for codec, text in zip(codecs, texts, strict=True)]
    assert decompressed(frames, codecs) == (len(texts), texts)


@pytest.mark.parametrize("codec", [LZ4, ZSTD])
def test_it_stops_at_what_it_cannot_do(codec: int) -> None:
    texts = [b"a" * 100, b"b" * 200, b"c" * 300]
    frames = [block_of(codec, text) for text in texts]
    broken = [frames[0], frames[1][:-3], frames[2]]
    kinds = [codec] * 3
    assert decompressed(broken, kinds) == (1, texts[:1])
    assert decompressed(broken, kinds, first=2) == (3, texts[2:])
    assert decompressed(frames, [codec, codec, NONE]) == (2, texts[:2])
    assert decompressed(frames, kinds, room=0) == (0, [])
    assert decompressed(frames, kinds, room=250) == (2, texts[:2])
    assert decompressed(frames, kinds, room=300, out_bytes=7 + 399) == (1, texts[:1])
    assert decompressed(frames, kinds, enough=7 + 101) == (2, texts[:2])


def compressed(
    codec: int, texts: list[bytes], *, most_bytes: int = 1 << 20, out_bytes: int = 64 * 1024
) -> tuple[int, list[bytes]]:
    out = np.full(out_bytes + 1, UNTOUCHED, np.uint8)
    edges = np.full(len(texts) + 1, -1, np.int64)
    edges[0] = 7
    stopped = compress_batches(
        np.frombuffer(b"".join(texts) or b"x", np.uint8),
        np.full(len(texts), codec, np.int64),
        np.array(edges_of(texts)[1:], np.int64),
        most_bytes,
        0,
        out[:-1],
        7,
        edges,
    )
    assert (out[:7] == UNTOUCHED).all()
    assert out[-1] == UNTOUCHED
    found = edges[: stopped + 1].tolist()
    return stopped, [out[a:b].tobytes() for a, b in pairwise(found)]


@pytest.mark.parametrize("codec", [LZ4, ZSTD])
@given(texts=TEXTS)
def test_frames_are_those_of_the_library_s_own_classes(codec: int, texts: list[bytes]) -> None:
    stopped, frames = compressed(codec, texts)
    assert stopped == len(texts)
    assert frames == [compress(codec, text) for text in texts]
    assert [bytes(decompress(codec, frame, max_bytes=ROOM)) for frame in frames] == texts


@pytest.mark.parametrize("codec", [LZ4, ZSTD])
def test_it_stops_where_a_batch_is_large_or_finds_no_room(codec: int) -> None:
    texts = [b"a" * 100, b"b" * 2000]
    assert compressed(codec, texts, most_bytes=1999)[0] == 1
    assert compressed(codec, texts, most_bytes=2000)[0] == 2
    assert compressed(codec, texts, out_bytes=7 + 300)[0] == 1


@pytest.mark.parametrize(("codec", "size"), [(LZ4, 64 * 1024), (ZSTD, 256 * 1024)])
def test_noise_fits_the_room_that_is_asked_for(codec: int, size: int) -> None:
    noise = np.random.default_rng(1).bytes(size)
    stopped, frames = compressed(codec, [noise], out_bytes=7 + len(noise) + len(noise) // 128 + 128)
    assert stopped == 1
    assert frames == [compress(codec, noise)]
    assert bytes(decompress(codec, frames[0], max_bytes=1 << 20)) == noise


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536])
def test_a_frame_of_one_block_is_lz4_s_default(size: int) -> None:
    text = (b"one record like another, " * 4000)[:size]
    assert compressed(LZ4, [text], out_bytes=1 << 17) == (1, [compress(LZ4, text)])


def test_a_frame_of_more_blocks_is_left_to_the_library_s_own_class() -> None:
    assert compressed(LZ4, [bytes(9), bytes(65_537)], out_bytes=1 << 18)[0] == 1


@pytest.mark.parametrize("codec", [LZ4, ZSTD])
@pytest.mark.parametrize(
    ("start", "end"),
    [(-1, 4), (0, 1 << 40), (1 << 40, (1 << 40) + 9), (5, 4), (-(1 << 62), 4), (0, -1)],
)
def test_a_batch_outside_its_buffer_is_an_index_error(codec: int, start: int, end: int) -> None:
    buf = np.frombuffer(compress(codec, b"a" * 100), np.uint8)
    codecs, starts, ends, rooms = np.array([[codec] * 2] * 4, np.int64)
    starts[:], ends[:], rooms[:] = (0, start), (0, end), 1
    out, edges = np.zeros(ROOM, np.uint8), np.zeros(3, np.int64)
    with pytest.raises(IndexError, match="batch 1 is not within"):
        decompress_batches(buf, codecs, starts, ends, rooms, 1, out, 0, 1 << 40, edges)


@pytest.mark.parametrize("codec", [LZ4, ZSTD])
@pytest.mark.parametrize("ends", [(-1, 4), (0, 1 << 40), (1 << 40, 9), (5, 4), (-(1 << 62), 4)])
def test_records_outside_their_buffer_are_an_index_error(codec: int, ends: tuple[int, int]) -> None:
    codecs, out, edges = np.full(2, codec), np.zeros(ROOM, np.uint8), np.zeros(3, np.int64)
    with pytest.raises(IndexError, match="is not within the 9 bytes"):
        compress_batches(np.zeros(9, np.uint8), codecs, np.array(ends), 1 << 62, 0, out, 0, edges)


@pytest.mark.parametrize(
    ("first", "size", "short"),
    [(-1, 0, 0), (3, 0, 0), (0, -1, 0), (0, ROOM + 1, 0), (0, 0, 1), (0, 0, -1)],
)
def test_places_outside_the_memory_are_index_errors(first: int, size: int, short: int) -> None:
    buf, out = np.zeros(9, np.uint8), np.zeros(ROOM, np.uint8)
    codecs = np.full(2, ZSTD)
    numbers, edges = np.zeros(2, np.int64), np.zeros(3 - short, np.int64)
    with pytest.raises(IndexError):
        decompress_batches(buf, codecs, numbers, numbers, numbers, first, out, size, 1 << 40, edges)
    with pytest.raises(IndexError):
        compress_batches(buf, codecs, numbers, 1 << 40, first, out, size, edges)
    with pytest.raises(IndexError):
        decompress_batches(
            buf, codecs, numbers[:1], numbers, numbers, 0, out, 0, 1 << 40, np.zeros(3, np.int64)
        )
