"""One group of source segments into one new segment.

Strategy: the sources are read in chunks of whole batches. Per chunk a kernel decides what becomes
of each batch from the flag bytes of the key map; another one writes copied batches, bare headers
and rebuilt uncompressed batches straight into an output buffer, several thousand a call. The
records of compressed batches that are rebuilt are made before, all those of a chunk. A batch that
needs more (large, legacy, or oddly encoded) comes back to Python, one by one. Nothing is
decompressed that is not rebuilt.

Source: Kafka Cleaner.cleanInto.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.arena import (
    Arena,
    complete_rows,
    open_record_areas,
)
from kafkalog.batches.batch_table import is_legacy
from kafkalog.batches.encoder import (
    BatchSource,
    EncodedBatch,
    assemble,
    convert,
    reencode,
)
from kafkalog.cleaner.checked_chunks import CLEANER_CHUNK_BYTES, PassedOver, corrupt_batches
from kafkalog.cleaner.compressed_bodies import (
    LARGE_BODY_BYTES,
    BodyRebuilder,
    CompressedBodies,
)
from kafkalog.cleaner.memory import MemoryBudget
from kafkalog.cleaner.output_segment import OutputSegment
from kafkalog.cleaner.producers import BatchRetention
from kafkalog.cleaner.record_flags import RecordFlags
from kafkalog.cleaner.record_limit import refuse_large_records
from kafkalog.cleaner.spilled_array import SpilledArray
from kafkalog.cleaner.stats import CleanerStats
from kafkalog.cleaner.transactions import CleanedTransactionMetadata, expired_horizons
from kafkalog.errors import (
    CorruptRecordError,
    LogCleaningRefusedError,
    LogSegmentOffsetOverflowError,
)
from kafkalog.format.checksum import crc32c, crc32c_of_ranges, extend_crc32c
from kafkalog.format.constants import (
    CONTROL_FLAG_MASK,
    MAGIC_VALUE_V2,
    MAX_BATCH_BYTES,
)
from kafkalog.format.record_batch import BATCH_ROW, CRC_POSITION, CRC_START
from kafkalog.kernels.decide_batches import (
    CONTROL,
    COPY,
    DISCARD,
    EMPTY,
    EMPTY_TRANSACTION,
    LEGACY_EXPIRED,
    REBUILD,
    REMOVED_ABORTED,
    REMOVED_MARKER,
    REMOVED_NO_KEY,
    REMOVED_REASONS,
    REMOVED_SUPERSEDED,
    REMOVED_TOMBSTONE,
    RETAIN_EMPTY,
    decide_batches,
)
from kafkalog.kernels.encode_records import (
    ALL_DONE,
    BAD_RECORD,
    FACTS,
    NEEDS_ENCODER,
    RECORD_GROWTH_BYTES,
    assemble_batches,
)
from kafkalog.kernels.status import STATUS_TEXT
from kafkalog.log.aborted_transactions import AbortedTransactions
from kafkalog.log.inventory import SegmentInfo
from kafkalog.log.segment_file import Chunk, ChunkBuffers, iterate_headers, read_chunks

OUTPUT_BUFFER_BYTES = CLEANER_CHUNK_BYTES + CLEANER_CHUNK_BYTES // 2


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


class RebuiltBatches:
    """Where rebuilt batches went in a new segment, and the fold of their records, for `verify`;
    `corrupt` has the positions of corrupt batches that were kept, and the CRC-32C of all their
    bytes.
    """

    def __init__(self, kept_bytes: int) -> None:
        self.positions = SpilledArray(np.int64, kept_bytes)
        self.folds = SpilledArray(np.int64, kept_bytes)
        self.corrupt: dict[int, int] = {}

    def add(self, positions: NDArray[np.int64], folds: NDArray[np.int64]) -> None:
        """Batches behind all that were added before."""
        self.positions.append(positions)
        self.folds.append(folds)


class GroupRewriter:
    """Rewrites the groups of one partition in offset order; keeps its place in the flags and its
    buffers.
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
        buffers: ChunkBuffers,
        budget: MemoryBudget,
        transactions: CleanedTransactionMetadata | None = None,
        passed_over: PassedOver | None = None,
    ) -> None:
        """Tombstones of magic 0 and 1 go from segments last modified at `legacy_horizon_ms` or
        before. `record_limit`: see `record_limit`, None without one. `transactions`: their state in
        front of the first group, if that is not the round's first. `passed_over`: what the map left
        out, if corrupt batches are kept: where there is one nothing of transactions is removed,
        since a marker may be in it.
        """
        self._flags = flags
        self._retention = retention
        self._aborted = aborted
        self._transactions = transactions or CleanedTransactionMetadata()
        self._budget = budget
        self._keeps_corrupt = passed_over is not None
        self._keeps_transactions = passed_over is not None and passed_over.count > 0
        self._now_ms = now_ms
        self._new_horizon_ms = new_horizon_ms
        self._legacy_horizon_ms = legacy_horizon_ms
        self._record_limit = record_limit
        self._buffers = buffers
        self._out = np.empty(OUTPUT_BUFFER_BYTES, np.uint8)
        self._arena = Arena()
        self._bodies = BodyRebuilder(self._arena)
        self._source_checksums: dict[int, int] = {}

    def rewrite(
        self, sources: Sequence[SegmentInfo], output: OutputSegment
    ) -> tuple[CleanerStats, RebuiltBatches]:
        """Write what stays of these segments, in order, to `output`.

        LogSegmentOffsetOverflowError with the path of a segment that does not fit into it.
        """
        stats = CleanerStats()
        rebuilt = RebuiltBatches(self._budget.kept_bytes)
        self._source_checksums |= {segment.base_offset: 0 for segment in sources}
        for segment, chunk, decisions in self.decide(sources, stats):
            before = self._source_checksums[segment.base_offset]
            self._source_checksums[segment.base_offset] = extend_crc32c(before, chunk.buf)
            stats.bytes_before += chunk.buf.size
            try:
                self._write(chunk, decisions, segment.path, output, rebuilt)
            except LogSegmentOffsetOverflowError as error:
                error.path = segment.path
                raise
        output.aborted_transactions = self._transactions.take_kept_entries()
        if self._keeps_transactions:
            output.aborted_transactions = [
                entry for segment in sources for entry in self._aborted.of_segment(segment)
            ]
        stats.batches_retained = output.written_rows.size
        stats.bytes_after = output.position
        return stats, rebuilt

    def decide(
        self, sources: Sequence[SegmentInfo], stats: CleanerStats
    ) -> Iterator[tuple[SegmentInfo, Chunk, Decisions]]:
        """What becomes of the batches of these segments, chunk by chunk, counted into `stats`."""
        for number, segment in enumerate(sources):
            add_aborted(self._transactions, self._aborted, sources, number)
            chunks = read_chunks(
                segment.path, chunk_bytes=CLEANER_CHUNK_BYTES, buffers=self._buffers
            )
            for stored in chunks:
                rows = complete_rows(
                    stored.buf, stored.position, stored.rows, self._arena, path=segment.path
                )
                chunk = Chunk(stored.buf, stored.position, rows)
                corrupt = self._corrupt(chunk, segment.path)
                if corrupt.any():
                    chunk = Chunk(stored.buf, stored.position, rows.copy())
                    chunk.rows["records_count"][corrupt] = 0
                    stats.corrupt_batches += int(corrupt.sum())
                yield segment, chunk, self._decide(chunk, segment, stats, stored.rows, corrupt)

    def take_source_checksums(self) -> tuple[tuple[int, int], ...]:
        """CRC-32C of the whole `.log` of each source read since it was asked for last, by base
        offset: sources have nothing behind their last batch.
        """
        taken, self._source_checksums = self._source_checksums, {}
        return tuple(taken.items())

    def _corrupt(self, chunk: Chunk, path: str) -> NDArray[np.bool_]:
        """bool[b]: batches that are kept as they are, whatever is in them."""
        if not self._keeps_corrupt:
            return np.zeros(chunk.rows.size, np.bool_)
        return corrupt_batches(chunk, self._arena, path, self._budget.max_batch_bytes)

    def _rules(self, chunk: Chunk, segment: SegmentInfo) -> NDArray[np.uint8]:
        """What is asked of each batch of a chunk: bits of kernels.decide_batches."""
        rows = chunk.rows
        if self._keeps_transactions:
            discardable = np.zeros(rows.size, np.bool_)
        else:
            discardable = self._transactions.discardable(chunk, segment.path)
        is_control = (rows["attributes"] & CONTROL_FLAG_MASK) != 0
        # A marker with nothing left to mark stays until the horizon it was given has passed.
        goes = discardable & (~is_control | expired_horizons(rows, self._now_ms))
        rules = self._retention.retain_empty(rows) * np.uint8(RETAIN_EMPTY)
        for mask, bit in (
            (goes, DISCARD),
            (is_control, CONTROL),
            (discardable & is_control, EMPTY_TRANSACTION),
        ):
            rules[mask] |= np.uint8(bit)
        if segment.modification_time_ms <= self._legacy_horizon_ms:
            rules[is_legacy(rows)] |= np.uint8(LEGACY_EXPIRED)
        return rules

    def _decide(
        self,
        chunk: Chunk,
        segment: SegmentInfo,
        stats: CleanerStats,
        stated: NDArray[np.void],
        corrupt: NDArray[np.bool_],
    ) -> Decisions:
        rows = chunk.rows
        counts = rows["records_count"].astype(np.int64)
        first_records = np.cumsum(counts) - counts
        actions = np.empty(rows.size, np.uint8)
        horizons = np.empty(rows.size, np.int64)
        retained = np.empty(rows.size, np.int32)
        removed = np.zeros(REMOVED_REASONS, np.int64)
        records = int(counts.sum())
        if records > self._flags.left:
            raise CorruptRecordError("a source segment has more records than when it was mapped")
        rules = self._rules(chunk, segment)
        rules[corrupt] = RETAIN_EMPTY
        if self._record_limit is not None and self._record_limit < MAX_BATCH_BYTES:
            is_read = ((rules & (DISCARD | RETAIN_EMPTY)) != DISCARD) & ~corrupt
            refuse_large_records(chunk, is_read, self._record_limit, self._arena, segment.path)
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
        stats.no_key += int(removed[REMOVED_NO_KEY])
        stats.superseded += int(removed[REMOVED_SUPERSEDED])
        stats.tombstone += int(removed[REMOVED_TOMBSTONE])
        stats.aborted += int(removed[REMOVED_ABORTED])
        stats.marker += int(removed[REMOVED_MARKER])
        return Decisions(
            flags,
            actions,
            horizons,
            retained.astype(np.int64),
            first_records,
            rules,
            stated[corrupt],
        )

    def _write(
        self,
        chunk: Chunk,
        decisions: Decisions,
        path: str,
        output: OutputSegment,
        rebuilt: RebuiltBatches,
    ) -> None:
        batches = chunk.rows.size
        rows_out = np.empty(batches, BATCH_ROW)
        folds = np.empty(batches, np.int64)
        bodies = self._bodies.rebuild(
            chunk,
            decisions.actions == REBUILD,
            decisions.flags,
            decisions.first_records,
            decisions.horizons,
            path,
        )
        b = 0
        while b < batches:
            stopped, b, size, done, status = assemble_batches(
                chunk.buf,
                chunk.position,
                chunk.rows,
                b,
                decisions.actions,
                decisions.horizons,
                decisions.flags,
                decisions.first_records,
                decisions.retained,
                self._out,
                0,
                output.position,
                rows_out,
                0,
                folds,
                bodies.data,
                bodies.ends,
                bodies.facts,
            )
            if stopped == BAD_RECORD:
                raise _changed(path, chunk.rows[b], STATUS_TEXT[status])
            if done:
                new_rows = rows_out[:done].copy()
                is_rebuilt = set_checksums(self._out, output.position, new_rows)
                for row in decisions.corrupt:
                    _note_corrupt(row, chunk, new_rows, rebuilt)
                if is_rebuilt.any():
                    rebuilt.add(new_rows["position"][is_rebuilt], folds[:done][is_rebuilt])
                output.append([self._out[:size].data], new_rows)
            if stopped == NEEDS_ENCODER:
                encoded = self._encode(chunk, decisions, b, bodies, path)
                row = np.array([encoded.row], BATCH_ROW)
                row["position"] = output.position
                rebuilt.add(row["position"].copy(), np.array([encoded.fold], np.int64))
                output.append(encoded.parts, row)
                b += 1
            elif stopped != ALL_DONE and not done:
                self._grow_output(chunk.rows[b])

    def _encode(
        self, chunk: Chunk, decisions: Decisions, b: int, bodies: CompressedBodies, path: str
    ) -> EncodedBatch:
        rows = chunk.rows[b : b + 1]
        first = int(decisions.first_records[b])
        source = BatchSource(
            row=rows[0],
            records=np.empty(0, np.uint8),
            flags=decisions.flags[first : first + int(rows["records_count"][0])],
            horizon=int(decisions.horizons[b]),
            retained=int(decisions.retained[b]),
        )
        if b in bodies.large:
            facts = bodies.facts[FACTS * b : FACTS * (b + 1)].tolist()
            return assemble(source, bodies.large.pop(b), *facts)
        areas = open_record_areas(chunk.buf, chunk.position, rows, self._arena, path=path)
        source = replace(
            source, row=areas.rows[0], records=areas.buf[int(areas.starts[0]) : int(areas.ends[0])]
        )
        if rows["magic"][0] < MAGIC_VALUE_V2:
            return convert(source, path=path)
        return reencode(source, path=path)

    def _grow_output(self, row: np.void) -> None:
        """Make the output buffer large enough for one batch that does not fit into an empty one."""
        room = int(row["size_in_bytes"]) + int(row["records_count"]) * RECORD_GROWTH_BYTES
        room += LARGE_BODY_BYTES
        # Counts were checked against the bytes that hold the records when they were mapped.
        assert room <= MAX_BATCH_BYTES * 4, "a batch is capped when it is read"  # noqa: S101
        self._out = np.empty(room, np.uint8)


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


