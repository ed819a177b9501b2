"""What is known of a file, by which it is known again: size, time, inode, checksum."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from kafkalog.format.checksum import extend_crc32c
from kafkalog.format.file_names import LogFileKind
from kafkalog.log.json_facts import JsonFacts
from kafkalog.swap.local_files import path_in

_CHUNK_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FileFacts(JsonFacts):
    """A file as it was: by size, time and inode it is known again, whatever its name is then.

    `checksum` is the CRC-32C of its bytes, None where the run did not read them all.
    """

    name: str
    size: int
    mtime_ns: int
    inode: int
    mode: int
    uid: int
    gid: int
    checksum: int | None = None

    def looks_as_at(self, path: str) -> bool:
        """Whether the file at `path` has its size and time: of a copied log dir inodes differ."""
        stat = os.lstat(path)
        return (stat.st_size, stat.st_mtime_ns) == (self.size, self.mtime_ns)

    def is_at(self, path: str) -> bool:
        """Whether the file at `path` is this one, unchanged."""
        try:
            stat = os.lstat(path)
        except FileNotFoundError:
            return False
        return (stat.st_size, stat.st_mtime_ns, stat.st_ino) == (
            self.size,
            self.mtime_ns,
            self.inode,
        )


def file_facts(path: str, name: str, checksum: int | None = None) -> FileFacts:
    """The facts of the file at `path`, which has, or will have, this name."""
    stat = os.lstat(path)
    return FileFacts(
        name,
        stat.st_size,
        stat.st_mtime_ns,
        stat.st_ino,
        stat.st_mode & 0o7777,
        stat.st_uid,
        stat.st_gid,
        checksum,
    )


def facts_of(
    directory: str, names: Iterable[str], checksums: Mapping[str, int] = MappingProxyType({})
) -> tuple[FileFacts, ...]:
    """The facts of these files of a directory, with the `checksums` that are known of them by name;
    all others but `.log` files are small and read for theirs.
    """
    return tuple(
        file_facts(path, name, checksums[name])
        if name in checksums
        else facts_with_checksum(path, name)
        for name, path in ((name, path_in(directory, name)) for name in names)
    )


def facts_with_checksum(path: str, name: str) -> FileFacts:
    """The facts of a file, with a checksum unless it is a `.log`."""
    is_small = not name.endswith(LogFileKind.LOG)
    return file_facts(path, name, checksum_of(path) if is_small else None)


def last_nonzero(path: str, start: int) -> int:
    """One past the last byte behind `start` that is not zero; `start` if there is none.
    Preallocated zeros need not be kept.
    """
    end = start
    with Path(path).open("rb") as file:
        file.seek(start)
        position = start
        while data := file.read(_CHUNK_BYTES):
            stripped = data.rstrip(b"\0")
            if stripped:
                end = position + len(stripped)
            position += len(data)
    return end


def checksum_of(path: str, start: int = 0, length: int | None = None) -> int:
    """CRC-32C of a range of a file, to its end without a length."""
    crc = 0
    # A plain descriptor: there are a dozen such files in a small partition.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # What a read asks for is allocated: most files here are indexes of some hundred bytes.
        most = min(max(os.fstat(fd).st_size - start, 0) + 1, _CHUNK_BYTES)
        left = sys.maxsize if length is None else length
        while left > 0 and (data := os.pread(fd, asked := min(left, most), start)):
            crc = extend_crc32c(crc, data)
            # A file that has less than what was asked for ends there.
            if len(data) < asked:
                break
            start += len(data)
            left -= len(data)
    finally:
        os.close(fd)
    return crc
