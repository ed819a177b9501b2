"""Which blocks of a segment can hold a key.

Of each record that has a key sixteen bits of the key's hash are kept, in the order of the records,
and of each block of some batches where it lies and which of these are its own. A block without the
fingerprint of a key has no record of that key, so nothing is ever missed; one fingerprint in 65,536
is that of another key, and costs a look into its block.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.spans import RecordSpans
from kafkalog.kernels.key_fingerprints import key_fingerprints
from kafkalog.kernels.status import OK, STATUS_TEXT

Rows = NDArray[np.void]
Mask = NDArray[np.bool_]
Int64s = NDArray[np.int64]
Fingerprints = NDArray[np.uint16]

# Batches that begin in the same so many bytes are one block: smaller ones would cost more to keep
# than their records' fingerprints.
BLOCK_BYTES = 4096
# What is kept is at most this part of the bytes it is about; of records that are smaller than that
# allows nothing is known.
MOST_PART = 8


@dataclass(frozen=True, slots=True)
class KeyFilter:
    """Of a range of whole batches, k blocks.

    positions int64[k + 1]: where each begins, and where the last one ends. last_offsets int64[k].
    ends int64[k]: where its fingerprints end. is_unknown bool[k]: nothing is known of its records.
    fingerprints uint16. last_position: that of the last batch.
    """

    positions: Int64s
    last_offsets: Int64s
    ends: Int64s
    is_unknown: Mask
    fingerprints: Fingerprints
    last_position: int

    @property
    def start(self) -> int:
        return int(self.positions[0])

    @property
    def end(self) -> int:
        return int(self.positions[-1])

    def can_hold(self, wanted: Mask) -> Mask:
        """bool[k]: the blocks that can hold a key of the wanted fingerprints (`wanted_table`)."""
        found = self.is_unknown.copy()
        hits = np.flatnonzero(wanted[self.fingerprints])
        found[np.searchsorted(self.ends, hits, side="right")] = True
        return found


def wanted_table(keys: Iterable[bytes]) -> Mask:
    """bool[65536]: which fingerprints the keys have."""
    data = list(keys)
    ends = np.cumsum([0, *map(len, data)], dtype=np.int64)
    lengths = np.diff(ends).astype(np.int32)
    wanted = np.zeros(1 << 16, np.bool_)
    wanted[_fingerprints(np.frombuffer(b"".join(data), np.uint8), ends[:-1], lengths)] = True
    return wanted


@dataclass(slots=True)
class KeyFilterBuilder:
    """Collects what becomes the filter of a range, while it is read from its start to its end."""

    _batches: list[tuple[Int64s, Int64s, Int64s, Mask]] = field(default_factory=list)
    _positions: list[Int64s] = field(default_factory=list)
    _counts: list[Int64s] = field(default_factory=list)
    _fingerprints: list[Fingerprints] = field(default_factory=list)

    def add_batches(self, rows: Rows, has_none: Mask) -> None:
        """All batches of a chunk, whether their records are looked at or not, and which of them
        have no key that anybody asks for."""
        positions, sizes, last_offsets = (
            rows[name].astype(np.int64) for name in ("position", "size_in_bytes", "last_offset")
        )
        self._batches.append((positions, sizes, last_offsets, has_none))

    def add_records(self, buf: NDArray[np.uint8], rows: Rows, spans: RecordSpans) -> None:
        """All records of some of these batches."""
        keyed = spans.key_lengths[: spans.n] >= 0
        batches = spans.batch_indexes[: spans.n][keyed]
        made = _fingerprints(buf, spans.key_starts[: spans.n], spans.key_lengths[: spans.n])
        self._positions.append(rows["position"].astype(np.int64))
        self._counts.append(np.bincount(batches, minlength=len(rows)).astype(np.int64))
        self._fingerprints.append(made)

    def can_hold(self, wanted: Mask) -> Mask:
        """bool[b]: which of the batches whose records were added last that can hold a key."""
        hits = np.flatnonzero(wanted[self._fingerprints[-1]])
        found = np.zeros(len(self._counts[-1]), np.bool_)
        found[np.searchsorted(np.cumsum(self._counts[-1]), hits, side="right")] = True
        return found

    def filter_of(self, start: int, end: int) -> KeyFilter | None:
        """That of the range; None if the batches do not fill it without a gap."""
        if not self._batches:
            return None
        positions, sizes, last_offsets, is_known = (
            np.concatenate(columns) for columns in zip(*self._batches, strict=True)
        )
        edges = np.append(positions, positions[-1] + sizes[-1])
        if edges[0] != start or edges[-1] != end or (positions + sizes != edges[1:]).any():
            return None
        counts = np.zeros(len(positions), np.int64)
        if self._positions:
            at = np.searchsorted(positions, np.concatenate(self._positions))
            counts[at], is_known[at] = np.concatenate(self._counts), True
        fingerprints = np.concatenate(self._fingerprints or [np.empty(0, np.uint16)])
        if fingerprints.nbytes * MOST_PART > end - start:
            counts[:], is_known[:], fingerprints = 0, False, fingerprints[:0]
        # A block ends where the next batch begins behind its bytes, or is known where it is not.
        blocks = positions // BLOCK_BYTES
        breaks = (np.diff(blocks) != 0) | (np.diff(is_known) != 0)
        firsts = np.append(0, np.flatnonzero(breaks) + 1)
        lasts = np.append(firsts[1:], len(positions)) - 1
        return KeyFilter(
            np.append(positions[firsts], end),
            last_offsets[lasts],
            np.cumsum(counts)[lasts],
            ~is_known[firsts],
            fingerprints,
            int(positions[-1]),
        )


def _fingerprints(
    buf: NDArray[np.uint8], starts: Int64s, lengths: NDArray[np.int32]
) -> Fingerprints:
    made = np.empty(len(lengths), np.uint16)
    count, status, failed = key_fingerprints(buf, starts, lengths, made)
    if status != OK:
        raise ValueError(f"key {failed}: {STATUS_TEXT[status]}")  # spans are checked before
    return made[:count]
