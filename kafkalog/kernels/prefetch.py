"""Have the processor fetch what will be read soon: many places of a table that is larger than its
caches are then waited for at once, instead of one after the other.

A prefetch changes nothing and cannot fail, whatever place it names. Interpreted and bounds-checked
runs do without.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kafkalog.kernels.jit import CHECKED, INTERPRETED, inlined, intrinsic


def _generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    from llvmlite import ir
    from numba.core import cgutils

    array, index = arguments
    data = cgutils.create_struct_proxy(signature.args[0])(context, builder, array).data
    place = builder.bitcast(builder.gep(data, [index]), cgutils.voidptr_t)
    number = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])
    function = builder.module.declare_intrinsic("llvm.prefetch", [cgutils.voidptr_t], kind)
    # To be written to, in all caches, data.
    builder.call(function, [place, number(1), number(3), number(1)])
    return context.get_dummy_value()


def _define(_context: Any, array: Any, index: Any) -> tuple[Any, Any]:
    from numba.core import types

    return types.void(array, types.uint64), _generate


_prefetch: Any = intrinsic(_define)

if INTERPRETED or CHECKED:

    @inlined
    def prefetch(array: Any, index: Any) -> None:
        """array[index] will be read, and written, soon."""

else:

    @inlined
    def prefetch(array: Any, index: Any) -> None:
        """array[index] will be read, and written, soon."""
        _prefetch(array, index)


@inlined
def prefetch_record(buf: Any, pos: int, end: int) -> None:
    """A record some way behind the one in buf[pos:end] will be read soon, if all are about as long.

    Of records only the first and last bytes are looked at, which is no pattern that a processor
    sees by itself, and a chunk of them does not stay in its nearest caches.
    """
    # Measured: the sixteenth, where the fourth one comes too late for records of 100 bytes.
    prefetch(buf, np.uint64(end + 15 * (end - pos)))
