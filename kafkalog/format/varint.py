"""Variable-length integers of magic 2 records, in plain Python.

Base 128, least significant group first, high bit = more follows. Signed numbers are zigzag-folded
first, so that small negative ones stay short: 0, -1, 1, -2 become 0, 1, 2, 3.

A varint has at most 5 bytes, a varlong at most 10; one more continuation bit is an error. Over-long
encodings are accepted on read, and value bits beyond 32 (64) are shifted out silently, as in Kafka;
written ones are minimal.

The parsers take `end` (excluded), the first byte that is not theirs, and return (value, position
after it). All of them raise CorruptRecordError with the position of the number's first byte.

Source: Kafka ByteUtils.
"""

from __future__ import annotations

from kafkalog.errors import CorruptRecordError

MAX_VARINT_BYTES = 5
MAX_VARLONG_BYTES = 10


def pack_unsigned_varint(value: int) -> bytes:
    """`value`, 0 to 2^64-1, as base 128; Kafka's unsigned varints stop at 2^32-1."""
    if not 0 <= value < 1 << 64:
        raise ValueError(f"{value} is not an unsigned 64-bit number")
    out = bytearray()
    # Seven bits a byte, the low ones first; the high bit says that another byte follows.
    while value > 0x7F:
        out.append(0x80 | value & 0x7F)
        value >>= 7
    out.append(value)
    return bytes(out)


def pack_varint(value: int) -> bytes:
    """A signed 32-bit number, zigzag: 1 to 5 bytes."""
    return pack_unsigned_varint(_zigzag(value, 32))


def pack_varlong(value: int) -> bytes:
    """A signed 64-bit number, zigzag: 1 to 10 bytes."""
    return pack_unsigned_varint(_zigzag(value, 64))


def parse_unsigned_varint(
    data: bytes | memoryview, position: int = 0, end: int | None = None
) -> tuple[int, int]:
    """An unsigned 32-bit number of at most 5 bytes."""
    value, position = _parse(data, position, end, MAX_VARINT_BYTES)
    # The fifth byte has room for four bits: Java shifts the others out of its int.
    return value & 0xFFFF_FFFF, position


def parse_varint(
    data: bytes | memoryview, position: int = 0, end: int | None = None
) -> tuple[int, int]:
    """A signed 32-bit number of at most 5 bytes."""
    value, position = parse_unsigned_varint(data, position, end)
    return _unzigzag(value), position


def parse_varlong(
    data: bytes | memoryview, position: int = 0, end: int | None = None
) -> tuple[int, int]:
    """A signed 64-bit number of at most 10 bytes."""
    value, position = _parse(data, position, end, MAX_VARLONG_BYTES)
    return _unzigzag(value & 0xFFFF_FFFF_FFFF_FFFF), position


def _parse(
    data: bytes | memoryview, position: int, end: int | None, max_bytes: int
) -> tuple[int, int]:
    end = len(data) if end is None else min(end, len(data))
    value = 0
    # Bounded, so that a run of continuation bits ends after 5 or 10 bytes, not at the end of the
    # data.
    for index in range(max_bytes):
        if position + index >= end:
            raise CorruptRecordError("number is cut off", position=position)
        byte = data[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, position + index + 1
    raise CorruptRecordError(f"number is longer than {max_bytes} bytes", position=position)


def _zigzag(value: int, bits: int) -> int:
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError(f"{value} is not a signed {bits}-bit number")
    # The sign moves into the lowest bit: the right shift gives all ones for a negative number.
    return (value << 1) ^ (value >> (bits - 1))


def _unzigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)
