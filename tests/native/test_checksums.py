"""Checksums of many ranges against the library's own function."""

from __future__ import annotations

from random import Random

import google_crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.format.record_batch import CRC_START
from kafkalog.native import checksums
from kafkalog.native.checksums import _JOINED_BYTES, crc32c_of_ranges, extend_by_batches
from kafkalog.native.functions import Crc32cExtend

DATA = bytes(range(256)) * 3
PLACES = st.integers(-9, len(DATA) + 9)


@given(st.lists(st.tuples(PLACES, PLACES), max_size=20))
def test_each_range_has_the_library_s_checksum(ranges: list[tuple[int, int]]) -> None:
    starts, ends = np.array(ranges, np.int64).reshape(-1, 2).T.copy()
    expected = [google_crc32c.value(DATA[max(start, 0) : max(end, 0)]) for start, end in ranges]
    for function in (checksums._extend, Crc32cExtend(0)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(checksums, "_extend", function)
            found = crc32c_of_ranges(np.frombuffer(DATA, np.uint8), starts, ends)
        assert found.tolist() == expected


def test_ranges_without_an_end_are_an_index_error() -> None:
    with pytest.raises(IndexError, match="3 starts and 2 ends"):
        crc32c_of_ranges(np.zeros(9, np.uint8), np.zeros(3, np.int64), np.zeros(2, np.int64))


@given(
    st.binary(max_size=40),
    st.lists(st.tuples(st.integers(0, 3 * _JOINED_BYTES), st.booleans()), max_size=6),
    st.randoms(use_true_random=False),
)
def test_checksum_over_batches_is_that_of_their_bytes(
    before: bytes, batches: list[tuple[int, bool]], random: Random
) -> None:
    parts = [random.randbytes(size) for size, _ in batches]
    data = b"".join(parts)
    sizes = np.array([len(part) for part in parts], np.int64)
    crcs = np.array(
        [
            google_crc32c.value(part[CRC_START:]) if is_known else -1
            for part, (_, is_known) in zip(parts, batches, strict=True)
        ],
        np.int64,
    )
    for function in (checksums._extend, Crc32cExtend(0)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(checksums, "_extend", function)
            found = extend_by_batches(
                google_crc32c.value(before), np.frombuffer(data, np.uint8), sizes, crcs
            )
        assert found == google_crc32c.value(before + data)


def test_batches_that_are_not_all_of_the_bytes_are_an_index_error() -> None:
    sizes = np.array([5, -1, 5], np.int64)
    for wrong in (sizes, sizes[:1]):
        with pytest.raises(IndexError, match="checksums, in 9 bytes"):
            extend_by_batches(0, np.zeros(9, np.uint8), wrong, np.zeros(wrong.size, np.int64))


def test_checksum_over_a_large_batch_is_that_of_its_bytes() -> None:
    data = np.arange(2**25 + 2**23 + 77, dtype=np.uint8)
    crc = google_crc32c.value(data[CRC_START:])
    sizes, crcs = np.array([data.size], np.int64), np.array([crc], np.int64)
    assert extend_by_batches(7, data, sizes, crcs) == google_crc32c.extend(7, data)
