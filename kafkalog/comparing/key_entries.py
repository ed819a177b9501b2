"""Which records are the latest of their key on which copy: what tells a record that one side has
cleaned from one that came back.

An entry of five words for each aligned row with a key goes to a bucket of the key's hash; buckets
lie on local disk past a bound. Where all rows are known, each bucket is judged by itself, in parts
if it is too large: of the keys that a copy lacks a record of, all entries are sorted by key and
offset. So memory does not grow with the log, and what is sorted is only what differs.

    entry   uint64[5]: hash, hash | offset | producer id | present, absent, hidden, flags (16 bits)

Hidden and not present is a copy that has the record as far as anybody knows: the offset lies in
what cannot be read there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kafkalog.comparing.alignment import Aligned, Facts, Masks
from kafkalog.kernels.key_entries import (
    ABSENT_SHIFT,
    ENTRY_WORDS,
    FLAGS_SHIFT,
    HIDDEN_SHIFT,
    key_entries,
)
from kafkalog.kernels.record_facts import TOMBSTONE
from kafkalog.resources.spilled_array import SpilledArray

_ABSENT_SHIFT, _HIDDEN_SHIFT, _FLAGS_SHIFT = map(
    np.uint64, (ABSENT_SHIFT, HIDDEN_SHIFT, FLAGS_SHIFT)
)
_MASK = np.uint64(0xFFFF)
# Sorting takes an order, copies of the columns, and masks of each copy.
_SORTING_FACTOR = 6
_MOST_BUCKET_BITS = 8
_READ_ENTRIES = 256 * 1024

Entries = NDArray[np.uint64]
Words = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Records of which the copies say different things, an element each. `offsets`: of the record
    that `wrong` (masks) still serve as the latest of its key; `right`: the copies without it;
    `older`: those of them that serve an older value of the key. is_deleted: the tombstone is still
    on the copies that are right. flags, producer_ids: of the record, unknown (0, -1) of a deleted
    one.
    """

    offsets: NDArray[np.int64]
    wrong: Masks
    right: Masks
    older: Masks
    is_deleted: NDArray[np.bool_]
    flags: NDArray[np.uint32]
    producer_ids: NDArray[np.int64]

    @classmethod
    def none(cls) -> Candidates:
        """No candidate."""
        masks = np.empty(0, np.uint16)
        ids = np.empty(0, np.int64)
        return cls(ids, masks, masks, masks, np.empty(0, np.bool_), np.empty(0, np.uint32), ids)

    def merged(self, other: Candidates) -> Candidates:
        """Those of both in the order of offsets, those of one offset as one."""
        if not other.offsets.size:
            return self
        names = [each.name for each in fields(self)]
        columns = [np.concatenate([getattr(self, n), getattr(other, n)]) for n in names]
        # Of one offset the value itself comes first: its flags are known.
        order = np.lexsort((columns[4], columns[0]))
        columns = [column[order] for column in columns]
        starts = np.flatnonzero(np.concatenate([[True], np.diff(columns[0]) != 0]))
        masks = [np.bitwise_or.reduceat(column, starts) for column in columns[1:4]]
        return Candidates(*(columns[0][starts], *masks, *(c[starts] for c in columns[4:])))

    def lowest(self, count: int) -> Candidates:
        """The first ones."""
        return Candidates(*(getattr(self, each.name)[:count] for each in fields(self)))


def bucket_bits(expected_bytes: int, pool_bytes: int) -> int:
    """How many bits of a hash choose the bucket. `expected_bytes`: of the largest copy's log;
    `pool_bytes`: of what is sorted at once."""
    # An entry for each 100 bytes of log would be many.
    wanted = expected_bytes // 100 * ENTRY_WORDS * 8 * _SORTING_FACTOR // max(pool_bytes, 1)
    return min(int(wanted).bit_length(), _MOST_BUCKET_BITS)


