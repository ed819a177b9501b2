"""A file of remote storage, read like a local one: the same names, blocks from a cache.

It lies behind a manifest, or is an object as it is (`remote.plain_object`).
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from kafkalog.errors import KafkaLogError, LogChangedError
from kafkalog.log.inventory import FileIdentity
from kafkalog.log.pace import spend
from kafkalog.remote import scans_in_turn
from kafkalog.remote.cache import BLOCKS, Block
from kafkalog.remote.paths import ManifestPath
from kafkalog.remote.plain_object import PlainObject
from kafkalog.remote.reading_ahead import ReadingAhead
from kafkalog.remote.scans_in_turn import BegunScan, ScanRange
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
        """The bytes from `start` to `end` (excluded) are read in order: they are fetched ahead, and
        behind them what the thread reads next (`remote.scans_in_turn`)."""
        if end - start <= self._segment.block_bytes:
            return
        taken = scans_in_turn.take(ScanRange(self.path, start, end), self.inode)
        if taken is None:
            taken = self._reading_ahead(start, end)
        elif isinstance(self._segment, PlainObject):
            self._segment.reads_on()
        behind = scans_in_turn.following()
        taken.behind = None if behind is None else partial(_begin, behind)
        self._ahead = taken

    def _reading_ahead(self, start: int, end: int) -> ReadingAhead:
        if isinstance(self._segment, PlainObject):
            self._segment.reads_on()
        return ReadingAhead(self._kept_blocks, self._segment.block_bytes, start, end)

    def begin_scan(self, scan: ScanRange) -> BegunScan:
        """A scan that somebody else takes."""
        return BegunScan(scan, self.inode, self._reading_ahead(scan.start, scan.end))

    def _block(self, number: int) -> Block:
        return self._kept(number) if self._ahead is None else self._ahead.block(number)

    def _kept(self, number: int) -> Block:
        return BLOCKS.get(self._key(number), lambda: self._segment.blocks(number, 1)[0])

    def _kept_blocks(self, first: int, count: int) -> list[Block]:
        """Blocks in a row, those that are not kept by one request."""
        kept = [BLOCKS.find(self._key(first + n)) for n in range(count)]
        missing = [n for n, block in enumerate(kept) if block is None]
        if missing:
            start, end = missing[0], missing[-1] + 1
            for n, block in enumerate(self._segment.blocks(first + start, end - start), start):
                kept[n] = block
                BLOCKS.keep(self._key(first + n), block)
        return [block for block in kept if block is not None]

    def _key(self, number: int) -> Hashable:
        keys = self.path.keys if isinstance(self.path, ManifestPath) else ()
        return self.path, keys, self.inode, self._segment.block_bytes, number


def _begin(scan: ScanRange, requests: int) -> None:
    """Have so many requests of a scan under way. What is wrong with its file is said when it is
    opened to be read."""
    begun = scans_in_turn.begun()
    if begun is None or begun.scan != scan:
        try:
            begun = RemoteFile(scan.path).begin_scan(scan)
        except (KafkaLogError, OSError):
            return
        scans_in_turn.keep(begun)
    begun.ahead.begin(requests)


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
