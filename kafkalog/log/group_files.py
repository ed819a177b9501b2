"""The files of some small logs, read together."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kafkalog.format.offset_index import OFFSET_INDEX_ENTRY_BYTES
from kafkalog.format.time_index import TIME_INDEX_ENTRY_BYTES
from kafkalog.log.directory_entries import SeenDirectories
from kafkalog.log.inventory import PartitionCheckpoints
from kafkalog.log.listed_files import KINDS, OFFSET_INDEX, TIME_INDEX, ListedFiles
from kafkalog.log.log_numbers import I64s
from kafkalog.native.directory_entries import MTIME_S
from kafkalog.native.file_contents import WantedFiles, read_files

_NS = 1_000_000_000
# Of an index so much is read: whole entries of either kind.
MOST_INDEX_BYTES = 170 * 24
_ENTRY_BYTES = np.zeros(KINDS, np.int64)
_ENTRY_BYTES[[OFFSET_INDEX, TIME_INDEX]] = OFFSET_INDEX_ENTRY_BYTES, TIME_INDEX_ENTRY_BYTES


@dataclass(frozen=True, slots=True)
class Moment:
    """`expiration_ms`: after how long a broker forgets an idle producer; `most_slices`: of the
    slices of time that are kept of a log.
    """

    now_ms: int
    expiration_ms: int
    most_slices: int


@dataclass(frozen=True, slots=True)
class SmallLog:
    """What is known of one from outside of its directory: `lines` of the log dir's checkpoints."""

    path: str
    digest: str
    lines: PartitionCheckpoints
    log_dir: Path


class GroupFiles:
    """Files of l logs, by kind, log and offset; their bytes in that order in `buf`."""

    def __init__(self, seen: SeenDirectories, files: ListedFiles, numbers: Sequence[int]) -> None:
        places = np.full(len(seen.paths), -1, np.int64)
        places[numbers] = np.arange(len(numbers))
        entries = np.flatnonzero(places[files.owners] >= 0)
        owners = places[files.owners[entries]]
        order = np.lexsort((files.offsets[entries], owners, files.kinds[entries]))
        entries = entries[order]
        self.count = len(numbers)
        self.owners, self.kinds = owners[order], files.kinds[entries]
        self.offsets, self.sizes = files.offsets[entries], files.sizes[entries]
        self.mtimes_ns, self.inodes = files.mtimes_ns[entries], files.inodes[entries]
        entry_bytes = _ENTRY_BYTES[self.kinds]
        read = np.where(entry_bytes > 0, np.minimum(self.sizes, MOST_INDEX_BYTES), self.sizes)
        self.ends = np.cumsum(read)
        self.starts = self.ends - read
        self.buf, is_read = read_files(
            [os.fsencode(path) for path in seen.paths], seen.listed,
            WantedFiles(entries, read, self.sizes, entry_bytes),
        )  # fmt: skip
        is_odd = ~is_read | (self.inodes < 0)
        is_odd |= seen.listed.numbers[entries, MTIME_S] != self.mtimes_ns // _NS
        self.are_sound = np.ones(self.count, np.bool_)
        self.are_sound[self.owners[is_odd]] = False

    def of_kind(self, kind: int) -> slice:
        """Which files those of a kind are."""
        first, end = np.searchsorted(self.kinds, (kind, kind + 1))
        return slice(int(first), int(end))

    def bytes_of(self, *kinds: int) -> I64s:
        """Of each log in files of these kinds."""
        own = np.isin(self.kinds, kinds)
        found = np.bincount(self.owners[own], self.sizes[own], minlength=self.count)
        return found.astype(np.int64)

    def data(self, file: int) -> bytes:
        """Of one file."""
        return self.buf[self.starts[file] : self.ends[file]].tobytes()
