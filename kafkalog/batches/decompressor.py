"""The payloads of magic 2 batches, decompressed one behind the other into an arena.

What is one block of its codec goes straight to the codec: zstd and lz4 many at once, snappy block
by block. `format.compression` does the rest and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.arena import Arena
from kafkalog.batches.batch_table import codecs
from kafkalog.format.compression import decompress_parts, decompress_snappy_block
from kafkalog.format.constants import MAX_INT64, CompressionType
from kafkalog.kernels.single_blocks import find_single_blocks
from kafkalog.native.codec_batches import decompress_batches, decompresses

# Plain numbers: comparing with a member of an enum costs more than what is decided by it.
_NONE, _SNAPPY = int(CompressionType.NONE), int(CompressionType.SNAPPY)


class Decompressor:
    """Appends the records of one batch after the other to an arena."""

    def __init__(
        self,
        buf: NDArray[np.uint8],
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        rows: NDArray[np.void],
        arena: Arena,
        path: str | None,
        max_bytes: int,
    ) -> None:
        """The payload of batch b is buf[starts[b]:ends[b]], and rows[b] its row."""
        self._codecs = codecs(rows).astype(np.int64)
        self._starts, self._ends, self._rooms = np.empty((3, rows.size), np.int64)
        find_single_blocks(
            buf, self._codecs, starts, ends, max_bytes, self._starts, self._ends, self._rooms
        )
        self._view, self._buf, self._rows, self._arena = buf.data, buf, rows, arena
        self._path, self._max_bytes, self._whole = path, max_bytes, (starts, ends)

    def parts(self, arena_bytes: int | None) -> Iterator[tuple[slice, NDArray[np.int64]]]:
        """(which batches the arena holds, the edges of each, int64[b + 1]); it is emptied and
        filled anew when it holds arena_bytes or more.

        RecordTooLargeError past max_bytes, CorruptRecordError, UnsupportedCompressionTypeError.
        """
        count, first = self._codecs.size, 0
        enough = MAX_INT64 if arena_bytes is None else max(arena_bytes, 1)
        edges = np.empty(count + 1, np.int64)
        # A room of 0 is a payload that is not one plain block, or above the cap: it goes the slow
        # way, which also says what is wrong with it.
        at_once = (decompresses(self._codecs) & (self._rooms > 0)).tolist()
        while first < count:
            self._arena.clear()
            edges[first] = 0
            b = first
            while b < count and self._arena.size < enough:
                # None done: the codec has refused the first one. It is tried again by itself, and
                # whether it is damaged is found out there.
                done = self._fill_many(b, enough, edges) if at_once[b] else b
                if done == b:
                    self._fill(b)
                    done = b + 1
                    edges[done] = self._arena.size
                b = done
            yield slice(first, b), edges[first : b + 1].copy()
            first = b

    def _fill_many(self, b: int, enough: int, edges: NDArray[np.int64]) -> int:
        """As many as go at once; the first that is left."""
        arena = self._arena
        # Room for the first of them at least; the call stops at the one for which there is none.
        arena.reserve(int(self._rooms[b]))
        done = decompress_batches(
            self._buf, self._codecs, self._starts, self._ends, self._rooms,
            b, arena.data, arena.size, enough, edges,
        )  # fmt: skip
        if done > b:
            arena.size = int(edges[done])
        return done

    @cached_property
    def _blocks(self) -> list[tuple[int, int, int, int]]:
        """Plain numbers for what is done once a batch: numpy's scalars are slow."""
        blocks = (self._codecs, self._starts, self._ends, self._rooms)
        return list(zip(*(block.tolist() for block in blocks), strict=True))

    def _fill(self, b: int) -> None:
        arena = self._arena
        codec, start, end, room = self._blocks[b]
        block = self._view[start:end]
        # Kafka's Java clients split at 32 KiB, so many payloads have one block: it is decompressed
        # in place.
        if room and codec == _SNAPPY:
            memory = arena.reserve(room)
            size = decompress_snappy_block(block, memory[arena.size : arena.size + room])
            if size >= 0:
                arena.size += size
                return
        elif codec == _NONE and len(block) <= self._max_bytes:
            arena.append(block)
            return
        if block:
            self._fill_in_parts(b)

    def _fill_in_parts(self, b: int) -> None:
        """Of a payload that is more than one block, or damaged."""
        row = self._rows[b]
        parts = decompress_parts(
            self._blocks[b][0],
            self._view[int(self._whole[0][b]) : int(self._whole[1][b])],
            max_bytes=self._max_bytes,
            path=self._path,
            position=int(row["position"]),
            offset=int(row["base_offset"]),
        )
        # Given back one by one, so that what is copied does not lie in memory twice for long.
        while parts:
            self._arena.append(parts.pop(0))
