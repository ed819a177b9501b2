"""Transactions whose end one copy has and another has not, over the aligned rows of all copies.

A record belongs to the first marker of its producer behind it. A copy that has records of a
transaction and not its marker, though its log goes on behind it, has lost the marker: a cleaner
keeps a marker while a record of its transaction is there. What consumers of that copy then get the
next marker of the producer there decides, or none: then its last stable offset stays for ever.

What consumers get goes by the transaction index (HIDDEN), the truth by the marker.

Source: Kafka ProducerStateManager, Cleaner.shouldDiscardBatch, Fetcher's aborted transactions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kafkalog.comparing.alignment import Aligned, Masks
from kafkalog.kernels.record_facts import ABORT, COMMIT, CONTROL, TRANSACTIONAL

OPEN, COMMITTED, ABORTED = "open", "committed", "aborted"


@dataclass(frozen=True, slots=True)
class WrongEnd:
    """Records of a producer from `first_offset` on that some copies (`wrong`, a mask) serve as
    `served` (OPEN, COMMITTED, ABORTED), though the marker at `marker_offset` says `truth`; None for
    both where no copy has the marker any more. `right`: those that have it, or cleaned past it.
    """

    first_offset: int
    producer_id: int
    served: str
    truth: str | None
    marker_offset: int | None
    wrong: int
    right: int


@dataclass(slots=True)
class _OnCopy:
    """A producer's transaction on one copy: its first record (-1 without one), whether that is
    hidden; markers that were lost: (first record, hidden, marker, truth, who has it).
    """

    first_offset: int = -1
    is_hidden: bool = False
    awaits_marker: bool = False
    lost: list[tuple[int, bool, int, str, int]] = field(default_factory=list)


EVENT_FIELDS = 7


def transaction_events(part: Aligned, unreadable: Masks) -> NDArray[np.int64]:
    """int64[e, 7]: offset, producer, masks of the copies that have it and that hide it, which end
    marker it is (COMMIT, ABORT, 0 for records), masks of the copies in whose unreadable ranges it
    lies (`unreadable` uint16[r]) and of those with another record there. A row a marker, and one a
    run of records that nothing tells apart from the one before.
    """
    flags = part.rows["flags"]
    ends = flags & np.uint32(COMMIT | ABORT)
    data = ((flags & np.uint32(TRANSACTIONAL)) != 0) & ((flags & np.uint32(CONTROL)) == 0)
    events = np.flatnonzero((ends != 0) | data)
    found = np.empty((events.size, EVENT_FIELDS), np.int64)
    if not events.size:
        return found
    for column, values in enumerate(
        (
            part.rows["offset"], part.rows["producer_id"], part.present, part.hidden, ends,
            unreadable, part.differs,
        )
    ):  # fmt: skip
        found[:, column] = values[events]
    new = np.ones(events.size, np.bool_)
    new[1:] = (found[1:, 1:5] != found[:-1, 1:5]).any(axis=1)
    new |= found[:, 4] != 0
    events_only: NDArray[np.int64] = found[new]
    return events_only


class TransactionEnds:
    """Feed it with events in order, then ask for what is `open_at_end`."""

    def __init__(self, limits: list[int], starts: list[int]) -> None:
        """`limits`, `starts`: offsets from which on, and below which, a copy is not compared."""
        self._limits, self._starts = limits, starts
        self._producers: dict[int, list[_OnCopy]] = {}

    def add(self, events: NDArray[np.int64]) -> Iterator[WrongEnd]:
        """The wrong ends that come to light with these `transaction_events`."""
        for offset, producer_id, mask, hidden, end, blind, differs in events.tolist():
            copies = self._copies(producer_id)
            if not end:
                self._records(copies, offset, mask, hidden)
                continue
            truth = COMMITTED if end & COMMIT else ABORTED
            # A copy with another record here has what that says, which is told of by itself.
            having = mask, mask & ~differs
            yield from self._marker(producer_id, copies, offset, truth, having, blind)
            if not any(c.first_offset >= 0 or c.lost for c in copies):
                del self._producers[producer_id]

    def open_at_end(self, cleaned: list[int]) -> Iterator[WrongEnd]:
        """Transactions without an end on some copies. `cleaned`: up to where each copy was
        cleaned: a cleaner passes no open transaction, so it had ended there."""
        for producer_id, copies in sorted(self._producers.items()):
            for number, copy in enumerate(copies):
                for first, is_hidden, marker, truth, right in copy.lost:
                    if not is_hidden:
                        yield WrongEnd(first, producer_id, OPEN, truth, marker, 1 << number, right)
                if copy.first_offset < 0 or copy.awaits_marker:
                    continue
                right = 0
                for other, end in enumerate(cleaned):
                    its_first = copies[other].first_offset
                    if end > copy.first_offset and not 0 <= its_first <= copy.first_offset:
                        right |= 1 << other
                if right and not copy.lost:
                    yield WrongEnd(
                        copy.first_offset, producer_id, OPEN, None, None, 1 << number, right
                    )

    def _copies(self, producer_id: int) -> list[_OnCopy]:
        found = self._producers.get(producer_id)
        if found is None:
            found = self._producers[producer_id] = [_OnCopy() for _ in self._limits]
        return found

    def _records(self, copies: list[_OnCopy], offset: int, present: int, hidden: int) -> None:
        for number, copy in enumerate(copies):
            if present >> number & 1 and offset < self._limits[number]:
                if copy.first_offset < 0:
                    copy.first_offset = offset
                copy.is_hidden |= bool(hidden >> number & 1)

    def _marker(
        self, producer_id: int, copies: list[_OnCopy], offset: int, truth: str,
        having: tuple[int, int], blind: int,
    ) -> Iterator[WrongEnd]:  # fmt: skip
        present, same = having
        closing = [n for n, c in enumerate(copies) if present >> n & 1 and offset < self._limits[n]]
        with_data = [n for n in closing if copies[n].first_offset >= 0 and same >> n & 1]
        served = {n: ABORTED if copies[n].is_hidden else COMMITTED for n in with_data}
        agreeing = sum(1 << n for n in with_data if served[n] == truth)
        for n in with_data:
            # Who has the marker and serves something else has lost the index entry, or has one
            # too many; that all copies do is no difference between them.
            if served[n] != truth and agreeing:
                yield WrongEnd(
                    copies[n].first_offset, producer_id, served[n], truth, offset, 1 << n, agreeing
                )
        for n, copy in enumerate(copies):
            if n in closing:
                for first, is_hidden, marker, its_truth, right in copy.lost:
                    its = ABORTED if is_hidden else COMMITTED
                    if its != its_truth:
                        yield WrongEnd(first, producer_id, its, its_truth, marker, 1 << n, right)
                copies[n] = _OnCopy()
            elif blind >> n & 1:
                copies[n] = _OnCopy()  # the marker may be there
            elif copy.first_offset >= 0 and offset >= self._limits[n]:
                copy.awaits_marker = True
            elif copy.first_offset >= 0 and offset >= self._starts[n]:
                lost = (copy.first_offset, copy.is_hidden, offset, truth, same)
                copies[n] = _OnCopy(lost=[*copy.lost, lost])
