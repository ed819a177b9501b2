"""A topic as a typed table: places of its records, and keys and values by their schemas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from kafkalog.columns.column import TIMESTAMP
from kafkalog.payloads.payload import Decoder, decoded, frames_in_headers
from kafkalog.payloads.registered import SubjectPayloads

# Of the view `records`, as they are.
PLACES = {"partition": pa.int32(), "offset": pa.int64(), "timestamp": TIMESTAMP}
# What is made of a payload: its name behind the payload's.
_MADE = {"": "payload", "Error": "error", "SchemaId": "schemaId"}


@dataclass(frozen=True, slots=True)
class TopicTable:
    """key, value: how they are read; None: they stay binary. Can be pickled."""

    topic: str
    key: SubjectPayloads | None
    value: SubjectPayloads | None

    def schema(self, *, with_error: bool = False) -> pa.Schema:
        """`partition offset timestamp key value`, and of what is decoded `keyError keySchemaId`
        and likewise `valueError valueSchemaId`: why it is null, and its schema. with_error: the
        `error` of a batch that cannot be read, too."""
        decoders = self._decoders()
        fields = [pa.field(name, kind) for name, kind in PLACES.items()]
        for side, decoder in decoders.items():
            fields.append(pa.field(side, pa.binary() if decoder is None else decoder.type))
        for side, decoder in decoders.items():
            if decoder is not None:
                fields += [pa.field(f"{side}Error", pa.string())]
                fields += [pa.field(f"{side}SchemaId", pa.int64())]
        return pa.schema([*fields, *([pa.field("error", pa.string())] if with_error else [])])

    def read_columns(self, names: Sequence[str]) -> list[str]:
        """The columns of the view `records` that these of the table are made of."""
        sources = dict.fromkeys(_source(name) for name in names)
        sides = {"key": self.key, "value": self.value}
        if any(payloads is not None and side in sources for side, payloads in sides.items()):
            sources["headers"] = None  # a schema may be named there
        return list(sources)

    def rows(
        self, records: Iterator[pa.RecordBatch], schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """Batches with `read_columns` → with the columns of `schema`, which is some of the table's,
        with types that are the same by other names."""
        decoders = {side: each for side, each in self._decoders().items() if each is not None}
        for side, decoder in decoders.items():
            if side in schema.names:
                decoders[side] = replace(decoder, type=schema.field(side).type)
        for batch in records:
            made: dict[str, pa.Array] = {}
            for side, decoder in decoders.items():
                wanted = {side + end: part for end, part in _MADE.items()}
                if not wanted.keys().isdisjoint(schema.names):
                    frames = frames_in_headers(batch.column("headers"), side)
                    parts = decoded(batch.column(side), decoder, frames)
                    made |= {name: parts.field(part) for name, part in wanted.items()}
            columns = [made[n] if n in made else batch.column(n) for n in schema.names]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _decoders(self) -> dict[str, Decoder | None]:
        sides = {"key": self.key, "value": self.value}
        return {side: each.decoder() if each else None for side, each in sides.items()}


def _source(name: str) -> str:
    for side in ("key", "value"):
        if name in (f"{side}Error", f"{side}SchemaId"):
            return side
    return name
