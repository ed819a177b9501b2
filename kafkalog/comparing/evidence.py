"""What the rows of all copies say against each other, before anybody judges it; facts in, no file
is opened. Memory is bounded: what grows with the log is spilled, what is listed is cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kafkalog.comparing.alignment import Aligned, Masks, align
from kafkalog.comparing.key_entries import (
    Candidates,
    KeyEntries,
    bucket_bits,
    entries_by_bucket,
)
from kafkalog.comparing.missing_runs import MissingRuns
from kafkalog.comparing.record_stream import Facts
from kafkalog.comparing.transactions import TransactionEnds, WrongEnd, transaction_events
from kafkalog.kernels.record_facts import ABORT, COMMIT, CONTROL, KEYLESS
from kafkalog.replicas.corrupt_range import CorruptRange
from kafkalog.replicas.epochs import leading, truncation_offset
from kafkalog.replicas.replica import ReplicaFacts
from kafkalog.resources.spilled_array import SpilledArray

# Of one kind in one partition: what follows is counted.
MOST_LISTED = 100
_MOST_CANDIDATES = 10_000
_KEPT_BYTES = 1024 * 1024


class RowSource(Protocol):
    """The rows of one copy; the attributes hold for what was read so far."""

    corrupt: list[CorruptRange]

    @property
    def cleaned_end_offset(self) -> int:
        """One past the last batch as only cleaning leaves it."""

    def __iter__(self) -> Iterator[Facts]:
        """RECORD_FACT rows in offset order."""


@dataclass(slots=True)
class Tally:
    """Records and their bytes."""

    records: int = 0
    size_in_bytes: int = 0

    def add(self, rows: Facts, which: NDArray[np.bool_] | None = None) -> None:
        """Count data records."""
        control = rows["flags"] & np.uint32(CONTROL)
        if which is None and not control.any():
            self.records += rows.size
            self.size_in_bytes += int(rows["size"].sum(dtype=np.int64))
            return
        chosen = control == 0
        if which is not None:
            chosen &= which
        self.records += int(np.count_nonzero(chosen))
        self.size_in_bytes += int(rows["size"][chosen].sum(dtype=np.int64))


@dataclass(slots=True)
class Evidence:
    """All that was found, by copy (lists in their order) or by offset.

    limits: from where on a copy is not compared: its end, or where its history leaves that of copy
    `leading`. beyond: records of others behind its limit; unreadable: in its unreadable ranges;
    tails: its own behind the limit; held: all of its records. differing: (offset, mask of those
    that have another record than the first in `present`, present). markers: offset, producer, mask
    of the copies that have it, whether it is an ABORT. has_absent: whether some copy lacks a record
    with a key that it might have.
    """

    leading: int
    limits: list[int]
    cleaned: list[int]
    held: list[Tally]
    beyond: list[Tally]
    unreadable: list[Tally]
    tails: list[Tally]
    missing: list[MissingRuns]
    wrong_ends: list[WrongEnd] = field(default_factory=list)
    more_wrong_ends: Counter[str] = field(default_factory=Counter)
    differing: list[tuple[int, int, int]] = field(default_factory=list)
    differing_count: int = 0
    candidates: Candidates = field(default_factory=Candidates.none)
    more_candidates: int = 0
    has_absent: bool = False
    markers: SpilledArray = field(default_factory=lambda: SpilledArray(np.int64, _KEPT_BYTES))

    @property
    def cleaned_end_offset(self) -> int:
        """How far some copy was cleaned."""
        return max(self.cleaned)

    def list_wrong_end(self, wrong: WrongEnd) -> None:
        """One more."""
        if sum(each.served == wrong.served for each in self.wrong_ends) < MOST_LISTED:
            self.wrong_ends.append(wrong)
        else:
            self.more_wrong_ends[wrong.served] += 1

    def list_differing(self, more: Iterable[tuple[int, int, int]], count: int) -> None:
        """The first ones of `count` more, behind those that are known."""
        self.differing += list(more)[: MOST_LISTED - len(self.differing)]
        self.differing_count += count

    def list_candidates(self, more: Candidates) -> None:
        """More of them, in any order."""
        merged = self.candidates.merged(more)
        self.candidates = merged.lowest(_MOST_CANDIDATES)
        self.more_candidates += merged.offsets.size - self.candidates.offsets.size


def gather(
    facts: Sequence[ReplicaFacts], sources: Sequence[RowSource], pool_bytes: int
) -> Evidence:
    """Read the rows of all copies once. `pool_bytes`: memory for keys before they are spilled.
    Errors as from the sources.
    """
    found = begin(facts)
    bits = bucket_bits(max(each.size_in_bytes for each in facts), pool_bytes)
    keys = KeyEntries(len(facts), bits, pool_bytes)
    ends = TransactionEnds(found.limits, [each.log_start_offset for each in facts])
    for part, absent, blind in walk(facts, sources, found):
        for bucket, entries in entries_by_bucket(part, absent, blind, bits):
            keys.append(bucket, entries)
        for wrong in ends.add(transaction_events(part, blind)):
            found.list_wrong_end(wrong)
    for wrong in ends.open_at_end(found.cleaned):
        found.list_wrong_end(wrong)
    if found.has_absent:
        for more in keys.candidates(found.cleaned_end_offset):
            found.list_candidates(more)
    return found


def begin(facts: Sequence[ReplicaFacts]) -> Evidence:
    """What is known before any row is read."""
    histories = [(each.leader_epochs, each.log_end_offset) for each in facts]
    leads = leading(histories)
    limits = [truncation_offset(*histories[leads], *history) for history in histories]
    held, beyond, unreadable, tails = ([Tally() for _ in facts] for _ in range(4))
    cleaned = [each.cleaned_end_offset for each in facts]
    missing = [MissingRuns(number) for number in range(len(facts))]
    return Evidence(leads, limits, cleaned, held, beyond, unreadable, tails, missing)


def walk(
    facts: Sequence[ReplicaFacts], sources: Sequence[RowSource], found: Evidence
) -> Iterator[tuple[Aligned, Masks, Masks]]:
    """Read the rows, and note all that needs no more than some of them at a time: aligned rows, and
    uint16[r] the copies that lack each and might have it, and those that cannot be read there.
    """
    limited = [
        _below(source, found.limits[n], found.tails[n], found.held[n])
        for n, source in enumerate(sources)
    ]
    for part in align(limited):
        for number, source in enumerate(sources):
            found.cleaned[number] = max(found.cleaned[number], source.cleaned_end_offset)
        blind = _blind(part, sources)
        absent = _absent(part, facts, found, blind)
        keyed = (part.rows["flags"] & np.uint32(KEYLESS | CONTROL)) == 0
        found.has_absent |= bool(absent[keyed].any())
        _note_markers(part, found)
        _note_differing(part, found)
        behind = part.rows["offset"] >= found.cleaned_end_offset
        for number, runs in enumerate(found.missing):
            runs.add(part, ((absent >> np.uint16(number)) & np.uint16(1)).astype(bool) & behind)
        yield part, absent, blind
    for number, source in enumerate(sources):
        found.cleaned[number] = max(found.cleaned[number], source.cleaned_end_offset)


def _below(source: Iterable[Facts], limit: int, tail: Tally, held: Tally) -> Iterator[Facts]:
    for rows in source:
        held.add(rows)
        count = int(np.searchsorted(rows["offset"], limit))
        if count < rows.size:
            tail.add(rows[count:])
        yield rows[:count]


def _blind(part: Aligned, sources: Sequence[RowSource]) -> Masks:
    """uint16[r]: the copies in whose unreadable ranges an offset lies."""
    blind = np.zeros(part.rows.size, np.uint16)
    offsets = part.rows["offset"]
    for number, source in enumerate(sources):
        for each in source.corrupt:
            start, end = np.searchsorted(offsets, [each.unread_from, each.end_offset])
            blind[start:end] |= np.uint16(1 << number)
    return blind


def _absent(part: Aligned, facts: Sequence[ReplicaFacts], found: Evidence, blind: Masks) -> Masks:
    """uint16[r]: the copies that lack a record and whose log goes over its offset."""
    absent = np.zeros(part.rows.size, np.uint16)
    offsets = part.rows["offset"]
    for number, each in enumerate(facts):
        bit = np.uint16(1 << number)
        lacks = (part.present & bit) == 0
        if not lacks.any():
            continue
        is_behind = offsets >= found.limits[number]
        is_blind = (blind & bit) != 0
        found.beyond[number].add(part.rows, lacks & is_behind)
        found.unreadable[number].add(part.rows, lacks & is_blind)
        absent[lacks & ~is_behind & ~is_blind & (offsets >= each.log_start_offset)] |= bit
    return absent


def _note_markers(part: Aligned, found: Evidence) -> None:
    marks = np.flatnonzero(part.rows["flags"] & np.uint32(COMMIT | ABORT))
    if marks.size:
        rows = part.rows[marks]
        columns = (
            rows["offset"], rows["producer_id"], part.present[marks].astype(np.int64),
            (rows["flags"] & np.uint32(ABORT)).astype(np.int64),
        )  # fmt: skip
        found.markers.append(np.stack(columns, axis=1).ravel())


def _note_differing(part: Aligned, found: Evidence) -> None:
    which = np.flatnonzero(part.differs)
    listed = which[:MOST_LISTED]
    columns = part.rows["offset"], part.differs, part.present
    found.list_differing(zip(*(c[listed].tolist() for c in columns), strict=True), which.size)
