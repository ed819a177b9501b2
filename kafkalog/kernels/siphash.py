"""SipHash: a hash that nobody can aim at without its secret. 2-4 with 128 bits of output for keys,
which are compared with all others; 1-3 with 64 bits, as many languages hash their tables, for
contents that are compared with those at the same offset only.

Source: SipHash, https://131002.net/siphash (reference vectors in the tests).
"""

from __future__ import annotations

import numpy as np

from kafkalog.kernels.jit import U8Array, helper, inlined


@inlined
def _rotate(x: np.uint64, bits: int) -> np.uint64:
    # The counts are constants between 13 and 32: neither shift is ever 0 or 64.
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


@inlined
def _round(
    v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    # Add, rotate, xor, on 64 bits that wrap around: numba's unsigned numbers do what C's do.
    v0 = v0 + v1
    v1 = _rotate(v1, 13) ^ v0
    v0 = _rotate(v0, 32)
    v2 = v2 + v3
    v3 = _rotate(v3, 16) ^ v2
    v0 = v0 + v3
    v3 = _rotate(v3, 21) ^ v0
    v2 = v2 + v1
    v1 = _rotate(v1, 17) ^ v2
    v2 = _rotate(v2, 32)
    return v0, v1, v2, v3


@inlined
def read_word(buf: U8Array, pos: int) -> np.uint64:
    """Eight bytes, the first one lowest."""
    return (
        np.uint64(buf[pos])
        | (np.uint64(buf[pos + 1]) << np.uint64(8))
        | (np.uint64(buf[pos + 2]) << np.uint64(16))
        | (np.uint64(buf[pos + 3]) << np.uint64(24))
        | (np.uint64(buf[pos + 4]) << np.uint64(32))
        | (np.uint64(buf[pos + 5]) << np.uint64(40))
        | (np.uint64(buf[pos + 6]) << np.uint64(48))
        | (np.uint64(buf[pos + 7]) << np.uint64(56))
    )


@inlined
def last_word(buf: U8Array, pos: int, length: int) -> np.uint64:
    """The bytes that are left, and the length in the highest one, so that a key and the same key
    with zeros behind it differ.
    """
    word = np.uint64(length & 0xFF) << np.uint64(56)
    left = length & 7
    # Eight bytes are read at once where the buffer has them, whatever the last ones belong to.
    if pos + 8 <= buf.size:
        mask = (np.uint64(1) << np.uint64(8 * left)) - np.uint64(1)
        return word | (read_word(buf, pos) & mask)
    for i in range(left):
        word |= np.uint64(buf[pos + i]) << np.uint64(8 * i)
    return word


@helper
def siphash_128(
    buf: U8Array, pos: int, length: int, k0: np.uint64, k1: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """SipHash-2-4-128 of buf[pos:pos + length]; the caller has checked the range."""
    # The constants spell "somepseudorandomlygeneratedbytes"; 0xEE and 0xDD tell the 128-bit variant
    # from the 64-bit one.
    v0 = k0 ^ np.uint64(0x736F6D6570736575)
    v1 = k1 ^ np.uint64(0x646F72616E646F6D) ^ np.uint64(0xEE)
    v2 = k0 ^ np.uint64(0x6C7967656E657261)
    v3 = k1 ^ np.uint64(0x7465646279746573)
    # Two rounds (the 2 of 2-4) for each word of eight bytes.
    whole = pos + (length & ~7)
    while pos < whole:
        word = read_word(buf, pos)
        v3 ^= word
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0 ^= word
        pos += 8
    word = last_word(buf, pos, length)
    v3 ^= word
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0 ^= word
    v2 ^= np.uint64(0xEE)
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    # The 128-bit variant goes on from here: another constant, four more rounds, the second word.
    first = v0 ^ v1 ^ v2 ^ v3
    v1 ^= np.uint64(0xDD)
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return first, v0 ^ v1 ^ v2 ^ v3


@helper
def siphash_1_3(buf: U8Array, pos: int, length: int, k0: np.uint64, k1: np.uint64) -> np.uint64:
    """SipHash-1-3 of buf[pos:pos + length]; the caller has checked the range."""
    v0 = k0 ^ np.uint64(0x736F6D6570736575)
    v1 = k1 ^ np.uint64(0x646F72616E646F6D)
    v2 = k0 ^ np.uint64(0x6C7967656E657261)
    v3 = k1 ^ np.uint64(0x7465646279746573)
    whole = pos + (length & ~7)
    while pos < whole:
        word = read_word(buf, pos)
        v3 ^= word
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0 ^= word
        pos += 8
    word = last_word(buf, pos, length)
    v3 ^= word
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0 ^= word
    v2 ^= np.uint64(0xFF)
    for _ in range(3):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3
