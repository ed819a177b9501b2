"""Merging buckets of hashed keys: which of their records a later dirty one of the same key
supersedes.

A bucket comes in pieces: runs of it read back from disk, or blobs from other tasks, in any order.
Memory is needed for its distinct keys only, and where these are more than it may hold, for a part
of them at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.kernels.buckets import (
    EMPTY,
    ENTER,
    HELD,
    LOOK_UP,
    LOOKUPS,
    OK,
    STATE_SIZE,
    merge_entries,
)
from kafkalog.kernels.hash_keys import ENTRY_WORDS

# Entries are read back so many at a time.
_READ_ENTRIES = 128 * 1024


@dataclass(slots=True)
class Marks:
    """A bit a record, from `first_index` on."""

    first_index: int
    bits: NDArray[np.uint8]


# All pieces of a bucket, uint64[3 * n] each; asked for again for each pass over them.
Pieces = Callable[[], Iterable[NDArray[np.uint64]]]


class BucketMap:
    """The memory of merging, used again for each bucket."""

    def __init__(self, most_keys: int) -> None:
        self._most_keys = most_keys
        self._table = np.empty(0, np.uint32)
        self._held = np.empty(0, np.uint64)
        self._state = np.zeros(STATE_SIZE, np.int64)

    def merge(self, pieces: Pieces, count: int, marks: Marks) -> int:
        """Mark the superseded records of a bucket of `count` entries; its distinct dirty keys."""
        # Too many distinct keys for the memory: take half of them at a time, then a quarter. A pass
        # that gave up has only marked what is superseded anyway, so marking again does no harm.
        parts = 1
        while True:
            distinct = 0
            # `else` below is reached when every part had room; a part without room ends the loop,
            # and all begin anew with twice as many.
            for part in range(parts):
                if not self._merge_part(pieces, count, marks, part, parts):
                    break
                distinct += int(self._state[HELD])
            else:
                return distinct
            parts *= 2

    def _merge_part(self, pieces: Pieces, count: int, marks: Marks, part: int, parts: int) -> bool:
        """False if there are too many keys for one part."""
        keys = min(count, self._most_keys)
        table = self._table_for(keys)
        self._state[:] = 0
        # First all dirty records enter, in any order of the pieces; then the others are looked up,
        # which is right only when each key's latest dirty record is known.
        for step in (ENTER, LOOK_UP):
            for piece in pieces():
                status = merge_entries(
                    piece, step, part, parts, table, self._held,
                    marks.first_index, marks.bits, self._state,
                )  # fmt: skip
                if status != OK:
                    return False
            # No clean record among them: the second pass over the pieces, which may be on disk, is
            # saved.
            if not self._state[LOOKUPS]:
                break
        return True

    def _table_for(self, keys: int) -> NDArray[np.uint32]:
        # Twice as many slots as keys at least. The arrays are the largest that were needed so far;
        # a smaller bucket uses the front of them, which then stays in the cache.
        slots = 1 << max(2 * keys - 1, 1).bit_length()
        if self._table.size < slots:
            self._table = np.empty(slots, np.uint32)
            self._held = np.empty(slots // 2 * ENTRY_WORDS, np.uint64)
        table = self._table[:slots]
        table[:] = EMPTY
        return table


def pieces_of(
    read: Callable[[int, int], NDArray[np.uint64]], ranges: Iterable[tuple[int, int]]
) -> Iterator[NDArray[np.uint64]]:
    """Entries as pieces: `read` gives a range of words, `ranges` are [first, end) of
    entries.
    """
    for first, end in ranges:
        for start in range(first, end, _READ_ENTRIES):
            yield read(start * ENTRY_WORDS, min(start + _READ_ENTRIES, end) * ENTRY_WORDS)
