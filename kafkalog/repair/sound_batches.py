"""Which bytes of a damaged segment are sound batches, and what is between them.

Sound is a batch that a broker loads and whose bytes are those that were written: its CRC is right.
Whether its records can be decoded here is not asked, and neither how large it is. What is not sound
is left out, in ranges; so is a batch whose offsets belong to another (`log.batch_order`), and a
marker that cannot be decoded, on which a broker's start fails. Batches that were swapped come in
their order.

Strategy: headers tell whether anything can be out of order, which is rare: else the file is copied
as it is walked. If so all batches are listed first, which costs a second read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.batch_table import WRONG_CHECKSUM
from kafkalog.errors import RecordTooLargeError
from kafkalog.format.batch_rows import join_rows
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.format.record_batch import BATCH_ROW
from kafkalog.kernels.status import ZERO_TAIL
from kafkalog.log.batch_order import are_in_order, order_batches
from kafkalog.log.damage import Damage, FileRange
from kafkalog.log.inventory import SegmentInfo
from kafkalog.log.json_facts import JsonFacts
from kafkalog.log.past_damage import DamageWalk
from kafkalog.log.producer_replay import has_marker
from kafkalog.log.segment_file import Chunk, ChunkBuffers
from kafkalog.log.segment_headers import iterate_headers
from kafkalog.log.segment_tail import SegmentEnds
from kafkalog.log.storage import open_file
from kafkalog.log.transaction_markers import read_each_marker

_CHUNK_BYTES = 4 * 1024 * 1024

Rows = NDArray[np.void]


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


@dataclass(slots=True)
class SegmentWalk:
    """A walk over one segment: `batches` once; `left_out` and the counts are whole after it.

    `end_offset` is the next segment's base, None of the last one: no batch reaches it. No more than
    `max_batch_bytes` of a batch are held at once.
    """

    segment: SegmentInfo
    end_offset: int | None
    max_batch_bytes: int = MAX_BATCH_BYTES
    left_out: list[LeftOut] = field(default_factory=list)
    batches_count: int = 0
    records_count: int = 0
    _last_offset: int = -1
    _gap: LeftOut | None = None
    _buffers: ChunkBuffers = field(default_factory=ChunkBuffers)

    def batches(self) -> Iterator[memoryview]:
        """The bytes of the sound batches, in order; each part is valid until the next is asked for.
        OSError if the file cannot be read, LogChangedError if it changes meanwhile.
        """
        self._last_offset = self.segment.base_offset - 1
        if self._is_in_order():
            yield from self._as_they_lie()
        else:
            yield from self._by_offset()
        # Behind the last batch there is none that would close it: the segment's end does.
        if self._gap is not None:
            last = None if self.end_offset is None else self.end_offset - 1
            self._close_gap(self.segment.size_in_bytes, last)

    def _is_in_order(self) -> bool:
        """By headers; False where they cannot be walked over to the end."""
        last_offset = self._last_offset
        for scan in iterate_headers(self.segment.path, 0, self.segment.size_in_bytes):
            if scan.error is not None or scan.trailing_bytes:
                return False
            if not are_in_order(scan.rows, last_offset, self._ends):
                return False
            if scan.rows.size:
                last_offset = int(scan.rows["last_offset"][-1])
        return True

    @property
    def _ends(self) -> SegmentEnds:
        is_last = self.end_offset is None
        return SegmentEnds(self.segment.base_offset, self.end_offset, is_last=is_last)

    def _as_they_lie(self) -> Iterator[memoryview]:
        for rows, reasons, chunk in self._walk():
            # Runs of batches that are all kept or all left out: one copy each.
            edges = [0, *(np.flatnonzero(np.diff(reasons != "")) + 1).tolist(), rows.size]
            for first, stop in pairwise(edges):
                part = rows[first:stop]
                if reasons[first]:
                    self._leave_out(int(part[0]["position"]), str(reasons[first]))
                    continue
                self._keep(part)
                yield from self._bytes(part, chunk)

    def _by_offset(self) -> Iterator[memoryview]:
        """All batches are listed first; what is kept is read once more."""
        parts: list[Rows] = []
        reasons: list[str] = []
        for rows, why, _ in self._walk():
            parts.append(rows)
            reasons += why.tolist()
        rows = join_rows(parts)
        sound = np.flatnonzero(np.array([not reason for reason in reasons], np.bool_))
        # Only sound batches take part: offsets of one whose checksum is wrong may be damaged as
        # well, and would draw others out of place.
        order = order_batches(rows.take(sound), self._ends)
        for i, reason in order.left_out.items():
            reasons[int(sound[i])] = reason
        for number, reason in enumerate(reasons):
            if reason:
                self._leave_out(int(rows["position"][number]), reason)
            else:
                self._keep(rows[number : number + 1])
        for i in order.kept:
            yield from self._bytes(rows[sound[i] : sound[i] + 1], None)

    def _walk(self) -> Iterator[tuple[Rows, NDArray[np.object_], Chunk | None]]:
        """Batches, what is wrong with each ("" if nothing), and where they lie in memory; a range
        that is no batch is a row with a reason."""
        size = self.segment.size_in_bytes
        walk = DamageWalk(
            FileRange(self.segment.path, 0, size, self._ends),
            chunk_bytes=_CHUNK_BYTES,
            buffers=self._buffers,
            max_batch_bytes=self.max_batch_bytes,
        )
        for found in walk:
            if isinstance(found, Damage):
                # Too large to be held at once, and sound: it is copied in pieces.
                is_sound = isinstance(found.error, RecordTooLargeError)
                yield self._range(found), _reasons(1, "" if is_sound else found.error.reason), None
                continue
            reasons = _reasons(found.rows.size, "")
            reasons[~walk.is_valid] = WRONG_CHECKSUM
            self._check_markers(found, reasons)
            yield found.rows, reasons, found
        if walk.position < size:
            tail = np.zeros(1, BATCH_ROW)
            tail["position"] = walk.position
            yield tail, _reasons(1, _tail_reason(walk.status)), None

    def _range(self, damage: Damage) -> Rows:
        row = np.zeros(1, BATCH_ROW)
        if damage.row is not None:
            row[0] = damage.row
        row["position"] = damage.position
        return row

    def _check_markers(self, chunk: Chunk, reasons: NDArray[np.object_]) -> None:
        which = np.flatnonzero(has_marker(chunk.rows) & (reasons == ""))
        markers, errors = read_each_marker(chunk, which, self.segment.path)
        unread = [b for b, marker in zip(which.tolist(), markers, strict=True) if marker is None]
        for b, error in zip(unread, errors, strict=True):
            reasons[b] = error.reason

    def _bytes(self, rows: Rows, chunk: Chunk | None) -> Iterator[memoryview]:
        start = int(rows["position"][0])
        end = int(rows["position"][-1]) + int(rows["size_in_bytes"][-1])
        if chunk is not None:
            yield chunk.buf[start - chunk.position : end - chunk.position].data
            return
        with open_file(self.segment.path) as file:
            while start < end:
                length = min(_CHUNK_BYTES, end - start)
                yield self._buffers.read(file, start, length).data
                start += length

    # -- what is counted ---------------------------------------------------------------------------

    def _keep(self, rows: Rows) -> None:
        """Note sound batches, in the order of the file."""
        if self._gap is not None:
            self._close_gap(int(rows["position"][0]), int(rows["base_offset"][0]) - 1)
        self._last_offset = int(rows["last_offset"][-1])
        self.batches_count += rows.size
        self.records_count += int(rows["records_count"].astype(np.int64).clip(min=0).sum())

    def _leave_out(self, position: int, reason: str) -> None:
        """Open a gap here, or go on with the one before."""
        if self._gap is None:
            self._gap = LeftOut(position, 0, self._last_offset + 1, None, reason)

    def _close_gap(self, end: int, last_offset: int | None) -> None:
        gap = self._gap
        if gap is not None:
            self.left_out.append(
                LeftOut(gap.position, end - gap.position, gap.first_offset, last_offset, gap.reason)
            )
        self._gap = None


def _reasons(count: int, reason: str) -> NDArray[np.object_]:
    reasons: NDArray[np.object_] = np.full(count, reason, np.object_)
    return reasons


def _tail_reason(status: int) -> str:
    if status == ZERO_TAIL:
        return "zeros up to the file's end, as preallocated"
    return "the file, or what can be walked over, ends inside a batch"
