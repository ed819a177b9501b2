"""Checksums of many ranges against google-crc32c's own function."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from random import Random

import google_crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.format.record_batch import CRC_START
from kafkalog.native import checksums
from kafkalog.native.checksums import _EXTENDED_BYTES, crc32c_of_ranges, extend_by_batches
from kafkalog.native.functions import Crc32c, Crc32cExtend

DATA = bytes(range(256)) * 3
PLACES = st.integers(-9, len(DATA) + 9)
# Both libraries', google-crc32c's alone, none.
FUNCTIONS = (
    (checksums._whole, checksums._extend),
    (Crc32c(0), checksums._extend),
    (Crc32c(0), Crc32cExtend(0)),
)
RANDOM = np.random.default_rng(5).integers(0, 256, 2**18, np.uint8)


def test_both_libraries_are_found_here() -> None:
    assert checksums._whole
    assert checksums._extend


@given(st.lists(st.tuples(PLACES, PLACES), max_size=20))
def test_each_range_has_the_library_s_checksum(ranges: list[tuple[int, int]]) -> None:
    starts, ends = np.array(ranges, np.int64).reshape(-1, 2).T.copy()
    expected = [google_crc32c.value(DATA[max(start, 0) : max(end, 0)]) for start, end in ranges]
    for whole, extend in FUNCTIONS:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(checksums, "_whole", whole)
            patch.setattr(checksums, "_extend", extend)
            found = crc32c_of_ranges(np.frombuffer(DATA, np.uint8), starts, ends)
        assert found.tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 130), st.integers(0, 2**17)), max_size=4))
def test_any_length_at_any_place_has_the_library_s_checksum(ranges: list[tuple[int, int]]) -> None:
    starts, sizes = np.array(ranges, np.int64).reshape(-1, 2).T.copy()
    expected = [google_crc32c.value(RANDOM[start : start + size]) for start, size in ranges]
    assert crc32c_of_ranges(RANDOM, starts, starts + sizes).tolist() == expected


def test_each_short_length_at_each_alignment_has_the_library_s_checksum() -> None:
    sizes, starts = (a.reshape(-1) for a in np.mgrid[0:700, 0:65])
    found = crc32c_of_ranges(RANDOM, starts, starts + sizes)
    ranges = zip(starts.tolist(), sizes.tolist(), strict=True)
    assert found.tolist() == [google_crc32c.value(RANDOM[a : a + size]) for a, size in ranges]


def test_threads_and_forked_processes_get_the_same() -> None:
    starts = np.arange(0, 2**16, 97)
    ends = starts + np.arange(starts.size) * 31 % 5000
    expected = crc32c_of_ranges(RANDOM, starts, ends).tolist()
    with ThreadPoolExecutor(4) as threads:
        found = [threads.submit(crc32c_of_ranges, RANDOM, starts, ends) for _ in range(40)]
        assert all(one.result().tolist() == expected for one in found)
    child = os.fork()
    if child == 0:
        os._exit(0 if crc32c_of_ranges(RANDOM, starts, ends).tolist() == expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_ranges_without_an_end_are_an_index_error() -> None:
    with pytest.raises(IndexError, match="3 starts and 2 ends"):
        crc32c_of_ranges(np.zeros(9, np.uint8), np.zeros(3, np.int64), np.zeros(2, np.int64))


@given(
    st.binary(max_size=40),
    st.lists(st.tuples(st.integers(0, 2 * _EXTENDED_BYTES), st.booleans()), max_size=6),
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
    for whole, extend in FUNCTIONS:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(checksums, "_whole", whole)
            patch.setattr(checksums, "_extend", extend)
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
