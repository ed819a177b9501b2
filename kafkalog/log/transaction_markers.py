"""What the markers among some batches say: the first record of each control batch of a producer.

Source: Kafka EndTransactionMarker, ControlRecordType.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kafkalog.errors import KafkaLogError
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.format.control_record import ControlRecordType, parse_control_type
from kafkalog.log.control_batches import first_records, parse_marker, too_large
from kafkalog.log.producer_replay import TransactionMarker
from kafkalog.log.segment_file import Chunk
from kafkalog.log.storage import open_file

_READ_BYTES = 256 * 1024
_GAP_BYTES = 4096


def read_markers(chunk: Chunk, which: NDArray[np.int64], path: str) -> list[TransactionMarker]:
    """The markers in the batches `which` (indexes into chunk.rows), all of them control batches
    that have a record.

    CorruptRecordError for one that cannot be understood, as for a broker, which then fails to load
    the log.
    """
    rows = chunk.rows[which]
    if not rows.size:
        return []
    markers = []
    records = first_records(chunk.buf, chunk.position, rows, path)
    for row, record in zip(rows, records, strict=True):
        position, offset = int(row["position"]), int(row["base_offset"])
        kind = parse_control_type(record.key, path=path, position=position, offset=offset)
        epoch = parse_marker(kind, record.value, path=path, position=position, offset=offset)
        markers.append(TransactionMarker(kind is ControlRecordType.ABORT, epoch, record.timestamp))
    return markers


def read_each_marker(
    chunk: Chunk, which: NDArray[np.int64], path: str
) -> tuple[list[TransactionMarker | None], list[KafkaLogError]]:
    """The same, None for each that cannot be understood, and what is wrong with those."""
    try:
        return [*read_markers(chunk, which, path)], []
    except KafkaLogError:  # of one of them: each by itself tells which
        pass
    markers: list[TransactionMarker | None] = []
    errors: list[KafkaLogError] = []
    for b in which.tolist():
        try:
            markers += read_markers(chunk, np.array([b]), path)
        except KafkaLogError as error:
            markers.append(None)
            errors.append(error)
    return markers, errors


def read_markers_at(
    path: str, rows: NDArray[np.void]
) -> tuple[list[TransactionMarker | None], list[KafkaLogError]]:
    """The same of some batches of a file (BATCH_ROW[b], as they lie), of which headers alone were
    read so far. OSError, LogChangedError as from reading.
    """
    markers: list[TransactionMarker | None] = []
    errors: list[KafkaLogError] = []
    starts = rows["position"].astype(np.int64)
    ends = starts + rows["size_in_bytes"]
    with open_file(path) as file:
        # Markers are some hundred bytes each, spread over the segment: only these are read,
        # neighbours at once, and never the data between them.
        for first, stop in _neighbours(starts.tolist(), ends.tolist()):
            size = int(ends[stop - 1] - starts[first])
            if size > MAX_BATCH_BYTES:
                markers.append(None)
                errors.append(too_large(rows[first], path))
                continue
            buf = np.empty(size, np.uint8)
            file.read_into(buf, int(starts[first]), size)
            chunk = Chunk(buf, int(starts[first]), rows[first:stop])
            found, wrong = read_each_marker(chunk, np.arange(stop - first), path)
            markers += found
            errors += wrong
    return markers, errors


def _neighbours(starts: list[int], ends: list[int]) -> Iterator[tuple[int, int]]:
    """Ranges of batches that are worth one read: what lies between them costs less than another."""
    first = 0
    for b in range(1, len(starts)):
        is_near = starts[b] - ends[b - 1] <= _GAP_BYTES
        if not is_near or ends[b] - starts[first] > _READ_BYTES:
            yield first, b
            first = b
    if starts:
        yield first, len(starts)
