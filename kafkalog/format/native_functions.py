"""Where a C function of a loaded library is: the address by which kernels call it."""

from __future__ import annotations

import ctypes


def address_of(library: str | None, name: str) -> int:
    """Of an exported function of a library file; None is the C library itself. AttributeError if
    it has no such name, OSError if it cannot be loaded.
    """
    address = ctypes.cast(getattr(ctypes.CDLL(library), name), ctypes.c_void_p).value
    assert address, "an exported function is somewhere"  # noqa: S101
    return address
