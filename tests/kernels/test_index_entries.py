from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.format.offset_index import pack_offset_index
from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch, parse_header
from kafkalog.format.time_index import pack_time_index
from kafkalog.kernels.index_entries import index_entries
from tests.batches.logs import rows_of
from tests.support.log_builder import BuiltSegment

batches = st.lists(st.tuples(st.integers(-1, 5), st.integers(0, 90)), max_size=14)


@given(batches, st.sampled_from([0, 61, 100, 150, 4096]), st.integers(1, 5))
def test_entries_are_those_of_one_pass_over_the_batches(
    specs: list[tuple[int, int]], interval: int, pieces: int
) -> None:
    base = 7
    built = BuiltSegment(base)
    for i, (timestamp, size) in enumerate(specs):
        batch = pack_batch([Record(base + 3 * i, timestamp, None, b"v" * size)])
        built.batches.append((len(built.log), parse_header(batch)))
        built.log += batch
    rows = rows_of(bytes(built.log))
    state = np.array([0, -1, base, -1], np.int64)
    found: list[list[int]] = [[], [], [], []]
    for part in np.array_split(np.arange(rows.size), pieces):
        arrays = np.full((4, part.size), -77, np.int64)
        entries, times = index_entries(rows[part], interval, state, *arrays)
        for column, array, n in zip(found, arrays, (entries, entries, times, times), strict=True):
            column += array[:n].tolist()
            assert (array[n:] == -77).all()
    offset_index, time_index = built.packed_indexes(interval, closed=False)
    assert pack_offset_index(found[0], found[1], base) == offset_index
    assert pack_time_index(found[2], found[3], base) == time_index
    assert entries_never_for_the_first(found[1])


def entries_never_for_the_first(positions: list[int]) -> bool:
    return 0 not in positions
