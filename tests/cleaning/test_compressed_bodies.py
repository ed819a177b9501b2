"""The bodies of a chunk's rebuilt batches, whatever way each is compressed."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.batches.arena import Arena
from kafkalog.cleaning.compressed_bodies import LARGE_BODY_BYTES, CompressedBodies
from kafkalog.format.compression import compress
from kafkalog.format.constants import CompressionType
from kafkalog.kernels.encode_records import FACTS

CODECS = st.sampled_from([codec for codec in CompressionType if codec])
# As they are, or so many bytes that do not compress.
TEXTS = st.binary(max_size=60) | st.integers(LARGE_BODY_BYTES // 33 * 32, LARGE_BODY_BYTES + 1)
PARTS = st.lists(st.lists(st.tuples(CODECS, TEXTS), max_size=4), min_size=1, max_size=3)
NOISE = np.random.default_rng(5).bytes(LARGE_BODY_BYTES + 1)


@given(PARTS)
def test_each_body_is_where_it_is_said_to_be(
    parts_drawn: list[list[tuple[int, bytes | int]]],
) -> None:
    parts = [
        [(codec, NOISE[:text] if isinstance(text, int) else text) for codec, text in part]
        for part in parts_drawn
    ]
    batches = [batch for part in parts for batch in part]
    bodies = CompressedBodies(len(batches), Arena())
    first = 0
    for part in parts:
        numbers = np.arange(first, first + len(part))
        bodies.add(
            numbers,
            np.array([codec for codec, _ in part], np.int64),
            np.frombuffer(b"".join(text for _, text in part) or b"x", np.uint8),
            np.cumsum([len(text) for _, text in part], dtype=np.int64),
            np.repeat(numbers, FACTS),
        )
        first += len(part)
    for b, (codec, text) in enumerate(batches):
        start, end = bodies.ends[2 * b : 2 * b + 2].tolist()
        found = bodies.large.get(b, bodies.data[start:end].tobytes())
        assert found == compress(codec, text)
        assert (b in bodies.large) == (len(found) > LARGE_BODY_BYTES)
        assert bodies.facts[b * FACTS] == b