def entries_by_bucket(
    part: Aligned, absent: Masks, blind: Masks, bits: int
) -> Iterator[tuple[int, Words]]:
    """(bucket, words of its entries) of aligned rows. `absent`: bits of the copies that lack the
    record and might have it; `blind`: of those that cannot be read there."""
    present = part.present & ~part.differs
    hidden = part.hidden & present | blind & ~part.present
    yield from _by_bucket(part.rows, present, hidden, absent, bits)
    # A copy with another record at an offset has that record's key.
    for rows, bit in part.others:
        none = np.zeros(rows.size, np.uint16)
        yield from _by_bucket(rows, none | np.uint16(bit), none, none, bits)


def _by_bucket(
    rows: Facts, present: Masks, hidden: Masks, absent: Masks, bits: int
) -> Iterator[tuple[int, Words]]:
    entries = np.empty((rows.size, ENTRY_WORDS), np.uint64)
    starts = np.zeros((1 << bits) + 1, np.int64)
    if key_entries(rows, present, absent, hidden, bits, starts, entries):
        for number in np.flatnonzero(np.diff(starts)).tolist():
            # A copy: a slice would hold all of them in memory.
            yield number, entries[starts[number] : starts[number + 1]].ravel().copy()


class KeyEntries:
    """Append all entries, then ask for the `candidates`."""

    def __init__(self, copies: int, bits: int, pool_bytes: int) -> None:
        """`bits`: see `bucket_bits`."""
        self._copies, self._pool_bytes = copies, pool_bytes
        self._buckets = [SpilledArray(np.uint64, pool_bytes >> bits) for _ in range(1 << bits)]

    def append(self, bucket: int, entries: Words) -> None:
        """Entries as `entries_by_bucket` gives them, in any order."""
        self._buckets[bucket].append(entries)

    def candidates(self, cleaned_end_offset: int) -> Iterator[Candidates]:
        """What differs below the offset up to which some copy was cleaned, in no order. Ends the
        use of the entries."""
        for bucket in self._buckets:
            if bucket.size:
                need = bucket.size * 8 * _SORTING_FACTOR
                parts = 1 << (need // max(self._pool_bytes, 1)).bit_length()
                for part in range(parts):
                    entries = _part_of(bucket, part, parts)
                    yield from self._judge(entries, cleaned_end_offset)
            bucket.close()

    def _judge(self, entries: Entries, cleaned_end_offset: int) -> Iterator[Candidates]:
        offsets = entries[:, 2].astype(np.int64)
        absent = (entries[:, 4] >> _ABSENT_SHIFT) & _MASK
        suspects = (absent != 0) & (offsets < cleaned_end_offset)
        if not suspects.any():
            return
        # Only keys of which some copy lacks a record: where copies are alike these are few.
        entries = entries[np.isin(entries[:, 0], np.unique(entries[suspects, 0]))]
        entries = entries[np.lexsort((entries[:, 2], entries[:, 1], entries[:, 0]))]
        group = _KeyGroups(entries, self._copies)
        yield from group.values(cleaned_end_offset)
        yield from group.tombstones(cleaned_end_offset)


class _KeyGroups:
    """Entries by key and offset, and each key's latest record on each copy."""

    def __init__(self, entries: Entries, copies: int) -> None:
        self._copies = range(copies)
        self._offsets = entries[:, 2].astype(np.int64)
        self._producers = entries[:, 3].astype(np.int64)
        masks = entries[:, 4]
        self._visible = (masks & ~(masks >> _HIDDEN_SHIFT) & _MASK).astype(np.uint16)
        self._unread = (~masks & (masks >> _HIDDEN_SHIFT) & _MASK).astype(np.uint16)
        self._absent = ((masks >> _ABSENT_SHIFT) & _MASK).astype(np.uint16)
        self._flags = (masks >> _FLAGS_SHIFT).astype(np.uint32)
        self._is_value = (self._flags & np.uint32(TOMBSTONE)) == 0
        is_new = np.ones(len(entries), np.bool_)
        is_new[1:] = (entries[1:, :2] != entries[:-1, :2]).any(axis=1)
        self._starts = np.flatnonzero(is_new)
        self._group = np.cumsum(is_new) - 1
        self._latest = [self._latest_of(number, values=False) for number in self._copies]
        self._latest_value = [self._latest_of(number, values=True) for number in self._copies]
        self._latest_unread = [self._last_where(self._unread >> np.uint16(n)) for n in self._copies]

    def _latest_of(self, number: int, *, values: bool) -> NDArray[np.int64]:
        """Of each key the offset of the latest record (or value) that a copy serves, -1 without."""
        served = self._visible >> np.uint16(number)
        return self._last_where(np.where(self._is_value, served, 0) if values else served)

    def _last_where(self, bits: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Of each key the offset of its last entry with an odd number, -1 without."""
        return np.maximum.reduceat(np.where(bits & 1, self._offsets, -1), self._starts)

    def _sides(self, which: NDArray[np.int64]) -> tuple[Masks, Masks, Masks]:
        """Of some records: the copies that serve them as the latest of their key; those that lack
        them and have no later one; those of the latter that serve an older value.
        """
        serving, lacking, older = (np.zeros(which.size, np.uint16) for _ in range(3))
        offsets, group = self._offsets[which], self._group[which]
        for number in self._copies:
            bit = np.uint16(1 << number)
            latest = self._latest[number][group]
            known = np.maximum(latest, self._latest_unread[number][group])
            lacks = ((self._absent[which] & bit) != 0) & (known < offsets)
            has = ((self._visible[which] & bit) != 0) & (latest == offsets)
            serving[has] |= bit
            lacking[lacks] |= bit
            is_value = (latest >= 0) & (latest == self._latest_value[number][group])
            older[lacks & is_value] |= bit
        return serving, lacking, older

    def values(self, cleaned_end_offset: int) -> Iterator[Candidates]:
        """Values that some copies serve, and that others have cleaned without a later record."""
        chosen = (self._absent != 0) & (self._offsets < cleaned_end_offset) & self._is_value
        which = np.flatnonzero(chosen)
        serving, lacking, older = self._sides(which)
        found = (serving != 0) & (lacking != 0)
        at = which[found]
        yield Candidates(
            self._offsets[at],
            serving[found],
            lacking[found],
            older[found],
            np.zeros(at.size, np.bool_),
            self._flags[at],
            self._producers[at],
        )

    def tombstones(self, cleaned_end_offset: int) -> Iterator[Candidates]:
        """Values that a copy serves which lacks the tombstone behind them."""
        chosen = (self._absent != 0) & (self._offsets < cleaned_end_offset) & ~self._is_value
        which = np.flatnonzero(chosen)
        serving, _, older = self._sides(which)
        for number in self._copies:
            bit = np.uint16(1 << number)
            found = (serving != 0) & ((older & bit) != 0)
            at = which[found]
            yield Candidates(
                self._latest[number][self._group[at]],
                np.full(at.size, bit, np.uint16),
                serving[found],
                np.zeros(at.size, np.uint16),
                np.ones(at.size, np.bool_),
                np.zeros(at.size, np.uint32),
                np.full(at.size, -1, np.int64),
            )


def _part_of(bucket: SpilledArray, part: int, parts: int) -> Entries:
    """The entries of one part of a bucket's keys, by the second word of their hashes."""
    found = []
    for start in range(0, bucket.size, _READ_ENTRIES * ENTRY_WORDS):
        entries = bucket.read(start, min(start + _READ_ENTRIES * ENTRY_WORDS, bucket.size))
        entries = entries.reshape(-1, ENTRY_WORDS)
        if parts > 1:
            entries = entries[(entries[:, 1] & np.uint64(parts - 1)) == np.uint64(part)]
        found.append(entries)
    return np.concatenate(found)
