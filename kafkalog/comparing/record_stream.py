"""The records of one copy in offset order, a RECORD_FACT row each, and what is met on the way:
batches that cannot be read, and what only cleaning leaves.

A segment is read once, in chunks that stay in the processor's cache. A batch whose checksum is
wrong, or that cannot be decoded, is noted with its range of offsets and passed over; where the
bytes cannot be walked any further the rest of the segment is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.arena import Arena
from kafkalog.batches.batch_table import (
    has_delete_horizon,
    is_control,
    is_legacy_wrapper,
    is_transactional,
    verify_checksums,
)
from kafkalog.batches.record_areas import RecordAreas, iterate_record_areas
from kafkalog.errors import (
    CorruptRecordError,
    KafkaLogError,
    UnsupportedCompressionTypeError,
    UnsupportedMagicError,
)
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.format.control_record import ControlRecordType
from kafkalog.kernels.record_facts import (
    ABORT,
    COMMIT,
    CONTROL,
    HIDDEN,
    RECORD_FACT,
    TRANSACTIONAL,
    record_facts,
)
from kafkalog.kernels.status import OK, STATUS_TEXT
from kafkalog.log.aborted_transactions import AbortedTransactions
from kafkalog.log.control_batches import judge_chunk
from kafkalog.log.inventory import PartitionInventory, SegmentInfo
from kafkalog.log.remote_segments import REMOTE
from kafkalog.log.segment_file import Chunk, ChunkBuffers, read_chunks
from kafkalog.replicas.corrupt_range import CorruptRange

Facts = NDArray[np.void]

# As the cleaner's: a chunk stays in a processor's cache until its records are hashed.
_CHUNK_BYTES = 6 * 1024 * 1024
_ARENA_BYTES = 2 * 1024 * 1024
_BAD_BATCH = (CorruptRecordError, UnsupportedCompressionTypeError)


@dataclass(frozen=True, slots=True)
class SegmentSlice:
    """Bytes [start, end) of the segment of this number, from a batch's start to one; None: to its
    end."""

    number: int
    start: int = 0
    end: int | None = None


class RecordStream:
    """Iterates once. At any time `corrupt` and `cleaned_end_offset` hold for what was read so far:
    the latter is one past the last batch as only cleaning leaves it. A cleaner begins at the log's
    start, so all below was cleaned, here or where it was copied from.
    """

    def __init__(
        self,
        partition: PartitionInventory,
        log_end_offset: int,
        secret: NDArray[np.uint64],
        max_batch_bytes: int = MAX_BATCH_BYTES,
        slices: Sequence[SegmentSlice] | None = None,
    ) -> None:
        """`secret` uint64[2]: what keys and records are hashed under, the same for all copies.
        `slices`: what to read, in order, None for all.
        """
        self.partition = partition
        whole = [SegmentSlice(number) for number in range(len(partition.segments))]
        self._slices = whole if slices is None else slices
        self._end_offset = log_end_offset
        self.corrupt: list[CorruptRange] = []
        self.cleaned_end_offset = 0
        self._k0, self._k1 = secret
        self._max_batch_bytes = max_batch_bytes
        self._aborted = AbortedTransactions(partition.segments, partition.log_start_offset)
        self._listed: dict[int, list[tuple[int, int]]] = {}
        self._previous = np.array([-1], np.int64)
        self._arena, self._buffers = Arena(), ChunkBuffers()

    def __iter__(self) -> Iterator[Facts]:
        """Arrays of rows, which the caller may keep. OSError, LogChangedError, RecordTooLargeError,
        CorruptIndexError for a transaction index.
        """
        segments = self.partition.segments
        ends = [*(segment.base_offset for segment in segments[1:]), self._end_offset]
        for part in self._slices:
            segment, end = segments[part.number], ends[part.number]
            self._listed = self._aborted_in(segment, end)
            reader = read_chunks(
                segment.path,
                part.start,
                part.end,
                chunk_bytes=_CHUNK_BYTES,
                buffers=self._buffers,
                max_batch_bytes=self._max_batch_bytes,
            )
            try:
                for chunk in reader:
                    for facts in self._of_chunk(chunk, segment.path):
                        yield self._within(facts, segment, end)
            except (CorruptRecordError, UnsupportedMagicError) as error:
                start = self._next_of(segment)
                self._note(start, max(end, start + segment.is_active), segment.path, error)
            if reader.trailing_bytes and not (segment.is_active and part.end is None):
                torn = CorruptRecordError(
                    "the file ends inside a batch", position=reader.valid_bytes
                )
                self._note(self._next_of(segment), end, segment.path, torn)
            if segment.state == REMOTE:
                # What the next one has as well was passed over here: it comes from there.
                self._previous[0] = min(int(self._previous[0]), end - 1)

    @property
    def last_offset(self) -> int:
        """Of the batches that could be read so far, -1 without one."""
        return int(self._previous[0])

    def _within(self, facts: Facts, segment: SegmentInfo, end: int) -> Facts:
        """Without what lies below the log start, and of a segment in remote storage what the next
        one has as well."""
        start = self.partition.log_start_offset
        bounds = [start, end] if segment.state == REMOTE else [start]
        first, *last = np.searchsorted(facts["offset"], bounds).tolist()
        return facts[first : last[0] if last else None]

    def _next_of(self, segment: SegmentInfo) -> int:
        return max(int(self._previous[0]) + 1, segment.base_offset)

    def _note(self, start: int, end: int, path: str, error: KafkaLogError) -> None:
        if end <= start:
            return
        last = self.corrupt[-1] if self.corrupt else None
        # Damage may repeat in every batch: neighbours are one range, told of by the first.
        if last is not None and last.path == path and last.end_offset == start:
            self.corrupt[-1] = replace(last, end_offset=end)
        else:
            position = error.position or 0
            unread = max(start, int(self._previous[0]) + 1)
            self.corrupt.append(CorruptRange(start, end, path, position, error.reason, unread))

    def _aborted_in(self, segment: SegmentInfo, end: int) -> dict[int, list[tuple[int, int]]]:
        """By producer the ranges that the transaction indexes list, of those that touch the
        segment.
        """
        listed: dict[int, list[tuple[int, int]]] = defaultdict(list)
        if not self._aborted.is_empty:
            for entry in self._aborted.between(segment.base_offset, max(end, segment.base_offset)):
                listed[entry.producer_id].append((entry.first_offset, entry.last_offset))
        return listed

    def _of_chunk(self, chunk: Chunk, path: str) -> Iterator[Facts]:
        valid = verify_checksums(chunk.buf, chunk.position, chunk.rows)
        for b in np.flatnonzero(~valid).tolist():
            row = chunk.rows[b]
            reason = f"CRC of the batch is not the stored {int(row['crc']):#010x}"
            self._note_batch(row, path, reason, chunk.rows[b + 1 : b + 2])
        yield from self._of_rows(Chunk(chunk.buf, chunk.position, chunk.rows[valid]), path)

    def _of_rows(self, chunk: Chunk, path: str) -> Iterator[Facts]:
        rows = chunk.rows
        # What fails is taken out, and the rest goes on behind it.
        while rows.size:
            done = 0
            try:
                for part, areas in iterate_record_areas(
                    chunk.buf, chunk.position, rows, self._arena,
                    path=path, max_bytes=self._max_batch_bytes, arena_bytes=_ARENA_BYTES,
                ):  # fmt: skip
                    done = part.stop
                    flags = self._flags(Chunk(chunk.buf, chunk.position, rows[part]), path)
                    yield from self._of_areas(areas, flags, path)
                return
            except _BAD_BATCH as error:
                at = np.flatnonzero(rows["position"] == error.position)
                if not at.size:
                    raise
                bad, reason = int(at[0]), error.reason
            yield from self._of_rows(Chunk(chunk.buf, chunk.position, rows[done:bad]), path)
            self._note_batch(rows[bad], path, reason)
            rows = rows[bad + 1 :]

    def _of_areas(
        self, areas: RecordAreas, flags: NDArray[np.uint32], path: str
    ) -> Iterator[Facts]:
        first = 0
        while first < areas.rows.size:
            rows = areas.rows[first:]
            facts = np.empty(int(rows["records_count"].sum(dtype=np.int64)), RECORD_FACT)
            count, status, _, bad = record_facts(
                areas.buf, rows, areas.starts[first:], areas.ends[first:], flags[first:],
                self._k0, self._k1, self._previous, facts,
            )  # fmt: skip
            self._see_cleaning(rows[:bad])
            if count:
                yield facts[:count]
            if status != OK:
                self._note_batch(rows[bad], path, STATUS_TEXT[status])
            first += bad + 1

    def _see_cleaning(self, rows: Facts) -> None:
        span = rows["last_offset"] - rows["base_offset"] + 1
        shows = (rows["records_count"] < span) | has_delete_horizon(rows)
        if shows.any():
            last = int(rows["last_offset"][np.flatnonzero(shows)[-1]])
            self.cleaned_end_offset = max(self.cleaned_end_offset, last + 1)

    def _note_batch(
        self, row: np.void, path: str, reason: str, following: Facts | None = None
    ) -> None:
        """`following`: the batch behind one whose header may be damaged as well."""
        start, end = int(row["base_offset"]), int(row["last_offset"]) + 1
        if following is not None and following.size:
            behind = int(following["base_offset"][0])
            end = behind if end <= start else min(end, max(behind, start + 1))
        # Where a legacy wrapper begins only its content tells.
        if is_legacy_wrapper(np.atleast_1d(row))[0]:
            start = int(self._previous[0]) + 1
        error = CorruptRecordError(reason, position=int(row["position"]))
        self._note(start, max(end, start + 1), path, error)

    def _flags(self, chunk: Chunk, path: str) -> NDArray[np.uint32]:
        """uint32[b]: what all records of a batch have."""
        rows = chunk.rows
        control, transactional = is_control(rows), is_transactional(rows)
        flags = control * np.uint32(CONTROL) | transactional * np.uint32(TRANSACTIONAL)
        which = np.flatnonzero(control)
        if which.size:
            types = judge_chunk(chunk, which, path).types
            flags[which[types == ControlRecordType.COMMIT]] |= np.uint32(COMMIT)
            flags[which[types == ControlRecordType.ABORT]] |= np.uint32(ABORT)
        if self._listed:
            for b in np.flatnonzero(transactional & ~control).tolist():
                if self._is_listed(rows[b]):
                    flags[b] |= np.uint32(HIDDEN)
        return flags.astype(np.uint32)

    def _is_listed(self, row: np.void) -> bool:
        first, last = int(row["base_offset"]), int(row["last_offset"])
        return any(
            begins <= last and first <= ends
            for begins, ends in self._listed.get(int(row["producer_id"]), ())
        )
