"""Checksums of many ranges against the library's own function."""

from __future__ import annotations

import google_crc32c
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.format.checksum import CRC32C_EXTEND
from kafkalog.kernels.checksums import checksum_ranges

DATA = bytes(range(256)) * 3
PLACES = st.integers(0, len(DATA) + 9)


@given(st.lists(st.tuples(PLACES, PLACES), max_size=20))
def test_each_range_has_the_library_s_checksum(ranges: list[tuple[int, int]]) -> None:
    starts, ends = np.array(ranges, np.int64).reshape(-1, 2).T.copy()
    found = np.empty(len(ranges), np.int64)
    checksum_ranges(CRC32C_EXTEND, np.frombuffer(DATA, np.uint8), starts, ends, found)
    assert found.tolist() == [google_crc32c.value(DATA[start:end]) for start, end in ranges]
