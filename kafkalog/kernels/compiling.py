"""Kernels to machine code: the one module that imports numba, where something has to be compiled.

numba makes LLVM's code of a kernel and its helpers, with a way in from C (`numba.cfunc`) in which
each array is an address and its lengths. `glue` adds the way in from Python. LLVM then makes one
object of both, in which nothing is known of numba or of this process.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from types import CellType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from llvmlite import binding as llvm
from numba import types
from numba.core import cgutils

from kafkalog.kernels.code_stamp import names_in
from kafkalog.kernels.glue import (
    ENTRY_SYMBOL,
    EXTERNAL_FUNCTIONS,
    PYTHON_SYMBOL,
    Result,
    glue_text,
)
from kafkalog.kernels.jit import CHECKED
from kafkalog.kernels.linking import UnlinkableError, shared_library
from kafkalog.kernels.loading import target_machine
from kafkalog.kernels.parts import ArgumentType, ArrayType, Kind, Part, part_of

# _nrt: kernels allocate nothing, so they need no reference counts. With them numba counts an array
# at each call of a helper, atomically, once a record: the loops took two to four times as long.
# no_cfunc_wrapper: nobody calls a kernel from C but by what is made here.
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
    "no_cfunc_wrapper": True,
}
_OPTIONS_OF: dict[Kind, dict[str, Any]] = {
    # Python calls no helper: it has no way in from there, and the compiler a fifth less to do.
    Kind.INLINED: {"no_cpython_wrapper": True, "forceinline": True},
    Kind.HELPER: {"no_cpython_wrapper": True},
    # Inlined into its way in from C, a kernel cannot raise: LLVM sees that it returns no error.
    Kind.KERNEL: {"no_cpython_wrapper": True, "forceinline": True},
}

_dispatchers: dict[Part, Any] = {}


def compile_kernel(part: Part) -> bytes:
    """The machine code of a kernel for this machine: a shared library, or LLVM's object where none
    can be made of it."""
    made = compile_object(part)
    try:
        return shared_library(made, PYTHON_SYMBOL)
    except UnlinkableError:
        return made


def compile_object(part: Part) -> bytes:
    """LLVM's object of a kernel."""
    with _collector_at_rest():
        module, result = _llvm_of(part)
        module.link_in(llvm.parse_assembly(glue_text(part, result)))
        _keep_only(module, PYTHON_SYMBOL)
        machine = target_machine()
        tuning = llvm.create_pipeline_tuning_options(speed_level=3)
        passes = llvm.create_pass_builder(machine, tuning)
        passes.getModulePassManager().run(module, passes)
        _refuse_unknown(part, module)
        return bytes(machine.emit_object(module))


def dispatcher_of(part: Part) -> Any:
    """numba's own object for a part: of a kernel compiled for its signature and for no other."""
    if part in _dispatchers:
        return _dispatchers[part]
    if part.kind is Kind.INTRINSIC:
        made: Any = numba.extending.intrinsic(part.function)
    else:
        options = _OPTIONS_OF[part.kind] | _OPTIONS
        if part.kind is Kind.KERNEL and CHECKED:
            # It raises, so what Python calls is numba's own.
            options["no_cpython_wrapper"] = False
        made = numba.njit(**options)(_with_dispatchers(part.function))
    if part.kind is Kind.KERNEL:
        made.compile(tuple(map(numba_type, part.signature)))
        made.disable_compile()
    _dispatchers[part] = made
    return made


def numba_type(argument: ArgumentType) -> Any:
    """What numba calls the type of an argument."""
    if not isinstance(argument, ArrayType):
        return numba.from_dtype(np.dtype(argument))
    dtype = numba.from_dtype(argument.dtype)
    return types.Array(dtype, argument.dimensions, "C", readonly=not argument.is_written)


def _with_dispatchers(function: Any) -> FunctionType:
    """The function with what numba compiles in the place of the helpers that it names."""
    names = names_in(function.__code__)
    used = {
        name: _compiled(value, names)
        for name, value in function.__globals__.items()
        if name in names
    }
    cells = tuple(
        CellType(_compiled(cell.cell_contents, names)) for cell in function.__closure__ or ()
    )
    made = FunctionType(
        function.__code__, function.__globals__ | used, function.__name__, None, cells
    )
    made.__qualname__ = function.__qualname__
    made.__module__ = function.__module__
    return made


def _compiled(value: Any, names: set[str]) -> Any:
    part = part_of(value)
    if part is not None:
        return dispatcher_of(part)
    if isinstance(value, ModuleType):
        parts = {name: part_of(getattr(value, name, None)) for name in names}
        if any(parts.values()):
            copy = ModuleType(value.__name__)
            vars(copy).update(vars(value))
            vars(copy).update({n: dispatcher_of(p) for n, p in parts.items() if p is not None})
            return copy
    return value


