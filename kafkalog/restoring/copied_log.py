"""A restored log's segments as they are copied, and what lies beside them, built by a pass that
goes along right behind the copy: it reads what was written while that is in memory, once.

    thread     segment n              n + 1
    copy       copied                 copied
    pass                              n read: checksums, indexes, headers compared
    sync                              n forced to disk, then its indexes
    check                             n by its bytes, where epochs or producer ids change

Of a log that is no larger than some MiB all of it is one step after the other.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kafkalog.errors import KafkaLogError, LogChangedError, LogSegmentOffsetOverflowError
from kafkalog.format.file_names import log_file_name
from kafkalog.log.inventory import SegmentInfo
from kafkalog.log.segment_file import ChunkBuffers
from kafkalog.repair.log_scan import LogScan
from kafkalog.repair.recover_result import RecoverTask
from kafkalog.repair.segment_scan import ScannedSegment
from kafkalog.restoring.beside import Thread, Work, beside
from kafkalog.restoring.cut import LogCut
from kafkalog.restoring.header_digest import HeaderDigest
from kafkalog.restoring.same_bytes import (
    check_batches,
    check_headers,
    check_tail,
    is_compared_by_bytes,
)
from kafkalog.restoring.segments import Identity, write_segment
from kafkalog.swap.local_files import LocalFiles, path_in

# With so little of the memory free what is read next would have to go for what was written.
_FREE_BYTES = 4 * 1024 * 1024 * 1024
# Less than this is not worth a call.
_WRITE_BACK_BYTES = 1024 * 1024
# Small files that are written together: each is open, and in memory, a few MiB in all.
_MOST_AT_ONCE = 24


@dataclass(frozen=True, slots=True)
class CopyTask:
    """What is copied where: of a cut into a directory that is there and empty; like: the owner and
    mode of its files; is_read_again: source and copy, when all of it is there.
    """

    cut: LogCut
    directory: str
    like: os.stat_result
    identity: Identity
    files: LocalFiles
    max_batch_bytes: int
    is_read_again: bool

    def path(self, number: int) -> str:
        """Of a segment's copy."""
        return path_in(self.directory, log_file_name(self.cut.segments[number].base_offset))


@contextmanager
def copied_log(task: CopyTask) -> Iterator[CopiedLog]:
    """The log, of which nothing is copied yet; at the end all that was written is on the disk.
    Errors as of `CopiedLog.build`, also at the end.
    """
    size = task.cut.size_in_bytes
    # In this order, as who copies has more to sync.
    with beside(size) as sync, beside(size) as check, beside(size) as copy:
        yield CopiedLog(task, copy, check, sync)


