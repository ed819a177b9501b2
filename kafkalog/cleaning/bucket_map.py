"""Merging buckets of hashed keys: which of their records a later dirty one of the same key
supersedes.

A bucket comes in pieces: blocks of the pool it was filled in, or runs of it read back from disk, or
blobs from other tasks, in any order. Memory is needed for its distinct keys only, and where these
are more than it may hold, for a part of them at a time.
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
from kafkalog.kernels.hash_keys import BLOCK_ENTRIES, ENTRY_WORDS

# Entries are read back so many at a time.
_READ_ENTRIES = 256 * BLOCK_ENTRIES


@dataclass(frozen=True, slots=True)
class Piece:
    """Entries of one bucket: the first `count` of these blocks of `entries`, uint64[3 * n]."""

    entries: NDArray[np.uint64]
    blocks: NDArray[np.int32]
    count: int


@dataclass(slots=True)
class Marks:
    """A bit a record, from `first_index` on."""

    first_index: int
    bits: NDArray[np.uint8]


# All pieces of a bucket; asked for again for each pass over them.
Pieces = Callable[[], Iterable[Piece]]


class BucketMap:
    """The memory of merging, used again for each bucket."""

    def __init__(self, most_keys: int) -> None:
        self._most_keys = most_keys
        self._table = np.empty(0, np.uint32)
        self._held = np.empty(0, np.uint64)
        self._state = np.zeros(STATE_SIZE, np.int64)
        self.has_lookups = False
        """Whether the last bucket had entries that are only looked up."""

    def merge(
        self,
        pieces: Pieces,
        count: int,
        marks: Marks,
        keep: Callable[[NDArray[np.uint64]], None] | None = None,
    ) -> int:
        """Mark the superseded records of a bucket of `count` entries; its distinct dirty keys.

        `keep` gets the latest entry of each, perhaps in several parts and some of them twice; it
        must copy them. Entries that are only looked up are not among them.
        """
        # Too many distinct keys for the memory: take half of them at a time, then a quarter. A pass
        # that gave up has only marked what is superseded anyway, so marking again does no harm.
        parts = 1
        self.has_lookups = False
        while True:
            distinct = 0
            # `else` below is reached when every part had room; a part without room ends the loop,
            # and all begin anew with twice as many.
            for part in range(parts):
                if not self._merge_part(pieces, count, marks, part, parts):
                    break
                held = int(self._state[HELD])
                distinct += held
                if keep is not None and held:
                    keep(self._held[: held * ENTRY_WORDS])
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
                    piece.entries,
                    piece.blocks,
                    piece.count,
                    step,
                    part,
                    parts,
                    table,
                    self._held,
                    marks.first_index,
                    marks.bits,
                    self._state,
                )
                if status != OK:
                    return False
            # No clean record among them: the second pass over the pieces, which may be on disk, is
            # saved.
            if not self._state[LOOKUPS]:
                break
            self.has_lookups = True
        return True

    def _table_for(self, keys: int) -> NDArray[np.uint32]:
        # Twice as many slots as keys at least, and a power of two, so that a mask cuts a hash to a
        # slot. The arrays are the largest that were needed so far; a smaller bucket uses the front
        # of them, which then stays in the cache.
        slots = 1 << max(2 * keys - 1, 1).bit_length()
        if self._table.size < slots:
            self._table = np.empty(slots, np.uint32)
            self._held = np.empty(slots // 2 * ENTRY_WORDS, np.uint64)
        table = self._table[:slots]
        table[:] = EMPTY
        return table


def pieces_of(
    read: Callable[[int, int], NDArray[np.uint64]], ranges: Iterable[tuple[int, int]]
) -> Iterator[Piece]:
    """Entries as pieces: `read` gives a range of words, `ranges` are [first, end) of
    entries.
    """
    for first, end in ranges:
        for start in range(first, end, _READ_ENTRIES):
            stop = min(start + _READ_ENTRIES, end)
            count = stop - start
            # Read back from disk the entries lie one behind the other: as blocks they are simply
            # numbered.
            blocks = np.arange(-(-count // BLOCK_ENTRIES), dtype=np.int32)
            yield Piece(read(start * ENTRY_WORDS, stop * ENTRY_WORDS), blocks, count)
