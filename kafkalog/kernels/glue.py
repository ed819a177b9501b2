"""The way from Python into a kernel: a function of CPython's C API, in LLVM's language.

    static PyObject *kafkalog_call(PyObject *self, PyObject *const *args, Py_ssize_t nargs)

It takes arrays by the buffer protocol, which refuses what is not contiguous or may not be written,
holds their dtypes against the kernel's, gives up the GIL for the time of the kernel, and makes
Python's numbers of what comes back. `self` is a tuple of the Python objects that it needs:
TypeError, the text "dtype", and the dtype of each array.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kafkalog.kernels.parts import ArrayType, Part

# The way in from Python, and the one from C that it calls.
PYTHON_SYMBOL = "kafkalog_call"
ENTRY_SYMBOL = "kafkalog_kernel"

# Python's C API of any version.
_API = """
declare i32 @PyObject_GetBuffer(ptr, ptr, i32)
declare void @PyBuffer_Release(ptr)
declare ptr @PyObject_GetAttr(ptr, ptr)
declare i32 @PyObject_RichCompareBool(ptr, ptr, i32)
declare void @Py_DecRef(ptr)
declare void @PyErr_SetString(ptr, ptr)
declare ptr @PyErr_Occurred()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyNumber_Index(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare i64 @PyLong_AsUnsignedLongLong(ptr)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyLong_FromUnsignedLongLong(i64)
declare ptr @Py_BuildValue(ptr, ...)
declare ptr @PyTuple_GetItem(ptr, i64)
"""
EXTERNAL_FUNCTIONS = frozenset(
    {line.split("@")[1].split("(")[0] for line in _API.split("\n") if line}
    # What LLVM itself calls.
    | {"memcpy", "memset", "memmove"}
)

# PyBUF_C_CONTIGUOUS, which has PyBUF_STRIDES and PyBUF_ND in it; with PyBUF_WRITABLE.
_READ, _WRITE = 0x38, 0x39

# Py_buffer is of the stable ABI: buf at 0, ndim (an int) at 36, shape at 48, 80 bytes.
_SHARED = """
%view = type { ptr, ptr, i64, i64, i32, i32, ptr, ptr, ptr, ptr, ptr }

; Takes the buffer of an array into `view`: false, and an error is set, if it is not as expected.
define internal i1 @take(ptr %self, i64 %item, ptr %array, ptr %view, i32 %flags, i32 %dimensions,
                         i64 %unaligned, ptr %message) noinline {
start:
  %taken = call i32 @PyObject_GetBuffer(ptr %array, ptr %view, i32 %flags)
  %is_taken = icmp eq i32 %taken, 0
  br i1 %is_taken, label %look, label %failed
look:
  %name = call ptr @PyTuple_GetItem(ptr %self, i64 1)
  %dtype = call ptr @PyObject_GetAttr(ptr %array, ptr %name)
  %has_dtype = icmp ne ptr %dtype, null
  br i1 %has_dtype, label %compare, label %refuse
compare:
  %expected = call ptr @PyTuple_GetItem(ptr %self, i64 %item)
  %is_same = icmp eq ptr %dtype, %expected
  br i1 %is_same, label %compared, label %ask
ask:
  %answer = call i32 @PyObject_RichCompareBool(ptr %dtype, ptr %expected, i32 2)
  %is_equal = icmp eq i32 %answer, 1
  br label %compared
compared:
  %fits = phi i1 [ true, %compare ], [ %is_equal, %ask ]
  call void @Py_DecRef(ptr %dtype)
  %ndim_at = getelementptr %view, ptr %view, i32 0, i32 5
  %ndim = load i32, ptr %ndim_at
  %fits_too = icmp eq i32 %ndim, %dimensions
  %place = load i64, ptr %view
  %rest = and i64 %place, %unaligned
  %is_aligned = icmp eq i64 %rest, 0
  %both = and i1 %fits, %fits_too
  %all = and i1 %both, %is_aligned
  br i1 %all, label %good, label %refuse
good:
  ret i1 true
refuse:
  %error = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  call void @PyErr_SetString(ptr %error, ptr %message)
  call void @PyBuffer_Release(ptr %view)
  ret i1 false
failed:
  ret i1 false
}

define internal void @release(ptr %views, i64 %count) noinline {
start:
  br label %next
next:
  %number = phi i64 [ 0, %start ], [ %after, %one ]
  %is_one = icmp ult i64 %number, %count
  br i1 %is_one, label %one, label %done
one:
  %view = getelementptr %view, ptr %views, i64 %number
  call void @PyBuffer_Release(ptr %view)
  %after = add i64 %number, 1
  br label %next
done:
  ret void
}

; An integer of 64 bits. What has no place in it is an error.
define internal i64 @signed(ptr %number, ptr %failed) noinline {
start:
  %value = call i64 @PyLong_AsLongLong(ptr %number)
  %may_be_error = icmp eq i64 %value, -1
  br i1 %may_be_error, label %ask, label %good
ask:
  %error = call ptr @PyErr_Occurred()
  %is_error = icmp ne ptr %error, null
  store i1 %is_error, ptr %failed
  br label %good
good:
  ret i64 %value
}

define internal i64 @unsigned(ptr %number, ptr %failed) noinline {
start:
  %index = call ptr @PyNumber_Index(ptr %number)
  %is_index = icmp ne ptr %index, null
  br i1 %is_index, label %convert, label %none
none:
  store i1 true, ptr %failed
  ret i64 0
convert:
  %value = call i64 @PyLong_AsUnsignedLongLong(ptr %index)
  call void @Py_DecRef(ptr %index)
  %may_be_error = icmp eq i64 %value, -1
  br i1 %may_be_error, label %ask, label %good
ask:
  %error = call ptr @PyErr_Occurred()
  %is_error = icmp ne ptr %error, null
  store i1 %is_error, ptr %failed
  br label %good
good:
  ret i64 %value
}

define internal double @real(ptr %number, ptr %failed) noinline {
start:
  %value = call double @PyFloat_AsDouble(ptr %number)
  %may_be_error = fcmp oeq double %value, -1.0
  br i1 %may_be_error, label %ask, label %good
ask:
  %error = call ptr @PyErr_Occurred()
  %is_error = icmp ne ptr %error, null
  store i1 %is_error, ptr %failed
  br label %good
good:
  ret double %value
}
"""


# By the scalar's type: what makes one of a number of Python, and what LLVM calls it.
_CONVERSIONS: dict[type[np.generic], tuple[str, str]] = {
    np.int64: ("signed", "i64"),
    np.uint64: ("unsigned", "i64"),
    np.float64: ("real", "double"),
}


@dataclass(frozen=True)
class Result:
    """What a kernel returns: nothing, a number, or a tuple of them."""

    count: int
    is_tuple: bool
    is_unsigned: bool

    @property
    def format(self) -> str:
        """What Py_BuildValue makes of it."""
        letters = ("K" if self.is_unsigned else "L") * self.count
        return f"({letters})" if self.is_tuple else letters


def self_of(part: Part) -> tuple[object, ...]:
    """`self` of a kernel's way in."""
    arrays = (each for each in part.signature if isinstance(each, ArrayType))
    return TypeError, "dtype", *(array.dtype for array in arrays)


def glue_text(part: Part, result: Result) -> str:
    """LLVM's text of a kernel's way in from Python."""
    return "\n".join((_API, _SHARED, *_texts(part, result), *_function(part, result)))


def _c_text(name: str, text: str) -> str:
    data = text.encode() + b"\0"
    inside = "".join(f"\\{byte:02X}" for byte in data)
    return f'@{name} = private constant [{len(data)} x i8] c"{inside}"'


def _texts(part: Part, result: Result) -> Iterator[str]:
    name, count = part.function.__name__, len(part.signature)
    yield _c_text("count_message", f"{name}() takes {count} arguments, by position")
    yield _c_text("result_format", result.format)
    for number, argument in enumerate(part.signature):
        if isinstance(argument, ArrayType):
            kind = argument.dtype.name
            kind = f"record[{argument.dtype.itemsize}]" if argument.dtype.names else kind
            dimensions = "" if argument.dimensions == 1 else f" of {argument.dimensions} dimensions"
            message = f"{name}() argument {number + 1} has to be an array{dimensions} of {kind}"
            yield _c_text(f"message_{number}", message)


def _function(part: Part, result: Result) -> Iterator[str]:
    arrays = [n for n, each in enumerate(part.signature) if isinstance(each, ArrayType)]
    yield f"define ptr @{PYTHON_SYMBOL}(ptr %self, ptr %args, i64 %count) {{"
    yield f"""start:
  %views = alloca [{max(len(arrays), 1)} x %view], align 16
  %results = alloca [{max(result.count, 1)} x i64], align 16
  %failed = alloca i1
  store i1 false, ptr %failed
  %has_all = icmp eq i64 %count, {len(part.signature)}
  br i1 %has_all, label %all_there, label %wrong_count
wrong_count:
  %type_error = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  call void @PyErr_SetString(ptr %type_error, ptr @count_message)
  ret ptr null
all_there:"""
    taken = 0
    for number, argument in enumerate(part.signature):
        yield f"  %at_{number} = getelementptr ptr, ptr %args, i64 {number}"
        yield f"  %arg_{number} = load ptr, ptr %at_{number}"
        if isinstance(argument, ArrayType):
            yield from _take(number, argument, taken)
            taken += 1
        else:
            yield from _convert(number, argument)
        yield f"  br i1 %good_{number}, label %after_{number}, label %failed_{taken}_{number}"
        held = taken - 1 if isinstance(argument, ArrayType) else taken
        yield f"""failed_{taken}_{number}:
  call void @release(ptr %views, i64 {held})
  ret ptr null
after_{number}:"""
        if isinstance(argument, ArrayType):
            yield from _fields(number, argument)
    words = [word for n, each in enumerate(part.signature) for word in _words(n, each)]
    kinds = ", ".join(word.split()[0] for word in [*words, "ptr %results"])
    yield "  %thread = call ptr @PyEval_SaveThread()"
    yield f"  call void @{ENTRY_SYMBOL}({', '.join([*words, 'ptr %results'])})"
    yield "  call void @PyEval_RestoreThread(ptr %thread)"
    yield f"  call void @release(ptr %views, i64 {taken})"
    for item in range(result.count):
        yield f"  %result_at_{item} = getelementptr i64, ptr %results, i64 {item}"
        yield f"  %result_{item} = load i64, ptr %result_at_{item}"
    numbers = "".join(f", i64 %result_{item}" for item in range(result.count))
    yield f"  %made = call ptr (ptr, ...) @Py_BuildValue(ptr @result_format{numbers})"
    yield "  ret ptr %made\n}"
    yield f"declare void @{ENTRY_SYMBOL}({kinds})"


def _take(number: int, argument: ArrayType, taken: int) -> Iterator[str]:
    flags = _WRITE if argument.is_written else _READ
    yield f"  %view_{number} = getelementptr %view, ptr %views, i64 {taken}"
    yield (
        f"  %good_{number} = call i1 @take(ptr %self, i64 {taken + 2}, ptr %arg_{number}, "
        f"ptr %view_{number}, i32 {flags}, i32 {argument.dimensions}, "
        f"i64 {argument.dtype.alignment - 1}, ptr @message_{number})"
    )


def _fields(number: int, argument: ArrayType) -> Iterator[str]:
    """Address and lengths of a buffer that was taken."""
    yield f"  %buf_{number} = load ptr, ptr %view_{number}"
    yield f"  %shape_at_{number} = getelementptr %view, ptr %view_{number}, i32 0, i32 7"
    yield f"  %shape_{number} = load ptr, ptr %shape_at_{number}"
    for axis in range(argument.dimensions):
        place = f"%length_at_{number}_{axis}"
        yield f"  {place} = getelementptr i64, ptr %shape_{number}, i64 {axis}"
        yield f"  %length_{number}_{axis} = load i64, ptr {place}"


def _convert(number: int, argument: type[np.generic]) -> Iterator[str]:
    name, kind = _CONVERSIONS[argument]
    yield f"  %value_{number} = call {kind} @{name}(ptr %arg_{number}, ptr %failed)"
    yield f"  %is_bad_{number} = load i1, ptr %failed"
    yield f"  %good_{number} = xor i1 %is_bad_{number}, true"


def _words(number: int, argument: object) -> Iterator[str]:
    """What the way in from C gets of an argument."""
    if isinstance(argument, ArrayType):
        yield f"ptr %buf_{number}"
        yield from (f"i64 %length_{number}_{axis}" for axis in range(argument.dimensions))
    elif argument is np.float64:
        yield f"double %value_{number}"
    else:
        yield f"i64 %value_{number}"
