from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.errors import CorruptIndexError
from kafkalog.format.time_index import pack_time_index, parse_time_index

BASE = 1000


def packed(*entries: tuple[int, int]) -> bytes:
    """Entries as they are on disk: (timestamp, relative offset)."""
    return b"".join(struct.pack(">qi", *entry) for entry in entries)


def rows(data: bytes) -> list[tuple[int, int]]:
    index = parse_time_index(data, BASE)
    return list(zip(index.timestamps.tolist(), index.offsets.tolist(), strict=True))


times = st.sets(st.integers(1, 2**62), max_size=20).map(sorted)


@given(times, st.lists(st.integers(0, 2**31 - 1), min_size=20, max_size=20).map(sorted))
def test_index_round_trip(timestamps: list[int], offsets: list[int]) -> None:
    absolute = [BASE + offset for offset in offsets[: len(timestamps)]]
    data = pack_time_index(timestamps, absolute, BASE)
    assert len(data) == 12 * len(timestamps)
    assert rows(data) == list(zip(timestamps, absolute, strict=True))


@given(times, st.integers(-1, 2**62))
def test_lookup_equals_a_walk_over_the_entries(timestamps: list[int], target: int) -> None:
    offsets = range(len(timestamps))
    index = parse_time_index(pack_time_index(timestamps, list(offsets), 0), 0)
    below = [entry for entry in zip(timestamps, offsets, strict=True) if entry[0] <= target]
    assert index.lookup(target) == (below[-1] if below else (-1, 0))


def test_empty_index_has_no_timestamp() -> None:
    index = parse_time_index(b"", BASE)
    assert (index.last_timestamp, index.last_offset, index.valid_bytes) == (-1, BASE, 0)


def test_last_entry_holds_the_largest_timestamp() -> None:
    index = parse_time_index(packed((50, 3), (70, 3), (90, 8)) + bytes(12 * 5), BASE)
    assert (index.last_timestamp, index.last_offset, index.valid_bytes) == (90, BASE + 8, 36)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (packed((0, 0)), [(0, BASE)]),  # alone: a record of 1970
        (packed((0, 0), (5, 2)), [(0, BASE), (5, BASE + 2)]),  # a real entry follows
        (packed((0, 0), (0, 0)), []),  # preallocated, never written
        (bytes(12 * 1000), []),
        (packed((5, 0), (0, 0), (0, 0)), [(5, BASE)]),
        (packed((0, 0), (5, 2), (0, 0)), [(0, BASE), (5, BASE + 2)]),
        (packed((0, 3), (5, 4)), [(0, BASE + 3), (5, BASE + 4)]),
        (packed((5, 2)) + b"\0" * 11, [(5, BASE + 2)]),  # a partial entry
    ],
)
def test_zero_entries_are_padding_unless_first_and_genuine(
    data: bytes, expected: list[tuple[int, int]]
) -> None:
    assert rows(data) == expected


@pytest.mark.parametrize(
    ("entries", "position"),
    [
        ([(-1, 0)], 0),
        ([(5, -1)], 0),
        ([(5, 1), (5, 2)], 12),
        ([(5, 1), (4, 2)], 12),
        ([(5, 3), (6, 2)], 12),
        ([(5, 3), (6, 4), (0, 9)], 24),
    ],
)
def test_index_that_does_not_rise_is_corrupt(entries: list[tuple[int, int]], position: int) -> None:
    with pytest.raises(CorruptIndexError, match="not above the one before") as caught:
        parse_time_index(packed(*entries), BASE, "t-0/x.timeindex")
    assert (caught.value.path, caught.value.position) == ("t-0/x.timeindex", position)


@given(st.binary(max_size=72))
def test_garbage_is_an_index_or_corrupt(data: bytes) -> None:
    try:
        index = parse_time_index(data, BASE)
    except CorruptIndexError:
        return
    assert index.valid_bytes <= len(data)


def test_packing_refuses_what_31_bits_cannot_hold() -> None:
    with pytest.raises(ValueError, match="31 bits"):
        pack_time_index([5], [BASE - 1], BASE)
