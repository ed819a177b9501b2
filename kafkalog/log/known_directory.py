"""What an earlier run saw in a partition directory, so that one in which nothing has changed is
listed and no file of it opened.

The digest is one of names, sizes, modification times and inodes of all entries. A directory within
(what an undo keeps) and a link change without it: with one of them there is no digest.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from kafkalog.log.inventory import JsonFacts, PartitionInventory, SegmentInfo
from kafkalog.log.listing import Entry

_NUMBERS = struct.Struct("<QQQ")
_WORD = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class KnownDirectory(JsonFacts):
    """Of a PartitionInventory what depends on the directory alone; `first_offset`: the base of the
    first segment.
    """

    digest: str
    topic_id: str | None
    segments: tuple[SegmentInfo, ...]
    first_offset: int
    log_end_offset: int
    snapshot_offsets: tuple[int, ...]


def known_directory(partition: PartitionInventory) -> KnownDirectory | None:
    """What to keep of a directory; None of one with problems, or without a digest."""
    if not partition.digest or partition.problems:
        return None
    if partition.other_segments or partition.leftovers or partition.orphan_indexes:
        return None
    if partition.deleted_files or not partition.segments:
        return None
    return KnownDirectory(
        digest=partition.digest,
        topic_id=partition.topic_id,
        segments=tuple(partition.segments),  # as a value: a view of kept numbers is one too
        first_offset=partition.segments[0].base_offset,
        log_end_offset=partition.log_end_offset,
        snapshot_offsets=partition.snapshot_offsets,
    )


def directory_digest(entries: Iterable[Entry]) -> str:
    """See the module's text; empty where there is none. OSError for a file that has just gone. Many
    directories' at once: `log.directory_entries`.
    """
    found = []
    for entry in entries:
        if not entry.is_file(follow_symlinks=False):
            return ""
        stat = entry.stat(follow_symlinks=False)
        found.append((os.fsencode(entry.name), stat.st_size, stat.st_mtime_ns, stat.st_ino))
    return digest_of(found)


def digest_of(files: Iterable[tuple[bytes, int, int, int]]) -> str:
    """The same of a directory's files, by name, size, modification time and inode of each."""
    # A zero ends each name: they are sorted by names, and no two are the same.
    packed = sorted(
        name + b"\0" + _NUMBERS.pack(size & _WORD, mtime_ns & _WORD, inode & _WORD)
        for name, size, mtime_ns, inode in files
    )
    return hashlib.sha256(b"".join(packed)).hexdigest()
