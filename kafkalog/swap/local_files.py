"""The few operations that change a log dir, in one place, so that tests can make each of them fail
or be the last.

Names are paths as strings; errors are OSError, with the path in them. They stay strings: a Path
for each of the hundred names of a small partition was a third of its compaction.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from kafkalog.cleaning.new_files import can_give_ownership
from kafkalog.native.write_back import begin_write_back
from kafkalog.resources.turns import wait_aside
from kafkalog.runs import durable

COPY_BYTES: Final = 8 * 1024 * 1024
# Of file systems, or pairs of them, for which the kernel does not copy.
_NO_COPY: Final = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM)
NEW_FILE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class LocalFiles:
    """Local files through the operating system; every method is one step that can be observed from
    outside.
    """

    def create(self, path: str) -> int:
        """Open a new file for writing and return its descriptor; a file that exists is an error."""
        return os.open(path, NEW_FILE_FLAGS, 0o600)

    def write(self, fd: int, data: memoryview) -> None:
        """Write all of `data` at the descriptor's place."""
        durable.write_all(fd, data)

    def sync_file(self, fd: int) -> None:
        """Force a file's bytes and size to disk."""
        wait_aside(os.fsync, fd)

    def sync_directory(self, path: str) -> None:
        """Force a directory's names to disk: without it a rename may be undone by a power cut."""
        wait_aside(durable.sync_directory, path)

    def set_owner(self, fd: int, source: os.stat_result) -> None:
        """Give a new file the owner, group and mode of the one it replaces."""
        made = os.fstat(fd)
        if (made.st_uid, made.st_gid) != (source.st_uid, source.st_gid):
            os.fchown(fd, source.st_uid, source.st_gid)
        # After the owner: a change of owner takes set-user-id bits away.
        os.fchmod(fd, source.st_mode & 0o7777)

    def set_modification_time(self, fd: int, modification_time_ms: int) -> None:
        """Set a file's access and modification time; Kafka knows file times to the millisecond.
        Like the owner it is on disk once the file is synced, not before.
        """
        ns = modification_time_ms * 1_000_000
        os.utime(fd, ns=(ns, ns))

    def restore_times(self, path: str, mtime_ns: int) -> None:
        """Give a directory the modification time it had, to the nanosecond."""
        os.utime(path, ns=(Path(path).stat().st_atime_ns, mtime_ns))

    def rename(self, source: str, target: str) -> None:
        """Rename within a directory, replacing what has the target's name."""
        os.replace(source, target)  # noqa: PTH105 - see the module's text

    def link(self, source: str, target: str) -> None:
        """Give a file a second name in its directory; a symbolic link is not followed."""
        os.link(source, target, follow_symlinks=False)

    def remove(self, path: str) -> None:
        """Remove a file; one that is gone already is fine, since removals are repeated after a
        crash.
        """
        with suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108 - see the module's text

    def remove_directory(self, path: str) -> None:
        """Remove a directory of ours with all that is in it; one that is gone is fine."""
        with suppress(FileNotFoundError):
            shutil.rmtree(path)

    def truncate(self, path: str, size: int, mtime_ns: int | None = None) -> None:
        """Make a file `size` bytes long, by a cut or with zeros, and force that to disk; with the
        modification time it had, to the nanosecond.
        """
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.ftruncate(fd, size)
            if mtime_ns is not None:
                os.utime(fd, ns=(os.fstat(fd).st_atime_ns, mtime_ns))
            self.sync_file(fd)
        finally:
            os.close(fd)

    def copy_range(self, source: str, start: int, length: int, target: str) -> None:
        """Write a range of a file into a new one, as it looks otherwise, and force it to disk."""
        # What an attempt that broke off left under this name: `create` takes no file that exists.
        self.remove(target)
        fd = self.create(target)
        try:
            with Path(source).open("rb") as file:
                file.seek(start)
                left = length
                while left > 0 and (data := file.read(min(left, COPY_BYTES))):
                    self.write(fd, memoryview(data))
                    left -= len(data)
            self.set_owner(fd, Path(source).stat())
            self.sync_file(fd)
        finally:
            os.close(fd)

    def copy_into(self, fd: int, source: str, length: int, start: int = 0) -> None:
        """Write a range of a file at the descriptor's place, within the kernel where the file
        systems can: some share the bytes then.
        """
        source_fd = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.lseek(source_fd, start, os.SEEK_SET)
            left, by_kernel = length, True
            while left > 0:
                try:
                    done = os.copy_file_range(source_fd, fd, left) if by_kernel else 0
                except OSError as error:
                    if error.errno not in _NO_COPY:
                        raise
                    by_kernel, done = False, 0
                if not by_kernel:
                    data = os.read(source_fd, min(left, COPY_BYTES))
                    self.write(fd, memoryview(data))
                    done = len(data)
                if not done:
                    raise OSError(errno.EIO, "is shorter than it was", source)
                left -= done
        finally:
            os.close(source_fd)

    def forget(self, path: str) -> None:
        """Have the system give up what it holds of a file in memory, but for what is not on the
        disk yet.
        """
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)

    def append(self, path: str, data: bytes) -> None:
        """Put bytes behind a file's last one, and force them to disk."""
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            self.write(fd, memoryview(data))
            self.sync_file(fd)
        finally:
            os.close(fd)

    def begin_write_back(self, path: str, position: int, length: int) -> None:
        """Have the disk begin to write a range of a file, without waiting for it."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            begin_write_back(fd, position, length)
        finally:
            os.close(fd)

    def write_new(self, path: str, data: bytes, owner: os.stat_result) -> None:
        """Write a small new file that looks like another one, and force it to disk."""
        self.write_all_new([(path, data)], owner)

    def write_all_new(self, made: Iterable[tuple[str, bytes]], owner: os.stat_result) -> None:
        """The same of several, not too many: all are written before the first is waited for, so
        that the disk has to take the file system's journal once.
        """
        descriptors: list[int] = []
        try:
            for path, data in made:
                self.remove(path)
                descriptors.append(self.create(path))
                self.write(descriptors[-1], memoryview(data))
                self.set_owner(descriptors[-1], owner)
            if len(descriptors) > 1:
                for fd in descriptors:
                    begin_write_back(fd, 0, 0)
            for fd in descriptors:
                self.sync_file(fd)
        finally:
            for fd in descriptors:
                os.close(fd)

    def replace_contents(self, path: str, data: bytes, temporary: str) -> None:
        """Put a small file in place of another as Kafka does: write beside, sync, rename, sync the
        directory. If that fails the old file is there still, and nothing beside it.
        """
        directory = path.rpartition("/")[0]
        self.remove(temporary)
        fd = self.create(temporary)
        try:
            try:
                self.write(fd, memoryview(data))
                # Whose the file was it stays: a broker has to be able to write it again.
                try:
                    before = os.stat(path)  # noqa: PTH116 - see the module's text
                except FileNotFoundError:
                    give_to_owner_of(fd, directory or ".")
                    os.fchmod(fd, 0o644)
                else:
                    self.set_owner(fd, before)
                self.sync_file(fd)
            finally:
                os.close(fd)
            self.rename(temporary, path)
        except OSError:
            self.remove(temporary)
            raise
        self.sync_directory(directory or ".")


def give_to_owner_of(fd: int, directory: str) -> None:
    """Give a file that had no predecessor to the directory's owner, where this process may: what
    root makes in a broker's log dir the broker's user must be able to write to.
    """
    owner = os.stat(directory)  # noqa: PTH116 - see the module's text
    if can_give_ownership(owner):
        os.fchown(fd, owner.st_uid, owner.st_gid)


def path_in(directory: str, name: str) -> str:
    """The path of a file in a directory."""
    return (
        f"{directory}{name}" if not directory or directory.endswith("/") else f"{directory}/{name}"
    )


def list_names(directory: str) -> list[str]:
    """The names in a directory, sorted."""
    return sorted(os.listdir(directory))  # noqa: PTH208 - names, not a path each
