"""The lock of a partition: one attempt of a run changes it at a time, and a run waits for those of
earlier ones.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from kafkalog.errors import LogDirLockedError
from kafkalog.swap.local_files import list_names, path_in
from kafkalog.swap.scratch import Scratch, is_partition_lock

# A swap renames a few files; one that takes longer than this hangs.
MAX_WAIT_S = 60.0


@contextmanager
def locked_partition(scratch: Scratch) -> Iterator[None]:
    """Only one attempt of a run at a time changes a partition; waits for the lock.

    The file is there while somebody holds the lock, or died holding it; the lock itself goes with
    its process. Attempts are processes: threads of one process would not wait for each other.
    """
    fd = _take_lock(scratch.lock)
    try:
        yield
    finally:
        # Removed while it is still locked: whoever waits for it gets a lock on a file without a
        # name, sees that, and begins again (`_take_lock`).
        with suppress(FileNotFoundError):
            os.unlink(scratch.lock)  # noqa: PTH108 - as `path_in`
        os.close(fd)


def wait_for_other_runs(directory: str) -> None:
    """Until no task of an earlier run changes this partition any more.

    Such a task may outlive its driver (a Spark executor's does), and the lock of the log dir with
    it. The caller holds that lock now: a task that waits for this one will find that out and
    stop, so it is enough to wait for those that hold it. LogDirLockedError if one does not end.
    """
    for name in list_names(directory):
        if not is_partition_lock(name):
            continue
        path = path_in(directory, name)
        until = time.monotonic() + MAX_WAIT_S
        while not _is_free(path):
            if time.monotonic() > until:
                raise LogDirLockedError(
                    "a task of an earlier run is still at work on this partition", path=path
                )
            time.sleep(0.05)


def _is_free(path: str) -> bool:
    try:
        # Opened to ask and closed again: this process holds none of these locks, so that closing
        # gives none up.
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    finally:
        os.close(fd)
    return True


def _take_lock(path: str) -> int:
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX)
            # Whoever had it before us removed the file, and somebody may have made it anew.
            if _is_at(path, fd):
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)


def _is_at(path: str, fd: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))  # noqa: PTH116 (beside fstat)
    except FileNotFoundError:
        return False
