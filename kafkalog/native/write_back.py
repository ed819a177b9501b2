"""Have the system begin to write a range of a file to the disk, without waiting for it: Python has
no call for that. Only a hint: what has to be on the disk is synced later, and then waited for less.

Source: sync_file_range(2), of Linux alone.
"""

from __future__ import annotations

from kafkalog.native.functions import called_from_python

_WRITE = 2  # SYNC_FILE_RANGE_WRITE


def begin_write_back(descriptor: int, position: int, length: int) -> None:
    """Of `length` bytes at `position`, 0 for all from there on; nothing where the system or the
    file system cannot.
    """
    if _call is not None:
        _call(descriptor, position, length, _WRITE)


_call = called_from_python("sync_file_range", 4)
