"""Which records of the cleanable range a later record of the same key supersedes.

Strategy: one pass over the sources hashes every key (kernels.hash_keys) into buckets held in
memory, then each bucket is looked at by itself (kernels.buckets). The answer is one flag byte per
record in record order, so the rewrite never hashes a key: it asks a byte. Every batch's CRC is
checked on the way, and every record's structure.

Memory: 24 bytes per keyed record and one per record.

Source: Kafka Cleaner.buildOffsetMap.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.arena import Arena, RecordAreas, iterate_record_areas
from kafkalog.batches.batch_table import verify_checksums
from kafkalog.cleaner.batch_roles import BatchRoles
from kafkalog.errors import CorruptRecordError
from kafkalog.format.constants import MAX_INT64
from kafkalog.kernels.buckets import mark_superseded
from kafkalog.kernels.hash_keys import BLOCK_ENTRIES, ENTRY_WORDS, map_records
from kafkalog.kernels.status import STATUS_TEXT
from kafkalog.log.aborted_transactions import AbortedTransactions
from kafkalog.log.inventory import SegmentInfo
from kafkalog.log.segment_file import Chunk, ChunkBuffers, read_chunks

# So many entries to a bucket that they and their table (4 bytes a slot) stay in a processor's
# cache, and so few buckets that a pass over the records writes to each without missing a page.
_ENTRIES_PER_BUCKET = 16 * BLOCK_ENTRIES
_MOST_BUCKET_BITS = 10
# Small enough that a chunk is still in the cache when its CRCs are done and its records are looked
# at.
CLEANER_CHUNK_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RecordFlags:
    """flags: uint8[r] of kernels.hash_keys, one per record of the sources in order; distinct_keys:
    of the dirty records.
    """

    flags: NDArray[np.uint8]
    distinct_keys: int


class KeyMap:
    """Keys of the records added so far, hashed with a secret of this map's own."""

    def __init__(
        self, first_dirty_offset: int, expected_records: int, latest_offset: int = MAX_INT64
    ) -> None:
        """`expected_records` sizes the buckets; more or fewer are fine. Records past
        `latest_offset` do not meet the map and stay.
        """
        self._first_dirty_offset = first_dirty_offset
        self._latest_offset = latest_offset
        wanted_bits = (expected_records // _ENTRIES_PER_BUCKET).bit_length()
        bucket_bits = min(max(wanted_bits, 1), _MOST_BUCKET_BITS)
        self._buckets = 1 << bucket_bits
        self._shift = 64 - bucket_bits
        seed = np.frombuffer(secrets.token_bytes(16), np.uint64)
        self._k0, self._k1 = seed[0], seed[1]
        self._pool: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._block_next: NDArray[np.int32] = np.empty(0, np.int32)
        self._heads = np.full(self._buckets, -1, np.int32)
        self._tails = np.zeros(self._buckets, np.int64)
        self._free_block = 0
        self._grow(expected_records // BLOCK_ENTRIES + 2 * self._buckets)
        self._flags: list[NDArray[np.uint8]] = []
        self._records = 0
        self._clean_records = 0
        self._previous_offset = -1

    def add(
        self,
        rows: NDArray[np.void],
        areas: RecordAreas,
        path: str,
        roles: NDArray[np.uint8] | None = None,
    ) -> None:
        """Add batches of one chunk, in offset order after all that were added before. `roles`
        uint8[b] is 0 for batches whose records never meet the map; all of them do without it.
        """
        count = int(rows["records_count"].sum(dtype=np.int64))
        self._grow(self._free_block + count // BLOCK_ENTRIES + self._buckets + 1)
        flags = np.empty(count, np.uint8)
        done, status, position, b, self._free_block, clean = map_records(
            areas.buf,
            rows,
            areas.starts,
            areas.ends,
            np.ones(rows.size, np.uint8) if roles is None else roles,
            self._k0,
            self._k1,
            self._shift,
            self._records,
            self._first_dirty_offset,
            self._latest_offset,
            self._previous_offset,
            self._pool,
            self._block_next,
            self._heads,
            self._tails,
            self._free_block,
            flags,
        )
        if status:
            first = int(rows["records_count"][:b].sum(dtype=np.int64))
            raise CorruptRecordError(
                f"{STATUS_TEXT[status]}, in record {done - first} of the batch, "
                f"{position - int(areas.starts[b])} bytes into its records",
                path=path,
                position=int(rows["position"][b]),
                offset=int(rows["base_offset"][b]),
            )
        self._flags.append(flags)
        self._records += count
        self._clean_records += clean
        if rows.size:
            self._previous_offset = int(rows["last_offset"][-1])

    def superseded(self) -> RecordFlags:
        """Mark what is superseded; the map is used up by this."""
        flags = np.concatenate(self._flags) if self._flags else np.empty(0, np.uint8)
        self._flags = []
        table = np.empty(self._table_slots(), np.uint32)
        status, distinct = mark_superseded(
            self._pool,
            self._block_next,
            self._heads,
            self._tails,
            self._clean_records,
            table,
            flags,
        )
        assert status == 0, "the table is made for the largest bucket"  # noqa: S101
        self._pool = np.empty(0, np.uint64)
        return RecordFlags(flags, int(distinct))

    def _grow(self, blocks: int) -> None:
        """Make room for this many blocks in all. Fresh memory costs nothing until it is written
        to.
        """
        have = self._block_next.size
        if blocks <= have:
            return
        blocks = max(blocks, 2 * have)
        block_words = BLOCK_ENTRIES * ENTRY_WORDS
        pool = np.empty(blocks * block_words, np.uint64)
        used = self._free_block * block_words
        pool[:used] = self._pool[:used]
        block_next = np.empty(blocks, np.int32)
        block_next[: self._free_block] = self._block_next[: self._free_block]
        self._pool, self._block_next = pool, block_next

    def _table_slots(self) -> int:
        """Twice the entries of the largest bucket, counted in whole blocks, rounded up to a power
        of two.
        """
        largest = 0
        for head in self._heads.tolist():
            blocks, block = 0, head
            while block >= 0:
                blocks, block = blocks + 1, int(self._block_next[block])
            largest = max(largest, blocks)
        return 1 << max(2 * largest * BLOCK_ENTRIES - 1, 0).bit_length()


def map_sources(
    sources: Sequence[SegmentInfo],
    first_dirty_offset: int,
    end_offset: int,
    aborted: AbortedTransactions,
    buffers: ChunkBuffers,
    latest_offset: int = MAX_INT64,
) -> RecordFlags:
    """Read the sources once. The map ends at `latest_offset`, the round at `end_offset`.

    CorruptRecordError for a batch that is not
    sound, so that nothing is built on it.
    """
    key_map: KeyMap | None = None
    roles_of = BatchRoles(sources, first_dirty_offset, end_offset, aborted)
    arena = Arena()
    for segment in sources:
        reader = read_chunks(segment.path, chunk_bytes=CLEANER_CHUNK_BYTES, buffers=buffers)
        for chunk in reader:
            check_checksums(chunk, segment.path)
            roles = roles_of.batches(chunk, segment)
            for part, areas in iterate_record_areas(
                chunk.buf, chunk.position, chunk.rows, arena, path=segment.path
            ):
                if key_map is None:
                    # Only now: these records counts were held against the bytes that hold them.
                    expected = _expected_records(areas.rows, sources)
                    key_map = KeyMap(first_dirty_offset, expected, latest_offset)
                key_map.add(areas.rows, areas, segment.path, roles[part])
        if reader.trailing_bytes:
            raise CorruptRecordError(
                f"{reader.trailing_bytes} bytes after the last whole batch of a "
                "segment that is not the active one",
                path=segment.path,
                position=reader.valid_bytes,
            )
    return (key_map or KeyMap(first_dirty_offset, 0)).superseded()


def _expected_records(rows: NDArray[np.void], sources: Sequence[SegmentInfo]) -> int:
    """As many as there would be if all bytes were like these batches, and a tenth more.

    A guess, so it may not reserve more than four times the sources' bytes; a map can grow.
    """
    records = int(rows["records_count"].sum(dtype=np.int64))
    stored_bytes = int(rows["size_in_bytes"].sum(dtype=np.int64))
    source_bytes = sum(segment.size_in_bytes for segment in sources)
    most = 4 * source_bytes // (ENTRY_WORDS * 8)
    return min(records * source_bytes * 11 // (10 * stored_bytes), most)


def check_checksums(chunk: Chunk, path: str) -> None:
    """CorruptRecordError for the first batch of a chunk whose CRC is wrong."""
    valid = verify_checksums(chunk.buf, chunk.position, chunk.rows)
    if not valid.all():
        row = chunk.rows[int(np.argmin(valid))]
        raise CorruptRecordError(
            f"CRC of the batch is not the stored {int(row['crc']):#010x}",
            path=path,
            position=int(row["position"]),
            offset=int(row["base_offset"]),
        )
