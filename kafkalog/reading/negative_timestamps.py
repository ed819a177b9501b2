"""Batches at which a broker's cleaner stops: with records of a time before 1970.

A broker takes such records (a zero time of Go is the year 1, .NET's too). Its cleaner copies whole
batches as they are, and cannot write one anew in which such a record stays: it ends in an
IllegalArgumentException (Invalid negative timestamp), and the partition is uncleanable. -1 is no
time, and allowed.

A batch is written anew if one of its records goes and another stays, or to get a delete horizon for
its tombstones. So one record alone is in nobody's way, but for a tombstone.

Headers tell of a batch whose first record has such a time; of others only their records. Of these
the first batch of a few segments is looked at: a client that sends such times sends them always.

Source: Kafka MemoryRecordsBuilder.appendWithOffset, MemoryRecords.filterTo.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from kafkalog.batches.arena import Arena
from kafkalog.batches.batch_table import is_legacy, verify_checksums
from kafkalog.batches.record_areas import iterate_record_areas, open_record_areas
from kafkalog.batches.spans import RecordSpans, decode_spans
from kafkalog.errors import KafkaLogError
from kafkalog.format.constants import NO_TIMESTAMP, TIMESTAMP_TYPE_MASK
from kafkalog.format.record_batch import BATCH_ROW
from kafkalog.kernels.scan_batches import scan_batches
from kafkalog.log.header_facts import SegmentFacts
from kafkalog.log.index_lookup import walk_headers
from kafkalog.log.inventory import SegmentInfo
from kafkalog.log.segment_file import ChunkBuffers, read_chunks
from kafkalog.log.storage import open_file
from kafkalog.reading.lookups import records_of

# Batches that are opened: of a segment's with one record of such a time; where no header tells.
_MOST_SINGLE, _MOST_SAMPLES = 64, 16
# Of a segment's front, where its first batch is; one that is larger is read in whole.
_SAMPLE_BYTES = 32 * 1024


@dataclass(frozen=True, slots=True)
class NegativeTimestamp:
    """A batch that cannot be written anew, and its first record of such a time."""

    path: str
    segment_base_offset: int
    position: int
    first_offset: int
    last_offset: int
    offset: int
    timestamp_ms: int

    def __str__(self) -> str:
        return (
            f"{PurePath(self.path).name} @ {self.position}: the batch of offsets "
            f"{self.first_offset} to {self.last_offset} has negative timestamps "
            f"({self.timestamp_ms} at offset {self.offset})"
        )


def find_negative_timestamp(
    segments: Sequence[SegmentInfo], facts: Sequence[SegmentFacts]
) -> NegativeTimestamp | None:
    """The first such batch of these segments, as far as headers and samples tell. What cannot be
    read tells nothing.
    """
    known = {each.base_offset for each in facts if each.min_timestamp_ms < NO_TIMESTAMP}
    for segment in segments:
        for row in _by_header(segment) if segment.base_offset in known else ():
            found = _in_batch(segment, row)
            if found is not None:
                return found
    # A header has the first record's time and the largest one: a negative one between them no
    # header tells. Who writes such times mostly does so everywhere, so some batches stand for all.
    samples = segments[:: max(len(segments) // _MOST_SAMPLES, 1)][:_MOST_SAMPLES]
    buffers = ChunkBuffers()
    if not _may_be_in_first_batches(samples, facts, buffers):
        return None
    for segment in samples:
        found = _in_first_batch(segment, buffers)
        if found is not None:
            return found
    return None


def _by_header(segment: SegmentInfo) -> Iterator[np.void]:
    """Batches of a segment whose header has such a time. Of those of several records it tells all;
    whether the record of a batch that has only one is a tombstone it does not, so not all are seen.
    """
    singles = 0
    try:
        for rows in walk_headers(segment, 0):
            is_created = (rows["attributes"] & TIMESTAMP_TYPE_MASK) == 0
            wanted = is_created & (rows["base_timestamp"] < NO_TIMESTAMP)
            is_single = wanted & (rows["records_count"] == 1)
            numbers = singles + np.cumsum(is_single)
            yield from rows[wanted & (~is_single | (numbers <= _MOST_SINGLE))]
            singles = int(numbers[-1]) if numbers.size else singles
    except (KafkaLogError, OSError):
        return


def _may_be_in_first_batches(
    segments: Sequence[SegmentInfo], facts: Sequence[SegmentFacts], buffers: ChunkBuffers
) -> bool:
    """Whether one of them has to be looked at by itself: it has such a time, or it is not a sound
    batch of magic 2 of usual size. All are decoded at once: one by one they were a twentieth of
    compacting a partition of a few small segments.
    """
    if not segments:
        return False
    # No more is read than the first batch can have.
    most = {each.base_offset: min(_SAMPLE_BYTES, each.largest_batch_bytes) for each in facts}
    buf = buffers.reserve(len(segments) * _SAMPLE_BYTES)
    rows = np.zeros(len(segments), BATCH_ROW)
    try:
        for number, segment in enumerate(segments):
            start = number * _SAMPLE_BYTES
            length = min(most.get(segment.base_offset, _SAMPLE_BYTES), segment.size_in_bytes)
            with open_file(segment.path) as file:
                file.read_into(buf[start:], 0, length)
            head = buf[start : start + length]
            count, *_ = scan_batches(head, 0, length, length, start, rows[number : number + 1])
            if not count:
                return True
        if is_legacy(rows).any() or not verify_checksums(buf, 0, rows).all():
            return True
        for _, areas in iterate_record_areas(buf, 0, rows, Arena(), arena_bytes=_SAMPLE_BYTES):
            spans = decode_spans(areas, areas.rows)
            if (spans.timestamps[: spans.n] < NO_TIMESTAMP).any():
                return True
    except (KafkaLogError, OSError):
        return True
    return False


def _in_first_batch(segment: SegmentInfo, buffers: ChunkBuffers) -> NegativeTimestamp | None:
    try:
        # Opened and read once: of a partition of a few small segments these are a twentieth of all.
        head = read_chunks(
            segment.path, end=segment.size_in_bytes, chunk_bytes=_SAMPLE_BYTES, buffers=buffers
        )
        chunk = next(iter(head), None)
        if chunk is None:
            return None
        rows = chunk.rows[:1]
        if not verify_checksums(chunk.buf, chunk.position, rows)[0]:
            return None
        areas = open_record_areas(chunk.buf, chunk.position, rows, Arena(), path=segment.path)
        spans = decode_spans(areas, areas.rows, segment.path)
    except (KafkaLogError, OSError, IndexError):
        return None
    return _in_records(segment, rows[0], spans)


def _in_batch(segment: SegmentInfo, row: np.void) -> NegativeTimestamp | None:
    try:
        spans = records_of(segment, row)
    except (KafkaLogError, OSError, StopIteration, IndexError):
        return None
    return _in_records(segment, row, spans)


def _in_records(segment: SegmentInfo, row: np.void, spans: RecordSpans) -> NegativeTimestamp | None:
    which = np.flatnonzero(spans.timestamps[: spans.n] < NO_TIMESTAMP)
    if not which.size:
        return None
    # A batch of one record stays as it is or goes as a whole; a tombstone alone is written anew,
    # for its delete horizon (KIP-534).
    is_rewritten = spans.n > 1 or bool(spans.value_lengths[0] < 0)
    if not is_rewritten:
        return None
    first = int(which[0])
    return NegativeTimestamp(
        path=segment.path,
        segment_base_offset=segment.base_offset,
        position=int(row["position"]),
        first_offset=int(row["base_offset"]),
        last_offset=int(row["last_offset"]),
        offset=int(spans.offsets[first]),
        timestamp_ms=int(spans.timestamps[first]),
    )
