"""What travels between the tasks of a partition that is compared across tasks, as rows of
`resources.staged_tasks`. `number` is that of the range, of an entry its bucket, of JUDGED the task;
`plan` the copy of MISSING; `first` the place among rows of one kind. Payloads:

    ENTRIES  uint64[5 * n]: entries of keys (`key_entries`)
    EVENTS   int64[7 * n]: ends of transactions (`transactions`)
    MARKERS  int64[4 * n]: markers (`evidence`)
    MISSING  int64[6 * n]: what a copy lacks (`missing_runs`)
    FACTS    RangeFacts, pickled: what is not large
    JUDGED   Candidates and how many are left out, pickled
    FAILED   JSON: reason

Those of a range go through the task that judges keys to the last one, which takes them in order.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kafkalog.comparing.evidence import Evidence, Tally
from kafkalog.comparing.key_entries import Words
from kafkalog.comparing.missing_runs import Edges
from kafkalog.resources.spilled_array import SpilledArray
from kafkalog.resources.staged_tasks import BLOB_BYTES, ShuffleRow

FAILED, FACTS, JUDGED, EVENTS, MARKERS, MISSING, ENTRIES = range(7)

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RangeFacts:
    """Of `Evidence` about a range what is not large; edges: of each copy's missing runs."""

    cleaned: tuple[int, ...]
    tallies: tuple[tuple[Tally, ...], ...]
    differing: tuple[tuple[int, int, int], ...]
    differing_count: int
    has_absent: bool
    edges: tuple[Edges, ...]

    @classmethod
    def of(cls, found: Evidence) -> RangeFacts:
        """Of a range that was read to its end."""
        tallies = found.held, found.beyond, found.unreadable, found.tails
        return cls(
            tuple(found.cleaned),
            tuple(tuple(each) for each in tallies),
            tuple(found.differing),
            found.differing_count,
            found.has_absent,
            tuple(runs.edges for runs in found.missing),
        )

    def add_to(self, found: Evidence) -> None:
        """Put them with those of the ranges in front."""
        found.cleaned = [max(pair) for pair in zip(found.cleaned, self.cleaned, strict=True)]
        whole = found.held, found.beyond, found.unreadable, found.tails
        for kept, own in zip(whole, self.tallies, strict=True):
            for tally, more in zip(kept, own, strict=True):
                tally.records += more.records
                tally.size_in_bytes += more.size_in_bytes
        found.list_differing(self.differing, self.differing_count)
        found.has_absent |= self.has_absent


def pickled_row(target: int, kind: int, number: int, value: Any) -> ShuffleRow:
    """A row whose payload is pickled: of this program, for its own tasks alone."""
    return ShuffleRow(target, 0, kind, number, 0, pickle.dumps(value))


class EntryRows:
    """Entries of keys on their way, a row a bucket, when there are enough of them."""

    def __init__(self, bits: int, judges: int, kept_bytes: int) -> None:
        """`kept_bytes`: in memory at once."""
        self._bits, self._judges, self._kept_bytes = bits, judges, kept_bytes
        self._waiting: dict[int, list[Words]] = defaultdict(list)
        self._size = 0

    def add(self, bucket: int, entries: Words) -> Iterator[ShuffleRow]:
        """The rows that are full with these."""
        self._waiting[bucket].append(entries)
        self._size += entries.nbytes
        if self._size >= self._kept_bytes:
            yield from self.rest()

    def rest(self) -> Iterator[ShuffleRow]:
        """The rows of all that waits."""
        for bucket, parts in sorted(self._waiting.items()):
            target = bucket * self._judges >> self._bits
            words = np.concatenate(parts)
            step = BLOB_BYTES // words.itemsize // 5 * 5
            for start in range(0, words.size, step):
                payload = words[start : start + step].tobytes()
                yield ShuffleRow(target, 0, ENTRIES, bucket, 0, payload)
        self._waiting.clear()
        self._size = 0


def number_rows(
    target: int, kind: int, number: int, blocks: Iterable[Numbers], copy: int = 0
) -> Iterator[ShuffleRow]:
    """Rows of arrays, in their order."""
    for first, block in enumerate(blocks):
        if block.size:
            yield ShuffleRow(target, copy, kind, number, first, block.tobytes())


class KeptRows:
    """Rows of EVENTS, MARKERS and MISSING in whatever order they come, on disk past a bound, to be
    read in their own."""

    def __init__(self, kept_bytes: int) -> None:
        self._words = SpilledArray(np.int64, kept_bytes)
        self._places: dict[tuple[int, int, int], dict[int, tuple[int, int]]] = defaultdict(dict)

    def add(self, row: ShuffleRow) -> None:
        """Keep one; of a row that comes twice the last one counts, they are the same."""
        words = np.frombuffer(row.payload, np.int64)
        start = self._words.size
        self._words.append(words)
        self._places[row.kind, row.number, row.plan][row.first] = start, start + words.size

    def blocks(self, kind: int, number: int, copy: int = 0) -> Iterator[Numbers]:
        """Those of one kind and range, in order."""
        for _, (start, end) in sorted(self._places[kind, number, copy].items()):
            yield self._words.read(start, end)
