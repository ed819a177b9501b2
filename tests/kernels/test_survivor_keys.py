from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kafkalog.kernels import status
from kafkalog.kernels.survivor_keys import (
    HASHES_MIXED,
    WORDS,
    mark_below_latest,
    multilinear_hashes,
)

PLACES = 8
RANDOM = np.random.default_rng(3)
PLACE_WORDS, LENGTH_WORDS = RANDOM.integers(0, 2**64, (2, 2 * PLACES), np.uint64)


def hashed(
    data: bytes, starts: list[int], lengths: list[int], hashes: NDArray[np.uint64]
) -> tuple[int, int]:
    """The kernel's answer. Sums wrap around, of which interpreted numpy would warn."""
    places = np.array(starts, np.int64), np.array(lengths, np.int64)
    with np.errstate(over="ignore"):
        buf = np.frombuffer(data, np.uint8)
        return multilinear_hashes(buf, *places, PLACE_WORDS, LENGTH_WORDS, hashes)


@given(st.lists(st.binary(max_size=12), max_size=10))
def test_hashes_are_sums_of_words_and_long_keys_are_left(keys: list[bytes]) -> None:
    data = b"\xff" + b"".join(keys) + b"\xff"
    lengths = [len(key) for key in keys]
    starts = [1 + sum(lengths[:number]) for number in range(len(keys))]
    hashes = np.full(2 * len(keys), 7, np.uint64)
    assert hashed(data, starts, lengths, hashes) == (len(keys), status.OK)
    expected = []
    for key in keys:
        for half in (0, PLACES):
            words = [int(word) for word in PLACE_WORDS[half : half + PLACES]]
            summed = sum((byte + 1) * word for byte, word in zip(key, words, strict=False))
            is_long = len(key) >= PLACES
            whole = 7 if is_long else (summed + int(LENGTH_WORDS[half + len(key)])) % 2**64
            expected.append(whole)
    assert hashes.tolist() == expected


def test_keys_outside_of_the_bytes_are_refused() -> None:
    hashes = np.zeros(4, np.uint64)
    for start, length in ((-1, 1), (3, 2), (5, 0), (0, -1), (1, 1 << 62)):
        answer = hashed(bytes(4), [0, start], [4, length], hashes)
        assert answer == (1, status.SPAN_OUT_OF_RANGE)
    assert hashed(bytes(4), [0, 0], [4, 4], hashes[:3]) == (0, status.OUTPUT_FULL)


rows_of_few_hashes = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 2), st.booleans()), max_size=40
)


@given(rows_of_few_hashes, st.integers(0, 30), st.integers(0, 40))
def test_marked_are_those_below_the_latest_of_their_hash(
    found: list[tuple[int, int, bool]], first: int, count: int
) -> None:
    rows = np.array(
        [(a, b, n << 1 | maps) for n, (a, b, maps) in enumerate(found)], np.uint64
    ).reshape(-1)
    window = np.array([first, count], np.int64)
    latest = {(a, b): n for n, (a, b, maps) in enumerate(found) if maps}
    wanted = [
        first <= n < first + count and latest.get((a, b), -1) > n
        for n, (a, b, _) in enumerate(found)
    ]
    marks = np.zeros((count + 7) // 8, np.uint8)
    order = np.argsort(rows[::WORDS])
    done, code = mark_below_latest(rows, order, 0, window, marks)
    if code == HASHES_MIXED:
        assert any(a == c and b != d for a, b, _ in found for c, d, _ in found)
        order = np.lexsort((rows[1::WORDS], rows[::WORDS]))
        done, code = mark_below_latest(rows, order, 1, window, marks)
    assert (done, code) == (len(found), status.OK)
    bits = np.unpackbits(marks, bitorder="little").tolist()
    assert [n for n, marked in enumerate(bits, first) if marked] == [
        n for n, is_marked in enumerate(wanted) if is_marked
    ]


def test_an_order_or_marks_that_do_not_fit_are_refused() -> None:
    rows, window = np.zeros(2 * WORDS, np.uint64), np.array([0, 9], np.int64)
    marks = np.zeros(2, np.uint8)
    for order in ([0, 2], [0, -1], [2, 0], [0]):
        answer = mark_below_latest(rows, np.array(order, np.int64), 1, window, marks)
        assert answer[1] == status.SPAN_OUT_OF_RANGE
    order = np.arange(2)
    answer = mark_below_latest(rows, order, 1, window, marks[:1])
    assert answer == (0, status.SPAN_OUT_OF_RANGE)
