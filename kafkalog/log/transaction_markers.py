"""What the markers among some batches say: the first record of each control batch of a producer.

Source: Kafka EndTransactionMarker, ControlRecordType.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.arena import Arena
from kafkalog.batches.record_areas import open_record_areas
from kafkalog.batches.spans import decode_spans
from kafkalog.format.control_record import ControlRecordType, parse_control_type
from kafkalog.log.control_batches import parse_marker
from kafkalog.log.segment_file import Chunk


@dataclass(frozen=True, slots=True)
class TransactionMarker:
    """The end of a transaction; timestamp in ms."""

    is_abort: bool
    coordinator_epoch: int
    timestamp: int


def read_markers(chunk: Chunk, which: NDArray[np.int64], path: str) -> list[TransactionMarker]:
    """The markers in the batches `which` (indexes into chunk.rows), all of them control batches
    that have a record.

    CorruptRecordError for one that cannot be understood, as for a broker, which then fails to load
    the log.
    """
    rows = chunk.rows[which]
    if not rows.size:
        return []
    areas = open_record_areas(chunk.buf, chunk.position, rows, Arena(), path=path)
    spans = decode_spans(areas, areas.rows, path)
    ends = np.cumsum(areas.rows["records_count"], dtype=np.int64)
    first_records = np.concatenate([[0], ends[:-1]])
    markers = []
    for b, r in enumerate(first_records.tolist()):
        place = {"path": path, "position": int(rows["position"][b])}
        offset = int(rows["base_offset"][b])
        key = _bytes(areas.buf, int(spans.key_starts[r]), int(spans.key_lengths[r]))
        value = _bytes(areas.buf, int(spans.value_starts[r]), int(spans.value_lengths[r]))
        kind = parse_control_type(key, offset=offset, **place)  # type: ignore[arg-type]
        epoch = parse_marker(kind, value, offset=offset, **place)  # type: ignore[arg-type]
        markers.append(
            TransactionMarker(kind is ControlRecordType.ABORT, epoch, int(spans.timestamps[r]))
        )
    return markers


def _bytes(buf: NDArray[np.uint8], start: int, length: int) -> bytes | None:
    return None if length < 0 else buf[start : start + length].tobytes()
