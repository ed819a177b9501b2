"""The copies' records side by side, by offset, some at a time.

Each copy's rows come in offset order. As far as all of them have been read their offsets are put
together: a row an offset, with a bit a copy. Where the copies are the same, which is nearly
everywhere, no offset is looked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.kernels.record_facts import HIDDEN, RECORD_FACT

Facts = NDArray[np.void]
Masks = NDArray[np.uint16]

# A bit of a mask each.
MOST_REPLICAS = 16
_STEP_ROWS = 64 * 1024


@dataclass(frozen=True, slots=True)
class Aligned:
    """Rows in offset order, as the first copy that has the record has it: RECORD_FACT[r], without
    HIDDEN. Masks uint16[r], bit i of copy i: `present`; `hidden`: left out there for read_committed
    consumers; `differs`: another record at that offset than the row's. end_offset: all records
    below it that any copy has have been handed out with these. others: (rows, the copy's bit) of
    the records that differ.
    """

    rows: Facts
    present: Masks
    hidden: Masks
    differs: Masks
    end_offset: int
    others: tuple[tuple[Facts, int], ...] = ()


class _Cursor:
    """Where the reading of a copy is: rows in hand, and those to come."""

    def __init__(self, stream: Iterable[Facts]) -> None:
        self._coming = iter(stream)
        self.rows: Facts = np.empty(0, RECORD_FACT)
        self.is_done = False
        self.fill()

    def fill(self) -> None:
        """Rows in hand, or the end."""
        while not self.rows.size and not self.is_done:
            block = next(self._coming, None)
            if block is None:
                self.is_done = True
            else:
                self.rows = block

    def take(self, end_offset: int) -> Facts:
        """The rows in hand that lie below an offset."""
        count = int(np.searchsorted(self.rows["offset"], end_offset))
        taken, self.rows = self.rows[:count], self.rows[count:]
        return taken


def align(streams: Sequence[Iterable[Facts]]) -> Iterator[Aligned]:
    """The rows of up to MOST_REPLICAS copies."""
    cursors = [_Cursor(stream) for stream in streams]
    while True:
        for cursor in cursors:
            cursor.fill()
        waiting = [cursor for cursor in cursors if cursor.rows.size]
        if not waiting:
            return
        # A copy's next rows lie behind all it has in hand: below the least of those ends nothing
        # more can come.
        end = min(
            int(cursor.rows["offset"][min(cursor.rows.size, _STEP_ROWS) - 1]) + 1
            for cursor in waiting
        )
        yield _together([cursor.take(end) for cursor in cursors], end)


def _together(parts: Sequence[Facts], end_offset: int) -> Aligned:
    first = parts[0].view(np.uint64)
    if all(np.array_equal(part.view(np.uint64), first) for part in parts[1:]):
        return _all_alike(parts[0], len(parts), end_offset)
    offsets = [np.ascontiguousarray(part["offset"]) for part in parts]
    largest = max(offsets, key=lambda each: each.size)
    if all(each.size == largest.size and np.array_equal(each, largest) for each in offsets):
        union = largest
    else:
        union = np.unique(np.concatenate(offsets))
    rows = np.empty(union.size, RECORD_FACT)
    present, hidden, differs = (np.zeros(union.size, np.uint16) for _ in range(3))
    others: list[tuple[Facts, int]] = []
    for number, part in enumerate(parts):
        bit = np.uint16(1 << number)
        places = slice(None) if part.size == union.size else np.searchsorted(union, offsets[number])
        is_first = present[places] == 0
        known = rows[places]
        plain = part.copy()
        plain["flags"] &= ~np.uint32(HIDDEN)
        if number:
            same = is_first | _same(known, plain)
            if not same.all():
                differs[places] |= np.where(same, np.uint16(0), bit)
                others.append((plain[~same], int(bit)))
            plain = np.where(is_first, plain, known)
        rows[places] = plain
        hidden[places] |= np.where(part["flags"] & HIDDEN, bit, np.uint16(0))
        present[places] |= bit
    return Aligned(rows, present, hidden, differs, end_offset, tuple(others))


def _all_alike(rows: Facts, copies: int, end_offset: int) -> Aligned:
    """The same rows on every copy."""
    everywhere = np.full(rows.size, (1 << copies) - 1, np.uint16)
    none = np.zeros(rows.size, np.uint16)
    is_hidden = (rows["flags"] & np.uint32(HIDDEN)) != 0
    if not is_hidden.any():
        return Aligned(rows, everywhere, none, none, end_offset)
    plain = rows.copy()
    plain["flags"] &= ~np.uint32(HIDDEN)
    return Aligned(plain, everywhere, np.where(is_hidden, everywhere, none), none, end_offset)


def _same(one: Facts, other: Facts) -> NDArray[np.bool_]:
    """Whether two rows are of the same record, in the same kind of batch. Its size may differ: a
    record's timestamp and offset count from its batch's."""
    same: NDArray[np.bool_] = one["record"] == other["record"]
    for name in ("key_first", "key_second", "producer_id", "flags"):
        same &= one[name] == other[name]
    return same
