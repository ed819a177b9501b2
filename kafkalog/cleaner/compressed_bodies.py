"""The records of compressed batches that are rebuilt: of a whole chunk, before its batches are put
together.

Decompressing, encoding and compressing each batch by itself cost five times what the codecs do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.arena import Arena, iterate_record_areas
from kafkalog.batches.batch_table import codecs, is_legacy
from kafkalog.batches.encoder import BatchEncoder
from kafkalog.cleaner.checked_chunks import CLEANER_CHUNK_BYTES
from kafkalog.format.constants import CompressionType
from kafkalog.kernels.encode_records import FACTS
from kafkalog.log.segment_file import Chunk

# Larger ones are not copied into one memory with others.
LARGE_BODY_BYTES = 256 * 1024


class CompressedBodies:
    """The compressed records of rebuilt batches of a chunk, where `assemble_batches` finds them;
    large ones apart, so that memory does not hold them twice.

    data uint8[n]; ends int64[b * 2], where each body begins and ends; facts int64[b * FACTS].
    """

    def __init__(self, batches: int, arena: Arena) -> None:
        arena.clear()
        self._arena = arena
        self.ends = np.zeros(2 * batches, np.int64)
        self.facts = np.zeros(FACTS * batches, np.int64)
        self.large: dict[int, bytes] = {}

    @property
    def data(self) -> NDArray[np.uint8]:
        return self._arena.data

    def add(
        self, batches: NDArray[np.int64], bodies: Sequence[bytes], facts: NDArray[np.int64]
    ) -> None:
        """Those of these batches, as the encoder made them."""
        self.facts.reshape(-1, FACTS)[batches] = facts.reshape(-1, FACTS)
        for b, body in zip(batches.tolist(), bodies, strict=True):
            if len(body) > LARGE_BODY_BYTES:
                self.large[b] = body
                continue
            self.ends[2 * b] = self._arena.size
            self._arena.append(body)
            self.ends[2 * b + 1] = self._arena.size


class BodyRebuilder:
    """Makes the bodies of one chunk after the other, in memory of its own that is used again."""

    def __init__(self, arena: Arena) -> None:
        """`arena`: where records are decompressed."""
        self._arena = arena
        self._bodies = Arena()
        self._encoder = BatchEncoder()

    def rebuild(
        self,
        chunk: Chunk,
        is_rebuilt: NDArray[np.bool_],
        flags: NDArray[np.uint8],
        first_records: NDArray[np.int64],
        horizons: NDArray[np.int64],
        path: str,
    ) -> CompressedBodies:
        """Of the compressed batches of magic 2 among those that are rebuilt, bool[b]; valid until
        the next call. The other arrays are as in `BatchEncoder.rebuild`.
        """
        rows = chunk.rows
        is_compressed = codecs(rows) != CompressionType.NONE
        which = np.flatnonzero(is_rebuilt & is_compressed & ~is_legacy(rows))
        bodies = CompressedBodies(rows.size, self._bodies)
        if not which.size:
            return bodies
        for part, areas in iterate_record_areas(
            chunk.buf,
            chunk.position,
            rows[which],
            self._arena,
            path=path,
            arena_bytes=CLEANER_CHUNK_BYTES,
        ):
            at = which[part]
            made, facts = self._encoder.rebuild(
                areas, flags, first_records[at], horizons[at], path=path
            )
            bodies.add(at, made, facts)
        return bodies
