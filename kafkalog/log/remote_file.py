"""A file behind a manifest, read like a local one: the same names, blocks from a cache."""

from __future__ import annotations

from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from kafkalog.errors import LogChangedError
from kafkalog.log.inventory import FileIdentity
from kafkalog.log.pace import spend
from kafkalog.remote.cache import BLOCKS
from kafkalog.remote.paths import ManifestPath
from kafkalog.remote.segment import ChunkedSegment


class RemoteFile:
    """A `.log` of remote storage; size, mtime and inode are those at the time of opening, the inode
    a number that changes with the objects.

    To look at one header costs as much as to read all that is in its block, so there is no reading
    of headers alone.
    """

    __slots__ = ("_segment", "inode", "mtime_ns", "path", "size")

    def __init__(self, path: ManifestPath) -> None:
        """Errors of `remote.segment.ChunkedSegment`."""
        self.path: str = path
        self._segment = ChunkedSegment(path)
        self.size = self._segment.size
        self.mtime_ns = self._segment.mtime_ns
        self.inode = self._segment.version

    def __enter__(self) -> RemoteFile:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is held open."""

    def read_into(self, buf: NDArray[np.uint8], position: int, length: int) -> None:
        """Fill buf[:length] with the bytes at `position` of the file; LogChangedError behind its
        end, RemoteStorageError for a block that is damaged."""
        view = buf[:length].data
        done = 0
        while done < length:
            number, start = divmod(position + done, self._segment.block_bytes)
            block = memoryview(self._block(number)) if position + done < self.size else b""
            part = block[start : start + length - done]
            if not part:
                raise LogChangedError(
                    f"the file ends {length - done} bytes early",
                    path=self.path,
                    position=position + done,
                )
            view[done : done + len(part)] = part
            done += len(part)
        spend(length)

    def read_bytes(self, position: int, length: int) -> bytes:
        """Up to `length` bytes at `position`: fewer where the file ends."""
        length = max(min(length, self.size - position), 0)
        buf = np.empty(length, np.uint8)
        self.read_into(buf, position, length)
        return buf.tobytes()

    def _block(self, number: int) -> bytes:
        segment = self._segment
        key = (self.path, self._segment.path.keys, self.inode, number)
        return BLOCKS.get(key, lambda: segment.block(number))


def read_remote_index(path: ManifestPath) -> bytes:
    """An index file as a broker has it. FileNotFoundError where the segment has none; errors of
    `remote.segment.ChunkedSegment`."""
    piece = path.piece or "log"
    segment = ChunkedSegment(path.beside(".log"))
    key = (path, path.keys, segment.version, piece)
    return BLOCKS.get(key, lambda: segment.index(piece))


def remote_identity(path: ManifestPath) -> FileIdentity:
    """Of the `.log`, or of an index, which is as old as the segment's manifest. Raises as
    `read_remote_index`."""
    segment = ChunkedSegment(path.beside(".log"))
    size = segment.size
    if path.piece is not None:
        if path.piece not in segment.manifest.pieces:
            raise FileNotFoundError(2, "no such index in the manifest", path.manifest)
        size = segment.manifest.piece_bytes(path.piece)
    return FileIdentity(size, segment.mtime_ns, segment.version)
