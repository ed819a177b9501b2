"""An object that is a file as it is, by blocks: a `.log` or an index copied into a bucket.

A question about one offset reads small blocks, a scan large ones: a request to a store costs as
much time as some hundred KiB.
"""

from __future__ import annotations

from kafkalog.errors import LogChangedError
from kafkalog.remote.cache import Block
from kafkalog.remote.stores import StoredObject, store_of

LOOK_BYTES = 256 * 1024
SCAN_BYTES = 4 * 1024 * 1024


class PlainObject:
    """`size`, `mtime_ns` and `version` are the object's; see `segment.ChunkedSegment`."""

    def __init__(self, path: str, *, looks_again: bool = False) -> None:
        """`path`: a URI. FileNotFoundError, RemoteStorageError."""
        self._store = store_of(path)
        found = self._store.look(path) if looks_again else self._store.recall(path)
        self._found: StoredObject = found
        self.size = found.size
        self.mtime_ns = found.mtime_ns
        self.version = found.version
        self.block_bytes = LOOK_BYTES

    def reads_on(self) -> None:
        """What follows is a scan."""
        self.block_bytes = SCAN_BYTES

    def blocks(self, first: int, count: int) -> list[Block]:
        """Blocks in a row, from byte `first` x `block_bytes` on, by one request; LogChangedError,
        RemoteStorageError."""
        start = first * self.block_bytes
        length = min(count * self.block_bytes, self.size - start)
        data = self._store.view(self._found, start, length)
        if len(data) != length:
            raise LogChangedError(
                f"bytes {start} to {start + length - 1}: {len(data)} came",
                path=self._found.path,
                position=start,
            )
        return [data[at : at + self.block_bytes] for at in range(0, length, self.block_bytes)]


def read_object(path: str, most_bytes: int) -> tuple[bytes, int]:
    """(an object's bytes from the front, up to `most_bytes`; how many it has). FileNotFoundError,
    LogChangedError, RemoteStorageError."""
    store = store_of(path)
    found = store.recall(path)
    return store.read(found, 0, min(found.size, most_bytes)), found.size
