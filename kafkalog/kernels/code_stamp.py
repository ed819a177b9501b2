"""What the machine code of a kernel is made from, as one digest: the key of its place in the cache.

A kernel compiled with yesterday's helper or yesterday's number from another file would be a silent
wrong answer after an upgrade. So nothing that a kernel uses may go unseen: code, helpers and the
helpers of helpers, numbers, tuples, arrays, attributes of modules. What cannot be followed is
refused when the kernel is made.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType, NoneType
from typing import Any

import numpy as np

from kafkalog.kernels.parts import Part, part_of

# The modules whose content may differ without a new version, and what numba compiles in as it is.
_OWN = __name__.split(".")[0]
_PLAIN = (int, float, complex, str, bytes, NoneType, np.generic, np.dtype)


@cache
def part_stamp(part: Part) -> str:
    """The same of a kernel or a helper, once a process; of a kernel with its arguments' types."""
    facts = part.kind, repr(part.signature), stamp_of(part.function)
    return sha256(repr(facts).encode()).hexdigest()


def stamp_of(function: Callable[..., Any]) -> str:
    """A digest of all that the machine code of a function is made from: its own code, and whatever
    it names outside, down to the values.
    """
    facts = _code_facts(function.__code__), _uses(function)
    return sha256(repr(facts).encode()).hexdigest()


def _code_facts(code: CodeType) -> tuple[Any, ...]:
    """What a code object does, without where it was written. Functions inside are code objects
    among its constants; the text of one holds an address, so they are taken apart as well.
    """
    constants = [
        _code_facts(const) if isinstance(const, CodeType) else repr(const)
        for const in code.co_consts
    ]
    names = code.co_names, code.co_varnames, code.co_freevars
    return code.co_code.hex(), constants, names


def names_in(code: CodeType) -> set[str]:
    """The names of globals and attributes in a code object and in those inside."""
    inner = (names_in(const) for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*inner)


def _uses(function: Callable[..., Any]) -> list[tuple[str, str]]:
    """(name, what it stands for) of all globals and variables of outer functions in its code."""
    code = function.__code__
    names = names_in(code)
    outer = zip(code.co_freevars, function.__closure__ or (), strict=True)
    known = {name: value for name, value in function.__globals__.items() if name in names}
    known |= {name: cell.cell_contents for name, cell in outer}
    return [(name, _fact(known[name], names)) for name in sorted(known)]


def _fact(value: Any, names: set[str]) -> str:
    """Text that changes when what numba makes of a global changes.

    Numbers, texts and types are compiled in as they are, tuples item by item, a helper with its
    code. Of a module of ours those attributes count whose names are in the code: `status.OK` is
    read when a kernel is compiled and never again. TypeError for what would change unseen.
    """
    # Before all else: a helper is compiled in with its code, whatever stands for it here.
    part = part_of(value)
    if part is not None:
        return f"helper {part_stamp(part)}"
    if isinstance(value, ModuleType):
        if not value.__name__.startswith(_OWN):
            return f"{value.__name__} {getattr(value, '__version__', '')}"
        # A name of the code may be another module's attribute: then it is in the digest once too
        # often, which costs a compilation and never a wrong kernel.
        inside = sorted(name for name in names if hasattr(value, name))
        return repr([(name, _fact(getattr(value, name), names)) for name in inside])
    if isinstance(value, tuple):
        return repr((type(value).__name__, [_fact(item, names) for item in value]))
    if isinstance(value, np.ndarray):
        return repr((value.dtype, value.shape, value.tobytes()))
    if isinstance(value, type):
        return repr((value.__module__, value.__qualname__, getattr(value, "_fields", ())))
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, FunctionType) and value.__module__.startswith(_OWN):
        return f"function {stamp_of(value)}"
    if isinstance(value, FunctionType | BuiltinFunctionType):
        return f"function {value.__module__}.{value.__qualname__}"
    raise TypeError(f"a kernel uses {value!r}, of which its cache could not see a change")
