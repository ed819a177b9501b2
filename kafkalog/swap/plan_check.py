"""Whether a plan still holds."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from kafkalog.clock import now_ns
from kafkalog.errors import LogChangedError
from kafkalog.format.meta_properties import META_PROPERTIES_FILE
from kafkalog.log.directory_entries import LookedAt, look_at_one
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.known_directory import digest_of
from kafkalog.log.log_dir import reopen_partition
from kafkalog.log.log_dir_files import CHECKPOINT_FILES, LogDirFiles, read_log_dir_files
from kafkalog.swap.local_files import path_in
from kafkalog.swap.scratch import PREFIX

# Of each file its name, size, time of modification, inode, and time of any change.
FileStates: TypeAlias = tuple[tuple[bytes, int, int, int, int], ...]

# By directory what this process, or the one it was forked from, made its plans from; with tokens.
_planned: dict[str, tuple[PartitionInventory, str]] = {}
# By log dir its root files as they were read last, and what stat told of them before.
_roots: dict[str, tuple[FileStates, LogDirFiles]] = {}
# What was changed so long before it was looked at is believed to be as it was where stat tells of
# no change; a clock of files may go by the second.
_RESTED_NS = 2_000_000_000
_ROOT_FILES = [(f"../{name}".encode(), name) for name in (*CHECKPOINT_FILES, META_PROPERTIES_FILE)]
_OURS = PREFIX.encode()


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
        _roots.clear()


def check_at_start(directory: str, token: str) -> tuple[PartitionInventory, FileStates | None]:
    """`check_unchanged`, and the `file_states` from in front of it: whatever changes between the
    two is another state later.
    """
    looked_at, root, states = _look(directory)
    known, known_token = _planned.get(directory, (None, ""))
    if known is not None and known_token == token and _is_as_it_was(known, looked_at, root):
        return known, states
    return _opened_again(directory, token), states


def check_unchanged(directory: str, token: str) -> PartitionInventory:
    """The partition as it is; LogChangedError unless the plan's token is that of the files there
    now: a plan is for these very files on this very disk, or it is for nothing.
    """
    return check_at_start(directory, token)[0]


def _opened_again(directory: str, token: str) -> PartitionInventory:
    found = reopen_partition(directory)
    if found is None or found.token != token:
        raise LogChangedError(
            "files, checkpoints or log dir are not those the plan was made from: another "
            "host's disk under the same path, or somebody wrote meanwhile",
            path=directory,
        )
    return found


def _is_as_it_was(
    known: PartitionInventory, looked_at: Sequence[LookedAt] | None, root: FileStates | None
) -> bool:
    """Whether all that a token depends on is as it was when the partition was opened, by what was
    seen of the directory and of the log dir's files.
    """
    if not known.digest or not looked_at or root is None:
        return False
    if digest_of(each[:4] for each in looked_at) != known.digest:
        return False
    try:
        files = _root_files(known.log_dir, root)
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
    return _look(directory)[2]


def _look(
    directory: str,
) -> tuple[list[LookedAt] | None, FileStates | None, FileStates | None]:
    """What lies in a partition's directory, if it can be seen and is regular files alone, the
    states of its log dir's files, and both as `file_states`.
    """
    looked_at = look_at_one(directory)
    try:
        root = _root_states(os.path.dirname(directory))  # noqa: PTH120 - as `path_in`
    except OSError:
        return looked_at, None, None
    if looked_at is None:
        return None, root, None
    own = sorted(each for each in looked_at if not each[0].startswith(_OURS))
    return looked_at, root, (*root, *own)


def _root_states(log_dir: str) -> FileStates:
    """Of the log dir, and of those of its own files that a token depends on. OSError."""
    found, front = [], path_in(log_dir, "")
    for known_as, name in _ROOT_FILES:
        try:
            stat = os.stat(front + name)  # noqa: PTH116 - as `path_in`
        except FileNotFoundError:
            continue
        found.append((known_as, stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_ctime_ns))
    place = os.stat(log_dir)  # noqa: PTH116 - as `path_in`
    return ((b"..", place.st_dev, 0, place.st_ino, 0), *found)


def _root_files(log_dir: str, states: FileStates) -> LogDirFiles:
    """What they say, read again only where one has changed since they were read last."""
    known = _roots.get(log_dir)
    if known is not None and known[0] == states:
        return known[1]
    files = read_log_dir_files(Path(log_dir))
    # A file changed twice within a tick of its clock looks as if it were once: what has just
    # changed is read again the next time.
    if max(changed_ns for *_, changed_ns in states) < now_ns() - _RESTED_NS:
        _roots[log_dir] = states, files
    return files
