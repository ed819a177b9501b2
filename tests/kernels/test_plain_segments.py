"""Segments that are walked over together say what each says by itself; of odd ones nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.format.record import Record
from kafkalog.format.record_batch import BATCH_ROW, pack_batch
from kafkalog.kernels import header_slices, header_sums, plain_segments
from kafkalog.kernels.plain_segments import check_entries, sum_segments, walk_segments
from kafkalog.log import header_sums as by_itself
from kafkalog.log.segment_headers import scan_headers

# (records, time between batches, what is odd) of each batch.
_BATCH = st.tuples(
    st.integers(1, 3),
    st.integers(0, 10**9),
    st.sampled_from(["", "", "", "", "", "gap", "flags", "cut", "old", "zero", "producer"]),
)
_SEGMENTS = st.lists(st.lists(_BATCH, max_size=4), min_size=1, max_size=6)


def packed(batches: list[tuple[int, int, str]], base: int) -> tuple[bytes, bool]:
    """The bytes of a segment, and whether it is plain."""
    data, offset, time_ms, is_plain = b"", base, 10**12, True
    for count, step, odd in batches:
        time_ms += step
        offset += odd == "gap"
        records = [Record(offset + n, time_ms + n, b"k", b"v") for n in range(count)]
        header = {"producer_id": 7, "producer_epoch": 0} if odd == "producer" else {}
        batch = bytearray(pack_batch(records, base_offset=offset, **header))
        if odd == "flags":
            batch[22] |= 0x20  # a control batch
        elif odd == "old":
            batch[16] = 1
        elif odd == "zero":
            batch[57:61] = bytes(4)
        data += batch[: -1 if odd == "cut" else None]
        is_plain &= odd in ("", "producer")
        offset += count
    return data, is_plain


@given(_SEGMENTS)
def test_what_is_walked_over_together_is_as_by_itself(
    segments: list[list[tuple[int, int, str]]],
) -> None:
    bases = np.arange(len(segments), dtype=np.int64) * 100
    parts = [packed(own, int(base)) for own, base in zip(segments, bases, strict=True)]
    buf = np.frombuffer(b"".join(data for data, _ in parts) or b"\0", np.uint8)
    ends = np.cumsum([len(data) for data, _ in parts], dtype=np.int64)
    starts = ends - [len(data) for data, _ in parts]
    rows, row_ends = np.zeros(buf.size // 61 + 1, BATCH_ROW), np.empty(len(parts), np.int64)
    walk_segments(buf, starts, ends, bases, rows, row_ends)
    assert [end >= 0 for end in row_ends.tolist()] == [is_plain for _, is_plain in parts]
    sums = np.zeros(len(parts) * header_sums.SUMS_SIZE, np.int64)
    slices = np.zeros(len(parts) * header_slices.SLICES * header_slices.SLICE_COLUMNS, np.int64)
    sum_segments(rows, row_ends, bases, sums, slices)
    own_sums = sums.reshape(len(parts), -1)
    own_slices = slices.reshape(len(parts), header_slices.SLICES, -1)
    first = 0
    for number, (data, is_plain) in enumerate(parts):
        if not is_plain or not data:
            assert not own_sums[number].any()
            assert not own_slices[number].any()
            continue
        end = int(row_ends[number])
        expected = rows_of(data)
        assert rows[first:end].tolist() == expected.tolist()
        told = by_itself.header_sums(expected, int(bases[number]))
        assert told is not None
        found = np.zeros(header_sums.SUMS_SIZE, np.int64)
        header_sums.header_sums(expected, int(bases[number]), found)
        assert own_sums[number].tolist() == found.tolist()
        mine = [tuple(row[1:]) for row in own_slices[number].tolist() if row[0]]
        assert tuple(mine) == by_itself.time_slices(expected, told)
        first = end


def rows_of(data: bytes) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """As the walk over a file has them."""
    path = Path("/dev/shm") / "kafkalog-plain-segment"
    path.write_bytes(data)
    try:
        return scan_headers(str(path)).rows
    finally:
        path.unlink()


def test_there_is_no_more_than_there_is_room_for() -> None:
    data, _ = packed([(1, 0, "")] * 3, 0)
    buf, row_ends = np.frombuffer(data, np.uint8), np.empty(3, np.int64)
    ends = np.array([len(data), len(data) + 1, len(data)])
    starts = np.array([0, 0, -1])
    walk_segments(buf, starts, ends, np.zeros(3, np.int64), np.zeros(3, BATCH_ROW), row_ends)
    assert row_ends.tolist() == [3, -1, -1]
    walk_segments(
        buf, starts[:1], ends[:1], np.zeros(1, np.int64), np.zeros(2, BATCH_ROW), row_ends[:1]
    )
    assert row_ends[0] == -1


def test_entries_end_where_zeros_begin() -> None:
    one, zero = b"\0\0\0\1", b"\0" * 4
    indexes = (b"", one, one * 3, one + zero, zero * 5, zero + one, one + zero + one, one + b"\1")
    ends = np.cumsum([len(index) for index in indexes], dtype=np.int64)
    counts = np.empty(len(indexes), np.int64)
    buf = np.frombuffer(b"".join(indexes), np.uint8)
    check_entries(buf, ends - [len(index) for index in indexes], ends, 4, counts)
    assert counts.tolist() == [0, 1, 3, 1, 0, -1, -1, -1]
    check_entries(buf, np.array([0, -4]), np.array([buf.size + 1, 4]), 4, counts[:2])
    assert counts[:2].tolist() == [-1, -1]
    assert plain_segments.PARTS == by_itself._PARTS
