"""Record spans → the columns of view `records`, only those that are asked for.

A column is one function over `RecordArrays`; what a column needs (gathered keys, repeated batch
fields) is made when a function asks for it, so a schema with fewer columns does not pay for the
others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkalog.batches import batch_table
from kafkalog.batches.gathering import decode_header_spans
from kafkalog.batches.spans import RecordSpans
from kafkalog.columns.arrow_arrays import (
    binary_array,
    bool_array,
    constant_array,
    headers_array,
    number_array,
    text_array,
    timestamp_array,
)
from kafkalog.columns.batches import codec_names
from kafkalog.columns.column import TIMESTAMP
from kafkalog.columns.places import SegmentPlace
from kafkalog.columns.schemas import ERROR, ERROR_BYTES, ERROR_LENGTH, HEADERS, RECORDS
from kafkalog.format import constants
from kafkalog.format.control_record import parse_control_type

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.void]


@dataclass(frozen=True)
class RecordArrays:
    """Decoded records of some batches, `wanted` of them (None: all), and the bytes their spans
    point into.

    All arrays may be reused by the next read; the columns below copy.
    """

    place: SegmentPlace
    buf: npt.NDArray[np.uint8]
    rows: Rows
    spans: RecordSpans
    wanted: npt.NDArray[np.int64] | None = None
    # What became of each batch's transaction; None where nobody asked.
    transaction_states: Sequence[str | None] | None = None

    def __len__(self) -> int:
        return self.spans.n if self.wanted is None else len(self.wanted)

    def of_record(self, name: str) -> Array:
        """A span array, one value per wanted record."""
        values: Array = getattr(self.spans, name)[: self.spans.n]
        return values if self.wanted is None else values[self.wanted]

    def of_batch(self, per_batch: Array) -> Array:
        """One value per batch → one per wanted record."""
        return per_batch[self.batch_indexes]

    def field(self, name: str) -> Array:
        """A header field, one value per wanted record."""
        return self.of_batch(self.rows[name])

    @cached_property
    def batch_indexes(self) -> npt.NDArray[np.int32]:
        return self.of_record("batch_indexes")


def build_records(arrays: RecordArrays, schema: pa.Schema, names: Sequence[str]) -> pa.RecordBatch:
    """One Arrow batch with the columns `names` (as in the table) under the names and nullability of
    `schema`."""
    columns = [_BUILDERS[name](arrays) for name in names]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


# -- one function per column ----------------------------------------------------------------------


def _binary(part: str) -> Callable[[RecordArrays], pa.Array]:
    return lambda a: binary_array(
        a.buf, a.of_record(f"{part}_starts"), a.of_record(f"{part}_lengths")
    )


def _size(part: str) -> Callable[[RecordArrays], pa.Array]:
    def build(a: RecordArrays) -> pa.Array:
        lengths = a.of_record(f"{part}_lengths").astype(np.int32)
        return number_array(lengths, _unless_all(lengths >= 0))

    return build


def _place(attribute: str, type_: pa.DataType) -> Callable[[RecordArrays], pa.Array]:
    return lambda a: constant_array(getattr(a.place, attribute), type_, len(a))


def _batch_number(field: str, null_value: int | None = None) -> Callable[[RecordArrays], pa.Array]:
    """A header field as it is, or with null in place of its sentinel."""

    def build(a: RecordArrays) -> pa.Array:
        values = a.field(field)
        if null_value is None:
            return number_array(values)
        return number_array(values, _unless_all(values != null_value))

    return build


def _batch_flag(
    flags: Callable[[npt.NDArray[np.void]], Array],
) -> Callable[[RecordArrays], pa.Array]:
    return lambda a: bool_array(a.of_batch(flags(a.rows)))


def _timestamp_type(a: RecordArrays) -> pa.Array:
    types = batch_table.timestamp_types(a.rows)
    if len(types) and (types == types[0]).all():
        return constant_array(int(types[0]), pa.int32(), len(a))
    return number_array(a.of_batch(types).astype(np.int32))


def _headers(a: RecordArrays) -> pa.Array:
    counts = a.of_record("header_counts")
    if not counts.any():
        return constant_array(None, HEADERS, len(a))
    spans = decode_header_spans(a.buf, a.of_record("header_starts"), counts, a.place.path)
    keys = text_array(a.buf, spans.key_starts, spans.key_lengths)
    values = binary_array(a.buf, spans.value_starts, spans.value_lengths)
    return headers_array(keys, values, spans.list_offsets, counts > 0)


def _sequence(a: RecordArrays) -> pa.Array:
    """Base sequence + the record's offset delta; after 2^31-1 a producer goes on with 0."""
    base = a.field("base_sequence").astype(np.int64)
    delta = a.of_record("offsets") - a.field("base_offset")
    sequences = (base + delta) & constants.MAX_INT32
    return number_array(sequences.astype(np.int32), _unless_all(base != constants.NO_SEQUENCE))


