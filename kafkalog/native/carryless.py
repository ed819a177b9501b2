"""CRC-32C by carry-less multiplication: 512 bits of vectors at a time, on processors that have it.

A CRC is the remainder of the bytes, taken as a polynomial over GF(2), by a polynomial of degree 32.
Bytes far in front are replaced by fewer of the same remainder: their first and second 64 bits times
x^(distance + 32) and x^(distance - 32), each modulo the polynomial, are added to the bytes that lie
`distance` bits further on. 256 bytes are folded over the next 256 so, again and again, then four
vectors into one, whose 64 bytes go through the processor's own instruction for CRC-32C.

Elsewhere nothing here is called: `is_here` says so, and the code generated is empty.

Source: V. Gopal et al., Fast CRC Computation for Generic Polynomials Using PCLMULQDQ (Intel, 2009).
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir

from kafkalog.kernels.jit import I64, INTERPRETED, config, inlined, intrinsic
from kafkalog.native.functions import Crc32cExtend

_NEEDED = ("avx512f", "vpclmulqdq", "crc32", "sse4.2")
# Without the term x^32; the highest of 32 bits is the highest power.
_POLYNOMIAL = 0x1EDC6F41
_VECTOR_BYTES, _VECTORS = 64, 4
BLOCK_BYTES = _VECTORS * _VECTOR_BYTES
# Which halves of each 128 bits are multiplied with each other.
_FIRST_HALVES, _SECOND_HALVES = 0x00, 0x11


# In place of the address of a function, for none has this one.
VECTORS = Crc32cExtend(1)


def find_vectors() -> Crc32cExtend:
    """VECTORS where it `is_here`, else 0."""
    return VECTORS if is_here() else Crc32cExtend(0)


def is_here() -> bool:
    """Whether kernels are compiled for a processor with all that is needed."""
    # Settings that make numba compile for another processor than this one, or without its vectors.
    if INTERPRETED or config.CPU_NAME or config.CPU_FEATURES is not None or not config.ENABLE_AVX:
        return False
    try:
        features = binding.get_host_cpu_features()
    except RuntimeError:
        return False
    return all(features.get(name, False) for name in _NEEDED)


# Types of LLVM. Functions, since the digest of a kernel's code (`kernels.code_stamp`) cannot look
# into objects.
def _byte_type() -> Any:
    return ir.IntType(8)


def _half_type() -> Any:
    return ir.IntType(32)


def _word_type() -> Any:
    return ir.IntType(64)


def _vector_type() -> Any:
    return ir.VectorType(_word_type(), 8)


def _remainder(power: int) -> int:
    """x^power modulo the polynomial."""
    value = 1
    for _ in range(power):
        value = (value << 1) ^ (_POLYNOMIAL if value >> 31 else 0)
        value &= 0xFFFFFFFF
    return value


def _factors(distance_bits: int) -> Any:
    """The factors of the first and second halves of each 128 bits, for that distance."""
    # In bytes as they lie in memory the highest power comes first, so that the factors' bits are
    # turned round, and the product is one bit short.
    pair = [int(f"{_remainder(distance_bits + shift):032b}"[::-1], 2) << 1 for shift in (32, -32)]
    return ir.Constant(_vector_type(), pair * 4)


def _fold(builder: Any, vector: Any, distance_bits: int, onto: Any) -> Any:
    """A vector replaced by what has the same remainder `distance_bits` further on, added there."""
    kind = ir.FunctionType(_vector_type(), [_vector_type(), _vector_type(), _byte_type()])
    multiply = builder.module.declare_intrinsic("llvm.x86.pclmulqdq.512", [], kind)
    factors = _factors(distance_bits)
    first = builder.call(multiply, [vector, factors, _byte_type()(_FIRST_HALVES)])
    second = builder.call(multiply, [vector, factors, _byte_type()(_SECOND_HALVES)])
    return builder.xor(builder.xor(first, second), onto)


def _load(builder: Any, address: Any, kind: Any, offset: int = 0) -> Any:
    place = builder.inttoptr(builder.add(address, _word_type()(offset)), kind.as_pointer())
    loaded = builder.load(place)
    loaded.align = 1
    return loaded


def _add_word(builder: Any, checksum: Any, word: Any) -> Any:
    kind = ir.FunctionType(_word_type(), [_word_type(), _word_type()])
    function = builder.module.declare_intrinsic("llvm.x86.sse42.crc32.64.64", [], kind)
    return builder.call(function, [checksum, word])


def _generate_blocks(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    checksum, address, blocks = arguments
    if not is_here():
        return _word_type()(0)
    loaded = [_load(builder, address, _vector_type(), _VECTOR_BYTES * v) for v in range(_VECTORS)]
    # What was in front of these bytes is added to the first of them.
    none = ir.Constant(_vector_type(), [0] * 8)
    loaded[0] = builder.xor(loaded[0], builder.insert_element(none, checksum, _half_type()(0)))
    before, head = builder.block, builder.append_basic_block("head")
    body, end = builder.append_basic_block("body"), builder.append_basic_block("end")
    builder.branch(head)
    builder.position_at_end(head)
    left, place = builder.phi(_word_type()), builder.phi(_word_type())
    vectors = [builder.phi(_vector_type()) for _ in loaded]
    for phi, value in zip([left, place, *vectors], [blocks, address, *loaded], strict=True):
        phi.add_incoming(value, before)
    builder.cbranch(builder.icmp_signed(">", left, _word_type()(1)), body, end)
    builder.position_at_end(body)
    further = builder.add(place, _word_type()(BLOCK_BYTES))
    folded = [
        _fold(
            builder,
            vector,
            8 * BLOCK_BYTES,
            _load(builder, further, _vector_type(), _VECTOR_BYTES * v),
        )
        for v, vector in enumerate(vectors)
    ]
    fewer = builder.sub(left, _word_type()(1))
    for phi, value in zip([left, place, *vectors], [fewer, further, *folded], strict=True):
        phi.add_incoming(value, body)
    builder.branch(head)
    builder.position_at_end(end)
    last = vectors[-1]
    for v, vector in enumerate(vectors[:-1]):
        last = _fold(builder, vector, 8 * _VECTOR_BYTES * (_VECTORS - 1 - v), last)
    result = _word_type()(0)
    for word in range(8):
        result = _add_word(builder, result, builder.extract_element(last, _half_type()(word)))
    return result


def _generate_word(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    if not is_here():
        return _word_type()(0)
    return _add_word(builder, arguments[0], _load(builder, arguments[1], _word_type()))


def _generate_byte(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    if not is_here():
        return _word_type()(0)
    kind = ir.FunctionType(_half_type(), [_half_type(), _byte_type()])
    function = builder.module.declare_intrinsic("llvm.x86.sse42.crc32.32.8", [], kind)
    checksum = builder.trunc(arguments[0], _half_type())
    added = builder.call(function, [checksum, _load(builder, arguments[1], _byte_type())])
    return builder.zext(added, _word_type())


def _define_blocks(_typing: Any, checksum: Any, address: Any, blocks: Any) -> tuple[Any, Any]:
    return I64(checksum, address, blocks), _generate_blocks


def _define_word(_typing: Any, checksum: Any, address: Any) -> tuple[Any, Any]:
    return I64(checksum, address), _generate_word


def _define_byte(_typing: Any, checksum: Any, address: Any) -> tuple[Any, Any]:
    return I64(checksum, address), _generate_byte


_blocks: Any = intrinsic(_define_blocks)
_word: Any = intrinsic(_define_word)
_byte: Any = intrinsic(_define_byte)


@inlined
def extend_at(checksum: int, address: int, size: int) -> int:
    """Unsigned CRC-32C of the bytes that gave `checksum` with `size` >= 0 bytes behind them, which
    lie at an address and were held against their buffer before. Only where it `is_here`.
    """
    # All bits are inverted before the first byte and behind the last one.
    inverted: Any = checksum ^ I64(0xFFFFFFFF)
    place: Any = address
    end = address + size
    if size >= BLOCK_BYTES:
        inverted = _blocks(inverted, place, size // BLOCK_BYTES)
        place += size - size % BLOCK_BYTES
    while end - place >= I64(8):
        inverted = _word(inverted, place)
        place += I64(8)
    while place < end:
        inverted = _byte(inverted, place)
        place += I64(1)
    return int(inverted ^ I64(0xFFFFFFFF))
