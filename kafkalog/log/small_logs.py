"""Small logs that nothing is wrong with, read many at once: into the columns of `kept_logs`.

Most partitions of a disk with many are small. To read one by itself takes some thousand calls of
Python, however few bytes it has; here compiled code reads the files of some hundred, walks over
their headers and counts. What is said of a log is what a walk over it by itself says. Of a log that
is not as a leader writes it without transactions, or has a file that is odd, nothing is said: who
needs it reads it by itself.

    here            which logs are small
    listed_files    what their files are, by the names
    plain_segments  the numbers of each segment
    group_files     the bytes of some hundred
    small_group     what the files of a log say together

A directory is listed again behind the last look at its files: what was read of one that changed
meanwhile does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from kafkalog.log.directory_entries import SeenDirectories, digests_of, look_into
from kafkalog.log.group_files import MOST_INDEX_BYTES, Moment, SmallLog
from kafkalog.log.inventory import PartitionKind
from kafkalog.log.kept_logs import chosen_logs
from kafkalog.log.listed_files import LOG, OFFSET_INDEX, OTHER, TIME_INDEX, ListedFiles, files_of
from kafkalog.log.log_dir_files import LogDirFiles
from kafkalog.log.log_numbers import I64s, NamedLogs
from kafkalog.log.small_group import read_group
from kafkalog.log.topic_partition import parse_partition_dir_name
from kafkalog.native.file_contents import can_read

# Fewer are read one by one: that takes no time then, and what each segment says is kept apart.
LEAST_LOGS = 64
_MOST_FILE_BYTES = 64 * 1024
_MOST_LOG_BYTES = 256 * 1024
# Of the logs that are read together.
_BYTES_AT_ONCE = 8 * 1024 * 1024


class SmallLogs:
    """Those among the directories that it is shown. `is_known`: of a path and a digest, whether
    nothing is to be read of it.
    """

    def __init__(self, is_known: Callable[[str, str], bool], moment: Moment) -> None:
        self._is_known, self._moment = is_known, moment
        self.found: list[NamedLogs] = []

    def see(self, seen: SeenDirectories, log_dirs: Mapping[str, LogDirFiles]) -> None:
        """Read those of these directories that are small logs."""
        if not can_read():
            return
        logs = {
            number: log
            for number, path in enumerate(seen.paths)
            if (digest := seen.digests[number])
            and not self._is_known(path, digest)
            and (log := _log_at(path, digest, log_dirs)) is not None
        }
        if len(logs) < LEAST_LOGS:
            return
        files = files_of(seen.listed)
        small = np.flatnonzero(_are_small(files, len(seen.paths))).tolist()
        for numbers in _in_groups(files, [number for number in small if number in logs]):
            found = read_group(
                seen, files, {number: logs[number] for number in numbers}, self._moment
            )
            again = [*digests_of(look_into(found.paths))] if found.paths else []
            same = [n for n, digest in enumerate(again) if digest == found.digests[n]]
            self.found.append(found if len(same) == len(again) else chosen_logs(found, same))


def _log_at(path: str, digest: str, log_dirs: Mapping[str, LogDirFiles]) -> SmallLog | None:
    """What is known of a log from outside of its directory; None where that is odd already."""
    parent, _, name = path.rpartition("/")
    directory, files = parse_partition_dir_name(name), log_dirs.get(parent or "/")
    if directory is None or directory.kind is not PartitionKind.LIVE:
        return None
    topic_partition = directory.topic_partition
    # A broker's own topics have rules of their own.
    if files is None or files.problems or topic_partition.topic.startswith("__"):
        return None
    lines = files.partition_checkpoints(topic_partition)
    is_text = path.isascii() or path.encode(errors="replace").decode() == path
    return SmallLog(path, digest, lines, files.path) if is_text else None


def _are_small(files: ListedFiles, count: int) -> NDArray[np.bool_]:
    """Which of so many directories have the files of a small log, and no others."""
    owners, kinds = files.owners, files.kinds
    logs, offset_indexes, time_indexes = (
        np.bincount(owners[kinds == kind], minlength=count)
        for kind in (LOG, OFFSET_INDEX, TIME_INDEX)
    )
    sizes = _bytes_to_read(files)
    is_odd = (kinds == OTHER) | (sizes > _MOST_FILE_BYTES)
    found: NDArray[np.bool_] = (
        (logs > 0)
        & (logs == offset_indexes)
        & (logs == time_indexes)
        & (np.bincount(owners[is_odd], minlength=count) == 0)
        & (np.bincount(owners, sizes, minlength=count) <= _MOST_LOG_BYTES)
    )
    return found


def _bytes_to_read(files: ListedFiles) -> I64s:
    """Of an index that is preallocated the end is not."""
    is_index = (files.kinds == OFFSET_INDEX) | (files.kinds == TIME_INDEX)
    return np.where(is_index, np.minimum(files.sizes, MOST_INDEX_BYTES), files.sizes)


def _in_groups(files: ListedFiles, numbers: list[int]) -> Iterator[list[int]]:
    """Those of these directories that are read together."""
    if not numbers:
        return
    own: I64s = np.array(numbers, np.int64)
    sizes = np.bincount(files.owners, _bytes_to_read(files), minlength=numbers[-1] + 1)[own]
    groups = np.cumsum(sizes).astype(np.int64) // _BYTES_AT_ONCE
    for group in np.unique(groups):
        yield own[groups == group].tolist()
