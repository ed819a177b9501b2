"""Which bytes of a damaged segment are sound batches, and what is between them.

Sound is a batch that a broker loads and a consumer reads: its CRC is right, it lies behind the
batch before it and below the next segment, and all its records can be decoded. Everything else is
left out, in ranges.

Strategy: chunks of whole batches are checked all at once. Where one is bad its length may be as
wrong as the rest of it: it is believed if it leads to a sound batch or the file's end. If not, and
where nothing can be walked over at all, the next batch is searched (`log.next_batch`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.arena import Arena
from kafkalog.batches.batch_table import verify_checksums
from kafkalog.batches.record_areas import iterate_record_areas
from kafkalog.batches.spans import RecordSpans, decode_spans
from kafkalog.errors import KafkaLogError, LogChangedError
from kafkalog.format.constants import MAX_INT32, MAX_INT64
from kafkalog.kernels.status import ZERO_TAIL
from kafkalog.log.inventory import SegmentInfo
from kafkalog.log.json_facts import JsonFacts
from kafkalog.log.next_batch import Bounds, find_next_batch, is_sound_batch, work_for
from kafkalog.log.segment_file import Chunk, ChunkBuffers, read_chunks

_CHUNK_BYTES = 4 * 1024 * 1024
# Where one batch is bad many may be, and each costs its chunk once more.
_CHUNK_AFTER_DAMAGE = 64 * 1024
_ARENA_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class LeftOut(JsonFacts):
    """Bytes that are not in the copy: where, why, and the offsets between the sound batches around
    them (`last_offset` None: up to the log's end).
    """

    position: int
    length: int
    first_offset: int
    last_offset: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class SoundBatches:
    """Sound batches one behind the other; `data` is valid until the next are asked for."""

    data: memoryview
    rows: NDArray[np.void]


@dataclass(slots=True)
class SegmentWalk:
    """A walk over one segment: `batches` once; `left_out` and the counts are whole after it.

    `end_offset` is the next segment's base, None of the last one: no batch reaches it.
    """

    segment: SegmentInfo
    end_offset: int | None
    left_out: list[LeftOut] = field(default_factory=list)
    batches_count: int = 0
    records_count: int = 0
    _last_offset: int = -1
    _position: int = 0
    _gap: LeftOut | None = None
    _work: int = 0
    _buffers: ChunkBuffers = field(default_factory=ChunkBuffers)
    _arena: Arena = field(default_factory=Arena)
    _spans: RecordSpans | None = None

    def batches(self) -> Iterator[SoundBatches]:
        """The sound batches in order. OSError if the file cannot be read, LogChangedError if it
        changes meanwhile.
        """
        self._last_offset = self.segment.base_offset - 1
        size = self.segment.size_in_bytes
        self._work = work_for(size)
        chunk_bytes = _CHUNK_BYTES
        while self._position < size:
            chunks = read_chunks(
                self.segment.path, self._position, size, chunk_bytes=chunk_bytes,
                buffers=self._buffers,
            )  # fmt: skip
            reason, claimed_end = "", None
            try:
                for chunk in chunks:
                    count, reason = self._sound_in(chunk)
                    if count:
                        yield self._take(chunk, count)
                    if reason:
                        bad = chunk.rows[count]
                        claimed_end = int(bad["position"]) + int(bad["size_in_bytes"])
                        break
                else:
                    reason = self._tail_reason(chunks.status)
            except LogChangedError:
                raise
            except KafkaLogError as error:
                reason = error.reason
            if self._position >= size:
                break
            self._leave_out(reason, claimed_end)
            chunk_bytes = _CHUNK_AFTER_DAMAGE
        if self._gap is not None:
            last = None if self.end_offset is None else self.end_offset - 1
            self._close_gap(size, last)

    def _take(self, chunk: Chunk, count: int) -> SoundBatches:
        rows = chunk.rows[:count]
        first, last = rows[0], rows[-1]
        if self._gap is not None:
            self._close_gap(int(first["position"]), int(first["base_offset"]) - 1)
        end = int(last["position"]) + int(last["size_in_bytes"])
        data = chunk.buf[self._position - chunk.position : end - chunk.position].data
        self._position = end
        self._last_offset = int(last["last_offset"])
        self.batches_count += count
        self.records_count += int(rows["records_count"].astype(np.int64).clip(min=0).sum())
        return SoundBatches(data, rows)

    def _sound_in(self, chunk: Chunk) -> tuple[int, str]:
        """How many batches in front are sound, and what is wrong with the next one."""
        rows = chunk.rows
        before = np.concatenate([[self._last_offset], rows["last_offset"][:-1]])
        limit = min(self.segment.base_offset + MAX_INT32, (self.end_offset or MAX_INT64) - 1)
        checks = (
            (
                verify_checksums(chunk.buf, chunk.position, rows),
                "stored checksum differs from the one of the bytes",
            ),
            (
                (rows["base_offset"] > before) & (rows["last_offset"] >= rows["base_offset"]),
                "offsets do not lie behind those of the batch before it",
            ),
            (rows["last_offset"] <= limit, "offsets reach into the next segment"),
        )
        count, reason = rows.size, ""
        for is_right, wrong in checks:
            first = int(np.argmin(is_right)) if not is_right.all() else rows.size
            if first < count:
                count, reason = first, wrong
        decoded, undecodable = self._decodable(chunk, rows[:count])
        return (count, reason) if decoded == count else (decoded, undecodable)

    def _decodable(self, chunk: Chunk, rows: NDArray[np.void]) -> tuple[int, str]:
        """How many batches in front can be decoded, and what is wrong with the next one."""
        try:
            for _, areas in iterate_record_areas(
                chunk.buf, chunk.position, rows, self._arena,
                path=self.segment.path, arena_bytes=_ARENA_BYTES,
            ):  # fmt: skip
                self._spans = decode_spans(areas, areas.rows, self.segment.path, reuse=self._spans)
        except KafkaLogError as error:
            bad = np.flatnonzero(rows["position"] == error.position)
            if not bad.size:
                raise
            return int(bad[0]), error.reason
        return rows.size, ""

    def _tail_reason(self, status: int) -> str:
        if status == ZERO_TAIL:
            return "zeros up to the file's end, as preallocated"
        return "the file, or what can be walked over, ends inside a batch"

    def _leave_out(self, reason: str, claimed_end: int | None) -> None:
        """Open a gap here, or go on with the one before, and move behind it."""
        size = self.segment.size_in_bytes
        if self._gap is None:
            self._gap = LeftOut(self._position, 0, self._last_offset + 1, None, reason)
        if claimed_end is not None and (
            claimed_end == size
            or is_sound_batch(self.segment.path, claimed_end, size, self._buffers)
        ):
            self._position = claimed_end
            return
        end_offset = min(self.end_offset or MAX_INT64, self.segment.base_offset + MAX_INT32 + 1)
        bounds = Bounds(self._position + 1, size, self._last_offset, end_offset)
        found, self._work = find_next_batch(self.segment.path, bounds, self._work)
        self._position = size if found is None else found

    def _close_gap(self, end: int, last_offset: int | None) -> None:
        gap = self._gap
        if gap is not None:
            self.left_out.append(
                LeftOut(gap.position, end - gap.position, gap.first_offset, last_offset, gap.reason)
            )
        self._gap = None
