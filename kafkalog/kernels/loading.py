"""Kept kernels to functions of Python, without the compiler.

A shared library is loaded by the system. Where kernels are objects (`linking` knows one kind of
machine) LLVM's own loader does it.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Callable
from functools import cache
from itertools import count, takewhile
from pathlib import Path
from typing import Any, NamedTuple, cast

from kafkalog.kernels.glue import PYTHON_SYMBOL, self_of
from kafkalog.kernels.parts import Part

_METH_FASTCALL = 0x80
# Where a file of ELF says what it is, and of a shared library what.
_ELF_TYPE_AT, _SHARED = 16, b"\x03\x00"

# Counts libraries that are in no file.
_in_memory = count(1)


class _MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class Code(NamedTuple):
    """The machine code of a kernel, and the file that begins with it, if it is kept."""

    data: bytes
    path: Path | None


@cache
def processor() -> tuple[str, ...]:
    """Which processors can run what was compiled on this one: those with the same facts."""
    wanted = ("cpu family", "model", "flags", "Features", "CPU ")
    try:
        with Path("/proc/cpuinfo").open() as file:
            # Of the first one alone: there may be hundreds.
            lines = takewhile(str.strip, file)
            found = tuple(line for line in lines if line.startswith(wanted))
    except OSError:
        found = ()
    if found:
        return platform.machine(), *found
    from llvmlite import binding as llvm

    return (
        llvm.get_process_triple(),
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
    )


def target_machine() -> Any:
    """LLVM's for this machine."""
    from llvmlite import binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    return llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=cpu, features=features, opt=3, reloc="pic", codemodel="small", jit=True
    )


def load_kernel(part: Part, code: Code) -> Callable[..., Any]:
    """The function of Python that runs a kernel's machine code."""
    is_library = code.data[_ELF_TYPE_AT : _ELF_TYPE_AT + 2] == _SHARED
    load = _load_library if is_library else _load_object
    held, address = load(code)
    return _python_function(part, address, held)


def _load_library(code: Code) -> tuple[object, int]:
    library: Any = None
    if code.path is not None:
        try:
            library = ctypes.PyDLL(str(code.path))
        except OSError:
            pass  # no file is run from there (noexec), or it is gone
    if library is None:
        library = _load_from_memory(code.data)
    address = ctypes.cast(library[PYTHON_SYMBOL], ctypes.c_void_p)
    return library, address.value or 0


def _load_from_memory(data: bytes) -> Any:
    # The system takes two libraries of one name for the same, and descriptors get the numbers of
    # those that were closed before: so each name has more in it that says nothing.
    descriptor = os.memfd_create(PYTHON_SYMBOL)
    try:
        with Path(f"/proc/self/fd/{descriptor}").open("wb") as file:
            file.write(data)
        return ctypes.PyDLL(f"/proc/self/fd/{'./' * next(_in_memory)}{descriptor}")
    finally:
        os.close(descriptor)


def _load_object(code: Code) -> tuple[object, int]:
    from llvmlite import binding as llvm

    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code.data))
    engine.finalize_object()
    return engine, engine.get_function_address(PYTHON_SYMBOL)


def _python_function(part: Part, address: int, code: object) -> Callable[..., Any]:
    name = part.function.__name__.encode()
    method = _MethodDef(name, address, _METH_FASTCALL, None)
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    make = kind(("PyCFunction_NewEx", ctypes.pythonapi))
    # What a function needs lives as long as the process: its code, its description. A module that
    # holds them is not enough: at its end Python empties modules, and looks at functions after it.
    for needed in (method, code):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(needed))
    made = make(ctypes.byref(method), self_of(part), None)
    return cast(Callable[..., Any], made)
