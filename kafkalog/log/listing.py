"""What lies in a directory, on this machine or in a bucket: entries as os.scandir gives them.

A path in a bucket may have gone through pathlib, which takes one of its slashes: all that looks at
files asks `remote.stores.bucket_uri`. A bucket has no links and no empty directories, and is asked
once for each directory.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from kafkalog.remote.stores import StoredObject, bucket_uri, joined, store_of


@dataclass(frozen=True, slots=True)
class BucketStat:
    """What is asked of an os.stat_result."""

    st_size: int
    st_mtime_ns: int
    st_ino: int


@dataclass(frozen=True, slots=True)
class BucketEntry:
    """An object, or a directory where there is none. As os.DirEntry."""

    name: str
    path: str
    stored: StoredObject | None

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is an object."""
        del follow_symlinks
        return self.stored is not None

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether objects lie below it."""
        del follow_symlinks
        return self.stored is None

    def is_symlink(self) -> bool:
        """There are none in a bucket."""
        return False

    def stat(self, *, follow_symlinks: bool = True) -> BucketStat:
        """FileNotFoundError of a directory, which is no object."""
        del follow_symlinks
        if self.stored is None:
            raise FileNotFoundError(2, "no object", self.path)
        return BucketStat(self.stored.size, self.stored.mtime_ns, self.stored.version)


Entry: TypeAlias = os.DirEntry[str] | BucketEntry


def entries_in(directory: str | os.PathLike[str]) -> list[Entry]:
    """What lies directly in a directory; of a bucket as it is now, and sorted. OSError where the
    system raises it, RemoteStorageError of a bucket, where nothing at all is FileNotFoundError."""
    uri = bucket_uri(directory)
    if uri is None:
        with os.scandir(os.fspath(directory)) as listed:
            return list(listed)
    found = store_of(uri).list_directory(uri)
    if not found.directories and not found.objects:
        raise FileNotFoundError(2, "no such directory", uri)
    directories = (BucketEntry(name, joined(uri, name), None) for name in found.directories)
    files = (BucketEntry(name, known.path, known) for name, known in found.objects.items())
    return sorted((*directories, *files), key=lambda entry: entry.name)


def is_directory_entry(entry: Entry) -> bool:
    """Whether it is a directory, by a link too. A link that leads in a circle, or to where nobody
    may look, is none, as Java's File.isDirectory has it."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def is_directory(path: str | os.PathLike[str]) -> bool:
    """Whether it is a directory, or something lies below it in a bucket."""
    if bucket_uri(path) is None:
        return Path(path).is_dir()
    try:
        return bool(entries_in(path))
    except FileNotFoundError:
        return False


def path_text(path: str | os.PathLike[str]) -> str:
    """A path as it is shown, of a bucket its URI."""
    return bucket_uri(path) or str(path)
