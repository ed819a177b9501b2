"""Many directories looked at at once: what lies in them as columns, and a digest of each.

One look is what `os.scandir` and `stat` of each entry tell, at a tenth of their time; where the
system's functions cannot be called by compiled code (`native.directory_entries`) Python does it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from kafkalog.kernels.entry_bytes import pack_entries
from kafkalog.native.directory_entries import (
    INODE,
    KIND,
    MTIME_NS,
    NUMBERS,
    REGULAR,
    SIZE,
    Listed,
    can_list,
    list_directories,
)

# Some ten thousand entries are held at a time.
DIRECTORIES_AT_ONCE = 1024
_WORD = (1 << 64) - 1
_NS = 1_000_000_000

# Of a file its name, size, modification time, inode, and time of any change.
LookedAt: TypeAlias = tuple[bytes, int, int, int, int]


def look_into(paths: Sequence[str]) -> Listed:
    """What lies in these directories, see `Listed`. Of one that is not listed nothing is known: who
    needs it looks by `log.listing`, which says why. No path of a bucket.
    """
    names = [os.fsencode(path) for path in paths]
    return list_directories(names) if can_list() else _by_scandir(names)


def look_at_one(path: str) -> list[LookedAt] | None:
    """The files of one directory; None where `look_into` fails, or something else lies in it."""
    listed = look_into([path])
    numbers = listed.numbers
    if not listed.is_listed[0] or (numbers[:, KIND] != REGULAR).any():
        return None
    names, ends = listed.names.tobytes(), listed.name_ends.tolist()
    return [
        (names[start:end], size, mtime_ns, inode, ctime_ns)
        for start, end, (_, size, mtime_ns, ctime_ns, inode, _) in zip(
            [0, *ends], ends, numbers.tolist(), strict=False
        )
    ]


class SeenDirectories(NamedTuple):
    """What lies in some directories, with a digest of each."""

    paths: Sequence[str]
    listed: Listed
    digests: Sequence[str]


def directory_digests(
    paths: Sequence[str], see: Callable[[SeenDirectories], None] | None = None
) -> Iterator[str]:
    """Of each directory what `known_directory.directory_digest` gives, empty as well where the look
    failed; so many at once as are held. `see` is shown them.
    """
    for first in range(0, len(paths), DIRECTORIES_AT_ONCE):
        own = paths[first : first + DIRECTORIES_AT_ONCE]
        seen = SeenDirectories(own, listed := look_into(own), [*digests_of(listed)])
        if see is not None:
            see(seen)
        yield from seen.digests


def digests_of(listed: Listed) -> Iterator[str]:
    """The digest of each directory; empty where something else than regular files lies in it."""
    count = len(listed.name_ends)
    chosen = np.ascontiguousarray(listed.numbers[:, [SIZE, MTIME_NS, INODE]]).reshape(-1)
    order, ends = np.empty(count, np.int64), np.empty(len(listed.ends), np.int64)
    packed = np.empty(listed.names.size + count + 8 * chosen.size, np.uint8)
    pack_entries(listed.names, listed.name_ends, chosen, listed.ends, order, packed, ends)
    others = np.cumsum(np.append(0, listed.numbers[:, KIND] != REGULAR))
    firsts = np.append(0, listed.ends)
    has_digest = listed.is_listed & (others[firsts[1:]] == others[firsts[:-1]])
    data = packed.data
    for (start, end), is_wanted in zip(
        pairwise([0, *ends.tolist()]), has_digest.tolist(), strict=True
    ):
        yield hashlib.sha256(data[start:end]).hexdigest() if is_wanted else ""


def _by_scandir(paths: Sequence[bytes]) -> Listed:
    names: list[bytes] = []
    numbers: list[list[int]] = []
    ends, is_listed = [], []
    for path in paths:
        try:
            found = [(name, _numbers(stat)) for name, stat in _scanned(path)]
        except OSError:
            found = None
        for name, row in found or ():
            names.append(name)
            numbers.append(row)
        ends.append(len(names))
        is_listed.append(found is not None)
    words = np.array(numbers, np.uint64).reshape(-1, NUMBERS)
    return Listed(
        np.frombuffer(b"".join(names), np.uint8),
        np.cumsum([len(name) for name in names], dtype=np.int64),
        words.view(np.int64),
        np.array(ends, np.int64),
        np.array(is_listed, np.bool_),
    )


def _scanned(path: bytes) -> list[tuple[bytes, os.stat_result]]:
    if os.path.islink(path):  # noqa: PTH114 - as the other way
        raise NotADirectoryError(path)
    with os.scandir(path) as entries:
        return [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]


def _numbers(stat: os.stat_result) -> list[int]:
    # Times of years that 64 bits of nanoseconds do not reach wrap around, as they do in C.
    kind, times = stat.st_mode >> 12, (stat.st_mtime_ns & _WORD, stat.st_ctime_ns & _WORD)
    return [kind, stat.st_size, *times, stat.st_ino, (stat.st_mtime_ns // _NS) & _WORD]
