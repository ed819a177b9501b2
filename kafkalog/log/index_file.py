"""An index file read by its entries, on this machine or behind a manifest."""

from __future__ import annotations

import os
from types import TracebackType

from kafkalog.remote.paths import ManifestPath


class IndexFile:
    """Entries of one width, read one at a time; of an index behind a manifest all of it is at hand.

    Opening raises as the system does, FileNotFoundError where there is none.
    """

    __slots__ = ("_data", "_descriptor", "_entry_bytes", "count")

    def __init__(self, path: str | os.PathLike[str], entry_bytes: int) -> None:
        self._entry_bytes = entry_bytes
        self._data = b""
        self._descriptor = -1
        if isinstance(path, ManifestPath):
            # Imported late: who reads a log dir only needs no codecs.
            from kafkalog.log.remote_file import read_remote_index

            self._data = read_remote_index(path)
            self.count = len(self._data) // entry_bytes
        else:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            self.count = os.fstat(self._descriptor).st_size // entry_bytes

    def __enter__(self) -> IndexFile:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def entry(self, number: int) -> bytes:
        """An entry as it lies; fewer bytes where the file ends."""
        start = number * self._entry_bytes
        if self._descriptor >= 0:
            return os.pread(self._descriptor, self._entry_bytes, start)
        return self._data[start : start + self._entry_bytes]
