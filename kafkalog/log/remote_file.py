"""A file of remote storage, read like a local one: the same names, blocks from a cache.

It lies behind a manifest, or is an object as it is (`remote.plain_object`).
"""

from __future__ import annotations

from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from kafkalog.errors import LogChangedError
from kafkalog.log.inventory import FileIdentity
from kafkalog.log.pace import spend
from kafkalog.remote.cache import BLOCKS
from kafkalog.remote.paths import ManifestPath
from kafkalog.remote.plain_object import PlainObject
from kafkalog.remote.reading_ahead import Block, ReadingAhead
from kafkalog.remote.segment import ChunkedSegment


class RemoteFile:
    """A file of remote storage; size, mtime and inode are those at the time of opening, the inode
    a number that changes with the objects.

    To look at one header costs as much as to read all that is in its block, so there is no reading
    of headers alone.
    """

    __slots__ = ("_ahead", "_segment", "inode", "mtime_ns", "path", "size")

    def __init__(self, path: str) -> None:
        """`path`: a ManifestPath, or a URI. Errors of `remote.segment.ChunkedSegment`, and
        FileNotFoundError."""
        self.path: str = path
        self._segment = _segment(path)
        self._ahead: ReadingAhead | None = None
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
        """Nothing is held open; what was to be read ahead is not."""
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None

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

    def expect_scan(self, start: int, end: int) -> None:
        """The bytes from `start` to `end` (excluded) are read in order: they are fetched ahead."""
        if isinstance(self._segment, PlainObject) and end - start > self._segment.block_bytes:
            self._segment.reads_on()
        if end - start > self._segment.block_bytes:
            self._ahead = ReadingAhead(self._kept, self._segment.block_bytes, start, end)

    def _block(self, number: int) -> Block:
        return self._kept(number) if self._ahead is None else self._ahead.block(number)

    def _kept(self, number: int) -> Block:
        segment = self._segment
        keys = self.path.keys if isinstance(self.path, ManifestPath) else ()
        key = (self.path, keys, self.inode, segment.block_bytes, number)
        return BLOCKS.get(key, lambda: segment.block(number))


def _segment(path: str, *, looks_again: bool = False) -> ChunkedSegment | PlainObject:
    if isinstance(path, ManifestPath):
        return ChunkedSegment(path.beside(".log"), looks_again=looks_again)
    return PlainObject(path, looks_again=looks_again)


def read_remote_index(path: ManifestPath) -> bytes:
    """An index file as a broker has it. FileNotFoundError where the segment has none; errors of
    `remote.segment.ChunkedSegment`."""
    piece = path.piece or "log"
    segment = ChunkedSegment(path.beside(".log"))
    key = (path, path.keys, segment.version, piece)
    return bytes(BLOCKS.get(key, lambda: segment.index(piece)))


def remote_identity(path: str) -> FileIdentity:
    """As it is now: of the `.log`, or of an index, which behind a manifest is as old as that.
    Raises as `RemoteFile` and `read_remote_index`."""
    # An index changes with its segment, which is asked for first.
    is_index = isinstance(path, ManifestPath) and path.piece is not None
    segment = _segment(path, looks_again=not is_index)
    size = segment.size
    if isinstance(path, ManifestPath) and isinstance(segment, ChunkedSegment) and path.piece:
        if path.piece not in segment.manifest.pieces:
            raise FileNotFoundError(2, "no such index in the manifest", path.manifest)
        size = segment.manifest.piece_bytes(path.piece)
    return FileIdentity(size, segment.mtime_ns, segment.version)
