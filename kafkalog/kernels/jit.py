"""How kernels are compiled: decorators for kernels and their helpers, and the names of types.

A kernel has one signature. It is taken from the cache when it is called first, or compiled then and
kept (`keeping`), and with other types it is refused. A helper is compiled into each kernel that
calls it; to Python it stays the function that it is.

What runs is machine code that is loaded by itself: numba is imported where something has to be
compiled, and nowhere else (`compiling`).

NUMBA_DISABLE_JIT=1 leaves all of them plain Python functions; NUMBA_BOUNDSCHECK=1 checks every
index, with numba's own way into a kernel, since a kernel that is checked raises.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from kafkalog.format.record_batch import BATCH_ROW
from kafkalog.kernels.parts import ArgumentType, ArrayType, Kind, Part, known_kernels, remember

Function = TypeVar("Function", bound=Callable[..., Any])

# What a kernel says to mypy.
U8Array: TypeAlias = NDArray[np.uint8]
I32Array: TypeAlias = NDArray[np.int32]
I64Array: TypeAlias = NDArray[np.int64]
U32Array: TypeAlias = NDArray[np.uint32]
U64Array: TypeAlias = NDArray[np.uint64]
RowArray: TypeAlias = NDArray[np.void]  # of BATCH_ROW

# What a kernel says to the compiler, and the casts it uses: scalars, arrays that are read (writable
# ones are accepted too), arrays that are written.
I32: Any = np.int32
I64: Any = np.int64
U8: Any = np.uint8
U64: Any = np.uint64
F64: Any = np.float64


def records_in(dtype: Any) -> ArrayType:
    """An array that is only read, of another dtype than those below."""
    return ArrayType(np.dtype(dtype), is_written=False)


def records_out(dtype: Any, dimensions: int = 1) -> ArrayType:
    """The same of one that is written."""
    return ArrayType(np.dtype(dtype), is_written=True, dimensions=dimensions)


U8_IN, I32_IN, I64_IN, U64_IN, ROW_IN = map(records_in, (U8, I32, I64, U64, BATCH_ROW))
U8_OUT, I32_OUT, I64_OUT, U64_OUT, ROW_OUT = map(records_out, (U8, I32, I64, U64, BATCH_ROW))
U32_IN, U32_OUT = records_in(np.uint32), records_out(np.uint32)


def _is_set(name: str) -> bool:
    return os.environ.get(name, "0").strip() not in ("", "0")


# Are kernels plain Python, or checked index by index? Then nothing may go around numba's own array
# access.
INTERPRETED = _is_set("NUMBA_DISABLE_JIT")
CHECKED = _is_set("NUMBA_BOUNDSCHECK") and not INTERPRETED


def kernel(signature: tuple[ArgumentType, ...]) -> Callable[[Function], Function]:
    """Machine code for these arguments, run without the GIL, kept on disk."""

    def make_kernel(function: Function) -> Function:
        if INTERPRETED:
            return function
        part = Part(function, Kind.KERNEL, signature)
        entry: Callable[..., Any] | None = None

        @wraps(function)
        def call(*arguments: Any) -> Any:
            nonlocal entry
            if entry is None:
                entry = _entry_of(part)
            return entry(*arguments)

        remember(call, part)
        return cast(Function, call)

    return make_kernel


def _entry_of(part: Part) -> Callable[..., Any]:
    """The machine code of a kernel as a function of Python."""
    if CHECKED:
        from kafkalog.kernels.compiling import dispatcher_of

        return cast(Callable[..., Any], dispatcher_of(part))
    from kafkalog.kernels.keeping import kept_code
    from kafkalog.kernels.loading import load_kernel

    return load_kernel(part, kept_code(part))


def compile_all() -> None:
    """Have all kernels of the modules that are imported compiled and kept."""
    for _, part in known_kernels():
        _entry_of(part)


def _remembered(function: Function, kind: Kind) -> Function:
    remember(function, Part(function, kind))
    return function


def inlined(function: Function) -> Function:
    """A helper that becomes part of every kernel that calls it."""
    return _remembered(function, Kind.INLINED)


def helper(function: Function) -> Function:
    """A helper for the rare case: LLVM decides whether it is worth its place."""
    return _remembered(function, Kind.HELPER)


def intrinsic(function: Function) -> Function:
    """A helper written in LLVM's language: `function` returns its signature and what generates the
    code. It is called where something is compiled, so it imports numba and llvmlite itself.
    """
    return _remembered(function, Kind.INTRINSIC)


def signature_of_words(*arguments: Any) -> Any:
    """What an intrinsic returns as its signature that takes int64 only, and returns one."""
    from numba import types

    return types.int64(*arguments)
