"""Variable-length integers inside kernels, every read bounded by `end`.

Zigzag, then base 128 with the least significant group first; at most 5 bytes for 32 bits, 10 for
64. Over-long encodings are accepted, bits that do not fit are dropped, as Kafka's ByteUtils does.

Readers return (value, next position). A next position below zero is a failure: VARINT_CUT when
`end` came first, VARINT_OVERLONG when the last allowed byte says that more follow. `failure_status`
turns it into a status.

Source: Kafka ByteUtils.
"""

from __future__ import annotations

from kafkalog.kernels import status
from kafkalog.kernels.jit import (
    I64,
    U8,
    U64,
    U8Array,
    helper,
    inlined,
)

VARINT_CUT = -1
VARINT_OVERLONG = -2

_RECORD_TRUNCATED = status.RECORD_TRUNCATED
_VARINT_TOO_LONG = status.VARINT_TOO_LONG


@inlined
def failure_status(next_pos: int) -> int:
    """The status for a negative next position."""
    return _VARINT_TOO_LONG if next_pos == VARINT_OVERLONG else _RECORD_TRUNCATED


@helper
def _read_groups(buf: U8Array, pos: int, end: int, max_bytes: int) -> tuple[int, int]:
    """The unsigned value of up to `max_bytes` groups at `pos`, and the position behind them."""
    # Cut is told from too long: the first may be a record that runs past its end, the second is no
    # varint at all whatever follows.
    value = U64(0)
    shift = U64(0)
    for read in range(max_bytes):
        if pos + read >= end:
            return U64(0), VARINT_CUT
        byte = U64(buf[pos + read])
        value |= (byte & U64(0x7F)) << shift
        if byte < U64(0x80):
            return value, pos + read + 1
        shift += U64(7)
    return U64(0), VARINT_OVERLONG


@inlined
def read_uvarint(buf: U8Array, pos: int, end: int) -> tuple[int, int]:
    """A 32-bit unsigned integer, as int64."""
    groups, next_pos = _read_groups(buf, pos, end, 5)
    return I64(groups & U64(0xFFFF_FFFF)), next_pos


@inlined
def read_varint(buf: U8Array, pos: int, end: int) -> tuple[int, int]:
    """A 32-bit zigzag integer, as int64."""
    if pos >= end:
        return I64(0), VARINT_CUT
    # One byte is what nearly all deltas and lengths of records take: the loop stays out of the
    # kernel's hot path.
    first = I64(buf[pos])
    if first < 0x80:
        return (first >> 1) ^ -(first & 1), pos + 1
    groups, next_pos = _read_groups(buf, pos, end, 5)
    # Bits past 32 are shifted out by Java's int arithmetic, so they are not an error.
    value = I64(groups & U64(0xFFFF_FFFF))
    return (value >> 1) ^ -(value & 1), next_pos


@inlined
def read_varlong(buf: U8Array, pos: int, end: int) -> tuple[int, int]:
    """A 64-bit zigzag integer."""
    if pos >= end:
        return I64(0), VARINT_CUT
    first = I64(buf[pos])
    if first < 0x80:
        return (first >> 1) ^ -(first & 1), pos + 1
    groups, next_pos = _read_groups(buf, pos, end, 10)
    return I64(groups >> U64(1)) ^ -I64(groups & U64(1)), next_pos


@inlined
def varint_size(value: int) -> int:
    """Bytes that `write_varint` needs: 1 to 5 for 32-bit values, up to 10 for 64-bit ones."""
    signed = I64(value)
    # Zigzag: the sign goes to the lowest bit, so that small negative numbers are small, too.
    rest = U64((signed << 1) ^ (signed >> 63)) >> U64(7)
    size = 1
    while rest != U64(0):
        rest >>= U64(7)
        size += 1
    return size


@inlined
def write_varint(out: U8Array, pos: int, value: int) -> int:
    """Write a zigzag integer of 32 or 64 bits in its shortest form; returns the position behind it.

    The caller has made sure that `varint_size(value)` bytes are free at `pos`.
    """
    signed = I64(value)
    rest = U64((signed << 1) ^ (signed >> 63))
    while rest >= U64(0x80):
        out[pos] = U8((rest & U64(0x7F)) | U64(0x80))
        rest >>= U64(7)
        pos += 1
    out[pos] = U8(rest)
    return pos + 1
