"""Whether a plan still holds."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from kafkalog.errors import LogChangedError
from kafkalog.format.meta_properties import META_PROPERTIES_FILE
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.known_directory import directory_digest
from kafkalog.log.listing import entries_in
from kafkalog.log.log_dir import reopen_partition
from kafkalog.log.log_dir_files import CHECKPOINT_FILES, read_log_dir_files
from kafkalog.swap.local_files import path_in
from kafkalog.swap.scratch import PREFIX

# Of each file its name, size, time of modification and of any change, and inode.
FileStates: TypeAlias = tuple[tuple[str, int, int, int, int], ...]

# By directory what this process, or the one it was forked from, made its plans from; with tokens.
_planned: dict[str, tuple[PartitionInventory, str]] = {}


@contextmanager
def planned_here(planned: Iterable[tuple[PartitionInventory, str]]) -> Iterator[None]:
    """Within it a partition that has its digest still is not opened again for `check_unchanged`;
    partitions with the tokens of their plans.
    """
    _planned.update((partition.path, (partition, token)) for partition, token in planned)
    try:
        yield
    finally:
        _planned.clear()


def check_unchanged(directory: str, token: str) -> PartitionInventory:
    """The partition as it is; LogChangedError unless the plan's token is that of the files there
    now: a plan is for these very files on this very disk, or it is for nothing.
    """
    known, known_token = _planned.get(directory, (None, ""))
    if known is not None and known_token == token and _is_as_it_was(known):
        return known
    found = reopen_partition(directory)
    if found is None or found.token != token:
        raise LogChangedError(
            "files, checkpoints or log dir are not those the plan was made from: another "
            "host's disk under the same path, or somebody wrote meanwhile",
            path=directory,
        )
    return found


def _is_as_it_was(known: PartitionInventory) -> bool:
    """Whether all that a token depends on is as it was when the partition was opened."""
    if not known.digest or os.path.islink(known.path):  # noqa: PTH114 - as `path_in`
        return False
    try:
        if directory_digest(entries_in(known.path)) != known.digest:
            return False
        files = read_log_dir_files(Path(known.log_dir))
    except OSError:
        return False
    directory_id = files.meta.directory_id if files.meta else None
    return (
        (files.device, files.inode, directory_id)
        == (known.dir_device, known.dir_inode, known.directory_id)
        and files.partition_checkpoints(known.topic_partition) == known.checkpoints
    )  # fmt: skip


def file_states(directory: str) -> FileStates | None:
    """What stat tells of all that a token depends on: the files of a partition but for ours, which
    come and go, and those of its log dir. None if one of them has just gone, or cannot be seen.

    Where it is what it was before the partition was last opened, opening it again would find the
    same.
    """
    log_dir = os.path.dirname(directory)  # noqa: PTH120 - as `path_in`
    try:
        with os.scandir(directory) as listed:
            found = [
                _state(entry.name, entry.stat())
                for entry in listed
                if not entry.name.startswith(PREFIX)
            ]
        for name in (*CHECKPOINT_FILES, META_PROPERTIES_FILE):
            try:
                stat = os.stat(path_in(log_dir, name))  # noqa: PTH116 - as `path_in`
            except FileNotFoundError:
                continue
            found.append(_state(f"../{name}", stat))
        place = os.stat(log_dir)  # noqa: PTH116 - as `path_in`
    except OSError:
        return None
    return (("..", place.st_dev, 0, 0, place.st_ino), *sorted(found))


def _state(name: str, stat: os.stat_result) -> tuple[str, int, int, int, int]:
    return name, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino
