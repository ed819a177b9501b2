"""Read many small files whole, into one array: open, one read and close of each, without Python.

Of an index that is preallocated only its beginning is read, and the entries where bisection looks
for the end of those that were written (`log.index_tail`): where one of them is not zero the file is
not read.

Source: open(2), pread(2), close(2).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kafkalog.kernels.jit import (
    I64,
    I64_IN,
    I64_OUT,
    U8_IN,
    U8_OUT,
    I64Array,
    U8Array,
    helper,
    kernel,
)
from kafkalog.native.calls import call_3, call_4
from kafkalog.native.directory_entries import Listed
from kafkalog.native.functions import ListDirectory, Pread, address_of, tried_out

_PATH_BYTES = 8192
_MOST_ENTRY_BYTES = 64
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_INT_BITS, _MAX_INT = 0xFFFFFFFF, 0x7FFFFFFF
_SLASH = 47


def can_read() -> bool:
    """Whether the functions are there."""
    return bool(_functions.pread)


class WantedFiles(NamedTuple):
    """Of f files, int64[f]: which of the entries that were listed; how many bytes of each; how long
    it is, and how wide its entries are, 0 of one that is to be read whole.
    """

    entries: NDArray[np.int64]
    sizes: NDArray[np.int64]
    file_bytes: NDArray[np.int64]
    entry_bytes: NDArray[np.int64]


def read_files(
    directories: Sequence[bytes], listed: Listed, wanted: WantedFiles
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """The bytes of files that were `listed` in these directories, one behind the other; and which
    could be read, with no byte missing. ValueError where `can_read` says no, for a path with a zero
    in it, for files that are not listed, and for sizes below zero.
    """
    if not can_read() or any(b"\0" in path for path in directories):
        raise ValueError("no path of the system's, or no function to read what is there")
    count = len(listed.name_ends)
    if len({each.size for each in wanted}) > 1 or (wanted.sizes < 0).any():
        raise ValueError("not a size for each file")
    if ((wanted.entries < 0) | (wanted.entries >= count)).any():
        raise ValueError(f"a file that is not one of {count}")
    return _read_with(_functions, directories, listed, wanted)


class _Functions(NamedTuple):
    open: ListDirectory
    pread: Pread
    close: ListDirectory


def _read_with(
    functions: _Functions, directories: Sequence[bytes], listed: Listed, wanted: WantedFiles
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    joined = np.frombuffer(b"".join(directories) or b"\0", np.uint8)
    path_ends = np.cumsum([len(path) for path in directories], dtype=np.int64)
    owners = np.searchsorted(listed.ends, wanted.entries, side="right").astype(np.int64)
    out = np.empty(int(wanted.sizes.sum()), np.uint8)
    ends = np.cumsum(wanted.sizes, dtype=np.int64)
    is_read = np.zeros(ends.size, np.int64)
    _read_all(
        *functions, joined, path_ends, owners, listed.names, listed.name_ends, wanted.entries, ends,
        wanted.file_bytes, wanted.entry_bytes, np.empty(_PATH_BYTES, np.uint8),
        np.empty(_MOST_ENTRY_BYTES, np.uint8), out, is_read,
    )  # fmt: skip
    return out, is_read > 0


@helper
def _put(source: U8Array, first: int, end: int, target: U8Array, at: int) -> int:
    for place in range(first, end):
        target[at] = source[place]
        at += 1
    return at


@helper
def _ends_with_zeros(
    pread: Pread, descriptor: int, size: int, file_bytes: int, entry_bytes: int, entry: U8Array
) -> bool:
    """Whether behind the first `size` bytes of an index all entries are zero that bisection looks
    at: from the whole down to those bytes, which have no end of the entries that were written.
    """
    if entry_bytes <= 0 or entry_bytes > entry.size:
        return False
    low, high = I64(1), file_bytes // entry_bytes
    while high - low > 1:
        middle = (low + high) // 2
        if middle * entry_bytes < size:
            return True
        found = call_4(pread, descriptor, I64(entry.ctypes.data), entry_bytes, middle * entry_bytes)
        if found != entry_bytes:
            return False
        for place in range(entry_bytes):
            if entry[place] != 0:
                return False
        high = middle
    return True


@helper
def _read_one(
    open_: ListDirectory, pread: Pread, close: ListDirectory, path: int, target: int, size: int,
    file_bytes: int, entry_bytes: int, entry: U8Array,
) -> int:  # fmt: skip
    """1 if the file has given so many bytes, which there is room for."""
    # `open` takes its third number only where it makes a file: what stands there is not read.
    descriptor = call_3(open_, path, I64(_FLAGS), I64(0)) & I64(_INT_BITS)
    if descriptor > _MAX_INT:
        return 0
    # An empty file is opened, too: whether it can be.
    is_read = size == 0 or call_4(pread, descriptor, target, size, I64(0)) == size
    if is_read and file_bytes > size:
        is_read = _ends_with_zeros(pread, descriptor, size, file_bytes, entry_bytes, entry)
    call_3(close, descriptor, I64(0), I64(0))
    return 1 if is_read else 0


@kernel(
    (
        I64, I64, I64, U8_IN, I64_IN, I64_IN, U8_IN, I64_IN, I64_IN, I64_IN, I64_IN, I64_IN,
        U8_OUT, U8_OUT, U8_OUT, I64_OUT,
    )
)  # fmt: skip
def _read_all(
    open_: ListDirectory, pread: Pread, close: ListDirectory,
    paths: U8Array, path_ends: I64Array, owners: I64Array, names: U8Array, name_ends: I64Array,
    entries: I64Array, ends: I64Array, file_bytes: I64Array, entry_bytes: I64Array, path: U8Array,
    entry: U8Array, out: U8Array, is_read: I64Array,
) -> None:  # fmt: skip
    of_path, of_out = I64(path.ctypes.data), I64(out.ctypes.data)
    for f in range(entries.size):
        d, e = owners[f], entries[f]
        path_start = path_ends[d - 1] if d else I64(0)
        name_start = name_ends[e - 1] if e else I64(0)
        start = ends[f - 1] if f else I64(0)
        # With a slash between them, and a zero behind.
        size = path_ends[d] - path_start + name_ends[e] - name_start + 2
        is_read[f] = 0
        if size > path.size or start > ends[f] or ends[f] > out.size:
            continue
        at = _put(paths, path_start, path_ends[d], path, I64(0))
        path[at] = _SLASH
        at = _put(names, name_start, name_ends[e], path, at + 1)
        path[at] = 0
        is_read[f] = _read_one(
            open_, pread, close, of_path, of_out + start, ends[f] - start, file_bytes[f],
            entry_bytes[f], entry,
        )  # fmt: skip


def _find() -> Pread:
    return Pread(address_of(None, "pread"))


def _find_all(pread: Pread) -> _Functions:
    opens, closes = (ListDirectory(address_of(None, name)) for name in ("open", "close"))
    return _Functions(opens, pread, closes)


def _works(pread: Pread) -> bool:
    """Whether it reads the files of this room as Python does, and none that is not there."""
    room = os.fsencode(Path(__file__).parent)
    names = sorted(path.name.encode() for path in Path(__file__).parent.glob("*.py"))
    wanted = [*names, b"no such file"]
    listed = Listed(
        np.frombuffer(b"".join(wanted), np.uint8), np.cumsum([len(name) for name in wanted]),
        np.empty((0, 0), np.int64), np.array([len(wanted)]), np.ones(1, np.bool_),
    )  # fmt: skip
    data = [(Path(__file__).parent / name.decode()).read_bytes() for name in names]
    sizes = np.array([*map(len, data), 1])
    files = WantedFiles(np.arange(len(wanted)), sizes, sizes, np.zeros_like(sizes))
    found, is_read = _read_with(_find_all(pread), [room], listed, files)
    return (
        bool(names)
        and found[:-1].tobytes() == b"".join(data)
        and (is_read.tolist() == [*([True] * len(names)), False])
    )


def find_functions() -> _Functions:
    """Those of the C library; 0 for all where one is not there, or does what it should not."""
    pread = tried_out("open and pread of the C library", _find, _works)
    nothing = ListDirectory(0)
    return _find_all(pread) if pread else _Functions(nothing, Pread(0), nothing)


_functions = find_functions()
