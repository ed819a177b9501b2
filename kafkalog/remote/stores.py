"""Where objects lie: a directory here. What is listed, how large an object is, and ranges of it.

An object is named by its whole path. `version` tells whether it is still the one that was looked
at: the inode here, a digest of the ETag in a bucket.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as it was when somebody looked."""

    path: str
    size: int
    mtime_ns: int
    version: int


@dataclass(frozen=True, slots=True)
class Listing:
    """What lies directly below a place: names of directories, objects by their names."""

    directories: tuple[str, ...]
    objects: dict[str, StoredObject]


class ObjectStore(Protocol):
    """What every store can do. `is_distant`: a read costs a round trip."""

    is_distant: bool

    def list_directory(self, path: str) -> Listing:
        """What is directly below a path; nothing where nothing is. OSError."""

    def look(self, path: str) -> StoredObject:
        """The object itself; FileNotFoundError, OSError."""

    def read(self, known: StoredObject, start: int, length: int) -> bytes:
        """Bytes from `start` on, fewer where the object ends. OSError."""


class DirectoryStore:
    """Objects that are files of this machine."""

    is_distant = False

    def list_directory(self, path: str) -> Listing:
        directories, objects = [], {}
        with os.scandir(path) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.is_dir():
                    directories.append(entry.name)
                elif entry.is_file():
                    objects[entry.name] = _stored(entry.path, entry.stat())
        return Listing(tuple(directories), objects)

    def look(self, path: str) -> StoredObject:
        return _stored(path, os.stat(path))  # noqa: PTH116 - the path of an object is text

    def read(self, known: StoredObject, start: int, length: int) -> bytes:
        descriptor = os.open(known.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return os.pread(descriptor, length, start)
        finally:
            os.close(descriptor)


_DIRECTORIES = DirectoryStore()


def store_of(path: str) -> ObjectStore:
    """The store in which a path lies."""
    return _DIRECTORIES


def joined(place: str, name: str) -> str:
    """The path of a name below a place."""
    return f"{place.rstrip('/')}/{name}"


def _stored(path: str, stat: os.stat_result) -> StoredObject:
    return StoredObject(path, stat.st_size, stat.st_mtime_ns, stat.st_ino)
