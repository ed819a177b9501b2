"""Parts of sources that are ready to be written, in memory until the output comes to them.

They are kept in blocks. When there is less memory than was thought, the block that was filled first
goes, with its parts: these are then read and written as parts that were never kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from kafkalog.cleaning.cleaner_stats import CleanerStats
from kafkalog.cleaning.rebuilt_batches import RebuiltBatches

_BLOCK_BYTES = 16 * 1024 * 1024
# Parts are made as soon as all that is left would take no more than so many times the memory, if it
# were kept at the same rate: what lies further to the front is superseded more often.
_FALLS_TO = 4
# A block goes for a part of which this many times less stays of each byte of its source.
_LESS_STAYS = 2


@dataclass(slots=True)
class FinishedPart:
    """What becomes of the bytes [start, end) of a source, which are whole batches with so many
    `records`, and whose CRC-32C is `checksum`.

    pieces: bytes and their rows, whose positions, like those of `rebuilt`, begin with 0.
    """

    start: int
    end: int
    records: int
    checksum: int
    stats: CleanerStats
    rebuilt: RebuiltBatches
    pieces: list[tuple[NDArray[np.uint8], NDArray[np.void]]] = field(default_factory=list)


@dataclass(slots=True)
class _Block:
    data: NDArray[np.uint8]
    used: int = 0
    parts: list[tuple[str, FinishedPart]] = field(default_factory=list)

    @property
    def source_bytes(self) -> int:
        """That need not be read again."""
        return sum(part.end - part.start for _, part in self.parts)

    def has_place(self, least_bytes: int) -> bool:
        return self.used < _BLOCK_BYTES and self.data.size - self.used >= least_bytes


class FinishedParts:
    """Those of one partition. `add` a part, write it through `PartOutput`."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._blocks: list[_Block] = []
        self._of_source: dict[str, list[FinishedPart]] = {}
        self._held_bytes = 0

    @property
    def held_bytes(self) -> int:
        return self._held_bytes

    def takes(self, out_bytes: int, source_bytes: int, left_bytes: int) -> bool:
        """Whether a part of so many bytes of a source is kept, of which `out_bytes` stay, and so
        many of all sources are left with it. Then there is room for it: the block that was filled
        first, at the end of the log, goes where its memory saves more reading further in front.
        """
        most = self._most_bytes
        if out_bytes > most or out_bytes * left_bytes > _FALLS_TO * most * source_bytes:
            return False
        while self._held_bytes + out_bytes > most:
            first = self._blocks[0]
            if first.used * source_bytes < _LESS_STAYS * out_bytes * first.source_bytes:
                return False
            self._drop_first()
        return True

    def limit(self, most_bytes: int) -> None:
        """Keep no more than so many bytes from now on."""
        self._most_bytes = min(self._most_bytes, max(most_bytes, 0))
        while self._blocks and self._held_bytes > self._most_bytes:
            self._drop_first()

    def _drop_first(self) -> None:
        block = self._blocks.pop(0)
        for path, part in block.parts:
            self._of_source[path].remove(part)
        self._held_bytes -= block.used

    def add(self, path: str, part: FinishedPart) -> None:
        """Keep a part, whose pieces are not here yet."""
        if not self._blocks:
            self._blocks.append(_Block(np.empty(_BLOCK_BYTES, np.uint8)))
        self._blocks[-1].parts.append((path, part))
        self._of_source.setdefault(path, []).append(part)

    def place(self, least_bytes: int) -> NDArray[np.uint8]:
        """What is free of the last block, of a new one if that is less."""
        if not self._blocks or not self._blocks[-1].has_place(least_bytes):
            # Memory that was not written to costs nothing.
            self._blocks.append(_Block(np.empty(max(least_bytes, _BLOCK_BYTES), np.uint8)))
        block = self._blocks[-1]
        return block.data[block.used :]

    def take(self, size: int) -> NDArray[np.uint8]:
        """The first bytes of the place that was given last: they are kept."""
        block = self._blocks[-1]
        block.used += size
        self._held_bytes += size
        return block.data[block.used - size : block.used]

    def ranges(self, path: str) -> Iterator[tuple[int, int | None, FinishedPart | None]]:
        """A source in order: (start, end, its part), the last end and part None."""
        position = 0
        for part in sorted(self._of_source.get(path, ()), key=attrgetter("start")):
            if position < part.start:
                yield position, part.start, None
            yield part.start, part.end, part
            position = part.end
        yield position, None, None


class PartOutput:
    """Where a part is written to: a place among those that are kept."""

    def __init__(self, parts: FinishedParts, part: FinishedPart) -> None:
        self._parts = parts
        self._part = part
        self.position = 0

    def place(self, least_bytes: int) -> NDArray[np.uint8]:
        """Where batches can be made, at least so many bytes."""
        return self._parts.place(least_bytes)

    def keep(self, size: int, rows: NDArray[np.void]) -> None:
        """So many bytes of the place that was given last are batches, which these rows describe."""
        self._part.pieces.append((self._parts.take(size), rows))
        self.position += size

    def append(self, parts: Sequence[memoryview], rows: NDArray[np.void]) -> None:
        """Copies of some buffers, one behind the other, which these rows describe."""
        size = sum(len(part) for part in parts)
        place = self.place(size)
        end = 0
        for part in parts:
            place[end : end + len(part)] = np.frombuffer(part, np.uint8)
            end += len(part)
        self.keep(size, rows)
