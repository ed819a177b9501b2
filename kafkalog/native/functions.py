"""Functions of C libraries: where they are, and whether they do what they should.

An address has the type of its function, so that one cannot be passed for another. 0 stands for a
function that is not there, or not to be trusted: nothing calls it then.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable
from typing import NewType, TypeVar, cast

# (context, out, room in out, data, size of data) -> bytes written, below 0 where it failed.
ZstdDecompress = NewType("ZstdDecompress", int)
ZstdCompress = NewType("ZstdCompress", int)
# (data, out, size of data, room in out) -> int of bytes written, below 0 where it failed.
Lz4Decompress = NewType("Lz4Decompress", int)
# (out, room in out, data, size of data, preferences) -> bytes written, below 0 where it failed.
Lz4Compress = NewType("Lz4Compress", int)
# (data, size of data) -> uint32.
Crc32c = NewType("Crc32c", int)
# (checksum so far, data, size of data) -> uint32.
Crc32cExtend = NewType("Crc32cExtend", int)
# (descriptor, out, size, position) -> bytes read, -1 where it failed.
Pread = NewType("Pread", int)
# open, getdents64, statx and close: a descriptor or a path first, -1 of an int where it failed.
ListDirectory = NewType("ListDirectory", int)

Address = TypeVar("Address", bound=int)


def address_of(library: str | None, name: str) -> int:
    """Of an exported function of a library file; None is the C library itself. AttributeError if
    it has no such name, OSError if it cannot be loaded.
    """
    address = ctypes.cast(getattr(ctypes.CDLL(library), name), ctypes.c_void_p).value
    assert address, "an exported function is somewhere"  # noqa: S101
    return address


def called_from_python(name: str, arguments: int) -> Callable[..., int] | None:
    """A function of the C library that takes so many integers; None where it is not there. Other
    threads go on while it is called.
    """
    function = getattr(ctypes.CDLL(None), name, None)
    if function is not None:
        function.argtypes = [ctypes.c_int64] * arguments
    return cast(Callable[..., int] | None, function)


def tried_out(
    name: str,
    find: Callable[[], Address],
    works: Callable[[Address], bool],
    instead: str = "Python calls it",
) -> Address:
    """The address that `find` gives if the function there `works`; else 0, and a warning that says
    what is done `instead`.

    Whatever goes wrong here is no reason to stop: what the function does can be done without it.
    """
    try:
        address = find()
        if works(address):
            return address
        reason = "it does not give what it should"
    except Exception as error:
        reason = str(error) or type(error).__name__
    warnings.warn(
        f"{name} cannot be called by compiled code ({reason}): {instead}, which is slower",
        RuntimeWarning,
        stacklevel=2,
    )
    return cast(Address, 0)
