"""An index file read by its entries, on this machine, behind a manifest or in a bucket."""

from __future__ import annotations

import os
from types import TracebackType
from typing import TYPE_CHECKING

from kafkalog.remote.paths import ManifestPath
from kafkalog.remote.stores import bucket_uri

if TYPE_CHECKING:
    from kafkalog.log.remote_file import RemoteFile

_SMALL_BYTES = 4096


def small_index(path: str | os.PathLike[str]) -> bytes | None:
    """All bytes of a small index on this machine, None of any other. Raises as the system does."""
    # Of most segments there are two, and an object with its file for each cost more than the calls
    # of the system: open, look, one read, close.
    if isinstance(path, ManifestPath) or bucket_uri(path) is not None:
        return None
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if os.fstat(descriptor).st_size > _SMALL_BYTES:
            return None
        return os.pread(descriptor, _SMALL_BYTES, 0)
    finally:
        os.close(descriptor)


class IndexFile:
    """Entries of one width, read one at a time; of a small index, or one behind a manifest, all
    of it is at hand. `file_bytes`: how long it is.

    Opening raises as the system does, FileNotFoundError where there is none.
    """

    __slots__ = ("_data", "_descriptor", "_entry_bytes", "_remote", "count", "file_bytes")

    def __init__(self, path: str | os.PathLike[str], entry_bytes: int) -> None:
        self._entry_bytes = entry_bytes
        self._data = b""
        self._descriptor = -1
        self._remote: RemoteFile | None = None
        if isinstance(path, ManifestPath):
            # Imported late: who reads a log dir only needs no codecs.
            from kafkalog.log.remote_file import read_remote_index

            self._data = read_remote_index(path)
            self.file_bytes = len(self._data)
        elif (uri := bucket_uri(path)) is not None:
            from kafkalog.log.remote_file import RemoteFile

            self._remote = RemoteFile(uri)
            self.file_bytes = self._remote.size
        else:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            self.file_bytes = os.fstat(self._descriptor).st_size
            # A call of the system for each look costs more than the bytes of a small one.
            if self.file_bytes <= _SMALL_BYTES:
                try:
                    self._data = os.pread(self._descriptor, _SMALL_BYTES, 0)
                finally:
                    self._close()
        self.count = self.file_bytes // entry_bytes

    def __enter__(self) -> IndexFile:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def entry(self, number: int) -> bytes:
        """An entry as it lies; fewer bytes where the file ends."""
        start = number * self._entry_bytes
        if self._descriptor >= 0:
            return os.pread(self._descriptor, self._entry_bytes, start)
        if self._remote is not None:
            return self._remote.read_bytes(start, self._entry_bytes)
        return self._data[start : start + self._entry_bytes]
