"""The key map of one run, in memory: of each key the latest entry, and what is only looked up.

Entries enter as they come, so a key takes one place however often it comes. What is held lies in
one array, those to be looked up at its other end; memory that was not reached yet costs nothing.
The table over it grows with the keys.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kafkalog.cleaning.bucket_map import Marks
from kafkalog.kernels.buckets import (
    EMPTY,
    ENTER,
    HELD,
    LOOK_UP,
    LOOKUPS,
    OK,
    STATE_SIZE,
    merge_entries,
    sort_by_bucket,
)
from kafkalog.kernels.hash_keys import ENTRY_WORDS, LOOKUP_BIT

# An entry, and two places of the table of 4 bytes each.
KEY_BYTES = ENTRY_WORDS * 8 + 2 * 4
_LEAST_KEYS = 256
_FIRST_KEYS = 16 * 1024
_FIRST_MARKS_BYTES = 8 * 1024

Entries = NDArray[np.uint64]


class RunMap:
    """Enter entries as long as there `has_room`, then `end` and take what it holds."""

    def __init__(self, pool_bytes: int, expected_keys: int = 0) -> None:
        """`expected_keys` sizes the table; more or fewer are fine."""
        self.most_keys = max(pool_bytes // KEY_BYTES, _LEAST_KEYS)
        # Memory costs nothing until it is written to.
        self._pool = np.empty(self.most_keys * ENTRY_WORDS, np.uint64)
        first_keys = min(max(expected_keys, _FIRST_KEYS), self.most_keys)
        self._table = np.empty(2 * first_keys, np.uint32)
        self._state = np.zeros(STATE_SIZE, np.int64)
        self._lookups = 0
        self._is_table_clear = False
        self.marks = Marks(0, np.empty(0, np.uint8))
        self.begin(0)

    def begin(self, first_index: int) -> None:
        """Forget all entries; the records of the next ones begin with this number."""
        self._state[:] = 0
        self._lookups = 0
        # As large as it was: the next run of a log has about as many keys. Cleared when the first
        # one comes: there may be none.
        self._is_table_clear = False
        self.marks = Marks(first_index, np.zeros(_FIRST_MARKS_BYTES, np.uint8))

    def begin_part(self, first_index: int) -> None:
        """Keep the latest entry of each key, forget those looked up. The records of the next ones
        begin with this number, and they alone are marked.
        """
        self._lookups = 0
        self.marks = Marks(first_index, np.zeros(_FIRST_MARKS_BYTES, np.uint8))

    @property
    def used_bytes(self) -> int:
        """Of memory, by what is held."""
        held = self.distinct_keys + self._lookups
        return held * ENTRY_WORDS * 8 + self._table.nbytes

    @property
    def distinct_keys(self) -> int:
        """Of the dirty records."""
        return int(self._state[HELD])

    def has_room(self, count: int) -> bool:
        """Whether so many entries may enter, whatever their keys."""
        return self.distinct_keys + self._lookups + count <= self.most_keys

    def enter(self, entries: Entries, end_index: int) -> None:
        """Enter uint64[3 * n], for which there is room, of records below `end_index`."""
        count = entries.size // ENTRY_WORDS
        if not count:
            return
        if not self._is_table_clear:
            self._table[:] = EMPTY
            self._is_table_clear = True
        self._make_room(count, end_index - self.marks.first_index)
        self._state[LOOKUPS] = 0
        self._merge(entries, ENTER)
        # Clean records are judged at the end, when all dirty ones have entered.
        found = int(self._state[LOOKUPS])
        if found:
            lookups = entries[np.repeat(entries[2::ENTRY_WORDS] >= np.uint64(LOOKUP_BIT), 3)]
            end = (self.most_keys - self._lookups) * ENTRY_WORDS
            self._pool[end - lookups.size : end] = lookups
            self._lookups += found

    def end(self) -> None:
        """Set the marks of what was to be looked up."""
        if self._lookups:
            self._merge(self._looked_up, LOOK_UP)

    def buckets(self, bits: int) -> Iterator[tuple[int, Entries]]:
        """The latest entry of each key and those looked up, by the first bits of their hashes: of
        each bucket that has any up to two arrays, which the next `begin` makes invalid.
        """
        scratch = np.empty(1 << bits, np.uint64)
        kinds = []
        for entries in (self._pool[: self.distinct_keys * ENTRY_WORDS], self._looked_up):
            starts = np.empty((1 << bits) + 1, np.uint64)
            # The table names places that entries now leave: it is of no more use.
            sort_by_bucket(entries, starts, scratch)
            kinds.append((entries, (starts * np.uint64(ENTRY_WORDS)).tolist()))
        for bucket in range(1 << bits):
            for entries, edges in kinds:
                if edges[bucket] < edges[bucket + 1]:
                    yield bucket, entries[edges[bucket] : edges[bucket + 1]]

    @property
    def _looked_up(self) -> Entries:
        return self._pool[(self.most_keys - self._lookups) * ENTRY_WORDS :]

    def _merge(self, entries: Entries, step: int) -> None:
        marks = self.marks
        status = merge_entries(
            entries, step, 0, 1, self._table, self._pool, marks.first_index, marks.bits, self._state
        )
        assert status == OK, "room was made before"  # noqa: S101

    def _make_room(self, count: int, records: int) -> None:
        """For so many more keys in the table, and bits of so many records."""
        held = self.distinct_keys
        if 2 * (held + count) > self._table.size:
            slots = max(2 * (held + count), 2 * self._table.size)
            # What would be grown once more soon, and by little, is made as large as it may be.
            if slots > self.most_keys:
                slots = 2 * self.most_keys
            # The old table first: the new one is made from the entries alone.
            self._table = np.empty(0, np.uint32)
            self._table = np.full(slots, EMPTY, np.uint32)
            # Entered again in their order each goes to the place where it is: none has the key of
            # another, so nothing is marked.
            self._state[HELD] = 0
            self._merge(self._pool[: held * ENTRY_WORDS], ENTER)
        bits = self.marks.bits
        if records > 8 * bits.size:
            grown = np.zeros(max(-(-records // 8), 2 * bits.size), np.uint8)
            grown[: bits.size] = bits
            self.marks.bits = grown
