"""Big-endian integers at a byte position. The caller has checked that the bytes are there.

Written byte by byte: LLVM makes one load and one byte swap of it.
"""

from __future__ import annotations

from kafkalog.kernels.jit import (
    I64,
    U8,
    U8Array,
    inlined,
)


@inlined
def read_u32(buf: U8Array, pos: int) -> int:
    """Four bytes, unsigned."""
    value: int = (
        (I64(buf[pos]) << 24)
        | (I64(buf[pos + 1]) << 16)
        | (I64(buf[pos + 2]) << 8)
        | I64(buf[pos + 3])
    )
    return value


@inlined
def read_i32(buf: U8Array, pos: int) -> int:
    """Four bytes, signed."""
    # The sign bit flipped and its weight taken away: what was at or above 2^31 becomes negative,
    # without a branch or a narrower type.
    return (read_u32(buf, pos) ^ 0x8000_0000) - 0x8000_0000


@inlined
def read_i16(buf: U8Array, pos: int) -> int:
    """Two bytes, signed."""
    unsigned: int = (I64(buf[pos]) << 8) | I64(buf[pos + 1])
    return (unsigned ^ 0x8000) - 0x8000


@inlined
def read_i64(buf: U8Array, pos: int) -> int:
    """Eight bytes, signed."""
    # The upper half is shifted as int64, so its top bit becomes the sign.
    return (read_u32(buf, pos) << 32) | read_u32(buf, pos + 4)


@inlined
def write_i32(out: U8Array, pos: int, value: int) -> None:
    """The low four bytes of a value."""
    for byte in range(4):
        out[pos + byte] = U8((value >> (24 - 8 * byte)) & 0xFF)


@inlined
def write_i64(out: U8Array, pos: int, value: int) -> None:
    """Eight bytes."""
    for byte in range(8):
        out[pos + byte] = U8((value >> (56 - 8 * byte)) & 0xFF)
