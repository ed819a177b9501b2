"""The bytes of a partition directory by what they are of, and what in it no log needs any more.

Sizes are those of the directory entries: a file that a process still holds open after it was
deleted takes space that no directory shows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kafkalog.auditing.audited_partition import BYTE_KINDS, Leftover
from kafkalog.contents.segment_statistics import FileBytes
from kafkalog.format.file_names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LIVE_SUFFIX,
    PART_SUFFIX,
    SWAP_SUFFIX,
    LogFileKind,
    parse_file_name,
)
from kafkalog.log.inventory import PartitionKind
from kafkalog.log.listing import Entry, entries_in

_INDEXES = (LogFileKind.OFFSET_INDEX, LogFileKind.TIME_INDEX, LogFileKind.TRANSACTION_INDEX)
_SNAPSHOTS = (LogFileKind.PRODUCER_SNAPSHOT, LogFileKind.METADATA_SNAPSHOT)
_LEFT = {
    CLEANED_SUFFIX: "cleaned",
    SWAP_SUFFIX: "swap",
    DELETED_SUFFIX: "deleted",
    PART_SUFFIX: "part",
}
_LEFT_DIRECTORIES = {PartitionKind.DELETE: "delete-dir", PartitionKind.STRAY: "stray-dir"}


@dataclass(frozen=True, slots=True)
class DirectoryBytes:
    """`by_kind` has all of BYTE_KINDS; the others are sizes of live files by their offset."""

    by_kind: dict[str, int]
    leftovers: tuple[Leftover, ...] = ()
    indexes: dict[int, int] = field(default_factory=dict)
    time_indexes: dict[int, int] = field(default_factory=dict)
    snapshots: dict[int, int] = field(default_factory=dict)

    def beside(self, base_offset: int) -> FileBytes:
        """Of the files of one segment."""
        return FileBytes(
            self.indexes.get(base_offset, 0),
            self.time_indexes.get(base_offset, 0),
            self.snapshots.get(base_offset, 0),
        )


def measure_directory(path: str, kind: PartitionKind) -> DirectoryBytes:
    """The bytes of the files in a partition directory; OSError if it cannot be listed."""
    by_kind = dict.fromkeys(BYTE_KINDS, 0)
    leftovers: list[Leftover] = []
    sizes = DirectoryBytes(by_kind)
    for entry in entries_in(path):
        size = _size(entry)
        name = parse_file_name(entry.name)
        is_live = name is not None and name.suffix == LIVE_SUFFIX
        left = None if is_live else _left_kind(entry.name)
        if left is not None:
            by_kind["undo" if left == "undo" else "leftover"] += size
            leftovers.append(Leftover(entry.path, left, size))
        elif name is None or name.suffix != LIVE_SUFFIX:
            by_kind["other"] += size
        elif name.kind in _INDEXES:
            by_kind["index"] += size
            sizes.indexes[name.offset] = sizes.indexes.get(name.offset, 0) + size
            if name.kind is LogFileKind.TIME_INDEX:
                sizes.time_indexes[name.offset] = size
        elif name.kind in _SNAPSHOTS:
            by_kind["snapshot"] += size
            sizes.snapshots[name.offset] = size
        else:
            by_kind["log"] += size
    if kind in _LEFT_DIRECTORIES:
        total = sum(by_kind.values())
        by_kind = dict.fromkeys(BYTE_KINDS, 0) | {"leftover": total}
        leftovers = [Leftover(path, _LEFT_DIRECTORIES[kind], total)]
    ordered = tuple(sorted(leftovers, key=lambda each: each.path))
    return replace(sizes, by_kind=by_kind, leftovers=ordered)


def _left_kind(name: str) -> str | None:
    if name.startswith("kafkalog-") and name.endswith((".undo", ".tmp")):
        return name.rpartition(".")[2]
    return next((kind for suffix, kind in _LEFT.items() if name.endswith(suffix)), None)


def _size(entry: Entry) -> int:
    """Of a directory (a run's `.undo`) the files in it."""
    if not entry.is_dir(follow_symlinks=False):
        return entry.stat(follow_symlinks=False).st_size
    return sum(_size(each) for each in entries_in(entry.path))
