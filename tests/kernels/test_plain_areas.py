"""Where the records of plain batches lie, against the same said batch by batch."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.format.record_batch import BATCH_ROW
from kafkalog.kernels.plain_areas import plain_areas

POSITION = 5_000

batches = st.tuples(
    st.integers(0, 3) | st.just(2),  # magic
    st.sampled_from([0, 0, 0, 8, 0x10, 1, 4, 7]),  # attributes
    st.integers(-1, 20) | st.just(2**31 - 1),  # records
    st.integers(61, 300),  # bytes
)


@given(st.lists(batches, max_size=6))
def test_areas_are_given_as_far_as_batches_are_plain(
    found: list[tuple[int, int, int, int]],
) -> None:
    rows, position = np.zeros(len(found), BATCH_ROW), POSITION
    expected: list[tuple[int, int]] = []
    is_plain = True
    for b, (magic, attributes, count, size) in enumerate(found):
        rows[["magic", "attributes", "records_count", "size_in_bytes", "position"]][b] = (
            magic, attributes, count, size, position,
        )  # fmt: skip
        start = position - POSITION + 61
        end = start if count == 0 else start + size - 61
        is_plain &= magic >= 2 and (count == 0 or attributes & 7 == 0)
        is_plain &= 0 <= count * 7 <= end - start
        if is_plain:
            expected.append((start, end))
        position += size
    starts, ends = np.empty((2, rows.size), np.int64)
    done = plain_areas(rows, POSITION, starts, ends)
    assert done == len(expected)
    assert [*zip(starts[:done].tolist(), ends[:done].tolist(), strict=True)] == expected
