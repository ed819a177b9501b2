"""Records larger than `max.decompressed.message.bytes` lets a broker decompress (Kafka 4.4 on).

The cleaner of such a broker gives a partition up where a compressed batch that it reads has a
larger record, so nothing that it would make of the partition is known. Batches without compression
are not held to the limit, nor is data of aborted transactions, which goes without being read.

What counts is what stands in front of a record: of magic 2 the bytes behind the length, of a
message inside a legacy wrapper those behind offset and size.

Source: Kafka DefaultRecord.readFrom, AbstractLegacyRecordBatch.DataLogInputStream,
MemoryRecords.filterTo.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.arena import Arena
from kafkalog.batches.batch_table import codecs, is_legacy
from kafkalog.batches.record_areas import RecordAreas, iterate_record_areas
from kafkalog.batches.spans import RecordSpans, decode_spans
from kafkalog.errors import LogCleaningRefusedError
from kafkalog.format.constants import (
    COMPRESSION_CODEC_MASK,
    LEGACY_RECORD_OVERHEAD_V1,
    MAGIC_VALUE_V2,
    CompressionType,
)
from kafkalog.format.legacy_record import largest_inner_message, open_wrapper
from kafkalog.format.limits import MOST_MAX_BATCH_BYTES
from kafkalog.format.varint import parse_varint
from kafkalog.log.segment_file import Chunk

# Between a record's first byte and its key: length, attributes, timestamp and offset deltas, key
# length, each as long as it can be.
_MOST_BYTES_BEFORE_KEY = 5 + 1 + 10 + 5 + 5


def refuse_large_records(
    chunk: Chunk, is_read: NDArray[np.bool_], limit: int, arena: Arena, path: str
) -> None:
    """LogCleaningRefusedError for the first record above `limit` bytes in the compressed ones of
    the batches that a cleaner reads, bool[b].
    """
    rows = chunk.rows
    which = np.flatnonzero(
        is_read & (codecs(rows) != CompressionType.NONE) & (rows["records_count"] > 0)
    )
    if not which.size:
        return
    for part, areas in iterate_record_areas(
        chunk.buf, chunk.position, rows[which], arena, path=path
    ):
        # No record is larger than all records of its batch, as they are laid out in the arena.
        # Of magic 2 there are three sieves, each dearer than the last: the size of the whole batch,
        # the distance between keys, the walk from record to record.
        sizes = areas.ends - areas.starts
        sizes[is_legacy(areas.rows)] += LEGACY_RECORD_OVERHEAD_V1
        for b in np.flatnonzero(sizes > limit).tolist():
            row = areas.rows[b]
            if row["magic"] < MAGIC_VALUE_V2:
                largest = _largest_message(chunk, rows[which[part.start + b]], path)
            else:
                one = slice(b, b + 1)
                largest = _largest_record(
                    RecordAreas(areas.buf, areas.starts[one], areas.ends[one], areas.rows[one]),
                    limit,
                    path,
                )
            if largest > limit:
                raise LogCleaningRefusedError(
                    f"a record of {largest} bytes is larger than max.decompressed.message.bytes "
                    f"{limit} lets a broker decompress: its cleaner gives up on this partition as "
                    "well",
                    path=path,
                    position=int(row["position"]),
                    offset=int(row["base_offset"]),
                )


def _largest_message(chunk: Chunk, row: np.void, path: str) -> int:
    """Bytes of the largest message of a legacy wrapper, whatever its magic."""
    start = int(row["position"]) - chunk.position
    content = open_wrapper(
        chunk.buf[start : start + int(row["size_in_bytes"])].data,
        int(row["magic"]),
        int(row["attributes"]) & COMPRESSION_CODEC_MASK,
        max_bytes=MOST_MAX_BATCH_BYTES,  # it was opened within the limit
        path=path,
        position=int(row["position"]),
        offset=int(row["base_offset"]),
    )
    return largest_inner_message(content)


def _largest_record(areas: RecordAreas, limit: int, path: str) -> int:
    """Bytes of the largest record of one batch, or a number within the limit."""
    spans = decode_spans(areas, areas.rows, path)
    return _largest_body(areas, limit) if _may_be_larger(spans, areas, limit) else 0


def _may_be_larger(spans: RecordSpans, areas: RecordAreas, limit: int) -> bool:
    """Whether any record may pass the limit, from where the keys are: a record ends before the key
    of the next one.
    """
    ends = np.append(spans.key_starts[1:], areas.ends[0])
    return bool((ends - spans.key_starts + _MOST_BYTES_BEFORE_KEY > limit).any())


def _largest_body(areas: RecordAreas, limit: int) -> int:
    """Step by step, for the few batches that come close."""
    view = areas.buf[int(areas.starts[0]) : int(areas.ends[0])].data
    at = largest = 0
    while at < len(view) and largest <= limit:
        size, at = parse_varint(view, at)
        largest = max(largest, size)
        at += size
    return largest
