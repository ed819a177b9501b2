"""The batches of a segment with damage in it: whole ones in chunks, and between them the ranges
that nothing leads over. The one place that goes on behind damage, for readers and for `salvage`.

Strategy: the file is walked from length to length, and what each length leads over is checked at
once. Where a length cannot be believed (`trusted_lengths`), and where nothing can be walked over,
the next sound batch is searched (`next_batch`), from the first byte behind where the bad batch
begins: a length that is too long must not take a sound batch with it.

A length above the limit is one of a large batch if the checksum over all its bytes is right, and
damage if not. The range of such a batch is reported as well, as not read.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.batch_table import verify_checksums
from kafkalog.errors import (
    CorruptRecordError,
    KafkaLogError,
    RecordTooLargeError,
    UnsupportedMagicError,
)
from kafkalog.format.batch_rows import join_rows
from kafkalog.format.constants import MAX_BATCH_BYTES, MAX_INT64
from kafkalog.format.record_batch import BATCH_ROW
from kafkalog.kernels.status import OK
from kafkalog.log.damage import Damage, FileRange, wrong_checksum
from kafkalog.log.segment_file import CHUNK_BYTES, Chunk, ChunkBuffers, read_chunks
from kafkalog.log.segment_headers import scan_headers
from kafkalog.log.segment_tail import SegmentEnds, Tail, tail_error
from kafkalog.log.single_batch import sound_batch_at, whole_batch_at
from kafkalog.log.storage import open_file
from kafkalog.log.trusted_lengths import TrustedLengths

# Where one batch is bad many may be, and each costs its chunk once more.
_CHUNK_AFTER_DAMAGE = 64 * 1024
# Batches in front of a place that nothing leads over whose lengths may have led there.
_MOST_SUSPECTS = 64


def headers_past_damage(wanted: FileRange) -> tuple[NDArray[np.void], list[Damage]]:
    """(the headers of all batches, the ranges that nothing leads over). Bodies are read only where
    something is wrong; the rows of batches with a wrong checksum are left out then, and reported.
    OSError, LogChangedError as from reading.
    """
    # The usual case: headers alone lead to the end. Only if not, bodies are read and summed up.
    scan = scan_headers(wanted.path, wanted.start, wanted.end)
    last_offset = int(scan.rows["last_offset"][-1]) if scan.rows.size else -1
    tail = Tail(scan.valid_bytes, scan.valid_bytes + scan.trailing_bytes, scan.status, last_offset)
    if scan.error is None and tail_error(wanted.path, tail, wanted.ends) is None:
        return scan.rows, []
    parts: list[NDArray[np.void]] = []
    damages: list[Damage] = []
    walk = DamageWalk(wanted)
    for found in walk:
        if isinstance(found, Damage):
            damages.append(found)
            continue
        parts.append(found.rows.compress(walk.is_valid))
        for row in found.rows[~walk.is_valid]:
            error = wrong_checksum(wanted.path, row)
            damages.append(Damage(int(row["position"]), int(row["size_in_bytes"]), error))
    return join_rows(parts), damages


class DamageWalk:
    """Iterates once over chunks of whole batches, and Damage, in the order of the file.

    With `checks` a chunk holds no batch whose length is wrong, and `is_valid` says which batches of
    the latest chunk have the checksum they state. Without it no body is summed up in front of
    damage, and a batch whose length is wrong may be the last of its chunk. With `raises` the first
    damage is raised: CorruptRecordError, UnsupportedMagicError, RecordTooLargeError.

    `position` is behind what was walked over. Where the walk ends before the file does `status`
    says how (NEED_MORE, ZERO_TAIL). OSError, and LogChangedError where the file shrinks.
    """

    def __init__(
        self,
        wanted: FileRange,
        *,
        checks: bool = True,
        raises: bool = False,
        chunk_bytes: int = CHUNK_BYTES,
        buffers: ChunkBuffers | None = None,
        max_batch_bytes: int = MAX_BATCH_BYTES,
    ) -> None:
        self.position, self.status = wanted.start, OK
        self.is_valid: NDArray[np.bool_] = np.empty(0, np.bool_)
        self._wanted = wanted
        self._checks, self._raises = checks and not raises, raises
        self._chunk_bytes = chunk_bytes
        self._buffers = buffers or ChunkBuffers()
        self._max_batch_bytes = max_batch_bytes
        self._last_offset = wanted.ends.base_offset - 1
        self._latest: NDArray[np.void] = np.empty(0, BATCH_ROW)
        self._lengths = TrustedLengths(wanted)

    def __iter__(self) -> Iterator[Chunk | Damage]:
        while self.position < self._wanted.end:
            error: KafkaLogError | None = None
            chunks = read_chunks(
                self._wanted.path,
                self.position,
                self._wanted.end,
                chunk_bytes=self._chunk_bytes,
                buffers=self._buffers,
                max_batch_bytes=self._max_batch_bytes,
            )
            try:
                # A batch whose checksum is wrong may have a wrong length, too: what lies behind it
                # is handed out only if its length leads to a sound batch, or to the end.
                for chunk in chunks:
                    count = self._trusted(chunk)
                    if count:
                        yield self._taken(chunk, count)
                    if count < len(chunk.rows):
                        error = wrong_checksum(self._wanted.path, chunk.rows[count])
                        break
                else:
                    self.position = chunks.valid_bytes
                    self.status = chunks.status
                    error = self._tail_error(chunks.status)
            except (CorruptRecordError, UnsupportedMagicError, RecordTooLargeError) as found:
                self.position, error = chunks.valid_bytes, found
            if error is None:
                return
            if self._raises:
                raise error
            # Behind damage smaller chunks: more of it may be near, and what was read behind it is
            # read again.
            yield self._passed(error)
            self._chunk_bytes = min(self._chunk_bytes, _CHUNK_AFTER_DAMAGE)

    # -- whole batches -----------------------------------------------------------------------------

    def _taken(self, chunk: Chunk, count: int) -> Chunk:
        rows = chunk.rows[:count]
        end = int(rows["position"][-1]) + int(rows["size_in_bytes"][-1])
        self.position, self._latest = end, rows
        # Offsets of a batch whose checksum is wrong may be damaged as well: only sound ones say
        # what the next batch has to lie above.
        valid = rows[self.is_valid[:count]] if self._checks else rows
        if valid.size:
            self._last_offset = self._wanted.ends.bounding(int(valid["last_offset"][-1]))
        self.is_valid = self.is_valid[:count]
        return Chunk(chunk.buf[: end - chunk.position], chunk.position, rows)

    def _trusted(self, chunk: Chunk) -> int:
        """How many batches in front have a length that can be believed."""
        if not self._checks:
            return len(chunk.rows)
        self.is_valid = verify_checksums(chunk.buf, chunk.position, chunk.rows)
        return self._lengths.trusted(chunk.rows, self.is_valid, self._last_offset)

    # -- damage ------------------------------------------------------------------------------------

    def _tail_error(self, status: int) -> KafkaLogError | None:
        wanted = self._wanted
        ends = wanted.ends
        if not wanted.is_file_end:
            ends = SegmentEnds(ends.base_offset, MAX_INT64, is_last=False)
        tail = Tail(self.position, wanted.end, status, self._last_offset)
        return tail_error(wanted.path, tail, ends)

    def _passed(self, error: KafkaLogError) -> Damage:
        """Go on with the next sound batch, or behind the one that is above the limit."""
        path, end = self._wanted.path, self._wanted.end
        if isinstance(error, RecordTooLargeError):
            with open_file(path) as file:
                # Sound and too large to be read: its header says where the next one begins, so that
                # nothing need be searched.
                row = whole_batch_at(file, self.position, end)
            if row is not None:
                damage = Damage(self.position, int(row["size_in_bytes"]), error, row)
                self.position += damage.length
                self._last_offset = self._wanted.ends.bounding(int(row["last_offset"]))
                return damage
        start, last_offset = self.position, self._last_offset
        if not self._checks:
            start, last_offset = self._suspect(start, last_offset)
        found = self._lengths.next_sound(start + 1, end, last_offset)
        self.position = end if found is None else found
        return Damage(start, self.position - start, error)

    def _suspect(self, position: int, last_offset: int) -> tuple[int, int]:
        """(where the search begins behind, the last offset there): the first of the bad batches
        right in front of a place that nothing leads over, whose lengths may have led there.
        """
        rows = self._latest
        # Nothing was walked over right in front of the place: no length has led there.
        if not rows.size or int(rows["position"][-1]) + int(rows["size_in_bytes"][-1]) != position:
            return position, last_offset
        with open_file(self._wanted.path) as file:
            # Back from the place as long as batches are bad: behind the nearest sound one lies the
            # first whose length may be wrong.
            for row in rows[: -_MOST_SUSPECTS - 1 : -1]:
                if sound_batch_at(file, int(row["position"]), position) is not None:
                    return position, self._wanted.ends.bounding(int(row["last_offset"]))
                position = int(row["position"])
        return position, self._wanted.ends.base_offset - 1
