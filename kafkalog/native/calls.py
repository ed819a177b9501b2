"""Functions of C libraries, called from kernels by their address.

numba's own ways to such functions keep an address of this process in the compiled kernel, so it
could not be kept on disk.

    call_2(address, a, b)              a function of two words: pointers, sizes, numbers
    call_3(address, a, b, c)           of three
    call_4(address, a, b, c, d)        of four
    call_5(address, a, b, c, d, e)     of five

All are int64, the result as well: of a size_t that stands for an error it is below 0, and of a
function that returns 32 bits only these are meant.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from kafkalog.kernels.jit import INTERPRETED, intrinsic, signature_of_words


def _generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    from llvmlite import ir

    word = ir.IntType(64)
    function = ir.FunctionType(word, [word] * (len(arguments) - 1)).as_pointer()
    return builder.call(builder.inttoptr(arguments[0], function), arguments[1:])


def _compiled_2(_typing: Any, address: Any, a: Any, b: Any) -> tuple[Any, Any]:
    return signature_of_words(address, a, b), _generate


def _compiled_3(_typing: Any, address: Any, a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    return signature_of_words(address, a, b, c), _generate


def _compiled_4(_typing: Any, address: Any, a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any]:
    return signature_of_words(address, a, b, c, d), _generate


def _compiled_5(
    _typing: Any, address: Any, a: Any, b: Any, c: Any, d: Any, e: Any
) -> tuple[Any, Any]:
    return signature_of_words(address, a, b, c, d, e), _generate


def _interpreted(address: int, *arguments: int) -> int:
    words = [ctypes.c_int64] * (1 + len(arguments))
    return int(ctypes.CFUNCTYPE(*words)(int(address))(*map(int, arguments)))


def _called(compiled: Callable[..., Any]) -> Any:
    return _interpreted if INTERPRETED else intrinsic(compiled)


call_2 = _called(_compiled_2)
call_3 = _called(_compiled_3)
call_4 = _called(_compiled_4)
call_5 = _called(_compiled_5)