def _control_type(a: RecordArrays) -> pa.Array:
    is_control = a.of_batch(batch_table.is_control(a.rows))
    if not is_control.any():
        return constant_array(None, pa.string(), len(a))
    starts, lengths = a.of_record("key_starts"), a.of_record("key_lengths")
    positions, offsets = a.field("position"), a.of_record("offsets")
    names: list[str | None] = [None] * len(a)
    for r in np.flatnonzero(is_control).tolist():
        key = None if lengths[r] < 0 else bytes(a.buf[starts[r] : starts[r] + lengths[r]])
        control_type = parse_control_type(
            key, path=a.place.path, position=int(positions[r]), offset=int(offsets[r])
        )
        names[r] = control_type.name
    return pa.array(names, pa.string())


def _codec(a: RecordArrays) -> pa.Array:
    names = codec_names(a.rows)
    if len(set(names)) == 1:
        return constant_array(names[0], pa.string(), len(a))
    return pa.array(names, pa.string()).take(pa.array(a.batch_indexes))


def _transaction_state(a: RecordArrays) -> pa.Array:
    states = a.transaction_states
    if states is None or not any(states):
        return constant_array(None, pa.string(), len(a))
    return pa.array(states, pa.string()).take(pa.array(a.batch_indexes))


def _delete_horizon(a: RecordArrays) -> pa.Array:
    has_horizon = a.of_batch(batch_table.has_delete_horizon(a.rows))
    if not has_horizon.any():
        return constant_array(None, TIMESTAMP, len(a))
    return timestamp_array(a.field("base_timestamp"), has_horizon)


def _unless_all(valid: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_] | None:
    """No bitmap where nothing is null."""
    return None if valid.all() else valid


_BUILDERS: dict[str, Callable[[RecordArrays], pa.Array]] = {
    "key": _binary("key"),
    "value": _binary("value"),
    "topic": _place("topic", pa.string()),
    "partition": _place("partition", pa.int32()),
    "offset": lambda a: number_array(a.of_record("offsets")),
    "timestamp": lambda a: timestamp_array(a.of_record("timestamps")),
    "timestampType": _timestamp_type,
    "headers": _headers,
    "timestampMs": lambda a: number_array(a.of_record("timestamps")),
    "leaderEpoch": _batch_number("partition_leader_epoch", constants.NO_PARTITION_LEADER_EPOCH),
    "producerId": _batch_number("producer_id", constants.NO_PRODUCER_ID),
    "producerEpoch": _batch_number("producer_epoch", constants.NO_PRODUCER_EPOCH),
    "sequence": _sequence,
    "isTransactional": _batch_flag(batch_table.is_transactional),
    "isControl": _batch_flag(batch_table.is_control),
    "controlType": _control_type,
    "transactionState": _transaction_state,
    "codec": _codec,
    "magic": _batch_number("magic"),
    "deleteHorizon": _delete_horizon,
    "batchBaseOffset": _batch_number("base_offset"),
    "segmentBaseOffset": _place("segment_base_offset", pa.int64()),
    "position": _batch_number("position"),
    "keySize": _size("key"),
    "valueSize": _size("value"),
    "path": _place("path", pa.string()),
    ERROR.name: lambda a: constant_array(None, pa.string(), len(a)),
    ERROR_BYTES.name: lambda a: constant_array(None, pa.binary(), len(a)),
    ERROR_LENGTH.name: lambda a: constant_array(None, pa.int64(), len(a)),
}

# The table and the functions must name the same columns; found at import, not in the middle of a
# scan.
if missing := {c.name for c in RECORDS} - set(_BUILDERS):
    raise RuntimeError(f"no builder for columns {sorted(missing)}")
