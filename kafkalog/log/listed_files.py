"""What the files of a partition are, by the names of many directories at once.

Only what a broker keeps beside a log that it has closed or writes to is told apart: of all else
`format.file_names` says what it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kafkalog.format.file_names import (
    LEADER_EPOCH_CHECKPOINT_FILE,
    PARTITION_METADATA_FILE,
    LogFileKind,
)
from kafkalog.native.directory_entries import INODE, MTIME_NS, SIZE, Listed

OTHER, LOG, OFFSET_INDEX, TIME_INDEX, SNAPSHOT, EPOCHS, METADATA = range(7)
KINDS = 7
_NUMBERED = (
    (LOG, LogFileKind.LOG), (OFFSET_INDEX, LogFileKind.OFFSET_INDEX),
    (TIME_INDEX, LogFileKind.TIME_INDEX), (SNAPSHOT, LogFileKind.PRODUCER_SNAPSHOT),
)  # fmt: skip
_NAMED = ((EPOCHS, LEADER_EPOCH_CHECKPOINT_FILE), (METADATA, PARTITION_METADATA_FILE))
_DIGITS = 20
# Two zeros in front: larger numbers are not told here, since 64 bits do not hold all of them.
_ZEROS = 2
_POWERS = 10 ** np.arange(_DIGITS - _ZEROS - 1, -1, -1, dtype=np.int64)
_ZERO = ord("0")

I64s = NDArray[np.int64]


class ListedFiles(NamedTuple):
    """Of e entries, int64[e]: the number of its directory, kind, the offset it is named by (0 of
    others), size, modification time and inode.
    """

    owners: I64s
    kinds: I64s
    offsets: I64s
    sizes: I64s
    mtimes_ns: I64s
    inodes: I64s


def files_of(listed: Listed) -> ListedFiles:
    """All of the entries."""
    counts = np.diff(listed.ends, prepend=0)
    kinds, offsets = _kinds(listed)
    return ListedFiles(
        np.repeat(np.arange(len(counts)), counts),
        kinds,
        offsets,
        *(np.ascontiguousarray(listed.numbers[:, at]) for at in (SIZE, MTIME_NS, INODE)),
    )


def _kinds(listed: Listed) -> tuple[I64s, I64s]:
    kinds = np.zeros(len(listed.name_ends), np.int64)
    offsets = np.zeros(len(listed.name_ends), np.int64)
    lengths = np.diff(listed.name_ends, prepend=0)
    for kind, ending in _NUMBERED:
        entries, texts = _of_length(listed, lengths, _DIGITS + len(ending))
        digits = texts[:, :_DIGITS].astype(np.int64) - _ZERO
        is_one = ((digits >= 0) & (digits <= 9)).all(axis=1)
        is_one &= (digits[:, :_ZEROS] == 0).all(axis=1) & _is(texts[:, _DIGITS:], ending)
        kinds[entries[is_one]] = kind
        offsets[entries[is_one]] = digits[is_one, _ZEROS:] @ _POWERS
    for kind, name in _NAMED:
        entries, texts = _of_length(listed, lengths, len(name))
        kinds[entries[_is(texts, name)]] = kind
    return kinds, offsets


def _of_length(listed: Listed, lengths: I64s, length: int) -> tuple[I64s, NDArray[np.uint8]]:
    """The entries whose names have so many bytes, and these."""
    entries = np.flatnonzero(lengths == length)
    starts = listed.name_ends[entries] - length
    return entries, listed.names[starts[:, np.newaxis] + np.arange(length)]


def _is(texts: NDArray[np.uint8], text: str) -> NDArray[np.bool_]:
    same: NDArray[np.bool_] = (texts == np.frombuffer(text.encode(), np.uint8)).all(axis=1)
    return same
