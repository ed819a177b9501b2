from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.kernels import status
from kafkalog.kernels.key_fingerprints import key_fingerprints
from tests.support.reference.siphash import siphash_2_4_128

# As the kernel has it; what was kept with another one would miss keys.
SECRET = b"kafkalogkey hash"


def fingerprints(keys: list[bytes | None]) -> tuple[list[int], tuple[int, int, int]]:
    front = b"\xff" * 9  # so that no key begins at a word's edge
    data = front + b"".join(key or b"" for key in keys) + b"\xff" * 9
    lengths = np.array([-1 if key is None else len(key) for key in keys], np.int32)
    starts = len(front) + np.cumsum([0, *np.maximum(lengths, 0)])[:-1].astype(np.int64)
    made = np.full(len(keys), 7, np.uint16)
    with np.errstate(over="ignore"):  # interpreted numpy warns of sums that wrap around
        answer = key_fingerprints(np.frombuffer(data, np.uint8), starts, lengths, made)
    return made[: answer[0]].tolist(), answer


@given(st.lists(st.none() | st.binary(max_size=40), max_size=12))
def test_fingerprints_are_the_low_bits_of_siphash(keys: list[bytes | None]) -> None:
    present = [key for key in keys if key is not None]
    expected = [
        int.from_bytes(siphash_2_4_128(SECRET, key)[:8], "little") & 0xFFFF for key in present
    ]
    assert fingerprints(keys) == (expected, (len(present), status.OK, 0))


def test_keys_outside_of_the_bytes_are_refused() -> None:
    buf, made = np.zeros(10, np.uint8), np.zeros(2, np.uint16)
    for start, length in ((-1, 2), (9, 2), (11, 0), (1 << 62, 1)):
        starts = np.array([0, start], np.int64)
        with np.errstate(over="ignore"):
            answer = key_fingerprints(buf, starts, np.array([10, length], np.int32), made)
        assert answer == (1, status.SPAN_OUT_OF_RANGE, 1)


def test_no_room_and_columns_of_two_lengths_are_refused() -> None:
    buf, starts = np.zeros(10, np.uint8), np.zeros(2, np.int64)
    lengths = np.zeros(2, np.int32)
    assert key_fingerprints(buf, starts, lengths, np.zeros(1, np.uint16))[1] == status.OUTPUT_FULL
    made = np.zeros(2, np.uint16)
    assert key_fingerprints(buf, starts[:1], lengths, made)[1] == status.OUTPUT_FULL
