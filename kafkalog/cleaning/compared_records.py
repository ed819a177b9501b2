"""Batches and their records as `--verify deep` compares them: some at a time, as Arrow columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kafkalog.batches.arena import Arena
from kafkalog.batches.gathering import decode_header_spans
from kafkalog.batches.record_areas import RecordAreas, iterate_record_areas
from kafkalog.batches.spans import RecordSpans, decode_spans
from kafkalog.columns.arrow_arrays import binary_array, number_array
from kafkalog.errors import RecordTooLargeError
from kafkalog.log.segment_file import ChunkBuffers, read_chunks

# A record of a few bytes takes some hundred here, in arrays and columns of either side: parts are
# small where there is little memory. Of larger ones a record costs less: each part takes some
# hundred calls.
_LEAST_PART_BYTES = 512 * 1024
_MOST_PART_BYTES = 2 * 1024 * 1024
_RECORD_BYTES = 64

Rows = NDArray[np.void]


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive batches: BATCH_ROW[b], and a row a record, in order."""

    rows: Rows
    records: pa.RecordBatch


def read_parts(
    path: str, buffers: ChunkBuffers, max_bytes: int, *, keys_only: bool = False
) -> Iterator[Part]:
    """All batches of a `.log` file with their records: offset, timestamp, key, value, headers; with
    `keys_only` offset and key.

    RecordTooLargeError for a batch of more than `max_bytes`, stored or decompressed, or whose
    records take more than that here.
    """
    arena = Arena()
    part_bytes = max(_LEAST_PART_BYTES, min(_MOST_PART_BYTES, max_bytes // 8))
    for chunk in read_chunks(path, chunk_bytes=part_bytes, buffers=buffers):
        _check_sizes(chunk.rows, max_bytes, path)
        for _, areas in iterate_record_areas(
            chunk.buf, chunk.position, chunk.rows, arena,
            path=path, max_bytes=max_bytes, arena_bytes=part_bytes,
        ):  # fmt: skip
            # Again: how many records a legacy wrapper has, only its content tells.
            _check_sizes(areas.rows, max_bytes, path)
            spans = decode_spans(areas, areas.rows, path)
            columns = _keys(areas, spans)
            if not keys_only:
                columns |= _contents(areas, spans, path)
            yield Part(areas.rows.copy(), pa.RecordBatch.from_pydict(columns))


def _check_sizes(rows: Rows, max_bytes: int, path: str) -> None:
    sizes, counts = rows["size_in_bytes"], rows["records_count"]
    too_large = (sizes > max_bytes) | (counts > max_bytes // _RECORD_BYTES)
    if too_large.any():
        b = int(np.argmax(too_large))
        raise RecordTooLargeError(
            f"verify deep: batch of {sizes[b]} bytes and {counts[b]} records, --memory allows "
            f"{max_bytes} and {max_bytes // _RECORD_BYTES}",
            path=path,
            position=int(rows["position"][b]),
            offset=int(rows["base_offset"][b]),
        )


def _keys(areas: RecordAreas, spans: RecordSpans) -> dict[str, pa.Array]:
    return {
        "offset": number_array(spans.offsets.copy()),
        "key": binary_array(areas.buf, spans.key_starts, spans.key_lengths),
    }


def _contents(areas: RecordAreas, spans: RecordSpans, path: str) -> dict[str, pa.Array]:
    headers = decode_header_spans(areas.buf, spans.header_starts, spans.header_counts, path)
    pairs = pa.StructArray.from_arrays(
        [
            binary_array(areas.buf, headers.key_starts, headers.key_lengths),
            binary_array(areas.buf, headers.value_starts, headers.value_lengths),
        ],
        ["key", "value"],
    )
    return {
        "timestamp": number_array(spans.timestamps.copy()),
        "value": binary_array(areas.buf, spans.value_starts, spans.value_lengths),
        "headers": pa.ListArray.from_arrays(number_array(headers.list_offsets), pairs),
    }
