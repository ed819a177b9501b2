"""What a decoder of one schema is, and the frame that a registry's clients write before a payload
(Confluent's wire format):

    0                     magic byte
    schema id             4 bytes, big endian
    message indexes       Protobuf only, see protobuf_payloads
    payload               JSON, Avro binary or Protobuf
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kafkalog.columns.column import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from kafkalog.errors import CorruptRecordError

FRAME_BYTES = 5
NO_FRAME = "no frame of a schema registry"

# A value as a library has it → as Arrow takes it.
Convert = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Decoder:
    """type: of the column. decode: a schema's id and the bytes behind the frame → a value that
    Arrow takes as this type; CorruptRecordError says why not."""

    type: pa.DataType
    decode: Callable[[int, bytes], Any]


def unframed(payload: bytes) -> tuple[int, bytes]:
    """(schema id, what is behind the frame); CorruptRecordError without one."""
    if len(payload) < FRAME_BYTES or payload[0] != 0:
        raise CorruptRecordError(NO_FRAME)
    return int.from_bytes(payload[1:FRAME_BYTES]), payload[FRAME_BYTES:]


def decoded_type(payload: pa.DataType) -> pa.DataType:
    """Of what `decoded` returns."""
    return pa.struct(
        [
            pa.field("payload", payload),
            pa.field("error", pa.string()),
            pa.field("schemaId", pa.int64()),
        ]
    )


def decoded(payloads: pa.Array, decoder: Decoder) -> pa.StructArray:
    """Framed payloads → struct<payload, error, schemaId>, null in all of it where they are."""
    values: list[Any] = []
    errors: list[str | None] = []
    ids: list[int | None] = []
    for payload in payloads.to_pylist():
        value, error, schema_id = None, None, None
        if payload is not None:
            try:
                schema_id, body = unframed(payload)
                value = decoder.decode(schema_id, body)
            except CorruptRecordError as wrong:
                error = wrong.reason
        values.append(value)
        errors.append(error)
        ids.append(schema_id)
    columns = [
        pa.array(values, decoder.type),
        pa.array(errors, pa.string()),
        pa.array(ids, pa.int64()),
    ]
    return pa.StructArray.from_arrays(columns, fields=list(decoded_type(decoder.type)))


def in_calendar(micros: int) -> int | None:
    """Microseconds as they are; None outside of the years 1 to 9999, which Spark's timestamps are
    shown in."""
    return micros if MIN_TIMESTAMP_MS <= micros // 1000 <= MAX_TIMESTAMP_MS else None
