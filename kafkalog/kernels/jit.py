"""How kernels are compiled: decorators for kernels and their helpers, and the names of types.

A kernel has explicit signatures, so it is compiled (or taken from the cache) once, at import, and
never again by surprise in the middle of a job. A helper is compiled into each kernel that calls it.

The cache of numba notices a change of the kernel's own file only; `code_stamp` tells it of all else
that a kernel is made from.

NUMBA_DISABLE_JIT=1 leaves all of them plain Python functions; NUMBA_BOUNDSCHECK=1 checks every
index.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import numba
import numpy as np
from numba import types
from numba.core.caching import IndexDataCacheFile, NullCache
from numpy.typing import NDArray

from kafkalog.format.record_batch import BATCH_ROW
from kafkalog.kernels.code_stamp import remember_stamp, stamp_of
from kafkalog.kernels.keeping import PackagedCache, Turn, cache_dir, keep_in_turn

# numba sets the attributes of its configuration at run time.
config: Any = numba.config

Function = TypeVar("Function", bound=Callable[..., Any])

# What a kernel says to mypy.
U8Array: TypeAlias = NDArray[np.uint8]
I32Array: TypeAlias = NDArray[np.int32]
I64Array: TypeAlias = NDArray[np.int64]
U32Array: TypeAlias = NDArray[np.uint32]
U64Array: TypeAlias = NDArray[np.uint64]
RowArray: TypeAlias = NDArray[np.void]  # of BATCH_ROW

# What a kernel says to numba, and the casts it uses: scalars, arrays that are read (writable ones
# are accepted too), arrays that are written.
I32: Any = types.int32
I64: Any = types.int64
U8: Any = types.uint8
U64: Any = types.uint64
F64: Any = types.float64


def readonly(dtype: Any) -> Any:
    """A contiguous array that is only read: Arrow's buffers are, and `dtype[::1]` refuses them."""
    return types.Array(dtype, 1, "C", readonly=True)


ROW = numba.from_dtype(BATCH_ROW)
U8_IN, I32_IN, I64_IN, U64_IN, ROW_IN = (readonly(dtype) for dtype in (U8, I32, I64, U64, ROW))
U8_OUT, I32_OUT, I64_OUT, U64_OUT, ROW_OUT = (dtype[::1] for dtype in (U8, I32, I64, U64, ROW))
U32_IN, U32_OUT = readonly(types.uint32), types.uint32[::1]


def records_in(dtype: np.dtype[np.void]) -> Any:
    """An array of records that is only read, of another dtype than BATCH_ROW."""
    return readonly(numba.from_dtype(dtype))


def records_out(dtype: np.dtype[np.void]) -> Any:
    """The same of records that are written."""
    return numba.from_dtype(dtype)[::1]


# Are kernels plain Python, or checked index by index? Then nothing may go around numba's own array
# access.
INTERPRETED = bool(config.DISABLE_JIT)
CHECKED = bool(config.BOUNDSCHECK)

# _nrt: kernels allocate nothing, so they need no reference counts. With them numba counts an array
# at each call of a helper, atomically, once a record: the loops below took two to four times as
# long.
# no_cfunc_wrapper: nobody calls a kernel from C.
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
    "no_cfunc_wrapper": True,
}


_UNKNOWN_NUMBA = (
    f"numba {numba.__version__} keeps compiled kernels in a way that is not known here: they are "
    "compiled in each process, which takes many seconds"
)


@cache
def _warn_once(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=3)


def _keep_on_disk(dispatcher: Any, stamp: str) -> Turn | None:
    """Take the kernel from numba's cache, or put it there; the turn to end when it is compiled.

    A user who may write neither beside the package nor below a home directory (a broker's often
    may not) has no place for it: what came compiled with the package is used, and what did not is
    compiled in each process.
    """
    try:
        _enable_caching(dispatcher)
    except RuntimeError:
        dispatcher._cache = PackagedCache(dispatcher.py_func)
    # Two private places of numba. It has no public one for what a kernel depends on beside its own
    # file. And before it looks into its cache it loads all it knows of Python and numpy, which
    # machine code does not need: 0.5 s less in each process. Where a kernel is not there, the
    # compiler loads it by itself.
    kept = dispatcher._cache
    file: Any = getattr(kept, "_cache_file", None)
    if not hasattr(file, "_source_stamp"):
        dispatcher._cache = NullCache()
        _warn_once(_UNKNOWN_NUMBA)
        return None
    file._source_stamp = (file._source_stamp, stamp, CHECKED, sorted(_OPTIONS.items()))
    if isinstance(kept, PackagedCache):
        return None
    beside = str(Path(dispatcher.py_func.__code__.co_filename).parent / "__pycache__")
    packaged = None
    if beside != file._cache_path and not CHECKED:
        packaged = IndexDataCacheFile(beside, kept._impl.filename_base, file._source_stamp)
    turn = Turn(file._cache_path)
    keep_in_turn(kept, packaged, turn)
    return turn


def _enable_caching(dispatcher: Any) -> None:
    """For this kernel alone: the setting is numba's, and what others compile in this process is
    not ours to place."""
    before = config.CACHE_DIR
    config.CACHE_DIR = cache_dir() or before
    try:
        dispatcher.enable_caching()
    finally:
        config.CACHE_DIR = before


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """The compiler makes millions of objects and keeps most of them: looking among them for
    garbage takes an eighth of its time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def kernel(*signatures: Any) -> Callable[[Function], Function]:
    """Compile a function for these signatures, without the GIL, with a cache on disk."""

    def compile_kernel(function: Function) -> Function:
        if INTERPRETED:
            return function
        dispatcher = numba.njit(**_OPTIONS)(function)
        turn = _keep_on_disk(dispatcher, stamp_of(function))
        remember_stamp(dispatcher, function)
        try:
            with _collector_at_rest():
                for signature in signatures:
                    dispatcher.compile(signature)
        finally:
            if turn is not None:
                turn.end()
        # From here on a call with other types is an error instead of a compilation in the middle of
        # a job.
        dispatcher.disable_compile()
        return cast(Function, dispatcher)

    return compile_kernel


def _make_helper(function: Function, **options: Any) -> Function:
    # Python calls kernels only: a helper has no way in from there (calling one is a crash), and the
    # compiler a fifth less to do.
    options = {"no_cpython_wrapper": True, **options, **_OPTIONS}
    dispatcher = numba.njit(**options)(function)
    remember_stamp(dispatcher, function)
    return cast(Function, dispatcher)


def inlined(function: Function) -> Function:
    """A helper that becomes part of every kernel that calls it."""
    return _make_helper(function, forceinline=True)


def helper(function: Function) -> Function:
    """A helper for the rare case: LLVM decides whether it is worth its place."""
    return _make_helper(function)


def intrinsic(function: Callable[..., Any]) -> Any:
    """A helper written in LLVM's language: `function` returns its signature and what generates the
    code.
    """
    made = numba.extending.intrinsic(function)
    remember_stamp(made, function)
    return made
