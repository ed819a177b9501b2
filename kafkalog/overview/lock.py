"""Whether somebody runs on a log dir now: who holds its `.lock`, asked without taking it.

A broker holds a POSIX record lock on `.lock` as long as it lives. F_GETLK tells the process of a
lock that would be in the way; nothing is locked, so a broker that starts meanwhile is not stopped.

Source: Kafka FileLock; fcntl(2).
"""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

# struct flock of Linux with 64 bits: l_type, l_whence, l_start, l_len, l_pid.
_FLOCK = struct.Struct("@hhqqi4x")


def lock_holder(path: Path) -> int | None:
    """The id of the process that holds the lock, 0 where it is in another container or host; None
    if nobody does, or nothing can be told.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, holder = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
    except (OSError, struct.error):
        return None
    finally:
        os.close(descriptor)
    return None if kind == fcntl.F_UNLCK else max(holder, 0)
