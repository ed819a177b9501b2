"""Hypothesis strategies for records and batches."""

from __future__ import annotations

from hypothesis import strategies as st

from kafkalog.format.record import Record

fields = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.binary(max_size=8), fields), max_size=3).map(tuple)
timestamps = st.integers(-1, 4_102_444_800_000)
codecs = st.sampled_from(range(5))


@st.composite
def record_lists(draw: st.DrawFn, min_size: int = 1, max_size: int = 12) -> list[Record]:
    """Records with rising offsets and gaps, as compaction leaves them."""
    offset = draw(st.integers(0, 2**40))
    records = []
    for _ in range(draw(st.integers(min_size, max_size))):
        records.append(Record(offset, draw(timestamps), draw(fields), draw(fields), draw(headers)))
        offset += draw(st.integers(1, 1000))
    return records
