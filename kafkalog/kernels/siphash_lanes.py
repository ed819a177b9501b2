"""SipHash-2-4 of several keys side by side, each in a lane of vector registers.

A hash of one key is a chain in which each step waits for the one before it. Eight keys have eight
such chains, and a processor with vectors takes a step of all in one or two instructions. LLVM
makes of the vectors here what the machine has.

    lanes   uint64[LANE_WORDS]: the words of the keys, word by word, those of one word side by side;
            behind them how many words each key has; behind these two words of hash each

Interpreted and bounds-checked runs hash lane by lane instead (`siphash.siphash_128`): what goes
around numba's arrays cannot be checked there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kafkalog.kernels.jit import CHECKED, INTERPRETED, U64Array, inlined, intrinsic

LANES = 8
# Keys of up to 63 bytes: the last word has the length, and up to seven bytes.
MOST_WORDS = 8
COUNTS = MOST_WORDS * LANES
HASHES = COUNTS + LANES
LANE_WORDS = HASHES + 2 * LANES

# Keys of so many words go into lanes; interpreted and bounds-checked none does.
LANE_KEY_WORDS = 0 if INTERPRETED or CHECKED else MOST_WORDS

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


def _compress(builder: Any, state: list[Any], word: Any, number: Any, counts: Any) -> list[Any]:
    """The state behind one more word; a lane that has no such word keeps its own."""
    v0, v1, v2, v3 = state
    v0, v1, v2, v3 = _rounds(builder, (v0, v1, v2, builder.xor(v3, word)), 2)
    after = (builder.xor(v0, word), v1, v2, v3)
    has_word = builder.icmp_unsigned("<", _all(builder, number), counts)
    return [builder.select(has_word, a, b) for a, b in zip(after, state, strict=True)]


def _generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    from llvmlite import ir
    from numba.core import cgutils

    lanes, words, k0, k1 = arguments
    array = cgutils.create_struct_proxy(signature.args[0])(context, builder, lanes)

    def at(place: Any) -> Any:
        return builder.bitcast(builder.gep(array.data, [place]), _vector().as_pointer())

    def load(place: Any) -> Any:
        return builder.load(at(place), align=8)

    counts = load(_word(COUNTS))
    secret = (k0, k1, k0, k1)
    variables = [cgutils.alloca_once(builder, _vector()) for _ in _STATE]
    for variable, key, constant in zip(variables, secret, _STATE, strict=True):
        builder.store(_all(builder, builder.xor(key, _word(constant))), variable)
    with cgutils.for_range(builder, words, intp=ir.IntType(_WORD_BITS)) as loop:
        word = load(builder.mul(loop.index, _word(LANES)))
        state = [builder.load(variable) for variable in variables]
        state = _compress(builder, state, word, loop.index, counts)
        for variable, value in zip(variables, state, strict=True):
            builder.store(value, variable)
    v0, v1, v2, v3 = (builder.load(variable) for variable in variables)
    state = _rounds(builder, (v0, v1, builder.xor(v2, _all(builder, 0xEE)), v3), 4)
    builder.store(_folded(builder, state), at(_word(HASHES)), align=8)
    v0, v1, v2, v3 = state
    state = _rounds(builder, (v0, builder.xor(v1, _all(builder, 0xDD)), v2, v3), 4)
    builder.store(_folded(builder, state), at(_word(HASHES + LANES)), align=8)
    return context.get_dummy_value()


def _define(
    _context: Any, lanes: Any, words: Any, k0: Any, k1: Any
) -> tuple[Any, Callable[..., Any]]:
    from numba.core import types

    return types.void(lanes, types.int64, types.uint64, types.uint64), _generate


_hash_lanes: Any = intrinsic(_define)


@inlined
def hash_lanes(lanes: U64Array, words: int, k0: Any, k1: Any) -> None:
    """Hash what is in `lanes`: keys of up to `words` words, of which LANE_KEY_WORDS is the most."""
    _hash_lanes(lanes, words, k0, k1)
