"""The key map's table against a dict, with hashes that are alike where the table looks at them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.kernels.buckets import (
    EMPTY,
    ENTER,
    HELD,
    LOOK_UP,
    MAP_FULL,
    OK,
    STATE_SIZE,
    merge_entries,
)
from kafkalog.kernels.hash_keys import ENTRY_WORDS, LOOKUP_BIT

# The low half of the first word chooses the place, the low bits of the second are kept there: few
# of both, so that most keys share them with others and only their other bits differ.
FIRSTS = st.sampled_from([0, 1, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1])
SECONDS = st.sampled_from([0, 1, 2**24, 2**32 - 1, 2**32, 2**33 - 1, 2**40, 2**64 - 1])
KEYS = st.tuples(FIRSTS, SECONDS)


def merged(
    keys: list[tuple[int, int]], looked_up: list[bool], room: int
) -> tuple[int, list[bool], int]:
    """(status, which records are marked, how many keys are held) of records in this order."""
    entries = np.array(
        [
            (first, second, r | (LOOKUP_BIT if clean else 0))
            for r, ((first, second), clean) in enumerate(zip(keys, looked_up, strict=True))
        ],
        np.uint64,
    ).reshape(-1)
    table, held = np.full(2 * room, EMPTY, np.uint32), np.empty(room * ENTRY_WORDS, np.uint64)
    marks, state = np.zeros(len(keys) // 8 + 1, np.uint8), np.zeros(STATE_SIZE, np.int64)
    status = OK
    with np.errstate(over="ignore"):
        for step in (ENTER, LOOK_UP):
            status = status or merge_entries(entries, step, 0, 1, table, held, 0, marks, state)
    bits = np.unpackbits(marks, bitorder="little", count=len(keys))
    return status, bits.astype(bool).tolist(), int(state[HELD])


@given(st.lists(st.tuples(KEYS, st.booleans()), max_size=60), st.integers(0, 3))
def test_only_the_very_same_hash_supersedes_a_record(
    records: list[tuple[tuple[int, int], bool]], spare: int
) -> None:
    keys, looked_up = [key for key, _ in records], [clean for _, clean in records]
    last = {key: r for r, (key, clean) in enumerate(records) if not clean}
    expected = [last.get(key, -1) > r for r, key in enumerate(keys)]
    # From a table that is just large enough on: how many bits name an entry depends on the room.
    found = merged(keys, looked_up, max(len(last), 1) + spare)
    assert found == (OK, expected, len(last))


@given(st.lists(KEYS, min_size=2, max_size=60))
def test_a_key_more_than_there_is_room_for_is_said(keys: list[tuple[int, int]]) -> None:
    distinct = len(set(keys))
    if distinct > 1:
        assert merged(keys, [False] * len(keys), distinct - 1)[0] == MAP_FULL
