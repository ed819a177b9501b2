"""What a new segment is written with, and whose files the new ones must look like.

Cleaning itself changes no log dir: whoever calls it hands over what makes files, and where.
"""

from __future__ import annotations

import os
from typing import Protocol

from kafkalog.errors import LogCleaningRefusedError


class NewFiles(Protocol):
    """Makes files that are not there yet; errors are OSError, with the path in them."""

    def create(self, path: str) -> int:
        """Open a new file for writing and return its descriptor; a file that exists is an error."""

    def write(self, fd: int, data: memoryview) -> None:
        """Write all of `data` at the descriptor's place."""

    def sync_file(self, fd: int) -> None:
        """Force a file's bytes and size to disk."""

    def set_owner(self, fd: int, source: os.stat_result) -> None:
        """Give a new file the owner, group and mode of the one it replaces."""

    def set_modification_time(self, fd: int, modification_time_ms: int) -> None:
        """Set a file's access and modification time."""


def owner_of(segment_path: str) -> os.stat_result:
    """Whose files the new ones must look like."""
    return os.stat(segment_path)  # noqa: PTH116 - once for each new segment


def check_ownership(owner: os.stat_result, path: str) -> None:
    """LogCleaningRefusedError where new files in place of `path` would not be its owner's."""
    if not can_give_ownership(owner):
        raise LogCleaningRefusedError(
            f"new files must belong to user {owner.st_uid}, group {owner.st_gid}, which this "
            "process may not give: run it as that user or as root",
            path=path,
        )


def can_give_ownership(source: os.stat_result) -> bool:
    """Whether this process may give a new file the owner and group of `source`."""
    if os.geteuid() == 0:
        return True
    # What the system lets a user do with new files of their own: keep them, or give them to a group
    # of theirs.
    groups = {os.getegid(), *os.getgroups()}
    return source.st_uid == os.geteuid() and source.st_gid in groups
