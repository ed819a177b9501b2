"""Where objects lie: directories and buckets. What is listed, how large an object is, and ranges of
it.

An object is named by its whole path. `version` tells whether it is still the one that was looked
at: the inode here, a digest of the ETag in a bucket.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import unquote, urlsplit

from kafkalog.remote.paths import ManifestPath

# A path of pathlib has one slash where a URI has two.
_URI = re.compile(r"(s3|gs|az|https?|hdfs):/+")


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
        """The object itself as it is now; FileNotFoundError, OSError."""

    def recall(self, path: str) -> StoredObject:
        """The object as it was when it was last listed or looked at: a bucket is not asked again.
        Reading it tells if it was replaced since."""

    def read(self, known: StoredObject, start: int, length: int) -> bytes:
        """Bytes from `start` on, fewer where the object ends. OSError."""

    def view(self, known: StoredObject, start: int, length: int) -> memoryview:
        """The same, not copied once more."""

    def look_at_version(self, path: str) -> tuple[StoredObject, str]:
        """The object, and by which version id the store keeps it when it is deleted; empty where it
        does not. Raises as `look`."""

    def has_version(self, path: str, version_id: str) -> bool:
        """Whether a version is kept. OSError."""

    def keeps_versions(self, directory: str) -> bool:
        """Whether what is deleted below a directory stays as a version. A bucket whose version ids
        do not tell is tried with an object of no bytes, once. OSError."""

    def remove(self, path: str) -> None:
        """Delete an object. FileNotFoundError in some stores where it is not there, OSError."""

    def put_back(self, path: str, version_id: str) -> None:
        """The bytes of a version as an object again. FileExistsError where one is there,
        FileNotFoundError without the version, OSError."""


class WithoutVersions:
    """What a store says of versions that keeps none."""

    def has_version(self, path: str, version_id: str) -> bool:
        """None is kept."""
        return False

    def keeps_versions(self, directory: str) -> bool:
        """What is deleted is gone."""
        return False

    def put_back(self, path: str, version_id: str) -> None:
        """FileNotFoundError."""
        raise FileNotFoundError(2, "no versions are kept there", path)


class DirectoryStore(WithoutVersions):
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

    def recall(self, path: str) -> StoredObject:
        return self.look(path)

    def read(self, known: StoredObject, start: int, length: int) -> bytes:
        descriptor = os.open(known.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return os.pread(descriptor, length, start)
        finally:
            os.close(descriptor)

    def view(self, known: StoredObject, start: int, length: int) -> memoryview:
        return memoryview(self.read(known, start, length))

    def look_at_version(self, path: str) -> tuple[StoredObject, str]:
        return self.look(path), ""

    def remove(self, path: str) -> None:
        os.unlink(path)  # noqa: PTH108 - the path of an object is text


_DIRECTORIES = DirectoryStore()


def store_of(path: str) -> ObjectStore:
    """The store in which a path lies: a directory, or a bucket or HDFS where it is a URI.
    InvalidConfigError for a URI of another kind."""
    if "://" not in path:
        return _DIRECTORIES
    # Imported late: few have a bucket.
    if path.startswith("hdfs://"):
        from kafkalog.remote.webhdfs import webhdfs_of

        return webhdfs_of(path)
    from kafkalog.remote.buckets import bucket_of

    return bucket_of(path)


def bucket_uri(path: str | os.PathLike[str]) -> str | None:
    """The URI that a path is, also one that went through pathlib; None for one of this machine."""
    text = os.fspath(path)
    if text[:1] == "/":  # nearly all, and asked for each file
        return None
    match = _URI.match(text)
    return None if match is None else f"{match[1]}://{text[match.end() :]}"


def is_remote(path: str) -> bool:
    """Whether what is read of a file comes from remote storage, or through its manifest."""
    return isinstance(path, ManifestPath) or bucket_uri(path) is not None


def local_path(path: str | os.PathLike[str]) -> str:
    """`file:///mnt/x` → `/mnt/x`; any other path as it is."""
    text = os.fspath(path)
    return unquote(urlsplit(text).path) if text.startswith("file:/") else text


def joined(place: str, name: str) -> str:
    """The path of a name below a place."""
    return f"{place.rstrip('/')}/{name}"


def _stored(path: str, stat: os.stat_result) -> StoredObject:
    return StoredObject(path, stat.st_size, stat.st_mtime_ns, stat.st_ino)
