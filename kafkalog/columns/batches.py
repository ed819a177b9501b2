"""Batch headers → the columns of view `batches`. The numbers are those on the disk, sentinels
included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkalog.batches import batch_table
from kafkalog.columns.arrow_arrays import bool_array, bytes_array, constant_array, number_array
from kafkalog.columns.places import MOST_ERROR_BYTES, SegmentPlace
from kafkalog.columns.schemas import BATCHES, ERROR_BYTES, ERROR_LENGTH
from kafkalog.format.constants import CompressionType

Array = npt.NDArray[Any]

# An unassigned codec id is shown, not guessed.
CODEC_NAMES = tuple(
    CompressionType(codec).name.lower() if codec in set(CompressionType) else f"unknown({codec})"
    for codec in range(8)
)


@dataclass(frozen=True, slots=True)
class BatchArrays:
    """Header rows of one segment. Where checksums were looked at there is `is_valid`, and the bytes
    the batches lie in, whose first is at `position` in the file.
    """

    place: SegmentPlace
    rows: npt.NDArray[np.void]
    is_valid: npt.NDArray[np.bool_] | None = None
    buf: npt.NDArray[np.uint8] | None = None
    position: int = 0

    def __len__(self) -> int:
        return len(self.rows)


def codec_names(rows: npt.NDArray[np.void]) -> list[str]:
    """Name of each batch's codec."""
    return [CODEC_NAMES[codec] for codec in batch_table.codecs(rows).tolist()]


def build_batches(arrays: BatchArrays, schema: pa.Schema, names: Sequence[str]) -> pa.RecordBatch:
    """One Arrow batch with the columns `names` (as in the table) under the names and nullability of
    `schema`."""
    columns = [_BUILDERS[name](arrays) for name in names]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _field(name: str) -> Callable[[BatchArrays], pa.Array]:
    return lambda a: number_array(a.rows[name])


def _place(attribute: str, type_: pa.DataType) -> Callable[[BatchArrays], pa.Array]:
    return lambda a: constant_array(getattr(a.place, attribute), type_, len(a))


def _flag(flags: Callable[[npt.NDArray[np.void]], Array]) -> Callable[[BatchArrays], pa.Array]:
    return lambda a: bool_array(flags(a.rows))


def _delete_horizon_ms(a: BatchArrays) -> pa.Array:
    return number_array(a.rows["base_timestamp"], batch_table.has_delete_horizon(a.rows))


def _is_valid(a: BatchArrays) -> pa.Array:
    if a.is_valid is None:
        return constant_array(None, pa.bool_(), len(a))
    return bool_array(a.is_valid)


def _where_invalid(
    type_: pa.DataType, value: Callable[[BatchArrays, int], Any]
) -> Callable[[BatchArrays], pa.Array]:
    """A column that is null but for batches with a wrong checksum; `value` takes their number."""

    def build(a: BatchArrays) -> pa.Array:
        if a.is_valid is None or a.is_valid.all():
            return constant_array(None, type_, len(a))
        valid = a.is_valid.tolist()
        return pa.array([None if valid[n] else value(a, n) for n in range(len(a))], type_)

    return build


def _bytes_of(a: BatchArrays, number: int) -> bytes | None:
    if a.buf is None:
        return None
    start = int(a.rows["position"][number]) - a.position
    size = min(int(a.rows["size_in_bytes"][number]), MOST_ERROR_BYTES)
    return a.buf[start : start + size].tobytes()


_BUILDERS: dict[str, Callable[[BatchArrays], pa.Array]] = {
    "topic": _place("topic", pa.string()),
    "partition": _place("partition", pa.int32()),
    "baseOffset": _field("base_offset"),
    "lastOffset": _field("last_offset"),
    "recordsCount": _field("records_count"),
    "baseTimestampMs": _field("base_timestamp"),
    "maxTimestampMs": _field("max_timestamp"),
    "timestampType": lambda a: number_array(batch_table.timestamp_types(a.rows).astype(np.int32)),
    "codec": lambda a: bytes_array([n.encode() for n in codec_names(a.rows)]).view(pa.string()),
    "magic": _field("magic"),
    "sizeInBytes": _field("size_in_bytes"),
    "position": _field("position"),
    "leaderEpoch": _field("partition_leader_epoch"),
    "producerId": _field("producer_id"),
    "producerEpoch": _field("producer_epoch"),
    "baseSequence": _field("base_sequence"),
    "lastSequence": lambda a: number_array(batch_table.last_sequences(a.rows).astype(np.int32)),
    "isTransactional": _flag(batch_table.is_transactional),
    "isControl": _flag(batch_table.is_control),
    "deleteHorizonMs": _delete_horizon_ms,
    "crc": _field("crc"),
    "isValid": _is_valid,
    "error": _where_invalid(pa.string(), lambda _, __: batch_table.WRONG_CHECKSUM),
    ERROR_BYTES.name: _where_invalid(pa.binary(), _bytes_of),
    ERROR_LENGTH.name: _where_invalid(pa.int64(), lambda a, n: int(a.rows["size_in_bytes"][n])),
    "segmentBaseOffset": _place("segment_base_offset", pa.int64()),
    "path": _place("path", pa.string()),
}

if missing := {c.name for c in BATCHES} - set(_BUILDERS):
    raise RuntimeError(f"no builder for columns {sorted(missing)}")
