"""What control batches say, and which of them a broker cannot go on with: the one interpreter for
checks, plans, cleaning and rebuilding.

 who               reads                                   fails on
 Kafka's cleaner   the key of the first record             a key that is null, too short or of a
                                                           negative version; records that cannot
                                                           be decoded
 Kafka's loader    of producers key and value, where it    the same, any type but ABORT and COMMIT,
                   rebuilds producer state (after a        a marker that is null, too short or of
                   crash, or without an index)             a negative version

Control batches without a producer are KRaft's; nobody reads a marker from them. Versions above 0
and bytes behind the ones that are needed are read past.

Source: Kafka ControlRecordType, EndTransactionMarker, ProducerAppendInfo, Cleaner; seen with 4.3.1
(tests/oracle).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.arena import Arena
from kafkalog.batches.record_areas import open_record_areas
from kafkalog.batches.spans import decode_spans
from kafkalog.errors import (
    CorruptRecordError,
    KafkaLogError,
    RecordTooLargeError,
    UnsupportedCompressionTypeError,
)
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.format.control_record import (
    ControlRecordType,
    parse_control_type,
    parse_end_transaction_marker,
)
from kafkalog.kernels.control_types import EMPTY, UNDECIDED, control_types

if TYPE_CHECKING:
    from kafkalog.log.segment_file import Chunk

Rows = NDArray[np.void]
Read = Callable[[int, int], bytes]

MARKERS = (ControlRecordType.ABORT, ControlRecordType.COMMIT)
_UNREADABLE = (CorruptRecordError, RecordTooLargeError, UnsupportedCompressionTypeError)


@dataclass(frozen=True, slots=True)
class ControlRecord:
    """What a control batch says; timestamp in ms."""

    key: bytes | None
    value: bytes | None
    timestamp: int


@dataclass(frozen=True, slots=True)
class ControlProblem:
    """Why a broker cannot go on with a control batch. stops_cleaner: its cleaner cannot either,
    else only its loader.
    """

    error: KafkaLogError
    stops_cleaner: bool


@dataclass(frozen=True, slots=True)
class ControlBatches:
    """types: int64[b], a ControlRecordType each, EMPTY without records, UNKNOWN where the key is
    wrong. problems: in the order of the file.
    """

    types: NDArray[np.int64]
    problems: tuple[ControlProblem, ...]


def judge_chunk(chunk: Chunk, which: NDArray[np.int64], path: str) -> ControlBatches:
    """The control batches `which` (indexes into chunk.rows)."""
    rows = chunk.rows[which]

    def read(position: int, length: int) -> bytes:
        at = position - chunk.position
        return chunk.buf[at : at + length].tobytes()

    starts = (rows["position"] - chunk.position).astype(np.int64)
    ends = starts + rows["size_in_bytes"]
    return judge_control_batches(chunk.buf, starts, ends, rows, path, read)


def judge_control_batches(
    buf: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    rows: Rows,
    path: str,
    read: Read,
) -> ControlBatches:
    """Control batches whose bytes are buf[starts[b]:ends[b]]; where that is not all of them, or
    does not tell, `read` is asked (position in the file, length).
    """
    # The kernel answers for plain markers, which is nearly all; whoever is left is decoded, one by
    # one.
    types = np.empty(rows.size, np.int64)
    undecided = control_types(buf, starts, ends, rows, types)
    others = (types != EMPTY) & (types != ControlRecordType.ABORT)
    others &= types != ControlRecordType.COMMIT
    if not undecided and not others.any():
        return ControlBatches(types, ())
    wrong = (types == UNDECIDED) | (others & (rows["producer_id"] >= 0))
    problems: list[ControlProblem] = []
    for b in np.flatnonzero(wrong).tolist():
        types[b], problem = _judge(rows[b], path, read)
        if problem is not None:
            problems.append(problem)
    return ControlBatches(types, tuple(problems))


def _judge(row: np.void, path: str, read: Read) -> tuple[ControlRecordType, ControlProblem | None]:
    position, offset = int(row["position"]), int(row["base_offset"])
    try:
        record = _first_record(row, path, read)
        kind = parse_control_type(record.key, path=path, position=position, offset=offset)
    except _UNREADABLE as error:
        return ControlRecordType.UNKNOWN, ControlProblem(error, stops_cleaner=True)
    # The leader's own control batches are KRaft's: their values are read by whoever wants them.
    if row["producer_id"] >= 0:
        try:
            parse_marker(kind, record.value, path=path, position=position, offset=offset)
        except CorruptRecordError as error:
            return kind, ControlProblem(error, stops_cleaner=False)
    return kind, None


def parse_marker(
    kind: ControlRecordType, value: bytes | None, *, path: str, position: int, offset: int
) -> int:
    """The coordinator epoch of a producer's control record; CorruptRecordError if it is no end of a
    transaction.
    """
    if kind not in MARKERS:
        raise CorruptRecordError(
            f"a producer's control record of type {kind.name}, expected ABORT or COMMIT",
            path=path,
            position=position,
            offset=offset,
        )
    return parse_end_transaction_marker(value, path=path, position=position, offset=offset)


def _first_record(row: np.void, path: str, read: Read) -> ControlRecord:
    size = int(row["size_in_bytes"])
    if size > MAX_BATCH_BYTES:
        raise too_large(row, path)
    position = int(row["position"])
    data = np.frombuffer(read(position, size), np.uint8)
    return first_records(data, position, np.atleast_1d(row), path)[0]


def first_records(
    buf: NDArray[np.uint8], position: int, rows: Rows, path: str
) -> list[ControlRecord]:
    """The first record of each of these batches, all with records; buf[0] is at `position` of the
    file. Raises as `open_record_areas` and `decode_spans`, for any record of the batches.
    """
    areas = open_record_areas(buf, position, rows, Arena(), path=path)
    spans = decode_spans(areas, areas.rows, path)
    counts = areas.rows["records_count"].astype(np.int64)
    return [
        ControlRecord(
            _bytes(areas.buf, int(spans.key_starts[r]), int(spans.key_lengths[r])),
            _bytes(areas.buf, int(spans.value_starts[r]), int(spans.value_lengths[r])),
            int(spans.timestamps[r]),
        )
        for r in (np.cumsum(counts) - counts).tolist()
    ]


def _bytes(buf: NDArray[np.uint8], start: int, length: int) -> bytes | None:
    return None if length < 0 else buf[start : start + length].tobytes()


def too_large(row: np.void, path: str) -> RecordTooLargeError:
    """What is said of a control batch above the limit."""
    return RecordTooLargeError(
        f"control batch of {row['size_in_bytes']} bytes, the limit is {MAX_BATCH_BYTES}",
        path=path,
        position=int(row["position"]),
        offset=int(row["base_offset"]),
    )
