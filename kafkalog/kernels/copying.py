"""Copy bytes between arrays as memcpy does, at any alignment.

A loop over bytes is what numba has, and LLVM does not know that source and destination differ, so
it guards and vectorises each short copy anew. These go around numba's arrays to llvm.memcpy: with a
constant size it is one or two moves. Interpreted or bounds-checked runs use the loops, so an index
that is wrong is seen there.

The caller guarantees that both ranges are inside their arrays and do not overlap.
"""

from __future__ import annotations

from typing import Any

from kafkalog.kernels.jit import CHECKED, INTERPRETED, U8Array, inlined, intrinsic

WIDE = 16  # bytes of one vector register


def _byte_pointer(context: Any, builder: Any, array_type: Any, array: Any, pos: Any) -> Any:
    from numba.core import cgutils

    data = cgutils.create_struct_proxy(array_type)(context, builder, array).data
    return builder.gep(data, [pos])


def _define_memcpy(context: Any, out: Any, out_pos: Any, buf: Any, pos: Any, length: Any) -> Any:
    from numba.core import cgutils, types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, out_pos, buf, pos, length = arguments
        out_type, _, buf_type, _, _ = signature.args
        target = _byte_pointer(context, builder, out_type, out, out_pos)
        source = _byte_pointer(context, builder, buf_type, buf, pos)
        cgutils.raw_memcpy(builder, target, source, length, 1)
        return context.get_dummy_value()

    return types.void(out, types.int64, buf, types.int64, types.int64), generate


def _define_memcpy_wide(context: Any, out: Any, out_pos: Any, buf: Any, pos: Any) -> Any:
    from numba.core import cgutils, types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, out_pos, buf, pos = arguments
        out_type, _, buf_type, _ = signature.args
        target = _byte_pointer(context, builder, out_type, out, out_pos)
        source = _byte_pointer(context, builder, buf_type, buf, pos)
        cgutils.raw_memcpy(builder, target, source, cgutils.intp_t(WIDE), 1)
        return context.get_dummy_value()

    # The size is a constant of the generated code: LLVM makes one or two moves of it.
    return types.void(out, types.int64, buf, types.int64), generate


# numba passes the first argument itself, which its types do not say.
_memcpy: Any = intrinsic(_define_memcpy)
_memcpy_wide: Any = intrinsic(_define_memcpy_wide)

if INTERPRETED or CHECKED:

    @inlined
    def copy_bytes(out: U8Array, out_pos: int, buf: U8Array, pos: int, length: int) -> None:
        """out[out_pos : out_pos + length] = buf[pos : pos + length]"""
        for i in range(length):
            out[out_pos + i] = buf[pos + i]

    @inlined
    def copy_wide(out: U8Array, out_pos: int, buf: U8Array, pos: int) -> None:
        """WIDE bytes, whether all are needed or not: the fastest way to copy fewer."""
        for i in range(WIDE):
            out[out_pos + i] = buf[pos + i]

else:

    @inlined
    def copy_bytes(out: U8Array, out_pos: int, buf: U8Array, pos: int, length: int) -> None:
        """out[out_pos : out_pos + length] = buf[pos : pos + length]"""
        _memcpy(out, out_pos, buf, pos, length)

    @inlined
    def copy_wide(out: U8Array, out_pos: int, buf: U8Array, pos: int) -> None:
        """WIDE bytes, whether all are needed or not: the fastest way to copy fewer."""
        _memcpy_wide(out, out_pos, buf, pos)