def set_checksums(
    out: NDArray[np.uint8], out_position: int, rows: NDArray[np.void]
) -> NDArray[np.bool_]:
    """Compute the CRC of the batches whose row has crc -1, in `out` and in the rows; which ones had
    records.
    """
    missing = rows["crc"] == -1
    which = np.flatnonzero(missing)
    if which.size:
        starts = rows["position"][which] - out_position
        checksums = crc32c_of_ranges(out, starts + CRC_START, starts + rows["size_in_bytes"][which])
        rows["crc"][which] = checksums
        stored = checksums.astype(">u4").view(np.uint8).reshape(-1, 4)
        out[starts[:, None] + CRC_POSITION + np.arange(4)] = stored
    is_rebuilt: NDArray[np.bool_] = missing & (rows["records_count"] > 0)
    return is_rebuilt


def _note_corrupt(
    row: np.void, chunk: Chunk, new_rows: NDArray[np.void], rebuilt: RebuiltBatches
) -> None:
    """If a corrupt batch is among those just copied: its row as it states it, and the checksum that
    its own is not.
    """
    at = np.flatnonzero(
        (new_rows["base_offset"] == row["base_offset"]) & (new_rows["crc"] == row["crc"])
    )
    if at.size:
        new_rows["records_count"][at[0]] = row["records_count"]
        start = int(row["position"]) - chunk.position
        data = chunk.buf[start : start + int(row["size_in_bytes"])]
        rebuilt.corrupt[int(new_rows["position"][at[0]])] = crc32c(data)


def _changed(path: str, row: np.void, what: str) -> CorruptRecordError:
    return CorruptRecordError(
        f"{what}: the file changed while it was read",
        path=path,
        position=int(row["position"]),
        offset=int(row["base_offset"]),
    )
