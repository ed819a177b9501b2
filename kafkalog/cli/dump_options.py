"""What of a file `kafkalog dump` shows, and how."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from kafkalog.columns.texts import (
    JSON_ESCAPES,
    TEXT_ESCAPES,
    base64_text,
    digest_text,
    escape,
    hex_text,
)
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.remote.paths import KeyFiles

TEXT, HEX, BASE64 = "text", "hex", "base64"


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """records: a line for each record; contents: with key, value and headers; metadata: with the
    rest of it; binary_format: how bytes are shown; redact: keys hashed, values dropped; decoder:
    records are those of an internal topic (see `dump_decoders`); annotated: each batch's bytes with
    what they mean; max_bytes: batches within so many bytes; max_batch_bytes: no larger one is
    read; verify_only, sanity_only: of indexes; remote_keys: of encrypted segments.
    """

    as_json: bool = False
    records: bool = False
    contents: bool = False
    metadata: bool = True
    binary_format: str = TEXT
    redact: bool = False
    decoder: str = ""
    annotated: bool = False
    max_bytes: int | None = None
    max_batch_bytes: int = MAX_BATCH_BYTES
    verify_only: bool = False
    sanity_only: bool = False
    remote_keys: KeyFiles = ()

    def key_text(self, keys: pa.Array) -> pa.Array:
        """Keys as text, null for null."""
        return digest_text(keys) if self.redact else self.bytes_text(keys)

    def value_text(self, values: pa.Array) -> pa.Array:
        """Values as text, null for null and where they are not to be shown."""
        return pa.nulls(len(values), pa.binary()) if self.redact else self.bytes_text(values)

    def bytes_text(self, array: pa.Array) -> pa.Array:
        """Bytes in the format asked for; as text what could break a line is escaped."""
        if self.binary_format == HEX:
            return hex_text(array)
        if self.binary_format == BASE64:
            return base64_text(array)
        return escape(array, JSON_ESCAPES if self.as_json else TEXT_ESCAPES)
