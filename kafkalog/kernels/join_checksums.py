"""The CRC-32C of two parts one behind the other, from theirs and the length of the second.

A CRC is the remainder of the bytes, taken as a polynomial over GF(2), by a polynomial of degree 32.
Bytes behind others shift these to higher powers: the remainder of the first part is multiplied by
x^(8 * length of the second), and added to that of the second. What CRC-32C begins and ends with
(all bits inverted) cancels out, as it does for CRC-32.

Source: zlib, crc32_combine.
"""

from __future__ import annotations

import numpy as np

from kafkalog.kernels.jit import I64, I64_IN, INTERPRETED, I64Array, helper, kernel

# CRC-32C's polynomial: in all numbers here the highest of 32 bits is the lowest power.
_POLYNOMIAL = 0x82F63B78
_X = 1 << 30
# Lengths of batches are below 2^31.
_LENGTH_BITS = 31


def _times_plain(a: int, b: int) -> int:
    """a * b modulo the polynomial."""
    # Without a branch: the bits are as good as random.
    product = a & 0
    for bit in range(31, -1, -1):
        product ^= b & -((a >> bit) & 1)
        b = (b >> 1) ^ (_POLYNOMIAL & -(b & 1))
    return product


_times = _times_plain if INTERPRETED else helper(_times_plain)


def _powers() -> I64Array:
    """x^(8 * 2^n) for each bit n of a length: int64[31]."""
    power = _X
    for _ in range(3):
        power = _times_plain(power, power)
    powers = [power]
    for _ in range(_LENGTH_BITS - 1):
        powers.append(_times_plain(powers[-1], powers[-1]))
    return np.array(powers, np.int64)


POWERS = _powers()


@helper
def join_checksums(first: int, second: int, length: int, powers: I64Array) -> int:
    """CRC-32C of two parts: theirs are `first` and `second`, both unsigned 32 bits, and the second
    has `length` bytes, below 2^31. `powers`: POWERS.
    """
    bit = 0
    while length:
        if length & 1:
            first = _times(powers[bit], first)
        length >>= 1
        bit += 1
    return first ^ second


@kernel((I64, I64, I64, I64_IN))
def _join_two(first: int, second: int, length: int, powers: I64Array) -> int:
    joined: int = join_checksums(first, second, length, powers)
    return joined


def join_two_checksums(first: int, second: int, length: int) -> int:
    """As `join_checksums`, for callers in Python."""
    # A number of Python's also where the kernel runs as plain Python, over numpy's.
    return int(_join_two(first, second, length, POWERS))
