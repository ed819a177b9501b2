"""One group of source segments into one new segment.

Strategy: the sources come in chunks of whole batches with what becomes of each batch
(`cleaning.decisions`). A kernel writes copied batches, bare headers and rebuilt uncompressed
batches straight into an output buffer, several thousand a call. The records of compressed batches
that are rebuilt are made before, all those of a chunk. A batch that needs more (large, legacy, or
oddly encoded) comes back to Python, one by one. Nothing is decompressed that is not rebuilt.

Source: Kafka Cleaner.cleanInto.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.batch_table import extend_file_checksum
from kafkalog.batches.encoder import BatchSource, EncodedBatch, assemble, convert, reencode
from kafkalog.batches.record_areas import RecordAreas, open_record_areas
from kafkalog.cleaning.checked_chunks import CLEANER_CHUNK_BYTES
from kafkalog.cleaning.cleaner_stats import CleanerStats
from kafkalog.cleaning.compressed_bodies import LARGE_BODY_BYTES, BodyRebuilder, CompressedBodies
from kafkalog.cleaning.decisions import Decider, Decisions
from kafkalog.cleaning.finished_parts import FinishedPart, FinishedParts, PartOutput
from kafkalog.cleaning.output_segment import OutputSegment
from kafkalog.cleaning.rebuilt_batches import RebuiltBatches, set_checksums
from kafkalog.errors import (
    CorruptRecordError,
    KafkaLogError,
    LogSegmentOffsetOverflowError,
)
from kafkalog.format.batch_rows import copy_rows
from kafkalog.format.constants import MAGIC_VALUE_V2
from kafkalog.format.record_batch import BATCH_ROW
from kafkalog.kernels.assemble_batches import (
    ALL_DONE,
    BAD_RECORD,
    NEEDS_ENCODER,
    assemble_batches,
)
from kafkalog.kernels.decide_batches import REBUILD
from kafkalog.kernels.encode_records import FACTS, RECORD_GROWTH_BYTES
from kafkalog.kernels.join_checksums import join_two_checksums
from kafkalog.kernels.status import STATUS_TEXT
from kafkalog.log.inventory import SegmentInfo
from kafkalog.log.segment_file import Chunk
from kafkalog.resources.memory import MemoryBudget

OUTPUT_BUFFER_BYTES = CLEANER_CHUNK_BYTES + CLEANER_CHUNK_BYTES // 2
_LEAST_OUTPUT_BYTES = 64 * 1024


class GroupRewriter:
    """Rewrites the groups of one partition in offset order; keeps its buffers."""

    def __init__(
        self,
        decider: Decider,
        budget: MemoryBudget,
        source_bytes: int,
        finished: FinishedParts | None = None,
    ) -> None:
        """`source_bytes`: of all its groups together; `finished`: what is ready of them."""
        self._finished = finished
        self._decider = decider
        self._budget = budget
        # Of a small partition no more than it may fill: large arrays come in huge pages, each of
        # which is cleared when it is first written to.
        most = max(source_bytes + source_bytes // 2, _LEAST_OUTPUT_BYTES)
        self._out = np.empty(min(most, OUTPUT_BUFFER_BYTES), np.uint8)
        self._arena = decider.arena
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
        try:
            self._rewrite_chunks(sources, stats, output, rebuilt)
        except KafkaLogError as error:
            self._decider.locate(error)
            raise
        output.aborted_transactions = self._decider.take_aborted(sources)
        stats.batches_retained = output.written_rows.size
        stats.bytes_after = output.position
        return stats, rebuilt

    def _rewrite_chunks(
        self,
        sources: Sequence[SegmentInfo],
        stats: CleanerStats,
        output: OutputSegment,
        rebuilt: RebuiltBatches,
    ) -> None:
        if self._finished is None:
            for segment, chunk, decisions in self._decider.decide(sources, stats):
                self._rewrite_chunk(segment, chunk, decisions, stats, output, rebuilt)
            return
        for segment in sources:
            for start, end, part in self._finished.ranges(segment.path):
                if part is None:
                    decided = self._decider.decide_range(segment, start, end, stats)
                    for _, chunk, decisions in decided:
                        self._rewrite_chunk(segment, chunk, decisions, stats, output, rebuilt)
                else:
                    self._write_part(segment, part, stats, output, rebuilt)

    def _rewrite_chunk(
        self,
        segment: SegmentInfo,
        chunk: Chunk,
        decisions: Decisions,
        stats: CleanerStats,
        output: OutputSegment,
        rebuilt: RebuiltBatches,
    ) -> None:
        for source, buf, rows in self._decider.by_source(segment, chunk):
            before = self._source_checksums[source.base_offset]
            # Of all bytes that the new segment was made from: the record of what was replaced
            # has it, so undo knows the files again. The batches' own were checked by the map.
            known = None
            if decisions.corrupt.size:
                known = ~np.isin(rows["position"], decisions.corrupt["position"])
            self._source_checksums[source.base_offset] = extend_file_checksum(
                before, buf, rows, known
            )
        stats.bytes_before += chunk.buf.size
        try:
            self._write(chunk, decisions, segment.path, output, rebuilt)
        except LogSegmentOffsetOverflowError as error:
            error.path = segment.path
            raise

    def _write_part(
        self,
        segment: SegmentInfo,
        part: FinishedPart,
        stats: CleanerStats,
        output: OutputSegment,
        rebuilt: RebuiltBatches,
    ) -> None:
        self._decider.pass_over(part.records)
        before = self._source_checksums[segment.base_offset]
        self._source_checksums[segment.base_offset] = join_two_checksums(
            before, part.checksum, part.end - part.start
        )
        stats.add(part.stats)
        rebuilt.add_all(part.rebuilt, output.position)
        try:
            part_position = output.position
            for data, rows in part.pieces:
                rows = copy_rows(rows)
                rows["position"] += part_position
                output.append([data.data], rows)
        except LogSegmentOffsetOverflowError as error:
            error.path = segment.path
            raise

    def finish(
        self,
        segment: SegmentInfo,
        chunk: Chunk,
        areas: RecordAreas,
        flags: NDArray[np.uint8],
        finished: FinishedParts,
    ) -> None:
        """Make a part of a chunk, whose records are in `areas` and have these flags."""
        stats, rebuilt = CleanerStats(), RebuiltBatches(self._budget.kept_bytes)
        decisions = self._decider.decide_chunk(chunk, segment, flags.copy(), stats)
        stats.bytes_before = chunk.buf.size
        checksum = extend_file_checksum(0, chunk.buf, chunk.rows)
        end = chunk.position + chunk.buf.size
        part = FinishedPart(chunk.position, end, flags.size, checksum, stats, rebuilt)
        finished.add(segment.path, part)
        self._write(chunk, decisions, segment.path, PartOutput(finished, part), rebuilt, areas)

    def take_source_checksums(self) -> tuple[tuple[int, int], ...]:
        """CRC-32C of the whole `.log` of each source read since it was asked for last, by base
        offset: sources have nothing behind their last batch.
        """
        taken, self._source_checksums = self._source_checksums, {}
        return tuple(taken.items())

    def _write(
        self,
        chunk: Chunk,
        decisions: Decisions,
        path: str,
        output: OutputSegment | PartOutput,
        rebuilt: RebuiltBatches,
        areas: RecordAreas | None = None,
    ) -> None:
        batches = chunk.rows.size
        is_sound = not decisions.corrupt.size
        rows_out = np.empty(batches, BATCH_ROW)
        folds = np.empty(batches, np.int64)
        bodies = self._bodies.rebuild(
            chunk,
            decisions.actions == REBUILD,
            decisions.flags,
            decisions.first_records,
            decisions.horizons,
            path,
            areas,
        )
        # The kernel goes on until all are done, the output buffer is full, or a batch needs the
        # encoder. What it has written by then is appended, and it goes on behind that.
        b, room = 0, _LEAST_OUTPUT_BYTES
        while b < batches:
            # A part that is kept is made where it stays.
            out = output.place(room) if isinstance(output, PartOutput) else self._out
            stopped, b, size, done, status = assemble_batches(
                chunk.buf, chunk.position, chunk.rows, b,
                decisions.actions, decisions.horizons, decisions.flags, decisions.first_records,
                decisions.retained, out, output.position, rows_out, folds,
                bodies.data, bodies.ends, bodies.facts,
            )  # fmt: skip
            if stopped == BAD_RECORD:
                raise _changed(path, chunk.rows[b], STATUS_TEXT[status])
            if done:
                # The kernel leaves CRCs of rebuilt batches open (-1): they are computed for many at
                # once.
                new_rows = copy_rows(rows_out[:done])
                is_rebuilt = set_checksums(out, output.position, new_rows)
                for row in decisions.corrupt:
                    rebuilt.note_corrupt(row, chunk, new_rows)
                if is_rebuilt.any():
                    rebuilt.add(new_rows["position"][is_rebuilt], folds[:done][is_rebuilt])
                if isinstance(output, PartOutput):
                    output.keep(size, new_rows)
                else:
                    output.append([out[:size].data], new_rows, are_sound=is_sound)
                room = _LEAST_OUTPUT_BYTES
            if stopped == NEEDS_ENCODER:
                encoded = self._encode(chunk, decisions, b, bodies, path)
                row = np.array([encoded.row], BATCH_ROW)
                row["position"] = output.position
                rebuilt.add(row["position"].copy(), np.array([encoded.fold], np.int64))
                output.append(encoded.parts, row)
                b += 1
            # Stopped at the first batch with nothing written: it does not fit into an empty buffer
            # either.
            elif stopped != ALL_DONE and not done:
                room = self._room_of(chunk.rows[b])
                if not isinstance(output, PartOutput):
                    self._out = np.empty(room, np.uint8)

    def _encode(
        self, chunk: Chunk, decisions: Decisions, b: int, bodies: CompressedBodies, path: str
    ) -> EncodedBatch:
        rows = chunk.rows[b : b + 1]
        horizon, retained = int(decisions.horizons[b]), int(decisions.retained[b])
        # Compressed already, and kept apart: only the header is missing.
        if b in bodies.large:
            facts = bodies.facts[FACTS * b : FACTS * (b + 1)].tolist()
            return assemble(rows[0], bodies.large.pop(b), facts, horizon=horizon, retained=retained)
        # Legacy, or with records that are not encoded as Kafka encodes them: record by record in
        # Python, which is slow and rare.
        areas = open_record_areas(chunk.buf, chunk.position, rows, self._arena, path=path)
        first = int(decisions.first_records[b])
        source = BatchSource(
            row=areas.rows[0],
            records=areas.buf[int(areas.starts[0]) : int(areas.ends[0])],
            flags=decisions.flags[first : first + int(rows["records_count"][0])],
            horizon=horizon,
            retained=retained,
        )
        if rows["magic"][0] < MAGIC_VALUE_V2:
            return convert(source, path=path)
        return reencode(source, path=path)

    def _room_of(self, row: np.void) -> int:
        """Bytes of an output in which a batch fits that does not fit into an empty one."""
        # As `assemble_batches` reckons it: with this room it cannot stop at the batch again.
        room = int(row["size_in_bytes"]) + int(row["records_count"]) * RECORD_GROWTH_BYTES
        room += LARGE_BODY_BYTES
        # Counts were checked against the bytes that hold the records when they were mapped.
        most = max(self._budget.max_batch_bytes, LARGE_BODY_BYTES) * 4
        assert room <= most, "a batch is capped when it is read"  # noqa: S101
        return room


def _changed(path: str, row: np.void, what: str) -> CorruptRecordError:
    return CorruptRecordError(
        f"{what}: the file changed while it was read",
        path=path,
        position=int(row["position"]),
        offset=int(row["base_offset"]),
    )
