"""What becomes of the batches of a round, chunk by chunk: a kernel decides it from the flag bytes
of the key map, and from what is known of transactions, producers and horizons.

Source: Kafka Cleaner.cleanInto, shouldDiscardBatch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.arena import Arena
from kafkalog.batches.batch_table import is_legacy
from kafkalog.batches.record_areas import complete_rows
from kafkalog.cleaning.checked_chunks import CLEANER_CHUNK_BYTES, CorruptBatches, corrupt_batches
from kafkalog.cleaning.cleaner_stats import CleanerStats
from kafkalog.cleaning.joined_sources import JoinedSources
from kafkalog.cleaning.producers import BatchRetention
from kafkalog.cleaning.record_flags import RecordFlags
from kafkalog.cleaning.record_limit import refuse_large_records
from kafkalog.cleaning.transactions import CleanedTransactionMetadata, expired_horizons
from kafkalog.errors import CorruptRecordError, KafkaLogError, LogCleaningRefusedError
from kafkalog.format.constants import CONTROL_FLAG_MASK
from kafkalog.format.transaction_index import AbortedTxn
from kafkalog.kernels.decide_batches import (
    CONTROL,
    COPY,
    DISCARD,
    EMPTY,
    EMPTY_TRANSACTION,
    LEGACY_EXPIRED,
    NOT_REPLICATED,
    REMOVED_ABORTED,
    REMOVED_MARKER,
    REMOVED_NO_KEY,
    REMOVED_REASONS,
    REMOVED_SUPERSEDED,
    REMOVED_TOMBSTONE,
    RETAIN_EMPTY,
    decide_batches,
)
from kafkalog.log.aborted_transactions import AbortedTransactions
from kafkalog.log.inventory import SegmentInfo
from kafkalog.log.segment_file import Chunk, ChunkBuffers, read_chunks
from kafkalog.log.segment_headers import iterate_headers
from kafkalog.resources.memory import MemoryBudget


@dataclass(frozen=True, slots=True)
class Decisions:
    """What becomes of the batches of a chunk: arrays [b], see kernels.decide_batches; `flags`
    uint8[r] of its records; `rules` what was asked of each batch; `corrupt` the rows of corrupt
    batches that are kept, as their headers state them.
    """

    flags: NDArray[np.uint8]
    actions: NDArray[np.uint8]
    horizons: NDArray[np.int64]
    retained: NDArray[np.int64]
    first_records: NDArray[np.int64]
    rules: NDArray[np.uint8]
    corrupt: NDArray[np.void]


class Decider:
    """Decides on the groups of one partition in offset order; keeps its place in the flags.

    `arena`: memory in which records are decompressed, for whoever works on what was decided too.
    """

    def __init__(
        self,
        flags: RecordFlags,
        retention: BatchRetention,
        aborted: AbortedTransactions,
        *,
        now_ms: int,
        new_horizon_ms: int,
        legacy_horizon_ms: int,
        record_limit: int | None,
        replicated_end_offset: int | None,
        buffers: ChunkBuffers,
        budget: MemoryBudget,
        transactions: CleanedTransactionMetadata | None = None,
        kept_corrupt: CorruptBatches | None = None,
        joined: JoinedSources | None = None,
    ) -> None:
        """Tombstones of magic 0 and 1 go from segments last modified at `legacy_horizon_ms` or
        before. `record_limit`: see `record_limit`, None without one. `replicated_end_offset`: see
        CompactionPlan. `transactions`: their state in
        front of the first group, if that is not the round's first. `kept_corrupt`: what the map
        left out, if corrupt batches are kept: where there is one nothing of transactions is
        removed, since a marker may be in it. `joined`: all sources, if they are worked on together.
        """
        self._flags = flags
        self._retention = retention
        self._aborted = aborted
        self._transactions = transactions or CleanedTransactionMetadata()
        self._budget = budget
        self._keeps_corrupt = kept_corrupt is not None
        self._keeps_transactions = kept_corrupt is not None and kept_corrupt.count > 0
        self._now_ms = now_ms
        self._new_horizon_ms = new_horizon_ms
        self._legacy_horizon_ms = legacy_horizon_ms
        self._record_limit = record_limit
        self._replicated_end_offset = replicated_end_offset
        self._buffers = buffers
        self._joined = joined
        self.arena = Arena()

    def decide(
        self, sources: Sequence[SegmentInfo], stats: CleanerStats
    ) -> Iterator[tuple[SegmentInfo, Chunk, Decisions]]:
        """What becomes of the batches of these segments, chunk by chunk, counted into `stats`. Of
        joined sources the chunk comes with the first one.
        """
        if self._joined is not None:
            chunk = self._joined.chunk
            sound = np.zeros(chunk.rows.size, np.bool_)
            yield sources[0], chunk, self._decide(chunk, sources[0], stats, chunk.rows, sound)
            return
        for number, segment in enumerate(sources):
            # In front of the segment's first batch, never later: a batch is judged by what is known
            # by then.
            add_aborted(self._transactions, self._aborted, sources, number)
            yield from self.decide_range(segment, 0, None, stats)

    def decide_range(
        self, segment: SegmentInfo, start: int, end: int | None, stats: CleanerStats
    ) -> Iterator[tuple[SegmentInfo, Chunk, Decisions]]:
        """The same of the bytes [start, end) of a segment, to which the flags have come."""
        chunks = read_chunks(
            segment.path, start, end, chunk_bytes=CLEANER_CHUNK_BYTES, buffers=self._buffers
        )
        for stored in chunks:
            rows = complete_rows(
                stored.buf, stored.position, stored.rows, self.arena, path=segment.path
            )
            chunk = Chunk(stored.buf, stored.position, rows)
            corrupt = self._corrupt(chunk, segment.path)
            if corrupt.any():
                chunk = Chunk(stored.buf, stored.position, rows.copy())
                # The map left its records out, so it has no flags: with a count of 0 those of the
                # batches behind it stay in step. The count it states is put back when it is
                # written.
                chunk.rows["records_count"][corrupt] = 0
                stats.corrupt_batches += int(corrupt.sum())
            yield segment, chunk, self._decide(chunk, segment, stats, stored.rows, corrupt)

    def decide_chunk(
        self, chunk: Chunk, segment: SegmentInfo, flags: NDArray[np.uint8], stats: CleanerStats
    ) -> Decisions:
        """What becomes of sound batches of magic 2 without transactions, wherever the flags have
        come to: these are theirs, and are changed.
        """
        sound = np.zeros(chunk.rows.size, np.bool_)
        return self._decide(chunk, segment, stats, chunk.rows, sound, flags)

    def pass_over(self, records: int) -> None:
        """So many records have been decided before."""
        self._flags.take(records)

    def by_source(
        self, segment: SegmentInfo, chunk: Chunk
    ) -> Iterable[tuple[SegmentInfo, NDArray[np.uint8], NDArray[np.void]]]:
        """The sources that a chunk is of, each with its bytes and its batches."""
        if self._joined is not None:
            return self._joined.by_source()
        return ((segment, chunk.buf, chunk.rows),)

    def locate(self, error: KafkaLogError) -> None:
        """Give an error of a chunk the place in its source."""
        if self._joined is not None:
            self._joined.locate(error)

    def take_aborted(self, sources: Sequence[SegmentInfo]) -> Sequence[AbortedTxn]:
        """The entries of the transaction index of a new segment, once its sources are decided."""
        kept = self._transactions.take_kept_entries()
        if not self._keeps_transactions:
            return kept
        return [entry for segment in sources for entry in self._aborted.of_segment(segment)]

    def _corrupt(self, chunk: Chunk, path: str) -> NDArray[np.bool_]:
        """bool[b]: batches that are kept as they are, whatever is in them."""
        if not self._keeps_corrupt:
            return np.zeros(chunk.rows.size, np.bool_)
        return corrupt_batches(chunk, self.arena, path, self._budget.max_batch_bytes)

    def _rules(self, chunk: Chunk, segment: SegmentInfo) -> NDArray[np.uint8]:
        """What is asked of each batch of a chunk: bits of kernels.decide_batches."""
        rows = chunk.rows
        if self._joined is not None and self._replicated_end_offset is None:
            # Of magic 2, and none of a transaction.
            return self._retention.retain_empty(rows) * np.uint8(RETAIN_EMPTY)
        if self._keeps_transactions:
            discardable = np.zeros(rows.size, np.bool_)
        else:
            discardable = self._transactions.discardable(chunk, segment.path)
        is_control = (rows["attributes"] & CONTROL_FLAG_MASK) != 0
        # A marker with nothing left to mark stays until the horizon it was given has passed, and
        # while some replica may have what it marks and not the marker.
        is_needed = self._not_replicated(rows)
        goes = discardable & (~is_control | (expired_horizons(rows, self._now_ms) & ~is_needed))
        rules = self._retention.retain_empty(rows) * np.uint8(RETAIN_EMPTY)
        for mask, bit in (
            (goes, DISCARD),
            (is_control, CONTROL),
            (discardable & is_control, EMPTY_TRANSACTION),
            (is_needed, NOT_REPLICATED),
        ):
            rules[mask] |= np.uint8(bit)
        if segment.modification_time_ms <= self._legacy_horizon_ms:
            rules[is_legacy(rows)] |= np.uint8(LEGACY_EXPIRED)
        return rules

    def _not_replicated(self, rows: NDArray[np.void]) -> NDArray[np.bool_]:
        """bool[b]: batches that some replica has not got, or not all of."""
        end_offset = self._replicated_end_offset
        if end_offset is None:
            return np.zeros(rows.size, np.bool_)
        result: NDArray[np.bool_] = rows["last_offset"] >= end_offset
        return result

    def _decide(
        self,
        chunk: Chunk,
        segment: SegmentInfo,
        stats: CleanerStats,
        stated: NDArray[np.void],
        corrupt: NDArray[np.bool_],
        flags: NDArray[np.uint8] | None = None,
    ) -> Decisions:
        rows = chunk.rows
        counts = rows["records_count"].astype(np.int64)
        # Flags lie one behind the other in the order of the records: the map and this walk must
        # count the same records, or a decision would fall on a neighbour.
        first_records = np.cumsum(counts) - counts
        actions = np.empty(rows.size, np.uint8)
        horizons = np.empty(rows.size, np.int64)
        retained = np.empty(rows.size, np.int32)
        removed = np.zeros(REMOVED_REASONS, np.int64)
        records = int(counts.sum())
        if flags is None and records > self._flags.left:
            raise CorruptRecordError("a source segment has more records than when it was mapped")
        rules = self._rules(chunk, segment)
        # Whatever its header says of markers and transactions: nothing of it was checked, so
        # nothing of it decides.
        rules[corrupt] = RETAIN_EMPTY
        if self._record_limit is not None and self._record_limit < self._budget.max_batch_bytes:
            # Kafka's cleaner skips what goes as a whole without reading its records, so no limit
            # holds there.
            is_read = ((rules & (DISCARD | RETAIN_EMPTY)) != DISCARD) & ~corrupt
            refuse_large_records(chunk, is_read, self._record_limit, self.arena, segment.path)
        if flags is None:
            flags = self._flags.take(records)
        decide_batches(
            rows,
            flags,
            0,
            rules,
            self._now_ms,
            self._new_horizon_ms,
            actions,
            horizons,
            retained,
            removed,
        )
        actions[corrupt] = COPY
        _refuse_empty_legacy(rows, actions, segment.path)
        stats.batches_read += rows.size
        stats.batches_copied += int((actions == COPY).sum())
        stats.records_read += records
        stats.records_retained += int(retained.sum())
        _count_removed(stats, removed)
        return Decisions(
            flags,
            actions,
            horizons,
            retained.astype(np.int64),
            first_records,
            rules,
            stated[corrupt],
        )


def _count_removed(stats: CleanerStats, removed: NDArray[np.int64]) -> None:
    stats.no_key += int(removed[REMOVED_NO_KEY])
    stats.superseded += int(removed[REMOVED_SUPERSEDED])
    stats.tombstone += int(removed[REMOVED_TOMBSTONE])
    stats.aborted += int(removed[REMOVED_ABORTED])
    stats.marker += int(removed[REMOVED_MARKER])


def add_aborted(
    transactions: CleanedTransactionMetadata,
    aborted: AbortedTransactions,
    sources: Sequence[SegmentInfo],
    number: int,
) -> None:
    """Make the aborted transactions known that touch source `number` of a group. The last one of a
    group ends where its batches do.
    """
    if aborted.is_empty:
        return
    # Only those that touch the offsets of this segment: later ones come with their segments.
    segment = sources[number]
    is_last = number + 1 == len(sources)
    end_offset = _end_offset(segment) if is_last else sources[number + 1].base_offset
    transactions.add_aborted(aborted.between(segment.base_offset, end_offset))


def _end_offset(segment: SegmentInfo) -> int:
    """One past the last batch of a segment."""
    end_offset = segment.base_offset
    for scan in iterate_headers(segment.path):
        if scan.rows.size:
            end_offset = int(scan.rows["last_offset"][-1]) + 1
    return end_offset


def _refuse_empty_legacy(rows: NDArray[np.void], actions: NDArray[np.uint8], path: str) -> None:
    """The batch that tells the log's end stays even without records, which a legacy entry cannot:
    Kafka's cleaner ends in an illegal state there, for good.
    """
    illegal = np.flatnonzero((actions == EMPTY) & is_legacy(rows))
    if illegal.size:
        row = rows[illegal[0]]
        raise LogCleaningRefusedError(
            f"nothing stays of the last batch of the round, and a batch of magic {row['magic']} "
            "cannot be kept empty: a broker's cleaner gives up on this partition as well",
            path=path,
            position=int(row["position"]),
            offset=int(row["last_offset"]),
        )
