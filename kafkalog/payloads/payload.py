"""What a decoder of one schema is, and the frame that a registry's clients write before a payload
(Confluent's wire format):

    0                     magic byte; 1: what follows is a GUID
    schema id             4 bytes, big endian; a GUID has 16
    message indexes       Protobuf only, see protobuf_payloads
    payload               JSON, Avro binary or Protobuf

Newer serializers can write the frame into a header of the record, `__key_schema_id` or
`__value_schema_id`; the payload has none then. A header counts before the payload's own bytes, as
in Confluent's deserializers; of several headers the last (their Python client takes the first).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.column import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from kafkalog.errors import CorruptRecordError

FRAME_BYTES = 5
_GUID_FRAME_BYTES = 17
NO_FRAME = "no frame of a schema registry"

# A value as a library has it → as Arrow takes it.
Convert = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Decoder:
    """type: of the column. decode: a schema's id and the bytes behind the frame → a value that
    Arrow takes as this type; CorruptRecordError says why not. guids: of schemas, in 16 bytes, and
    their ids."""

    type: pa.DataType
    decode: Callable[[int, bytes], Any]
    guids: Mapping[bytes, int] = field(default_factory=dict)


def unframed(payload: bytes, guids: Mapping[bytes, int]) -> tuple[int, bytes]:
    """(schema id, what is behind the frame); CorruptRecordError without one, and for a GUID that is
    not known."""
    if len(payload) >= FRAME_BYTES and payload[0] == 0:
        return int.from_bytes(payload[1:FRAME_BYTES]), payload[FRAME_BYTES:]
    if len(payload) < _GUID_FRAME_BYTES or payload[0] != 1:
        raise CorruptRecordError(NO_FRAME)
    guid = payload[1:_GUID_FRAME_BYTES]
    if guid not in guids:
        raise CorruptRecordError(f"no schema of the subject's kind has GUID {UUID(bytes=guid)}")
    return guids[guid], payload[_GUID_FRAME_BYTES:]


def frames_in_headers(headers: pa.Array, side: str) -> dict[int, bytes]:
    """By row the frame in the headers of a record (list of key and value) for its key or value;
    none of a column that is of another type."""
    kind = headers.type
    if not pa.types.is_list(kind) or not pa.types.is_struct(kind.value_type):
        return {}
    if headers.null_count == len(headers) or kind.value_type.get_field_index("key") < 0:
        return {}
    each = headers.flatten()
    named = pc.equal(each.field("key"), f"__{side}_schema_id")
    rows = pc.list_parent_indices(headers).filter(named).to_pylist()
    found = dict(zip(rows, each.field("value").filter(named).to_pylist(), strict=True))
    return {row: frame for row, frame in found.items() if frame is not None}


def decoded_type(payload: pa.DataType) -> pa.DataType:
    """Of what `decoded` returns."""
    return pa.struct(
        [
            pa.field("payload", payload),
            pa.field("error", pa.string()),
            pa.field("schemaId", pa.int64()),
        ]
    )


def decoded(
    payloads: pa.Array, decoder: Decoder, frames: Mapping[int, bytes] | None = None
) -> pa.StructArray:
    """Framed payloads → struct<payload, error, schemaId>, null in all of it where they are. frames:
    by row those that stand elsewhere."""
    frames = frames or {}
    values: list[Any] = []
    errors: list[str | None] = []
    ids: list[int | None] = []
    for row, payload in enumerate(payloads.to_pylist()):
        value, error, schema_id = None, None, None
        if payload is not None:
            try:
                framed = frames[row] + payload if row in frames else payload
                schema_id, body = unframed(framed, decoder.guids)
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
