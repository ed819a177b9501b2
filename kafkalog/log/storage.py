"""Files of segments, read by position into buffers the caller owns.

Never mmap: a broker that truncates a mapped file kills the process with SIGBUS, a short read is an
error we can name. Everything above takes a `SourceFile` or a path. What opens a path asks
`open_file`, which tells files of this machine from those of remote storage.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from types import TracebackType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kafkalog.errors import LogChangedError
from kafkalog.format.constants import RECORD_BATCH_OVERHEAD
from kafkalog.log.inventory import FileIdentity
from kafkalog.log.pace import spend
from kafkalog.log.remote_file import RemoteFile, remote_identity
from kafkalog.native.batch_headers import read_headers
from kafkalog.remote.paths import ManifestPath
from kafkalog.remote.stores import bucket_uri

# A header, and of a control batch all of it: a marker's record has 17 bytes, and up to 9 more where
# its batch is stamped with a delete horizon.
HEADER_READ_BYTES = RECORD_BATCH_OVERHEAD + 27


class LocalFile:
    """A file opened for reading; size, mtime and inode are those at the time of opening.

    Raises OSError where the system does (no such file, no permission).
    """

    __slots__ = ("_descriptor", "inode", "mtime_ns", "path", "size")

    def __init__(self, path: str) -> None:
        self.path = path
        # A plain descriptor: a file object would add a buffer of its own, and pread needs the
        # number.
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        stat = os.fstat(self._descriptor)
        self.size: int = stat.st_size
        self.mtime_ns: int = stat.st_mtime_ns
        self.inode: int = stat.st_ino

    def __enter__(self) -> LocalFile:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def read_into(self, buf: NDArray[np.uint8], position: int, length: int) -> None:
        """Fill buf[:length] with the bytes at `position` of the file.

        Raises LogChangedError if the file ends before: it shrank since somebody looked at its size.
        """
        view = buf[:length].data
        done = 0
        while done < length:
            count = os.preadv(self._descriptor, [view[done:]], position + done)
            if count == 0:
                raise LogChangedError(
                    f"the file ends {length - done} bytes early: it shrank while it was read",
                    path=self.path,
                    position=position + done,
                )
            done += count
        spend(length)

    def read_bytes(self, position: int, length: int) -> bytes:
        """Up to `length` bytes at `position`: fewer where the file ends."""
        data = os.pread(self._descriptor, length, position)
        spend(len(data))
        return data

    def read_headers(
        self, position: int, end: int, most: int
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64], int]:
        """The first HEADER_READ_BYTES of up to `most` whole batches in a row, one read each; see
        `native.batch_headers`.
        """
        headers = np.empty(most * HEADER_READ_BYTES, np.uint8)
        positions = np.empty(most, np.int64)
        count, position = read_headers(self._descriptor, position, end, headers, positions)
        spend(count * HEADER_READ_BYTES)
        return headers[: count * HEADER_READ_BYTES], positions[:count], position

    def expect_scan(self, start: int, end: int) -> None:
        """Nothing: the system sees by itself that a file is read in order."""

    def will_need(self, position: int, length: int, *, waits: bool = False) -> None:
        """Have the system read this range ahead, in the background; or wait until it is there:
        once, and not for each page that is looked at. No byte of it is copied. Nothing where the
        range's end is in memory: what is read in order is there as a whole.
        """
        try:
            os.preadv(self._descriptor, [bytearray(1)], position + length - 1, os.RWF_NOWAIT)
            return
        except BlockingIOError:
            pass
        except OSError:  # not every file system can say
            waits = False
        os.posix_fadvise(self._descriptor, position, length, os.POSIX_FADV_WILLNEED)
        end = position + length
        # What cannot be done so is waited for later.
        with suppress(OSError):
            while waits and position < end:
                sent = os.sendfile(_nowhere(), self._descriptor, position, end - position)
                if not sent:
                    break
                position += sent


@cache
def _nowhere() -> int:
    return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


# What is read by position, wherever it lies.
SourceFile: TypeAlias = LocalFile | RemoteFile


def open_file(path: str) -> SourceFile:
    """A `.log` by its path. OSError where the system raises it; of remote storage also
    RemoteStorageError and InvalidConfigError (a key that is none)."""
    if isinstance(path, ManifestPath):
        return RemoteFile(path)
    uri = bucket_uri(path)
    return LocalFile(path) if uri is None else RemoteFile(uri)


def identity_of(path: str) -> FileIdentity:
    """What tells whether a file is still the same, indexes of remote storage included. Raises as
    `open_file`."""
    uri = path if isinstance(path, ManifestPath) else bucket_uri(path)
    if uri is not None:
        return remote_identity(uri)
    stat = os.stat(path)  # noqa: PTH116 - as often as there are splits
    return FileIdentity(stat.st_size, stat.st_mtime_ns, stat.st_ino)
