"""The batches of one segment, chunk by chunk: checksums, records, order, header fields.

Strategy: the checksums of a chunk first; batches with a wrong one are looked at no further, for
their headers may lie too, except for the order of offsets, which no checksum covers. Then the
records of the others are walked by one kernel that keeps nothing. A batch that stops the walk is
noted and the walk goes on behind it.

Source: Kafka DefaultRecordBatch, LogValidator, Lz4BlockInputStream; what a rebuilt batch looks like
is Kafka's MemoryRecords.filterTo.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches import batch_table
from kafkalog.batches.arena import Arena
from kafkalog.batches.checked_records import check_compressed
from kafkalog.batches.record_areas import RecordAreas, iterate_record_areas
from kafkalog.checking.coordinator_checks import CoordinatorChecks
from kafkalog.checking.finding import BAD_BATCH, FindingList
from kafkalog.checking.segment_report import EpochRun, Hole
from kafkalog.errors import KafkaLogError, RecordTooLargeError
from kafkalog.format.compression import has_sound_lz4_content
from kafkalog.format.constants import (
    MAGIC_VALUE_V2,
    MAX_BATCH_BYTES,
    MAX_INT32,
    NO_TIMESTAMP,
    RECORD_BATCH_OVERHEAD,
    CompressionType,
)
from kafkalog.format.legacy_record import count_wrong_inner_checksums, wrapper_payload
from kafkalog.kernels.check_records import check_records
from kafkalog.kernels.status import OFFSET_ORDER, OK, STATUS_TEXT
from kafkalog.log.segment_file import Chunk

Rows = NDArray[np.void]
Mask = NDArray[np.bool_]

_KNOWN_ATTRIBUTES = 0x7F
_HOLES_KEPT = 8
_MAX_EPOCH_RUNS = 1024
_ARENA_BYTES = 8 * 1024 * 1024
_WINDOW_AFTER_DAMAGE = 64
_LZ4_FLAGS_AT = RECORD_BATCH_OVERHEAD + 4
_LZ4_CONTENT_CHECKSUM = 1 << 2


class BatchChecks:
    """The state of a walk over one segment: the content of its chunks, then, for many at once,
    their headers, both in the order of the file.
    """

    def __init__(
        self, found: FindingList, base_offset: int, max_batch_bytes: int = MAX_BATCH_BYTES
    ) -> None:
        self._found = found
        self.coordinator = CoordinatorChecks(found.path, found)
        self._max_batch_bytes = max_batch_bytes
        self._base_offset = base_offset
        self._arena = Arena()
        self.batches_count = 0
        self.records_count = 0
        self.first_offset = -1
        self.last_offset = base_offset - 1
        self.max_timestamp_ms = -1
        self.largest_batch = (0, 0)
        self.holes_count = 0
        self.is_thinned = False
        self._first_holes: list[Hole] = []
        self._last_holes: list[Hole] = []
        self.epochs: list[EpochRun] = []

    def check_content(self, chunk: Chunk) -> tuple[Rows, Mask]:
        """Check checksums and records of a chunk. Returns its rows, completed where only the
        content of legacy wrappers tells, and which of them have sound headers.
        """
        rows = chunk.rows
        sound = batch_table.verify_checksums(chunk.buf, chunk.position, rows)
        if not sound.all():
            for row in rows[~sound]:
                self._say("crc-mismatch", row, f"the header says {row['crc']:#010x}")
            rows = rows.compress(sound)
        complete = self._open(chunk, rows)
        if batch_table.codecs(rows).any():
            self._check_codec_checksums(chunk, rows)
        if not batch_table.is_legacy(rows).any():
            return chunk.rows, sound
        result: Rows = chunk.rows.copy()
        result[sound] = np.concatenate(complete)
        return result, sound

    def check_headers(self, rows: Rows, sound: Mask) -> None:
        """Check what the headers of the next batches say of each other."""
        self._check_order(rows)
        self._check_fields(rows.compress(sound))
        self._note_epochs(rows)
        self.batches_count += rows.size
        self.records_count += int(rows["records_count"].astype(np.int64).clip(min=0).sum())
        if sound.any():
            largest = int(rows["max_timestamp"][sound].max())
            self.max_timestamp_ms = max(self.max_timestamp_ms, largest)
        b = int(rows["size_in_bytes"].argmax())
        size, position = int(rows["size_in_bytes"][b]), int(rows["position"][b])
        if size > self.largest_batch[0]:
            self.largest_batch = size, position

    @property
    def holes(self) -> tuple[Hole, ...]:
        """The first and the last few of them."""
        return (*self._first_holes, *self._last_holes)

    # -- records -----------------------------------------------------------------------------------

    def _open(self, chunk: Chunk, rows: Rows) -> list[Rows]:
        """Check the records of `rows`; returns them, completed, in parts."""
        complete: list[Rows] = []
        if not self.coordinator.reads_records:
            checked, _ = check_compressed(
                chunk.buf, chunk.position, rows, self._arena, self._max_batch_bytes
            )
            complete.append(rows[: checked.size])
            self._check_timestamps(complete[0], checked)
            rows = rows[checked.size :]
        window = rows.size
        while rows.size:
            done = 0
            try:
                for part, areas in iterate_record_areas(
                    chunk.buf, chunk.position, rows[:window], self._arena,
                    path=self._found.path, max_bytes=self._max_batch_bytes,
                    arena_bytes=_ARENA_BYTES,
                ):  # fmt: skip
                    self._check_areas(areas)
                    self.coordinator.check(areas)
                    complete.append(areas.rows)
                    done = part.stop
                rows = rows[window:]
            except BAD_BATCH as error:
                bad = int(np.flatnonzero(rows["position"] == error.position)[0])
                # What shared its part with the bad batch was opened and never handed out.
                complete += self._open(chunk, rows[done:bad])
                self._say_error(rows[bad], error)
                complete.append(rows[bad : bad + 1])
                rows = rows[bad + 1 :]
                # Where one batch is bad many may be: each costs the window once more.
                window = _WINDOW_AFTER_DAMAGE
        return complete

    def _check_areas(self, areas: RecordAreas) -> None:
        rows, starts, ends = areas.rows, areas.starts, areas.ends
        largest, folds = np.empty((2, rows.size), np.int64)
        first = 0
        while first < rows.size:
            part = slice(first, rows.size)
            done, code, position, record = check_records(
                areas.buf, rows[part], starts[part], ends[part], largest[part], folds[part]
            )
            first += done
            if code == OK:
                break
            largest[first] = rows["max_timestamp"][first]
            self._say_record(rows[first], code, position - int(starts[first]), record)
            first += 1
        self._check_timestamps(rows, largest)

    def _check_timestamps(self, rows: Rows, largest: NDArray[np.int64]) -> None:
        # A broker takes the largest of -1 and the records' times.
        is_right = (largest == rows["max_timestamp"]) | (
            np.maximum(largest, NO_TIMESTAMP) == rows["max_timestamp"]
        )
        for b in np.flatnonzero(~is_right).tolist():
            text = f"the header says {rows['max_timestamp'][b]}, the records {largest[b]}"
            self._say("max-timestamp", rows[b], text)

    def _say_record(self, row: np.void, code: int, at: int, record: int) -> None:
        kind = "record-offset-order" if code == OFFSET_ORDER else "records-unreadable"
        self._say(
            kind,
            row,
            f"record {record} of {row['records_count']}, byte {at} of the records: "
            f"{STATUS_TEXT[code]}",
        )

    def _say_error(self, row: np.void, error: KafkaLogError) -> None:
        is_limit = isinstance(error, RecordTooLargeError)
        self._say("batch-over-limit" if is_limit else "records-unreadable", row, error.reason)

    def _check_codec_checksums(self, chunk: Chunk, rows: Rows) -> None:
        """What Kafka reads past: content checksums of lz4 frames, CRCs of messages in wrappers."""
        wrappers = batch_table.is_legacy_wrapper(rows)
        for row in rows[wrappers]:
            start = int(row["position"]) - chunk.position
            entry = chunk.buf[start : start + int(row["size_in_bytes"])].data
            wrong = count_wrong_inner_checksums(entry)
            if wrong:
                self._say("inner-crc", row, f"{wrong} of the messages inside")
        for row in rows[_may_have_lz4_checksums(chunk, rows)]:
            start = int(row["position"]) - chunk.position
            entry = chunk.buf[start : start + int(row["size_in_bytes"])].data
            magic = int(row["magic"])
            frame = (
                entry[RECORD_BATCH_OVERHEAD:]
                if magic == MAGIC_VALUE_V2
                else wrapper_payload(entry, magic)
            )
            if not has_sound_lz4_content(frame, magic=magic):
                self._say("lz4-content-checksum", row, "the uncompressed records differ from it")

    # -- headers -----------------------------------------------------------------------------------

    def _check_order(self, rows: Rows) -> None:
        base, last = rows["base_offset"], rows["last_offset"]
        before = np.concatenate([[self.last_offset], last[:-1]])
        wrong = (base <= before) | (last < base)
        for b in np.flatnonzero(wrong).tolist():
            text = f"offsets {base[b]} to {last[b]} after {before[b]}"
            self._say("offset-order", rows[b], text)
        too_far = last - self._base_offset > MAX_INT32
        for b in np.flatnonzero(too_far)[:1].tolist():
            text = f"offset {last[b]} in a segment that begins at {self._base_offset}"
            self._say("offset-overflow", rows[b], text)
        if self.first_offset < 0:
            self.first_offset = int(base[0])
            before[0] = base[0] - 1  # a segment may begin above its base
        for b in np.flatnonzero(base > before + 1).tolist():
            self._note_hole(Hole(int(before[b]) + 1, int(base[b]), int(rows["position"][b])))
        self.last_offset = int(last[-1])

    def _note_hole(self, hole: Hole) -> None:
        self.holes_count += 1
        if len(self._first_holes) < _HOLES_KEPT:
            self._first_holes.append(hole)
        else:
            self._last_holes.append(hole)
            del self._last_holes[:-_HOLES_KEPT]

    def _check_fields(self, rows: Rows) -> None:
        """Of sound rows."""
        attributes = rows["attributes"]
        for row in rows[(attributes & ~_KNOWN_ATTRIBUTES) != 0]:
            self._say("unknown-attributes", row, f"attributes {int(row['attributes']) & 0xFFFF:#x}")
        has_producer = rows["producer_id"] >= 0
        wrong = batch_table.is_transactional(rows) & ~has_producer
        wrong |= has_producer & (rows["producer_epoch"] < 0)
        wrong |= has_producer & (rows["base_sequence"] < 0) & ~batch_table.is_control(rows)
        for row in rows[wrong]:
            self._say(
                "producer-fields",
                row,
                f"producer {row['producer_id']} epoch {row['producer_epoch']} sequence "
                f"{row['base_sequence']} attributes {row['attributes']:#x}",
            )
        counts, spans = rows["records_count"], rows["last_offset"] - rows["base_offset"] + 1
        self.is_thinned |= bool(
            (counts < spans).any() or batch_table.has_delete_horizon(rows).any()
        )

    def _note_epochs(self, rows: Rows) -> None:
        rows = rows[rows["partition_leader_epoch"] >= 0]
        if not rows.size or len(self.epochs) >= _MAX_EPOCH_RUNS:
            return
        epochs = rows["partition_leader_epoch"]
        edges = [0, *(np.flatnonzero(np.diff(epochs)) + 1).tolist(), rows.size]
        for first, end in pairwise(edges):
            epoch = int(epochs[first])
            start, last = int(rows["base_offset"][first]), int(rows["last_offset"][end - 1])
            if self.epochs and self.epochs[-1].epoch == epoch:
                start = self.epochs.pop().first_offset
            elif self.epochs and self.epochs[-1].epoch > epoch:
                text = f"leader epoch {epoch} after {self.epochs[-1].epoch}"
                self._say("leader-epoch-order", rows[first], text)
            self.epochs.append(EpochRun(epoch, start, last))

    def _say(self, kind: str, row: np.void, text: str) -> None:
        self._found.add(kind, text, position=int(row["position"]), offset=int(row["base_offset"]))


def _may_have_lz4_checksums(chunk: Chunk, rows: Rows) -> Mask:
    """Which batches are lz4 whose content may have a checksum; Kafka's own frames have none."""
    found: Mask = batch_table.codecs(rows) == CompressionType.LZ4
    current = np.flatnonzero(found & ~batch_table.is_legacy(rows))
    # The flags of a frame come behind its magic number; what is too short for them is no frame.
    flags_at = rows["position"][current] - chunk.position + _LZ4_FLAGS_AT
    is_there = flags_at < chunk.buf.size
    found[current] = is_there
    found[current[is_there]] = chunk.buf[flags_at[is_there]] & _LZ4_CONTENT_CHECKSUM
    return found