@dataclass
class CopiedLog:
    """What the pass asks for its segments, and gives what it finds."""

    task: CopyTask
    copy: Thread
    check: Thread
    sync: Thread
    _copies: list[Work] = field(default_factory=list)
    _failed: Exception | None = None
    _small_files: list[tuple[str, bytes]] = field(default_factory=list)
    _number: int = -1
    _digest: HeaderDigest = field(default_factory=HeaderDigest)

    def copied(self, number: int) -> None:
        """Wait until a segment is there; the next one is begun. CorruptRecordError as of
        `write_segment`, OSError.
        """
        for n in (number, number + 1):
            if n == len(self._copies) < len(self.task.cut.segments):
                self._copies.append(self.copy(partial(self._copy, n)))
        self._copies[number]()

    def build(self, task: RecoverTask) -> None:
        """All that lies beside the segments. task: the directory with its first segment in it.
        LogChangedError where the copy is not the source's, or nothing can be built of it;
        LogSegmentOffsetOverflowError where it has to be split first. As of `copied`.
        """
        first, cut = task.partition.segments[0], self.task.cut
        segments = tuple(
            replace(
                first,
                base_offset=each.base_offset,
                path=self.task.path(n),
                size_in_bytes=each.valid_bytes,
                is_active=n == len(cut.segments) - 1,
            )
            for n, each in enumerate(cut.segments)
        )
        partition = replace(task.partition, segments=segments)
        try:
            LogScan(task, partition, self, ChunkBuffers(), self).run()
        except (LogChangedError, LogSegmentOffsetOverflowError):
            raise
        except KafkaLogError as error:
            if error is self._failed:
                raise
            raise LogChangedError(
                f"its indexes cannot be built: {error}", path=task.path
            ) from error
        self._write_small_files()

    def _copy(self, number: int) -> None:
        task, path = self.task, self.task.path(number)
        position = 0

        def written(size: int) -> None:
            nonlocal position
            # Where the disk begins at once it is never out of work, and waited for less at the end.
            if size >= _WRITE_BACK_BYTES:
                self.sync(partial(task.files.begin_write_back, path, position, size))
            position += size

        write_segment(
            task.cut, number, path, task.like, task.identity, task.files, task.max_batch_bytes,
            written,
        )  # fmt: skip
        self.sync(partial(_sync, path, task.files))

    # -- along with the pass ---------------------------------------------------------------------

    def enter(self, segment: SegmentInfo) -> None:
        """Its copy is there."""
        self._number += 1
        self._digest = HeaderDigest()
        try:
            self.copied(self._number)
        except KafkaLogError as error:
            self._failed = error
            raise

    def add(self, rows: NDArray[np.void]) -> None:
        """What is compared with the plan's digest."""
        its = self.task.cut.segments[self._number]
        self._digest.add(rows[rows["position"] < its.valid_bytes])

    def leave(self, segment: SegmentInfo, scan: ScannedSegment) -> None:
        """LogChangedError where it differs from the source's in what must not."""
        task, number = self.task, self._number
        wait: Work | None = None
        if is_compared_by_bytes(task.cut):
            check_tail(task.cut, number, segment.path, task.identity)
            if task.identity.is_kept:
                self._compare(number, segment.path)
            else:
                wait = self.check(
                    partial(check_batches, task.cut.segments[number], segment.path,
                            task.identity, task.max_batch_bytes)
                )  # fmt: skip
        if not task.is_read_again:
            self.sync(partial(self._make_room, number, wait))

    def _compare(self, number: int, path: str) -> None:
        source = self.task.cut.segments[number]
        if self._digest.hexdigest() != source.headers:
            check_headers(source, path)
            raise LogChangedError("was written to since this was planned", path=source.path)

    def _make_room(self, number: int, wait: Work | None) -> None:
        """Neither is read again: where memory is short they go first, and not what comes next."""
        if wait is not None:
            wait()
        if os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < _FREE_BYTES:
            source = self.task.cut.segments[number]
            for path in (self.task.path(number), *([] if source.is_remote else [source.path])):
                self.task.files.forget(path)

    # -- what the pass finds ---------------------------------------------------------------------

    def note(self, name: str, reason: str, data: bytes) -> None:
        """A file that is to be there."""
        self._small_files.append((path_in(self.task.directory, name), data))
        if len(self._small_files) >= _MOST_AT_ONCE:
            self._write_small_files()

    def _write_small_files(self) -> None:
        """Behind the segments, whose bytes the disk has to take first in any case."""
        made, self._small_files = self._small_files, []
        self.sync(partial(self.task.files.write_all_new, made, self.task.like))

    def note_removal(self, name: str, reason: str) -> None:
        """LogChangedError: nothing but segments is there."""
        raise LogChangedError(reason, path=path_in(self.task.directory, name))

    def note_tail(self, segment: SegmentInfo, scan: ScannedSegment) -> None:
        """LogChangedError: a cut ends with a whole batch."""
        raise LogChangedError(
            f"ends with {scan.trailing_bytes} bytes that are no batch",
            path=segment.path,
            position=scan.valid_bytes,
        )


def _sync(path: str, files: LocalFiles) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        files.sync_file(fd)
    finally:
        os.close(fd)
