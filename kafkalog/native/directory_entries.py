"""List directories and look at all entries in them, some hundred thousand files a second.

    getdents64 → a block of linux_dirent64 (int64 inode, int64 next, uint16 size of the entry, uint8
                 type, name and a zero) of an open directory
    statx      → 256 bytes of one of them: size, times, inode, as the kernel's struct statx has them

Python makes an object of each entry and another of each look at one; here numbers go into columns.

Source: getdents64(2), statx(2); both are the kernel's interface, the same on all machines.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import accumulate
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
    inlined,
    kernel,
)
from kafkalog.native.calls import call_3, call_5
from kafkalog.native.functions import ListDirectory, address_of, tried_out

# Of an entry: type (as st_mode has it, shifted), size, modification and change time in ns, inode,
# and the seconds of the first time: of years far away its ns have no room in 64 bits.
KIND, SIZE, MTIME_NS, CTIME_NS, INODE, MTIME_S = range(6)
NUMBERS = 6
REGULAR, DIRECTORY, LINK = 8, 4, 10

_NAME = 19  # where the name begins in a linux_dirent64
_RECORD_BYTES = 16
_BLOCK_BYTES = 32 * 1024
_NO_FOLLOW = 0x100  # AT_SYMLINK_NOFOLLOW
_WANTED = 0x3C1  # STATX_TYPE, _MTIME, _CTIME, _INO, _SIZE
_STATX_WORDS = 32
_NS = 1_000_000_000
_DOT = 46
_FAILED, _NO_ROOM = -1, -2
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_INT_BITS, _MAX_INT = 0xFFFFFFFF, 0x7FFFFFFF
# Room at first, in all and of each directory; where one does not fit it is doubled.
_FIRST_ENTRIES, _ENTRIES_EACH = 4096, 64
_NAME_BYTES = 48


class Listed(NamedTuple):
    """The entries of directories, one directory behind the other, each in the order the system
    gave: names uint8[m], name e ends at name_ends[e], without a zero; numbers int64[e, NUMBERS];
    ends int64[d]: where the entries of each directory end; is_listed bool[d]: False of one that
    could not be opened or listed, is a link, or in which a file went meanwhile; it has no entries.
    """

    names: NDArray[np.uint8]
    name_ends: NDArray[np.int64]
    numbers: NDArray[np.int64]
    ends: NDArray[np.int64]
    is_listed: NDArray[np.bool_]


def can_list() -> bool:
    """Whether the functions are there."""
    return bool(_functions.statx)


def list_directories(paths: Sequence[bytes]) -> Listed:
    """What lies in these directories; of an entry that is a link the link. ValueError for a path
    with a zero in it, and where `can_list` says no.
    """
    if not can_list() or any(b"\0" in path for path in paths):
        raise ValueError("no path of the system's, or no function to list it")
    return _list_with(_functions, paths)


class _Functions(NamedTuple):
    open: ListDirectory
    getdents: ListDirectory
    statx: ListDirectory
    close: ListDirectory


def _list_with(functions: _Functions, paths: Sequence[bytes]) -> Listed:
    joined = np.frombuffer(b"\0".join([*paths, b""]) or b"\0", np.uint8)
    lengths = [len(path) + 1 for path in paths]
    starts = np.array([0, *accumulate(lengths[:-1])], np.int64)
    block = np.empty(_BLOCK_BYTES // 8, np.int64).view(np.uint8)  # entries lie at words
    stat = np.zeros(_STATX_WORDS, np.int64)
    room, done, parts = min(_FIRST_ENTRIES, _ENTRIES_EACH * len(paths)), 0, []
    while done < len(paths):
        names = np.empty(room * _NAME_BYTES, np.uint8)
        name_ends, numbers = np.empty(room, np.int64), np.empty(room * NUMBERS, np.int64)
        ends = np.empty(len(paths) - done, np.int64)
        is_listed = np.empty(ends.size, np.int64)
        count = _list(
            *functions, joined, starts[done:], block, stat, names, name_ends, numbers, ends,
            is_listed,
        )  # fmt: skip
        if count == 0:
            room *= 2
            continue
        last = int(ends[count - 1])
        size = int(name_ends[last - 1]) if last else 0
        # Copies: what room was left over is let go.
        parts.append(
            Listed(
                names[:size].copy(), name_ends[:last].copy(),
                numbers[: last * NUMBERS].reshape(-1, NUMBERS).copy(), ends[:count].copy(),
                is_listed[:count] > 0,
            )
        )  # fmt: skip
        done += count
    return _joined(parts)


def _joined(parts: Sequence[Listed]) -> Listed:
    if len(parts) == 1:
        return parts[0]
    none = np.empty(0, np.int64)
    sizes = np.cumsum([0, *(part.names.size for part in parts)])
    counts = np.cumsum([0, *(part.name_ends.size for part in parts)])
    return Listed(
        np.concatenate([none.view(np.uint8), *(part.names for part in parts)]),
        np.concatenate([none, *(p.name_ends + at for p, at in zip(parts, sizes, strict=False))]),
        np.concatenate([none.reshape(0, NUMBERS), *(part.numbers for part in parts)]),
        np.concatenate([none, *(p.ends + at for p, at in zip(parts, counts, strict=False))]),
        np.concatenate([none > 0, *(part.is_listed for part in parts)]),
    )


@helper
def _name_end(block: U8Array, at: int, end: int) -> int:
    """Where the name of the entry at `at` ends, whose zero lies before `end`; -1 if there is none.
    What the system says of its own block is held against the block all the same.
    """
    if end - at <= _NAME:
        return -1
    step = I64(block[at + _RECORD_BYTES]) | (I64(block[at + _RECORD_BYTES + 1]) << 8)
    if step <= _NAME or step > end - at:
        return -1
    for place in range(at + _NAME, at + step):
        if block[place] == 0:
            return place if place > at + _NAME else -1
    return -1


@inlined
def _is_dots(block: U8Array, name: int, end: int) -> bool:
    """Whether a name is that of the directory itself, or of the one above."""
    return block[name] == _DOT and (
        end == name + 1 or (end == name + 2 and block[name + 1] == _DOT)
    )


@helper
def _add_entry(
    stat: I64Array, block: U8Array, name: int, end: int,
    names: U8Array, name_ends: I64Array, numbers: I64Array, entry: int,
) -> None:  # fmt: skip
    """One that there is room for, by what statx said of it."""
    size = name_ends[entry - 1] if entry else I64(0)
    for place in range(end - name):
        names[size + place] = block[name + place]
    name_ends[entry] = size + end - name
    row = entry * NUMBERS
    # Words of struct statx: 3 has the mode in its upper half, at 12 and 14 a time begins.
    numbers[row + KIND] = (stat[3] >> 44) & I64(15)
    numbers[row + SIZE] = stat[5]
    numbers[row + MTIME_NS] = stat[14] * I64(_NS) + (stat[15] & I64(_INT_BITS))
    numbers[row + CTIME_NS] = stat[12] * I64(_NS) + (stat[13] & I64(_INT_BITS))
    numbers[row + INODE] = stat[4]
    numbers[row + MTIME_S] = stat[14]


@helper
def _list_one(
    getdents: ListDirectory, statx: ListDirectory, descriptor: int, block: U8Array,
    stat: I64Array, names: U8Array, name_ends: I64Array, numbers: I64Array, entry: int,
) -> int:  # fmt: skip
    """The entries of an open directory from `entry` on: how many there are then, or one of
    _FAILED and _NO_ROOM.
    """
    first, of_stat = I64(block.ctypes.data), I64(stat.ctypes.data)
    while True:
        end = call_3(getdents, descriptor, first, I64(block.size))
        if end <= 0 or end > block.size:
            return entry if end == 0 else _FAILED
        at = I64(0)
        while at < end:
            name, name_end = at + _NAME, _name_end(block, at, end)
            if name_end < 0:
                return _FAILED
            at += I64(block[at + _RECORD_BYTES]) | (I64(block[at + _RECORD_BYTES + 1]) << 8)
            if _is_dots(block, name, name_end):
                continue
            size = name_ends[entry - 1] if entry else I64(0)
            if entry == name_ends.size or name_end - name > names.size - size:
                return _NO_ROOM
            place = first + name
            failed = call_5(statx, descriptor, place, I64(_NO_FOLLOW), I64(_WANTED), of_stat)
            if failed & I64(_INT_BITS):
                return _FAILED
            _add_entry(stat, block, name, name_end, names, name_ends, numbers, entry)
            entry += 1


@kernel(
    (
        I64, I64, I64, I64, U8_IN, I64_IN, U8_OUT, I64_OUT, U8_OUT, I64_OUT, I64_OUT, I64_OUT,
        I64_OUT,
    )
)  # fmt: skip
def _list(
    open_: ListDirectory, getdents: ListDirectory, statx: ListDirectory, close: ListDirectory,
    paths: U8Array, starts: I64Array, block: U8Array, stat: I64Array,
    names: U8Array, name_ends: I64Array, numbers: I64Array, ends: I64Array, is_listed: I64Array,
) -> int:  # fmt: skip
    """How many directories are done, of paths that end with a zero each: the next has no room."""
    first_path, entries = I64(paths.ctypes.data), I64(0)
    for d in range(starts.size):
        # `open` takes its third number only where it makes a file: what stands there is not read.
        descriptor = call_3(open_, first_path + starts[d], I64(_FLAGS), I64(0)) & I64(_INT_BITS)
        found = I64(_FAILED)
        if descriptor <= _MAX_INT:
            found = _list_one(
                getdents, statx, descriptor, block, stat, names, name_ends, numbers, entries
            )
            call_3(close, descriptor, I64(0), I64(0))
        if found == _NO_ROOM:
            return d
        is_listed[d] = I64(found != _FAILED)
        entries = entries if found == _FAILED else found
        ends[d] = entries
    return starts.size


def _find() -> ListDirectory:
    return ListDirectory(address_of(None, "getdents64"))


def _find_all(getdents: ListDirectory) -> _Functions:
    names = ("open", "statx", "close")
    opens, looks, closes = (ListDirectory(address_of(None, name)) for name in names)
    return _Functions(opens, getdents, looks, closes)


def _works(getdents: ListDirectory) -> bool:
    """Whether it sees the files of this room as Python does."""
    room = Path(__file__).parent
    found = _list_with(_find_all(getdents), [os.fsencode(room), os.fsencode(__file__)])
    ends = found.name_ends.tolist()
    seen = {
        found.names[start:end].tobytes(): row
        for start, end, row in zip([0, *ends], ends, found.numbers.tolist(), strict=False)
    }
    for path in room.glob("*.py"):
        stat = path.lstat()
        row = [stat.st_mode >> 12, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]
        row.append(stat.st_mtime_ns // _NS)
        if seen.get(os.fsencode(path.name)) != row:
            return False
    return found.is_listed.tolist() == [True, False] and bool(seen)


def find_functions() -> _Functions:
    """Those of the C library; 0 for all where one is not there, or does what it should not."""
    getdents = tried_out("getdents64 and statx of the C library", _find, _works)
    nothing = ListDirectory(0)
    return _find_all(getdents) if getdents else _Functions(nothing, nothing, nothing, nothing)


_functions = find_functions()
