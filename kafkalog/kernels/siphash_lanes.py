"""SipHash-2-4 of eight keys side by side, each in a lane of vector registers.

A hash of one key is a chain in which each step waits for the one before it. Eight keys have eight
such chains, and a processor with vectors takes a step of all in one or two instructions. LLVM
makes of the vectors here what the machine has. Keys are loaded where they lie, and hashes are
stored where they go: laid out in memory first, a key took twice as long as its hash.

Interpreted and bounds-checked runs hash key by key instead (`siphash.siphash_128`): what goes
around numba's arrays cannot be checked there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from kafkalog.kernels.jit import CHECKED, INTERPRETED, U8Array, U64Array, inlined, intrinsic

LANES = 8
# Words of the longest key that goes into a lane: up to seven bytes and the length are the last one.
# One by one where words cannot be loaded as they lie, or have to be checked.
LANE_KEY_WORDS = 0 if INTERPRETED or CHECKED or sys.byteorder != "little" else 8

# An entry (`hash_keys`) is so many words: a key's place and its length, then its hash.
_ENTRY_WORDS = 3
_WORD_BITS = 64
_STATE = (0x736F6D6570736575, 0x646F72616E646F6D ^ 0xEE, 0x6C7967656E657261, 0x7465646279746573)


def _word(value: int) -> Any:
    from llvmlite import ir

    return ir.Constant(ir.IntType(_WORD_BITS), value)


def _vector() -> Any:
    from llvmlite import ir

    return ir.VectorType(ir.IntType(_WORD_BITS), LANES)


def _all(builder: Any, word: Any) -> Any:
    """A vector of one word in all lanes."""
    from llvmlite import ir

    if isinstance(word, int):
        return ir.Constant(_vector(), [word] * LANES)
    vector = ir.Constant(_vector(), ir.Undefined)
    for lane in range(LANES):
        vector = builder.insert_element(vector, word, _word(lane))
    return vector


def _rotate(builder: Any, x: Any, bits: int) -> Any:
    high = builder.shl(x, _all(builder, bits))
    return builder.or_(high, builder.lshr(x, _all(builder, 64 - bits)))


def _rounds(builder: Any, state: Sequence[Any], count: int) -> list[Any]:
    # As in `siphash._round`.
    v0, v1, v2, v3 = state
    for _ in range(count):
        v0 = builder.add(v0, v1)
        v1 = builder.xor(_rotate(builder, v1, 13), v0)
        v0 = _rotate(builder, v0, 32)
        v2 = builder.add(v2, v3)
        v3 = builder.xor(_rotate(builder, v3, 16), v2)
        v0 = builder.add(v0, v3)
        v3 = builder.xor(_rotate(builder, v3, 21), v0)
        v2 = builder.add(v2, v1)
        v1 = builder.xor(_rotate(builder, v1, 17), v2)
        v2 = _rotate(builder, v2, 32)
    return [v0, v1, v2, v3]


def _folded(builder: Any, state: Sequence[Any]) -> Any:
    v0, v1, v2, v3 = state
    return builder.xor(builder.xor(v0, v1), builder.xor(v2, v3))


def _words(builder: Any, number: Any, keys: Sequence[Any], lengths: Any) -> tuple[Any, Any]:
    """The words of this number of all keys, and which of them have so many."""
    from llvmlite import ir

    word_pointer = ir.IntType(_WORD_BITS).as_pointer()
    start = builder.mul(number, _word(8))
    words: Any = ir.Constant(_vector(), ir.Undefined)
    for lane, key in enumerate(keys):
        place = builder.bitcast(builder.gep(key, [start]), word_pointer)
        words = builder.insert_element(words, builder.load(place, align=1), _word(lane))
    # The last word: the bytes that are left, and the length in the highest one.
    left = builder.sub(lengths, _all(builder, start))
    is_whole = builder.icmp_signed(">=", left, _all(builder, 8))
    bits = builder.shl(builder.and_(left, _all(builder, 7)), _all(builder, 3))
    mask = builder.sub(builder.shl(_all(builder, 1), bits), _all(builder, 1))
    last = builder.or_(builder.and_(words, mask), builder.shl(lengths, _all(builder, 56)))
    has_word = builder.icmp_signed(">=", left, _all(builder, 0))
    return builder.select(is_whole, words, last), has_word


def _compress(builder: Any, state: list[Any], word: Any, has_word: Any) -> list[Any]:
    """The state behind one more word; a lane that has no such word keeps its own."""
    v0, v1, v2, v3 = state
    v0, v1, v2, v3 = _rounds(builder, (v0, v1, v2, builder.xor(v3, word)), 2)
    after = (builder.xor(v0, word), v1, v2, v3)
    return [builder.select(has_word, a, b) for a, b in zip(after, state, strict=True)]


def _generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    from llvmlite import ir
    from numba.core import cgutils

    buf, entries, first, words, k0, k1 = arguments
    buf_type, entries_type = signature.args[:2]
    data = cgutils.create_struct_proxy(buf_type)(context, builder, buf).data
    table = cgutils.create_struct_proxy(entries_type)(context, builder, entries).data
    places = [
        builder.gep(table, [builder.add(builder.mul(first, _word(_ENTRY_WORDS)), _word(at))])
        for at in range(0, LANES * _ENTRY_WORDS, _ENTRY_WORDS)
    ]
    seconds = [builder.gep(place, [_word(1)]) for place in places]
    keys = [builder.gep(data, [builder.load(place)]) for place in places]
    lengths: Any = ir.Constant(_vector(), ir.Undefined)
    for lane, place in enumerate(seconds):
        lengths = builder.insert_element(lengths, builder.load(place), _word(lane))
    variables = [cgutils.alloca_once(builder, _vector()) for _ in _STATE]
    for variable, key, constant in zip(variables, (k0, k1, k0, k1), _STATE, strict=True):
        builder.store(_all(builder, builder.xor(key, _word(constant))), variable)
    with cgutils.for_range(builder, words, intp=ir.IntType(_WORD_BITS)) as loop:
        word, has_word = _words(builder, loop.index, keys, lengths)
        state = _compress(builder, [builder.load(v) for v in variables], word, has_word)
        for variable, value in zip(variables, state, strict=True):
            builder.store(value, variable)
    v0, v1, v2, v3 = (builder.load(variable) for variable in variables)
    state = _rounds(builder, (v0, v1, builder.xor(v2, _all(builder, 0xEE)), v3), 4)
    v0, v1, v2, v3 = state
    further = _rounds(builder, (v0, builder.xor(v1, _all(builder, 0xDD)), v2, v3), 4)
    for hashes, where in ((state, places), (further, seconds)):
        folded = _folded(builder, hashes)
        for lane, place in enumerate(where):
            builder.store(builder.extract_element(folded, _word(lane)), place)
    return context.get_dummy_value()


def _define(
    _context: Any, buf: Any, entries: Any, first: Any, words: Any, k0: Any, k1: Any
) -> tuple[Any, Callable[..., Any]]:
    from numba.core import types

    arguments = (buf, entries, types.int64, types.int64, types.uint64, types.uint64)
    return types.void(*arguments), _generate


_hash_lanes: Any = intrinsic(_define)


@inlined
def hash_lanes(buf: U8Array, entries: U64Array, first: int, words: int, k0: Any, k1: Any) -> None:
    """Hash the keys of LANES entries from number `first` on, whose first two words are where a key
    lies in buf and its length, and then its hash. `words`: length // 8 + 1 of the longest, no more
    than LANE_KEY_WORDS; buf holds so many words from where each of the keys begins.
    """
    _hash_lanes(buf, entries, first, words, k0, k1)
