"""Batches and records as the lines of Kafka's DumpLogSegments, a column at a time.

Lines are Kafka's to the letter, with three additions: what could break a line is escaped (`\\n`,
`\\xff`, `\\\\`), and behind a record's payload come its headers with their values.

Source: Kafka DumpLogSegments.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.batches import batch_table
from kafkalog.batches.gathering import decode_header_spans
from kafkalog.cli.dump_decoders import DECODERS
from kafkalog.cli.dump_options import DumpOptions
from kafkalog.columns.arrow_arrays import binary_array, bool_array, bytes_array, bytes_scalar
from kafkalog.columns.batches import codec_names
from kafkalog.columns.records import RecordArrays
from kafkalog.columns.texts import (
    TEXT_ESCAPES,
    bool_text,
    choice_text,
    escape,
    join,
    join_lists,
    join_unless_null,
    number_text,
)
from kafkalog.format.constants import MAX_INT32, NO_SEQUENCE
from kafkalog.format.control_record import (
    ControlRecordType,
    parse_control_type,
    parse_end_transaction_marker,
)
from kafkalog.messages.kraft_control import decode_kraft_control

Rows = npt.NDArray[np.void]
Mask = npt.NDArray[np.bool_]

_TIMESTAMP_TYPES = {-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}
_KRAFT_NAMES = {
    ControlRecordType.LEADER_CHANGE: "LeaderChange: ",
    ControlRecordType.SNAPSHOT_HEADER: "SnapshotHeader ",
    ControlRecordType.SNAPSHOT_FOOTER: "SnapshotFooter ",
    ControlRecordType.KRAFT_VERSION: "KRaftVersion ",
    ControlRecordType.KRAFT_VOTERS: "KRaftVoters ",
}


def batch_lines(rows: Rows, is_valid: Mask) -> pa.Array:
    """One line a batch."""
    types = [f" {_TIMESTAMP_TYPES[t]}: " for t in batch_table.timestamp_types(rows).tolist()]
    return join(
        _batch_heads(rows),
        b" position: ", number_text(rows["position"]),
        choice_text(types, np.arange(rows.size)), number_text(rows["max_timestamp"]),
        b" size: ", number_text(rows["size_in_bytes"]),
        b" magic: ", number_text(rows["magic"]),
        b" compresscodec: ", choice_text(codec_names(rows), np.arange(rows.size)),
        b" crc: ", number_text(rows["crc"]),
        b" isvalid: ", bool_text(is_valid), b"\n",
    )  # fmt: skip


def _batch_heads(rows: Rows) -> pa.Array:
    legacy = batch_table.is_legacy(rows)
    horizons = number_text(rows["base_timestamp"])
    heads = join(
        b"baseOffset: ", number_text(rows["base_offset"]),
        b" lastOffset: ", number_text(rows["last_offset"]),
        b" count: ", number_text(rows["records_count"]),
        b" baseSequence: ", number_text(rows["base_sequence"]),
        b" lastSequence: ", number_text(batch_table.last_sequences(rows)),
        b" producerId: ", number_text(rows["producer_id"]),
        b" producerEpoch: ", number_text(rows["producer_epoch"]),
        b" partitionLeaderEpoch: ", number_text(rows["partition_leader_epoch"]),
        b" isTransactional: ", bool_text(batch_table.is_transactional(rows)),
        b" isControl: ", bool_text(batch_table.is_control(rows)),
        b" deleteHorizonMs: ",
        pc.if_else(
            bool_array(batch_table.has_delete_horizon(rows)),
            join(b"OptionalLong[", horizons, b"]"),
            bytes_scalar(b"OptionalLong.empty"),
        ),
    )  # fmt: skip
    if not legacy.any():
        return heads
    return pc.if_else(
        bool_array(legacy), join(b"offset: ", number_text(rows["last_offset"])), heads
    )


def record_lines(
    arrays: RecordArrays, options: DumpOptions, checksums: list[tuple[int, bool]] | None
) -> pa.Array:
    """One line a record. `checksums` are (stored, is valid) of legacy messages, None of others."""
    parts: list[pa.Array | pa.Scalar | bytes] = []
    if options.metadata:
        parts += _metadata(arrays, options, checksums)
    if options.contents:
        parts += _contents(arrays, options)
    return join(*parts, b"\n")


def _metadata(
    a: RecordArrays, options: DumpOptions, checksums: list[tuple[int, bool]] | None
) -> list[pa.Array | pa.Scalar | bytes]:
    types = [f" {_TIMESTAMP_TYPES[t]}: " for t in batch_table.timestamp_types(a.rows).tolist()]
    parts: list[pa.Array | pa.Scalar | bytes] = [
        b"| offset: ", number_text(a.of_record("offsets")),
        choice_text(types, a.batch_indexes), number_text(a.of_record("timestamps")),
        b" keySize: ", number_text(a.of_record("key_lengths")),
        b" valueSize: ", number_text(a.of_record("value_lengths")),
    ]  # fmt: skip
    if checksums is not None:
        parts += [b" isValid: ", bool_text(np.array([valid for _, valid in checksums], np.bool_))]
        parts += [b" crc: ", number_text(np.array([crc for crc, _ in checksums], np.int64))]
        return parts
    parts += [
        b" sequence: ",
        number_text(_sequences(a)),
        b" headerKeys: [",
        _header_keys(a, options),
        b"]",
    ]
    if batch_table.is_control(a.rows).any():
        parts.append(_control_texts(a))
    return parts


def _sequences(a: RecordArrays) -> npt.NDArray[np.int64]:
    base = a.field("base_sequence").astype(np.int64)
    delta = a.of_record("offsets") - a.field("base_offset")
    return np.where(base >= 0, (base + delta) & MAX_INT32, NO_SEQUENCE)


def _header_keys(a: RecordArrays, options: DumpOptions) -> pa.Array | bytes:
    counts = a.of_record("header_counts")
    if not counts.any():
        return b""
    spans = decode_header_spans(a.buf, a.of_record("header_starts"), counts, a.place.path)
    keys = binary_array(a.buf, spans.key_starts, spans.key_lengths)
    shown = options.key_text(keys) if options.redact else escape(keys, TEXT_ESCAPES)
    return join_lists(shown, spans.list_offsets)


def _contents(a: RecordArrays, options: DumpOptions) -> list[pa.Array | pa.Scalar | bytes]:
    keys = binary_array(a.buf, a.of_record("key_starts"), a.of_record("key_lengths"))
    values = binary_array(a.buf, a.of_record("value_starts"), a.of_record("value_lengths"))
    if options.decoder:
        keys, shown = _decoded(a, keys, values, options)
    else:
        keys, shown = options.key_text(keys), options.value_text(values)
    indent: pa.Scalar | pa.Array = bytes_scalar(b" ")
    payload = indent
    if not options.metadata:
        first = bytes_scalar(b"| ")
        indent, payload = first, pc.if_else(pc.is_valid(keys), indent, first)
    parts = [
        join_unless_null(indent, b"key: ", keys),
        join_unless_null(payload, b"payload: ", shown),
        *_headers(a, options),
    ]
    is_control = a.of_batch(batch_table.is_control(a.rows))
    if not is_control.any():
        return parts
    nothing = bytes_scalar(None)
    return [pc.if_else(bool_array(is_control), nothing, part) for part in parts]


def _headers(a: RecordArrays, options: DumpOptions) -> list[pa.Array]:
    counts = a.of_record("header_counts")
    if options.redact or not counts.any():
        return []
    spans = decode_header_spans(a.buf, a.of_record("header_starts"), counts, a.place.path)
    keys = escape(binary_array(a.buf, spans.key_starts, spans.key_lengths), TEXT_ESCAPES)
    values = binary_array(a.buf, spans.value_starts, spans.value_lengths)
    pairs = join(keys, join_unless_null(b"=", options.bytes_text(values)))
    lists = join(b" headers: [", join_lists(pairs, spans.list_offsets), b"]")
    return [pc.if_else(bool_array(counts > 0), lists, bytes_scalar(None))]


def _control_texts(a: RecordArrays) -> pa.Array:
    """What control records say, null for data."""
    texts: list[bytes | None] = [None] * len(a)
    for r in np.flatnonzero(a.of_batch(batch_table.is_control(a.rows))).tolist():
        place = {"path": a.place.path, "position": int(a.field("position")[r])}
        key, value = _bytes(a, "key", r), _bytes(a, "value", r)
        kind = parse_control_type(key, **place)  # type: ignore[arg-type]
        if kind in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
            epoch = parse_end_transaction_marker(value, **place)  # type: ignore[arg-type]
            texts[r] = f" endTxnMarker: {kind.name} coordinatorEpoch: {epoch}".encode()
        elif kind is ControlRecordType.UNKNOWN or value is None:
            number = int.from_bytes((key or b"")[2:4], "big", signed=True)
            texts[r] = f" controlType: {kind.name}({number})".encode()
        else:
            fields = decode_kraft_control(kind, value)
            texts[r] = f" {_KRAFT_NAMES[kind]}{json.dumps(fields, separators=(',', ':'))}".encode()
    return bytes_array(texts)


def _decoded(
    a: RecordArrays, keys: pa.Array, values: pa.Array, options: DumpOptions
) -> tuple[pa.Array, pa.Array]:
    """Keys and values of data records as the decoder of an internal topic shows them."""
    if options.redact:
        return options.key_text(keys), options.value_text(values)
    decode = DECODERS[options.decoder]
    is_data = (~a.of_batch(batch_table.is_control(a.rows))).tolist()
    rows = zip(
        keys.to_pylist(), values.to_pylist(), a.of_record("offsets").tolist(), is_data, strict=True
    )
    shown = [
        decode(key, value, offset) if data else (None, None) for key, value, offset, data in rows
    ]
    key_texts, value_texts = zip(*shown, strict=True) if shown else ((), ())
    return _text_array(key_texts), _text_array(value_texts)


def _text_array(texts: Sequence[str | None]) -> pa.Array:
    return bytes_array([None if text is None else text.encode() for text in texts])


def _bytes(a: RecordArrays, part: str, r: int) -> bytes | None:
    start, length = int(a.of_record(f"{part}_starts")[r]), int(a.of_record(f"{part}_lengths")[r])
    return None if length < 0 else a.buf[start : start + length].tobytes()
