"""Batches of a file's bytes, with keys and values of their records, in plain Python.

The reading path decodes columns with kernels, and loading those takes longer than all that is read
here. Bounded by the bytes that are handed over; what the format is `format.record_batch` and
`format.record` say.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

from kafkalog.errors import CorruptRecordError
from kafkalog.format.checksum import crc32c
from kafkalog.format.compression import decompress
from kafkalog.format.constants import LOG_OVERHEAD, RECORD_BATCH_OVERHEAD
from kafkalog.format.record_batch import CRC_START, RecordBatchHeader, parse_header
from kafkalog.format.varint import parse_varint

KeyValue = tuple[bytes | None, bytes | None]


def read_bytes(path: str, size: int, position: int = 0) -> bytes:
    """At most so many bytes of a file; OSError as the system raises it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.pread(descriptor, size, position)
    finally:
        os.close(descriptor)


def iterate_batches(
    data: bytes, path: str, *, max_bytes: int
) -> Iterator[tuple[RecordBatchHeader, bytes]]:
    """(header, decompressed records) of each whole batch; a torn one at the end ends it.

    CorruptRecordError for a batch that is not sound, UnsupportedMagicError for an older format,
    RecordTooLargeError where one would be larger than `max_bytes`.
    """
    position = 0
    while position + RECORD_BATCH_OVERHEAD <= len(data):
        (length,) = struct.unpack_from(">i", data, position + 8)
        end = position + LOG_OVERHEAD + length
        if end > len(data) or not any(data[position : position + RECORD_BATCH_OVERHEAD]):
            return
        header = parse_header(data, position, path=path)
        if crc32c(data[position + CRC_START : end]) != header.crc:
            raise CorruptRecordError("CRC differs", path=path, position=position)
        payload = data[position + RECORD_BATCH_OVERHEAD : end]
        if header.codec and header.records_count:
            payload = bytes(decompress(header.codec, payload, max_bytes=max_bytes, path=path))
        yield header, payload
        position = end


def keys_and_values(payload: bytes, count: int) -> Iterator[KeyValue]:
    """Of so many records. CorruptRecordError for bytes that are none."""
    position = 0
    try:
        for _ in range(count):
            length, position = parse_varint(payload, position)
            end = position + length
            at = position + 1  # attributes
            for _ in range(2):  # the deltas of time and offset
                while payload[at] > 0x7F:
                    at += 1
                at += 1
            key, at = _nullable(payload, at, end)
            value, _ = _nullable(payload, at, end)
            if length < 0:
                raise CorruptRecordError(f"record of {length} bytes", position=position)
            yield key, value
            position = end
    except IndexError:
        raise CorruptRecordError("the batch ends inside a record", position=position) from None


def _nullable(payload: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    size = payload[at]
    if size < 0x80:  # nearly all of them, zigzag
        size, at = (size >> 1) ^ -(size & 1), at + 1
    else:
        size, at = parse_varint(payload, at)
    if size < 0:
        return None, at
    if at + size > end:
        raise CorruptRecordError(f"{size} bytes, but {max(end - at, 0)} are left", position=at)
    return payload[at : at + size], at + size
