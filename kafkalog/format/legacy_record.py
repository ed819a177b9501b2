"""Legacy message, magic 0 and 1: what logs held before Kafka 0.11, plain or in a wrapper.

 offset i64 | size i32 | crc u32 | magic i8 | attributes i8 | [timestamp i64, magic 1 only]
 key_length i32, key | value_length i32, value

`size` counts what follows it; the CRC-32 covers magic to end. A negative length is null. Attributes
are the codec (bits 0-2) and, in magic 1, the timestamp type (bit 3). Bytes after the value are
covered by the CRC and mean nothing.

A message with a codec is a wrapper: its value is compressed entries, each again with offset and
size, and its offset is that of the last one. Inner offsets are absolute under magic 0. Under magic
1 they are relative: the last one stands for the wrapper's offset, whatever the first one is
(compaction leaves gaps); only under a wrapper of offset 0 they are taken as they are, as old
librdkafka wrote them. The wrapper's magic decides, the inner one may differ (KAFKA-4298).

Timestamps: magic 0 has none. Under a wrapper with create time each message of magic 1 has its own,
under one with log-append time the wrapper's.

This plain codec is the reference that `kernels.legacy_records` is held to.

Source: Kafka LegacyRecord, AbstractLegacyRecordBatch, DataLogInputStream; KIP-31, KIP-32.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kafkalog.errors import CorruptRecordError, KafkaLogError, UnsupportedMagicError
from kafkalog.format.buffers import BytesLike, as_view
from kafkalog.format.checksum import crc32
from kafkalog.format.compression import decompress
from kafkalog.format.constants import (
    COMPRESSION_CODEC_MASK,
    HEADER_SIZE_UP_TO_MAGIC,
    LEGACY_CRC_START,
    LEGACY_RECORD_OVERHEAD_V0,
    LEGACY_RECORD_OVERHEAD_V1,
    LOG_OVERHEAD,
    MAGIC_VALUE_V0,
    MAGIC_VALUE_V1,
    MAX_BATCH_BYTES,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    CompressionType,
    TimestampType,
)
from kafkalog.format.record import Record

_PREFIX = struct.Struct(">qi")
_CRC = struct.Struct(">I")
_I32 = struct.Struct(">i")
_I64 = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class LegacyMessage:
    """One entry as it stands, not looked into: of a wrapper `value` is compressed."""

    offset: int
    size_in_bytes: int
    crc: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None

    @property
    def codec(self) -> int:
        return self.attributes & COMPRESSION_CODEC_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        if self.magic == MAGIC_VALUE_V0:
            return TimestampType.NO_TIMESTAMP_TYPE
        return TimestampType(bool(self.attributes & TIMESTAMP_TYPE_MASK))


def parse_legacy_message(
    data: BytesLike, position: int = 0, *, path: str | None = None, verify_checksum: bool = True
) -> LegacyMessage:
    """The entry at `data[position:]`; CorruptRecordError if it is cut, or its CRC is not right.

    Magic 0 has the layout without a timestamp, all others the one with it, as Kafka reads them.
    """
    view = as_view(data)
    if len(view) - position < LOG_OVERHEAD:
        raise CorruptRecordError("message is cut off", path=path, position=position)
    offset, size = _PREFIX.unpack_from(view, position)
    place = {"path": path, "position": position, "offset": offset}
    # A slice never passes the end, so a size that is too large shows by the length of what came
    # back.
    entry = view[position : position + LOG_OVERHEAD + size] if size > 0 else view[:0]
    if size < LEGACY_RECORD_OVERHEAD_V0 or len(entry) < LOG_OVERHEAD + size:
        raise CorruptRecordError(f"message size {size}, {len(view) - position} bytes left", **place)
    (crc,) = _CRC.unpack_from(entry, LOG_OVERHEAD)
    if verify_checksum and crc != crc32(entry[LEGACY_CRC_START:]):
        raise CorruptRecordError(f"CRC of the message is not the stored {crc:#010x}", **place)
    magic, attributes = entry[HEADER_SIZE_UP_TO_MAGIC - 1], entry[HEADER_SIZE_UP_TO_MAGIC]
    # Behind magic and attributes: magic 1 has a timestamp there, magic 0 goes on with the key.
    at, timestamp = HEADER_SIZE_UP_TO_MAGIC + 1, NO_TIMESTAMP
    if magic != MAGIC_VALUE_V0:
        if size < LEGACY_RECORD_OVERHEAD_V1:
            raise CorruptRecordError(f"message size {size} of magic {magic}", **place)
        (timestamp,) = _I64.unpack_from(entry, at)
        at += _I64.size
    try:
        key, at = _parse_nullable(entry, at)
        value, at = _parse_nullable(entry, at)
    except CorruptRecordError as error:
        raise CorruptRecordError(error.reason, **place) from None
    return LegacyMessage(offset, LOG_OVERHEAD + size, crc, magic, attributes, timestamp, key, value)


def parse_legacy_entry(
    data: BytesLike,
    position: int = 0,
    *,
    path: str | None = None,
    verify_inner_checksums: bool = False,
    max_bytes: int = MAX_BATCH_BYTES,
) -> tuple[LegacyMessage, list[Record]]:
    """The entry at `data[position:]` and its records: one of a plain message, those of a wrapper.

    CorruptRecordError, UnsupportedMagicError, RecordTooLargeError as the kernels' callers raise
    them. Kafka checks the CRCs of messages in a wrapper when they are produced and never again.
    """
    message = parse_legacy_message(data, position, path=path)
    if message.magic not in (MAGIC_VALUE_V0, MAGIC_VALUE_V1):
        raise UnsupportedMagicError(
            f"magic {message.magic} is no legacy message", path=path, position=position
        )
    if message.codec == CompressionType.NONE:
        return message, [Record(message.offset, message.timestamp, message.key, message.value)]
    content = open_wrapper(
        as_view(data)[position : position + message.size_in_bytes],
        message.magic,
        message.codec,
        max_bytes=max_bytes,
        path=path,
        position=position,
        offset=message.offset,
    )
    try:
        inner = list(_inner_messages(content, verify_inner_checksums))
        shift = _offset_shift(message, inner)
    except CorruptRecordError as error:
        raise CorruptRecordError(
            error.reason, path=path, position=position, offset=message.offset
        ) from None
    # The wrapper's append time stands for those of all messages in it, but for magic 0 ones, which
    # have none.
    if message.timestamp_type == TimestampType.LOG_APPEND_TIME:
        inner = [
            replace(entry, timestamp=message.timestamp) if entry.magic != MAGIC_VALUE_V0 else entry
            for entry in inner
        ]
    return message, [Record(m.offset + shift, m.timestamp, m.key, m.value) for m in inner]


def open_wrapper(
    entry: memoryview,
    magic: int,
    codec: int,
    *,
    max_bytes: int,
    path: str | None = None,
    position: int | None = None,
    offset: int | None = None,
) -> bytes | memoryview:
    """The decompressed value of a whole compressed entry: inner entries one after the other.

    CorruptRecordError for a null value and for zstd, which legacy messages never had; else as
    `decompress`.
    """
    at = HEADER_SIZE_UP_TO_MAGIC + 1 + (_I64.size if magic != MAGIC_VALUE_V0 else 0)
    try:
        if codec == CompressionType.ZSTD:
            raise CorruptRecordError(f"zstd in a message of magic {magic}")
        # The key of a wrapper is not looked at.
        start, end = _nullable_span(entry, _nullable_span(entry, at)[1])
        if start < 0:
            raise CorruptRecordError("compressed message with a null value")
    except CorruptRecordError as error:
        error.path, error.position, error.offset = path, position, offset
        raise
    return decompress(
        codec,
        entry[start:end],
        max_bytes=max_bytes,
        magic=magic,
        path=path,
        position=position,
        offset=offset,
    )


def wrapper_payload(entry: memoryview, magic: int) -> memoryview:
    """The compressed value of a whole compressed entry; empty where it has none."""
    at = HEADER_SIZE_UP_TO_MAGIC + 1 + (_I64.size if magic != MAGIC_VALUE_V0 else 0)
    try:
        # The key comes first, and is passed over.
        start, end = _nullable_span(entry, _nullable_span(entry, at)[1])
    except CorruptRecordError:
        return entry[:0]
    return entry[max(start, 0) : end] if start >= 0 else entry[:0]


def count_wrong_inner_checksums(entry: memoryview, *, max_bytes: int = MAX_BATCH_BYTES) -> int:
    """How many messages inside a whole compressed entry do not have their CRC; 0 for an entry that
    cannot be opened, which is another matter.
    """
    magic, attributes = entry[HEADER_SIZE_UP_TO_MAGIC - 1], entry[HEADER_SIZE_UP_TO_MAGIC]
    try:
        content = as_view(
            open_wrapper(entry, magic, attributes & COMPRESSION_CODEC_MASK, max_bytes=max_bytes)
        )
    except KafkaLogError:
        return 0
    at = wrong = 0
    # A walk of its own: a message that does not parse ends the count, and is not to raise here.
    while len(content) - at >= LOG_OVERHEAD + LEGACY_RECORD_OVERHEAD_V0:
        _, size = _PREFIX.unpack_from(content, at)
        end = at + LOG_OVERHEAD + size
        if size < LEGACY_RECORD_OVERHEAD_V0 or end > len(content):
            break
        (crc,) = _CRC.unpack_from(content, at + LOG_OVERHEAD)
        wrong += crc != crc32(content[at + LEGACY_CRC_START : end])
        at = end
    return wrong


def inner_checksums(content: BytesLike) -> list[tuple[int, int]]:
    """(stored, computed) CRC of each message in what `open_wrapper` gives."""
    view, at = as_view(content), 0
    found = []
    for message in _inner_messages(view, verify_checksums=False):
        end = at + message.size_in_bytes
        found.append((message.crc, crc32(view[at + LEGACY_CRC_START : end])))
        at = end
    return found


def largest_inner_message(content: BytesLike) -> int:
    """Bytes behind offset and size of the largest message in what `open_wrapper` gives."""
    messages = _inner_messages(content, verify_checksums=False)
    return max((message.size_in_bytes for message in messages), default=0) - LOG_OVERHEAD


def pack_legacy_message(
    record: Record,
    magic: int,
    *,
    codec: int = CompressionType.NONE,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
) -> bytes:
    """One whole entry; `codec` marks a wrapper, whose value is compressed already. Headers are
    lost.
    """
    attributes = codec
    if magic != MAGIC_VALUE_V0 and timestamp_type == TimestampType.LOG_APPEND_TIME:
        attributes |= TIMESTAMP_TYPE_MASK
    timestamp = b"" if magic == MAGIC_VALUE_V0 else _I64.pack(record.timestamp)
    covered = b"".join(
        (
            bytes((magic, attributes)),
            timestamp,
            _pack_nullable(record.key),
            _pack_nullable(record.value),
        )
    )
    return _PREFIX.pack(record.offset, _CRC.size + len(covered)) + (
        _CRC.pack(crc32(covered)) + covered
    )


def _inner_messages(content: BytesLike, verify_checksums: bool) -> Iterator[LegacyMessage]:
    """Whole messages in a wrapper; a partial last one is left out, as in Kafka."""
    view = as_view(content)
    at = 0
    while len(view) - at >= LOG_OVERHEAD:
        _, size = _PREFIX.unpack_from(view, at)
        if size >= LEGACY_RECORD_OVERHEAD_V0 and size > len(view) - at - LOG_OVERHEAD:
            return
        message = parse_legacy_message(view, at, verify_checksum=verify_checksums)
        if message.codec != CompressionType.NONE:
            raise CorruptRecordError("compressed message inside a compressed message")
        yield message
        at += message.size_in_bytes


def _offset_shift(wrapper: LegacyMessage, inner: Sequence[LegacyMessage]) -> int:
    """What to add to the inner offsets."""
    if not inner:
        raise CorruptRecordError("compressed message without a message inside")
    # Magic 0: inner offsets are absolute. Magic 1: they are relative, and the wrapper has the
    # offset of the last one; a wrapper at offset 0 shifts nothing, as in Kafka.
    if wrapper.magic == MAGIC_VALUE_V0 or wrapper.offset == 0:
        return 0
    if wrapper.offset < inner[-1].offset:
        raise CorruptRecordError("offset of a compressed message below its last relative one")
    return wrapper.offset - inner[-1].offset


def _nullable_span(entry: memoryview, at: int) -> tuple[int, int]:
    """(start or -1 for null, end) of the bytes whose length is at `at`."""
    if len(entry) - at < _I32.size:
        raise CorruptRecordError("message is too short for its fields")
    (length,) = _I32.unpack_from(entry, at)
    at += _I32.size
    if length < 0:
        return -1, at
    if length > len(entry) - at:
        raise CorruptRecordError(f"field length {length}, but {len(entry) - at} bytes are left")
    return at, at + length


def _parse_nullable(entry: memoryview, at: int) -> tuple[bytes | None, int]:
    start, end = _nullable_span(entry, at)
    return (None if start < 0 else bytes(entry[start:end])), end


def _pack_nullable(field: bytes | None) -> bytes:
    return _I32.pack(-1) if field is None else _I32.pack(len(field)) + field
