"""Checksums of many ranges against the library's own function."""

from __future__ import annotations

import google_crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.native import checksums
from kafkalog.native.checksums import crc32c_of_ranges
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
