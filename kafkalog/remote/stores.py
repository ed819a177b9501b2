"""Where objects lie: directories and buckets. What is listed, how large an object is, and ranges of
it.

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
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """What lies directly below a place: names of directories, objects by their names."""

    directories: tuple[str, ...]
    objects: dict[str, StoredObject]


class ObjectStore(Protocol):
    """What every store can do."""

    def list_directory(self, path: str) -> Listing:
        """What is directly below a path; nothing where nothing is. OSError."""

    def look(self, path: str) -> StoredObject:
        """The object itself; FileNotFoundError, OSError."""

    def read(self, known: StoredObject, start: int, length: int) -> bytes:
        """Bytes from `start` on, fewer where the object ends. OSError."""


class DirectoryStore:
    """Objects that are files of this machine."""

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
    """The store in which a path lies: a directory, or a bucket where it is a URI.
    InvalidConfigError for a URI of another kind."""
    if "://" not in path:
        return _DIRECTORIES
    # Imported late: few have a bucket.
    from kafkalog.remote.buckets import bucket_of

    return bucket_of(path)


def is_distant(path: str) -> bool:
    """Whether a path is in a bucket."""
    return "://" in path


def joined(place: str, name: str) -> str:
    """The path of a name below a place."""
    return f"{place.rstrip('/')}/{name}"


def _stored(path: str, stat: os.stat_result) -> StoredObject:
    return StoredObject(path, stat.st_size, stat.st_mtime_ns, stat.st_ino)