def _llvm_of(part: Part) -> tuple[Any, Result]:
    """LLVM's module with a kernel and its way in from C, of the name that `glue` calls; and what
    it returns."""
    dispatcher = dispatcher_of(part)
    (compiled,) = dispatcher.nopython_signatures
    result = _result_of(part, compiled.return_type)
    arguments: list[Any] = []
    for argument in part.signature:
        if isinstance(argument, ArrayType):
            arguments.append(types.CPointer(numba.from_dtype(argument.dtype)))
            arguments += [types.intp] * argument.dimensions
        else:
            arguments.append(numba_type(argument))
    arguments.append(types.CPointer(numba_type(_number_of(result))))
    options = {name: _OPTIONS[name] for name in ("nogil", "error_model", "_nrt")}
    make: Any = numba.cfunc
    entry = make(types.void(*arguments), **options)(_way_in(part, dispatcher, result))
    module = llvm.parse_assembly(entry.inspect_llvm())
    module.get_function(entry.native_name).name = ENTRY_SYMBOL
    return module, result


def _number_of(result: Result) -> type[np.generic]:
    return np.uint64 if result.is_unsigned else np.int64


def _result_of(part: Part, kind: Any) -> Result:
    if kind == types.none:
        return Result(0, is_tuple=False, is_unsigned=False)
    is_tuple = isinstance(kind, types.BaseTuple)
    numbers = tuple(kind.types) if is_tuple else (kind,)
    if not all(isinstance(number, types.Integer) for number in numbers):
        raise TypeError(f"{part.name} returns {kind}: a kernel returns integers or nothing")
    unsigned = {not number.signed and number.bitwidth == 64 for number in numbers}
    if len(unsigned) > 1:
        raise TypeError(f"{part.name} returns {kind}: signed and unsigned")
    return Result(len(numbers), is_tuple=is_tuple, is_unsigned=unsigned == {True})


def _way_in(part: Part, dispatcher: Any, result: Result) -> FunctionType:
    """A function of addresses, lengths and numbers that calls the kernel with arrays."""
    space: dict[str, Any] = {"kernel": dispatcher}
    names: list[str] = []
    values: list[str] = []
    for number, argument in enumerate(part.signature):
        names.append(f"a{number}")
        if isinstance(argument, ArrayType):
            lengths = [f"n{number}_{axis}" for axis in range(argument.dimensions)]
            names += lengths
            space[f"array_{number}"] = _array_of(argument)
            values.append(f"array_{number}(a{number}, ({', '.join(lengths)},))")
        else:
            values.append(f"a{number}")
    lines = [f"def way_in({', '.join([*names, 'results'])}):"]
    call = f"kernel({', '.join(values)})"
    lines.append(f"    found = {call}" if result.count else f"    {call}")
    if result.count:
        space["results_array"] = _array_of(ArrayType(np.dtype(_number_of(result)), is_written=True))
        lines.append(f"    out = results_array(results, ({result.count},))")
    for item in range(result.count):
        lines.append(f"    out[{item}] = found{f'[{item}]' if result.is_tuple else ''}")
    exec("\n".join(lines), space)  # of numbers and names that are made here
    made: FunctionType = space["way_in"]
    return made


def _array_of(argument: ArrayType) -> Any:
    """What makes an array of an address and lengths. numba's own (`carray`) counts references."""
    array_type = numba_type(argument)

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        address, lengths = arguments
        array = cgutils.create_struct_proxy(array_type)(context, builder)
        shape = cgutils.unpack_tuple(builder, lengths)
        itemsize = cgutils.intp_t(argument.dtype.itemsize)
        # Of the last axis first.
        strides, size = [itemsize], shape[-1]
        for length in reversed(shape[:-1]):
            strides.insert(0, builder.mul(strides[0], shape[len(shape) - len(strides)]))
            size = builder.mul(size, length)
        array.data = builder.bitcast(address, array.data.type)
        array.nitems, array.itemsize = size, itemsize
        array.shape = cgutils.pack_array(builder, shape)
        array.strides = cgutils.pack_array(builder, strides)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()

    def define(_typing: Any, address: Any, lengths: Any) -> tuple[Any, Any]:
        return array_type(address, lengths), generate

    return numba.extending.intrinsic(define)


def _keep_only(module: Any, symbol: str) -> None:
    """All else becomes internal, so LLVM need not keep what nobody calls."""
    for each in (*module.functions, *module.global_variables):
        if not each.is_declaration and each.name != symbol:
            each.linkage = "internal"


def _refuse_unknown(part: Part, module: Any) -> None:
    """Whatever an object needs that is not in it has to be there in every process."""
    outside = {
        each.name
        for each in (*module.functions, *module.global_variables)
        if each.is_declaration and not each.name.startswith("llvm.")
    }
    unknown = sorted(outside - EXTERNAL_FUNCTIONS)
    if unknown:
        raise TypeError(f"{part.name} calls {', '.join(unknown)}: a kernel raises nothing")


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
