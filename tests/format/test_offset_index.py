from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.errors import CorruptIndexError
from kafkalog.format.offset_index import pack_offset_index, parse_offset_index

BASE = 1000


def packed(*entries: tuple[int, int]) -> bytes:
    """Entries as they are on disk: (relative offset, position)."""
    return b"".join(struct.pack(">ii", *entry) for entry in entries)


def rows(data: bytes, base_offset: int = BASE) -> list[tuple[int, int]]:
    index = parse_offset_index(data, base_offset)
    return list(zip(index.offsets.tolist(), index.positions.tolist(), strict=True))


rising = st.sets(st.integers(1, 2**31 - 1), max_size=20).map(sorted)


@given(rising, rising, st.integers(0, 2**62))
def test_index_round_trip(offsets: list[int], positions: list[int], base_offset: int) -> None:
    count = min(len(offsets), len(positions))
    absolute = [base_offset + offset for offset in offsets[:count]]
    data = pack_offset_index(absolute, positions[:count], base_offset)
    assert len(data) == 8 * count
    assert rows(data, base_offset) == list(zip(absolute, positions, strict=False))


@given(rising, st.integers(0, 2**31))
def test_lookup_equals_a_walk_over_the_entries(offsets: list[int], target: int) -> None:
    positions = range(1, len(offsets) + 1)
    index = parse_offset_index(pack_offset_index(offsets, list(positions), 0), 0)
    below = [entry for entry in zip(offsets, positions, strict=True) if entry[0] <= target]
    assert index.lookup(target) == (below[-1] if below else (0, 0))


def test_entries_are_big_endian_relative_offset_and_position() -> None:
    assert pack_offset_index([BASE + 5, BASE + 9], [4200, 9000], BASE) == packed(
        (5, 4200), (9, 9000)
    )


def test_preallocated_zeros_are_no_entries() -> None:
    for zeros in (8, 80, 10 * 1024 * 1024):
        index = parse_offset_index(packed((5, 4200), (9, 9000)) + bytes(zeros), BASE)
        assert (len(index), index.valid_bytes, index.last_offset) == (2, 16, BASE + 9)


def test_never_written_preallocated_index_is_empty() -> None:
    for size in (0, 8, 80):
        index = parse_offset_index(bytes(size), BASE)
        assert (len(index), index.valid_bytes, index.last_offset) == (0, 0, BASE)
        assert index.lookup(BASE + 10**6) == (BASE, 0)


def test_what_follows_the_zeros_is_not_read() -> None:
    assert rows(packed((5, 4200), (0, 0), (3, 7))) == [(BASE + 5, 4200)]


def test_partial_entry_at_the_end_is_ignored() -> None:
    assert rows(packed((5, 4200)) + b"\0\0\0\x09\0") == [(BASE + 5, 4200)]


def test_first_entry_may_be_at_the_base_offset() -> None:
    assert rows(packed((0, 70), (4, 140))) == [(BASE, 70), (BASE + 4, 140)]


def test_lookup_finds_the_last_entry_at_or_below() -> None:
    index = parse_offset_index(packed((5, 4200), (9, 9000)), BASE)
    assert index.lookup(BASE + 4) == (BASE, 0)
    assert index.lookup(BASE + 5) == (BASE + 5, 4200)
    assert index.lookup(BASE + 8) == (BASE + 5, 4200)
    assert index.lookup(2**62) == (BASE + 9, 9000)


@pytest.mark.parametrize(
    ("entries", "position"),
    [
        ([(-5, 100)], 0),
        ([(5, -100)], 0),
        ([(5, 0), (6, 100)], 0),
        ([(5, 100), (5, 200)], 8),
        ([(5, 100), (4, 200)], 8),
        ([(5, 100), (6, 100)], 8),
        ([(5, 100), (6, 200), (7, 150)], 16),
    ],
)
def test_index_that_does_not_rise_is_corrupt(entries: list[tuple[int, int]], position: int) -> None:
    with pytest.raises(CorruptIndexError, match="not above the one before") as caught:
        parse_offset_index(packed(*entries), BASE, "t-0/x.index")
    assert (caught.value.path, caught.value.position) == ("t-0/x.index", position)


@given(st.binary(max_size=64))
def test_garbage_is_an_index_or_corrupt(data: bytes) -> None:
    try:
        index = parse_offset_index(data, BASE)
    except CorruptIndexError:
        return
    assert index.valid_bytes <= len(data)
    assert (np.diff(index.offsets) > 0).all()


@pytest.mark.parametrize(
    ("offset", "position"), [(BASE - 1, 5), (BASE + 2**31, 5), (BASE + 1, 2**31)]
)
def test_packing_refuses_what_31_bits_cannot_hold(offset: int, position: int) -> None:
    with pytest.raises(ValueError, match="31 bits"):
        pack_offset_index([offset], [position], BASE)
