"""A batch byte by byte: each header field with its bytes and its value, then each record's varints.

     61: 2a                       length                  21
     62: 00                       attributes              0

The number in front is the byte's place in the file; behind a compressed batch's header it is the
place in the decompressed records. Where bytes break the format the view says so and ends.

Source: the layouts of `format.record_batch`, `format.record` and `format.legacy_record`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from kafkalog.errors import KafkaLogError
from kafkalog.format.compression import decompress
from kafkalog.format.constants import (
    COMPRESSION_CODEC_MASK,
    CONTROL_FLAG_MASK,
    DELETE_HORIZON_FLAG_MASK,
    HEADER_SIZE_UP_TO_MAGIC,
    MAGIC_VALUE_V0,
    MAGIC_VALUE_V2,
    MAX_BATCH_BYTES,
    RECORD_BATCH_OVERHEAD,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_FLAG_MASK,
    CompressionType,
)
from kafkalog.format.record_batch import HEADER
from kafkalog.format.varint import parse_varint, parse_varlong

_BYTES_PER_LINE = 16
_LEGACY = (("offset", ">q"), ("size", ">i"), ("crc", ">I"), ("magic", ">b"), ("attributes", ">b"))
_FLAGS = (
    (TIMESTAMP_TYPE_MASK, "LogAppendTime"),
    (TRANSACTIONAL_FLAG_MASK, "transactional"),
    (CONTROL_FLAG_MASK, "control"),
    (DELETE_HORIZON_FLAG_MASK, "delete horizon"),
)


def annotated_batch(data: bytes, position: int, *, redact: bool = False) -> str:
    """The view of one whole batch or legacy entry that lies at `position` of its file. With
    `redact` the bytes of keys, values and headers are left out.
    """
    is_legacy = data[HEADER_SIZE_UP_TO_MAGIC - 1] < MAGIC_VALUE_V2
    view = _View(data, position, redact)
    lines = [f"batch at {position}, {len(data)} bytes\n"]
    try:
        lines.extend(view.legacy_entry() if is_legacy else view.batch())
    except KafkaLogError as error:
        lines.append(f"  {view.at + view.shift:>8}: {error.reason}\n")
    return "".join(lines)


class _View:
    """A cursor `at` in `data`; `shift` makes a place of it."""

    def __init__(self, data: bytes, shift: int, redact: bool) -> None:
        self.data = data
        self.shift = shift
        self.at = 0
        self._redact = redact

    def batch(self) -> Iterator[str]:
        """Header and records of a magic 2 batch."""
        values: dict[str, int] = {}
        for name in HEADER.names or ():
            kind = HEADER[name]
            value = int.from_bytes(
                self.data[self.at : self.at + kind.itemsize], "big", signed=kind.kind == "i"
            )
            values[name] = value
            note = _attributes(value) if name == "attributes" else str(value)
            yield self._field(kind.itemsize, name, note)
        codec = values["attributes"] & COMPRESSION_CODEC_MASK
        count = values["records_count"]
        if codec != CompressionType.NONE and count > 0:
            packed = self.data[RECORD_BATCH_OVERHEAD:]
            self.data = bytes(decompress(codec, packed, max_bytes=MAX_BATCH_BYTES))
            self.at = self.shift = 0
            yield f"  {len(packed)} bytes decompress to {len(self.data)}:\n"
        for number in range(count):
            yield from self._record(number, values["base_offset"], values["base_timestamp"])
        if self.at < len(self.data):
            yield from self._bytes(len(self.data) - self.at, "behind the last record")

    def legacy_entry(self) -> Iterator[str]:
        """A message of magic 0 or 1; the value of a wrapper stays packed."""
        magic = self.data[HEADER_SIZE_UP_TO_MAGIC - 1]
        fields = _LEGACY if magic == MAGIC_VALUE_V0 else (*_LEGACY, ("timestamp", ">q"))
        for name, kind in fields:
            (value,) = struct.unpack_from(kind, self.data, self.at)
            note = _attributes(value) if name == "attributes" else str(value)
            yield self._field(struct.calcsize(kind), name, note)
        for name in ("key", "value"):
            length = int.from_bytes(self.data[self.at : self.at + 4], "big", signed=True)
            yield self._field(4, f"{name} length", _length(length))
            yield from self._bytes(length, name)

    def _record(self, number: int, base_offset: int, base_timestamp: int) -> Iterator[str]:
        yield f"  record {number}\n"
        yield self._varint("length")[1]
        yield self._field(1, "attributes", str(self.data[self.at] if self._left() else "missing"))
        delta, after = parse_varlong(self.data, self.at)
        note = f"{delta} ({base_timestamp + delta})"
        yield self._field(after - self.at, "timestamp_delta", note)
        delta, after = parse_varint(self.data, self.at)
        yield self._field(after - self.at, "offset_delta", f"{delta} ({base_offset + delta})")
        yield from self._sized("key")
        yield from self._sized("value")
        count, line = self._varint("header_count")
        yield line
        for header in range(count):
            yield from self._sized(f"header {header} key")
            yield from self._sized(f"header {header} value")

    def _sized(self, name: str) -> Iterator[str]:
        length, after = parse_varint(self.data, self.at)
        yield self._field(after - self.at, f"{name} length", _length(length))
        yield from self._bytes(length, name)

    def _varint(self, name: str) -> tuple[int, str]:
        value, after = parse_varint(self.data, self.at)
        return value, self._field(after - self.at, name, str(value))

    def _left(self) -> int:
        return len(self.data) - self.at

    def _field(self, size: int, name: str, value: str) -> str:
        line = self._line(self.data[self.at : self.at + size], name, value)
        self.at += size
        return line

    def _bytes(self, length: int, name: str) -> Iterator[str]:
        end = min(self.at + max(length, 0), len(self.data))
        if self._redact:
            if length > 0:
                yield f"  {self.at + self.shift:>8}: {f'({length} bytes)':<48} {name}\n"
            self.at = end
            return
        while self.at < end:
            piece = self.data[self.at : min(self.at + _BYTES_PER_LINE, end)]
            shown = "".join(chr(b) if 32 <= b < 127 else "." for b in piece)
            yield self._line(piece, name, shown)
            self.at += len(piece)

    def _line(self, piece: bytes, name: str, value: str) -> str:
        return f"  {self.at + self.shift:>8}: {piece.hex(' '):<48} {name:<24} {value}\n"


def _attributes(value: int) -> str:
    codec = value & COMPRESSION_CODEC_MASK
    known = codec in set(CompressionType)
    names = [CompressionType(codec).name.lower() if known else f"codec {codec}"]
    names += [name for mask, name in _FLAGS if value & mask]
    return f"{value} ({', '.join(names)})"


def _length(value: int) -> str:
    return f"{value} (null)" if value < 0 else str(value)
