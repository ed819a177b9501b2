"""What must be on disk before anything relies on it: a file's bytes by a sync of the file, its name
by one of its directory. A power cut may lose whatever was not synced, in any order.
"""

from __future__ import annotations

import os
from pathlib import Path


def sync_directory(path: str | Path) -> None:
    """Force a directory's names to disk: without it a rename may be undone by a power cut."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def write_all(fd: int, data: bytes | memoryview) -> None:
    """Write all of `data` at the descriptor's place."""
    left = memoryview(data)
    while len(left) > 0:
        left = left[os.write(fd, left) :]


def make_directories(path: Path, *, exist_ok: bool = False) -> None:
    """Make a directory, and those above it that are missing, for good. FileExistsError if it is
    there, unless that is fine.
    """
    missing = [path]
    while not missing[-1].parent.is_dir():
        missing.append(missing[-1].parent)
    if exist_ok and path.is_dir():
        return
    for directory in reversed(missing):
        directory.mkdir(exist_ok=directory != path)
        sync_directory(directory.parent)


def append(path: Path, data: bytes) -> None:
    """Put bytes behind a file's last one, for good; a file that is not there is made."""
    _append(path, data, syncs=True, keeps_lines=False)


def append_lines(path: Path, lines: bytes, *, syncs: bool = True) -> None:
    """The same of whole lines: one that was cut off stays one of its own. Without `syncs` they are
    there for every process, and for good once the file is synced.
    """
    _append(path, lines, syncs=syncs, keeps_lines=True)


def _append(path: Path, data: bytes, *, syncs: bool, keeps_lines: bool) -> None:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    try:
        size = os.fstat(fd).st_size
        is_cut = keeps_lines and size > 0 and os.pread(fd, 1, size - 1) != b"\n"
        write_all(fd, b"\n" + data if is_cut else data)
        if syncs:
            os.fsync(fd)
    finally:
        os.close(fd)
    if size == 0:
        sync_directory(path.parent)


def sync_file(path: Path) -> None:
    """Force a file's bytes to disk, whoever wrote them."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def replace(path: Path, data: bytes) -> None:
    """Put a file in place of another, or where none is, for good: one or the other is there."""
    scratch = path.with_name(f"{path.name}.tmp")
    fd = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        _write_and_sync(fd, data)
    finally:
        os.close(fd)
    scratch.replace(path)
    sync_directory(path.parent)


def _write_and_sync(fd: int, data: bytes) -> None:
    write_all(fd, data)
    os.fsync(fd)
