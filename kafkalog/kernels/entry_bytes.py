"""The entries of directories as bytes to make a digest of: in the order of their names, of each its
name, a zero, and some of its numbers as words, the lowest byte first.
"""

from __future__ import annotations

from kafkalog.kernels.jit import (
    I64,
    I64_IN,
    I64_OUT,
    U8_IN,
    U8_OUT,
    I64Array,
    U8Array,
    helper,
    kernel,
)

_WORD_BYTES = 8


@helper
def _is_before(names: U8Array, name_ends: I64Array, one: int, other: int) -> bool:
    """Whether the name of an entry comes first, by its bytes."""
    a = name_ends[one - 1] if one else I64(0)
    b = name_ends[other - 1] if other else I64(0)
    while a < name_ends[one] and b < name_ends[other]:
        if names[a] != names[b]:
            return bool(names[a] < names[b])
        a += 1
        b += 1
    return bool(b < name_ends[other])


@helper
def _sort(names: U8Array, name_ends: I64Array, first: int, end: int, order: I64Array) -> None:
    """By Shell's way, which needs no memory and is quick for some tens and some ten thousands."""
    for place in range(first, end):
        order[place] = place
    gap = I64(1)
    while gap < (end - first) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for place in range(first + gap, end):
            entry, at = order[place], place
            while at >= first + gap and _is_before(names, name_ends, entry, order[at - gap]):
                order[at] = order[at - gap]
                at -= gap
            order[at] = entry
        gap //= 3


@kernel((U8_IN, I64_IN, I64_IN, I64_IN, I64_OUT, U8_OUT, I64_OUT))
def pack_entries(
    names: U8Array,
    name_ends: I64Array,
    numbers: I64Array,
    ends: I64Array,
    order: I64Array,
    out: U8Array,
    out_ends: I64Array,
) -> None:
    """Pack the entries of each directory.

    in   names uint8[m], name_ends int64[e]; numbers int64[w * e]; ends int64[d]: of the entries of
         each directory, the last one e
    out  order int64[e]: the entries of each directory by name; out uint8[m + e + 8 * w * e];
         out_ends int64[d]
    """
    words = numbers.size // max(name_ends.size, 1)
    first, size = I64(0), I64(0)
    for d in range(ends.size):
        _sort(names, name_ends, first, ends[d], order)
        for place in range(first, ends[d]):
            entry = order[place]
            for i in range(name_ends[entry - 1] if entry else I64(0), name_ends[entry]):
                out[size] = names[i]
                size += 1
            out[size] = 0
            size += 1
            for word in range(entry * words, (entry + 1) * words):
                for shift in range(0, 8 * _WORD_BYTES, 8):
                    out[size] = (numbers[word] >> shift) & 0xFF
                    size += 1
        out_ends[d] = size
        first = ends[d]
