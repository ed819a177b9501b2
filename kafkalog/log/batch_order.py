"""Which batches of a segment belong to it, and in which order, where their offsets do not increase.

No checksum covers a base offset, so a batch that is sound may lie at the wrong place, be there
twice, or say offsets that are not its own. Strategy: the longest chain of batches whose offsets
increase is right; of two of the same length the one that explains what is missing. What is not in
it goes between them where its offsets are free, as of two batches that were swapped; what is left
over is a copy, or was damaged. So is a batch whose offsets are free elsewhere, but at whose own
place exactly as many offsets are missing.

Kafka's own code compares no batch with the one before it when it reads or recovers a log.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.batch_table import is_legacy_wrapper
from kafkalog.format.batch_rows import join_rows
from kafkalog.format.constants import MAX_INT64
from kafkalog.format.record_batch import BATCH_ROW
from kafkalog.log.damage import Damage, FileRange
from kafkalog.log.past_damage import DamageWalk
from kafkalog.log.segment_tail import SegmentEnds

NOT_BEHIND = "offsets do not lie behind those of the batch before it"
NOT_OF_SEGMENT = "offsets reach into the next segment"
BELOW_SEGMENT = "offsets do not belong to the segment"
NOT_OF_PLACE = "offsets are not those that are missing at its place"

Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class BatchOrder:
    """Indexes of the batches that are kept, by their offsets; of the others why not."""

    kept: list[int]
    left_out: dict[int, str]


def are_in_order(rows: NDArray[np.void], last_offset: int, ends: SegmentEnds) -> bool:
    """Whether batches (BATCH_ROW[b]) lie behind `last_offset` and behind each other, and in the
    segment."""
    if not rows.size:
        return True
    bases, lasts = rows["base_offset"], rows["last_offset"]
    is_behind = bases[1:] > lasts[:-1]
    in_segment = bases[0] > last_offset and lasts[-1] < ends.upper_bound_offset
    return bool(in_segment and is_behind.all() and (lasts >= bases).all())


def order_batches(rows: NDArray[np.void], ends: SegmentEnds) -> BatchOrder:
    """The order of batches (BATCH_ROW[b]), given as they lie in the file."""
    bases, lasts = rows["base_offset"], rows["last_offset"]
    left_out: dict[int, str] = {}
    below = (bases < ends.base_offset) | (lasts < bases)
    above = ~below & (lasts >= ends.upper_bound_offset)
    left_out |= dict.fromkeys(np.flatnonzero(below).tolist(), BELOW_SEGMENT)
    left_out |= dict.fromkeys(np.flatnonzero(above).tolist(), NOT_OF_SEGMENT)
    possible = np.flatnonzero(~below & ~above).tolist()
    first, last = bases.tolist(), lasts.tolist()
    # What most batches agree on is believed: one batch with a damaged offset, too high, would make
    # all behind it look out of place.
    chain = _longest_chain(rows, possible, ends)
    kept = [(first[i], last[i], i) for i in chain]
    placed = []
    # What is no part of the chain may still lie in a gap of it: a batch that was moved within the
    # file.
    for i in sorted(set(possible) - set(chain)):
        at = bisect_left(kept, (first[i], last[i], i))
        is_free = (at == 0 or kept[at - 1][1] < first[i]) and (
            at == len(kept) or last[i] < kept[at][0]
        )
        if is_free:
            kept.insert(at, (first[i], last[i], i))
            placed.append(i)
        else:
            left_out[i] = NOT_BEHIND
    # Of a legacy wrapper the first offset is not known, so nothing seems to be missing where it is.
    for i in [] if is_legacy_wrapper(rows).any() else placed:
        if _belongs_elsewhere(i, chain, kept, ends):
            kept.remove((first[i], last[i], i))
            left_out[i] = NOT_OF_PLACE
    return BatchOrder([i for _, _, i in kept], left_out)


def sound_places(wanted: FileRange) -> tuple[Int64s, Int64s]:
    """(positions of the sound batches of a whole segment, positions of those whose offsets are not
    to be believed). Reads all of it. OSError, LogChangedError as from reading."""
    parts: list[NDArray[np.void]] = []
    walk = DamageWalk(wanted)
    for found in walk:
        if not isinstance(found, Damage):
            parts.append(found.rows.compress(walk.is_valid))
        elif found.row is not None:
            parts.append(np.array([found.row], BATCH_ROW))
    rows = join_rows(parts)
    order = order_batches(rows, wanted.ends)
    positions = rows["position"].astype(np.int64)
    return positions, positions[sorted(order.left_out)]


def _longest_chain(rows: NDArray[np.void], possible: list[int], ends: SegmentEnds) -> list[int]:
    """The longest run of batches each of which begins behind the end of the one before.

    Of several the one with the most steps that what is left out explains: as many offsets are
    missing there as the batches have that lie there. Then the one with the most offsets, then the
    one that ends lowest.
    """
    first, last = rows["base_offset"].tolist(), rows["last_offset"].tolist()
    lines, line_of_end = _lines(rows, ends)
    chains = _BestChains()
    on_line: dict[int | None, _Chain] = {ends.base_offset: _NONE}
    before: dict[int, int] = {}
    # The longest increasing run, batch by batch: the best chain that ends below this batch's first
    # offset, and this batch behind it. `before` leads back from each batch to the one in front.
    for i in possible:
        longest = chains.below(first[i])
        # A chain on the same line: what lies between its end and this batch in the file has just as
        # many offsets as are missing between the two, so that the step is explained.
        explained = on_line.get(lines[i])
        if explained is not None:
            longest = max(longest, explained.explaining())
        before[i] = longest.end
        chain = _Chain(
            longest.batches + 1, longest.steps, longest.offsets + last[i] - first[i] + 1, i
        )
        chains.add(last[i], chain)
        if lines[i] is not None and (explained is None or explained < chain):
            on_line[lines[i]] = chain
    longest = chains.below(MAX_INT64)
    if line_of_end in on_line:
        longest = max(longest, on_line[line_of_end].explaining())
    # From the end of the best chain back to its beginning.
    found: list[int] = []
    i = longest.end
    while i >= 0:
        found.append(i)
        i = before[i]
    return found[::-1]


class _Chain(NamedTuple):
    """A run of batches, by what makes it better: how many they are, steps between them that are
    explained, offsets they hold; `end` is the last of them.
    """

    batches: int
    steps: int
    offsets: int
    end: int

    def explaining(self) -> _Chain:
        """With one step more that is explained."""
        return self._replace(steps=self.steps + 1)


_NONE = _Chain(0, 0, 0, -1)


class _BestChains:
    """The best chains by their last offset: none that ends lower is as good."""

    def __init__(self) -> None:
        self._lasts: list[int] = []
        self._chains: list[_Chain] = []

    def below(self, offset: int) -> _Chain:
        """The best one that ends below an offset."""
        at = bisect_left(self._lasts, offset)
        return self._chains[at - 1] if at else _NONE

    def add(self, last: int, chain: _Chain) -> None:
        if self.below(last + 1)[:3] >= chain[:3]:
            return
        # Those that end behind and are no better are of no use any more: both lists rise, which is
        # what the bisection above needs, and each batch is put in and taken out once.
        start = end = bisect_left(self._lasts, last)
        while end < len(self._chains) and self._chains[end][:3] <= chain[:3]:
            end += 1
        self._lasts[start:end], self._chains[start:end] = [last], [chain]


def _lines(rows: NDArray[np.void], ends: SegmentEnds) -> tuple[list[int | None], int | None]:
    """(of each batch its offset less the number of offsets of those in front of it in the file, the
    same of the next segment's base). They are equal wherever no offset is missing but those of the
    batches that lie there. None where the number of offsets is not known: of a legacy wrapper.
    """
    if is_legacy_wrapper(rows).any():
        return [None] * len(rows), None
    bases = rows["base_offset"].astype(np.int64)
    counts = (rows["last_offset"].astype(np.int64) - bases + 1).clip(min=0)
    total = int(counts.sum())
    # As if each batch told where the segment begins: its own offset less all offsets in front of
    # it.
    lines: list[int | None] = (bases - counts.cumsum() + counts).tolist()
    return lines, None if ends.end_offset is None else ends.end_offset - total


def _belongs_elsewhere(
    i: int, chain: list[int], kept: list[tuple[int, int, int]], ends: SegmentEnds
) -> bool:
    """Whether exactly as many offsets as the batch has are missing where it lies in the file."""
    by_index = {index: (first, last) for first, last, index in kept}
    at = bisect_left(chain, i)
    if at == len(chain):
        return False
    # The free offsets at the place where it lies in the file, between its neighbours of the chain.
    low = by_index[chain[at - 1]][1] + 1 if at else ends.base_offset
    high = by_index[chain[at]][0]
    first, last = by_index[i]
    if high - low != last - first + 1:
        return False
    behind = bisect_left(kept, (low, -1, -1))
    return behind == len(kept) or kept[behind][0] >= high
