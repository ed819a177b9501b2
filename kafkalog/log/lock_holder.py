"""Who holds the `.lock` of a log dir, asked without taking it, so that no broker is stopped.

A broker holds a POSIX record lock on the file as long as it lives; that the file is there means
nothing.

Source: Kafka FileLock; fcntl(2).
"""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

LOCK_FILE_NAME = ".lock"
# struct flock on 64-bit Linux: l_type i16, l_whence i16, (4 bytes of padding), l_start i64, l_len
# i64, l_pid i32
_FLOCK = struct.Struct("@hhqqi4x")


def lock_holder(log_dir: str | Path) -> int | None:
    """The process that holds a log dir's lock, 0 where it is in another container or on another
    host; None if nobody else does, or there is no such file. OSError where it cannot be asked.

    Not for the process that holds the lock itself: closing the descriptor used here would drop its
    lock.
    """
    try:
        fd = os.open(Path(log_dir) / LOCK_FILE_NAME, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        # F_GETLK asks whether a lock could be had and takes none: the answer is the lock that is in
        # the way, with the process that holds it.
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, holder = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_GETLK, asked))
    finally:
        os.close(fd)
    return None if kind == fcntl.F_UNLCK else max(holder, 0)
