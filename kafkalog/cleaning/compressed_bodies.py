"""The records of compressed batches that are rebuilt: of a whole chunk, before its batches are put
together.

Decompressing, encoding and compressing each batch by itself cost five times what the codecs do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.arena import Arena
from kafkalog.batches.batch_table import codecs, is_legacy
from kafkalog.batches.encoder import BatchEncoder
from kafkalog.batches.record_areas import RecordAreas, iterate_record_areas
from kafkalog.cleaning.checked_chunks import CLEANER_ARENA_BYTES
from kafkalog.format.compression import compress
from kafkalog.format.constants import CompressionType
from kafkalog.kernels.encode_records import FACTS
from kafkalog.log.segment_file import Chunk

# Larger ones are not copied into one memory with others.
LARGE_BODY_BYTES = 256 * 1024
# What is compressed with others, so that it is no larger compressed, whatever it is.
_MOST_BYTES = LARGE_BODY_BYTES // 32 * 31


class CompressedBodies:
    """The compressed records of rebuilt batches of a chunk, where `assemble_batches` finds them;
    large ones apart, so that memory does not hold them twice.

    data uint8[n]; ends int64[b * 2], where each body begins and ends; facts int64[b * FACTS].
    """

    def __init__(self, batches: int, arena: Arena) -> None:
        # Bodies lie one behind the other in one memory, and the kernel gets where each begins and
        # ends: batches that have none keep two equal numbers.
        arena.clear()
        self._arena = arena
        self.ends = np.zeros(2 * batches, np.int64)
        self.facts = np.zeros(FACTS * batches, np.int64)
        self.large: dict[int, bytes] = {}

    @property
    def data(self) -> NDArray[np.uint8]:
        return self._arena.data

    def add(
        self,
        batches: NDArray[np.int64],
        batch_codecs: NDArray[np.int64],
        records: NDArray[np.uint8],
        ends: NDArray[np.int64],
        facts: NDArray[np.int64],
    ) -> None:
        """Those of these batches, int64[n] each, as the encoder made them; they are compressed."""
        # Late: finding the codecs takes a start of 20 ms, and most logs need none.
        from kafkalog.native.codec_batches import compresses

        self.facts.reshape(-1, FACTS)[batches] = facts.reshape(-1, FACTS)
        edges = np.empty(batches.size + 1, np.int64)
        edges[0] = self._arena.size
        # Plain numbers for what is done once a batch: numpy's scalars are slow.
        view, codec_of, start_of = records.data, batch_codecs.tolist(), [0, *ends.tolist()]
        at_once = compresses(batch_codecs).tolist()
        b = 0
        # Codecs that are called by address take many batches at once and stop at one that is too
        # large for them; that one goes by the Python library, alone.
        while b < batches.size:
            done = self._compress_many(batch_codecs, records, ends, b, edges) if at_once[b] else b
            if done == b:
                body = compress(codec_of[b], view[start_of[b] : start_of[b + 1]])
                if len(body) > LARGE_BODY_BYTES:
                    self.large[int(batches[b])] = body
                else:
                    self._arena.append(body)
                done = b + 1
                edges[done] = self._arena.size
            b = done
        self.ends.reshape(-1, 2)[batches] = np.column_stack((edges[:-1], edges[1:]))

    def _compress_many(
        self,
        batch_codecs: NDArray[np.int64],
        records: NDArray[np.uint8],
        ends: NDArray[np.int64],
        b: int,
        edges: NDArray[np.int64],
    ) -> int:
        """As many as go at once, from batch b on; the first that is left."""
        from kafkalog.native.codec_batches import compress_batches

        arena = self._arena
        # Room for at least one body at the worst that the codec makes of it, so that the call makes
        # way unless the batch itself is above the limit.
        arena.reserve(2 * LARGE_BODY_BYTES)
        done = compress_batches(
            records, batch_codecs, ends, _MOST_BYTES, b, arena.data, arena.size, edges
        )
        if done > b:
            arena.size = int(edges[done])
        return done


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
        areas: RecordAreas | None = None,
    ) -> CompressedBodies:
        """Of the compressed batches of magic 2 among those that are rebuilt, bool[b]; valid until
        the next call. The other arrays are as in `BatchEncoder.rebuild`. `areas`: of all batches of
        the chunk, where they are at hand.
        """
        rows = chunk.rows
        batch_codecs = codecs(rows).astype(np.int64)
        is_compressed = batch_codecs != CompressionType.NONE
        # Uncompressed batches are rebuilt by the kernel that assembles the output, without a copy
        # in between; legacy ones by the encoder, one by one.
        which = np.flatnonzero(is_rebuilt & is_compressed & ~is_legacy(rows))
        bodies = CompressedBodies(rows.size, self._bodies)
        if not which.size:
            return bodies
        if areas is not None:
            some = RecordAreas(areas.buf, areas.starts[which], areas.ends[which], rows.take(which))
            made = self._encoder.rebuild(
                some, flags, first_records[which], horizons[which], path=path
            )
            bodies.add(which, batch_codecs[which], *made)
            return bodies
        for part, some in iterate_record_areas(
            chunk.buf,
            chunk.position,
            rows.take(which),
            self._arena,
            path=path,
            arena_bytes=CLEANER_ARENA_BYTES,
        ):
            # Areas are decompressed some megabytes at a time and compressed again before the next
            # ones: memory holds one such part, not the chunk.
            at = which[part]
            made = self._encoder.rebuild(some, flags, first_records[at], horizons[at], path=path)
            bodies.add(at, batch_codecs[at], *made)
        return bodies
