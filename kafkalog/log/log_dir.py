"""Find partition directories below one or many paths.

A path is a log dir, a partition directory, a `.log` file, a glob of these, or the URI of one in a
bucket (`bucket_dir`). Only small files are
read (checkpoints, meta.properties, index ends, the headers behind the active segment's last index
entry), so opening a log dir costs a few system calls a segment. Symbolic links are followed, as a
broker follows them: a partition is the one that the link is named after, in the log dir that has
the link. It cannot be changed through the link (see `partition_dir`).

What cannot be read is a problem in the inventory, never an exception, so that one bad partition or
file does not hide the others; a path that does not exist is an error.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from kafkalog.errors import InvalidConfigError, KafkaLogError, LogChangedError
from kafkalog.format.file_names import (
    OF_KAFKA_0_7,
    REMOTE_INDEX_CACHE_DIR,
    is_of_kafka_0_7,
    parse_file_name,
)
from kafkalog.format.meta_properties import META_PROPERTIES_FILE
from kafkalog.log.bucket_dir import bucket_partition_dirs
from kafkalog.log.inventory import (
    LogInventory,
    PartitionInventory,
    PartitionKind,
    UnreadPartition,
)
from kafkalog.log.known_directory import KnownDirectory
from kafkalog.log.listing import is_directory_entry, path_text
from kafkalog.log.log_dir_files import CHECKPOINT_FILES, LogDirFiles, read_log_dir_files
from kafkalog.log.partition_dir import known_partition_dir, read_partition_dir, seen_before
from kafkalog.log.topic_partition import is_partition_dir_name, parse_partition_dir_name
from kafkalog.log.wrong_directory import refuse_uri, refuse_wrong_directory
from kafkalog.remote.side_by_side import side_by_side
from kafkalog.remote.stores import bucket_uri, local_path

if TYPE_CHECKING:
    from kafkalog.log.small_logs import SmallLogs

# How the problem of a partition begins that was given by a link.
BY_LINK = "given by a link"
# How a problem of a directory with another name begins, behind its path.
NO_PARTITION = "not a partition's directory"

# A partition, its problems, and the directories that could not be read.
Opened: TypeAlias = tuple[PartitionInventory | None, list[str], list[UnreadPartition]]
# What has directories read by a function, all of them, and gives what it read in their order.
Share: TypeAlias = Callable[
    [Callable[[Sequence[str]], Sequence[Opened]], Sequence[str]], Sequence[Opened]
]


def open_log_dir(
    *paths: str | PathLike[str],
    known: Mapping[str, KnownDirectory] | None = None,
    reads_buckets: bool = True,
    share: Share | None = None,
    small: SmallLogs | None = None,
) -> LogInventory:
    """What is stored below `paths`, in the order of topic, partition and path.

    A directory named twice is there once. A `.log` file yields its partition with that segment
    alone, several of them with those, which can be read but not compacted. `known`: what an earlier
    run saw, by path of the directory; see `read_partition_dir`; `small`: what reads those that it
    does not have, for `known` to have them then. `reads_buckets`: False for a caller
    that needs files of this machine. `share`: what gives directories of this machine to more than
    one process to read. Raises
    InvalidConfigError for a path that does not exist, matches nothing, is neither directory nor
    `.log` file, or a directory that is no log dir (`wrong_directory`); of a bucket also
    RemoteStorageError.
    """
    problems: list[str] = []
    unread: list[UnreadPartition] = []
    # The segments asked for by directory, None for all. Texts: of paths some ten thousand take a
    # tenth of a second, and most directories are as they were, see below.
    wanted: dict[str, set[str] | None] = {}
    links: dict[str, Path] = {}
    for path in expand_paths(paths, reads_buckets=reads_buckets):
        if path.is_dir():
            refuse_wrong_directory(path)
        target = str(path.resolve()) if path.is_symlink() else None
        # None wins over names: asked for as a whole, a directory is read as a whole.
        for directory, only_file in _readable_dirs(path, problems, unread):
            if directory == target:
                links[directory] = path
            names = wanted.setdefault(directory, set())
            if only_file is None:
                wanted[directory] = None
            elif names is not None:
                names.add(only_file)
    found: list[PartitionInventory] = []
    # Once a log dir, not once a partition: there may be thousands in one.
    log_dirs: dict[str, LogDirFiles] = {}
    files_of: dict[str, LogDirFiles] = {}
    for directory in wanted:
        parent = os.path.dirname(directory)  # noqa: PTH120 - of each partition
        if parent not in log_dirs:
            log_dirs[parent] = read_log_dir_files(Path(parent))
        files_of[directory] = log_dirs[parent]

    # A segment that is asked for by its name is no whole log.
    is_whole = not any(wanted.values())
    in_buckets = {f.path for f in log_dirs.values() if bucket_uri(f.path) is not None}
    digests: dict[str, str] = {}
    if known is not None:
        on_disks = [d for d, files in files_of.items() if files.path not in in_buckets]
        digests = _digests(on_disks, log_dirs, small if is_whole else None)

    def read(directory: str) -> Opened:
        files, only_files = files_of[directory], wanted[directory]
        digest = digests.get(directory, "")
        own: tuple[list[str], list[UnreadPartition]] = [], []
        if only_files is None and (seen := seen_before(known, directory, digest)) is not None:
            return known_partition_dir(directory, files, seen), *own
        return _read(Path(directory), files, only_files, *own, known, digest), *own

    opened: Iterable[Opened]
    if in_buckets:  # a store is asked about several partitions at once
        opened = side_by_side(read, wanted)
    elif share is not None:
        opened = share(lambda directories: [*map(read, directories)], list(wanted))
    else:
        opened = map(read, wanted)
    for directory, (partition, own_problems, own_unread) in zip(wanted, opened, strict=True):
        problems += own_problems
        unread += own_unread
        if partition is not None:
            link = links.get(directory)
            found.append(partition if link is None else _noting_links(partition, link))
    for files in log_dirs.values():
        problems.extend(files.problems)
    partitions = _refuse_duplicates(found, log_dirs.values())
    ordered = sorted(partitions, key=_order)
    _refuse_kafka_0_7(ordered)
    return LogInventory(tuple(ordered), tuple(problems), tuple(unread))


def _order(partition: PartitionInventory) -> tuple[str, int, str]:
    name = partition.topic_partition
    return name.topic, name.partition, partition.path


def _digests(
    directories: Sequence[str], log_dirs: Mapping[str, LogDirFiles], small: SmallLogs | None
) -> dict[str, str]:
    """Of directories of this machine, empty where a look at each of them alone has to tell."""
    # What looks at many at once is compiled code, which others do without.
    from kafkalog.log.directory_entries import directory_digests

    see = None if small is None else partial(small.see, log_dirs=log_dirs)
    return dict(zip(directories, directory_digests(directories, see), strict=True))


def _noting_links(partition: PartitionInventory, link: Path) -> PartitionInventory:
    """One that was given by a link is read like any other, and never changed."""
    if Path(partition.path).is_symlink():
        return partition  # said already
    problem = f"{BY_LINK}, {link}: it is read, and changed by its own path only"
    return replace(partition, problems=(*partition.problems, problem))


def is_behind_link(partition: PartitionInventory) -> bool:
    """Whether it was reached by a symbolic link, in its log dir or elsewhere."""
    is_given = any(problem.startswith(f"{BY_LINK}, ") for problem in partition.problems)
    return is_given or Path(partition.path).is_symlink()


def reopen_partition(path: str) -> PartitionInventory | None:
    """A partition directory whose path came from `open_log_dir`, as it is now; None if it cannot be
    read. Whatever lies in it, it is not taken for a log dir.
    """
    directory = Path(path)
    try:
        return _read(directory, read_log_dir_files(directory.parent), None, [], [])
    except OSError:
        return None


def _refuse_kafka_0_7(partitions: Sequence[PartitionInventory]) -> None:
    """InvalidConfigError where all there is has a format that nothing here reads."""
    if any(partition.segments for partition in partitions):
        return
    for partition in partitions:
        for problem in partition.problems:
            if problem.endswith(OF_KAFKA_0_7):
                raise InvalidConfigError(problem, path=partition.path)


def expand_paths(paths: Iterable[str | PathLike[str]], *, reads_buckets: bool) -> Iterator[Path]:
    """The paths, of globs what matches them; InvalidConfigError for what is not there. Whether
    anything is at a place in a bucket is not asked here."""
    for name in map(local_path, paths):
        if not str(name):
            # Path("") is the current directory: an unset variable must not name a log dir.
            raise InvalidConfigError("a path is empty")
        refuse_uri(name, reads_buckets=reads_buckets)
        path = Path(name)
        if bucket_uri(name) is not None or path.exists():
            yield path
            continue
        if path.is_symlink():
            raise InvalidConfigError("a link to what is not there", path=str(path))
        matches = sorted(glob.glob(str(path)))  # noqa: PTH207 - the pattern may be absolute
        if not matches:
            raise InvalidConfigError("no such file or directory", path=str(path))
        yield from map(Path, matches)


def _readable_dirs(
    path: Path, problems: list[str], unread: list[UnreadPartition]
) -> list[tuple[str, str | None]]:
    """Those of `_partition_dirs`; a directory that cannot be listed is a problem."""
    if (uri := bucket_uri(path)) is not None:
        return [(str(directory), only_file) for directory, only_file in bucket_partition_dirs(uri)]
    try:
        return list(_partition_dirs(path, problems, unread))
    except OSError as error:
        problems.append(f"{path}: cannot be listed: {error.strerror or error}")
        return []


def _partition_dirs(
    path: Path, problems: list[str], unread: list[UnreadPartition]
) -> Iterator[tuple[str, str | None]]:
    """(partition directory, name of the one file to look at or None)."""
    if path.is_file():
        if is_of_kafka_0_7(path.name):
            raise InvalidConfigError(OF_KAFKA_0_7, path=str(path))
        if path.suffix != ".log":
            raise InvalidConfigError("neither a directory nor a .log file", path=str(path))
        if parse_file_name(path.name) is None:
            raise InvalidConfigError(
                "not a segment: its name is its base offset in 20 digits", path=str(path)
            )
        yield str(path.parent.resolve()), path.name
    elif _is_partition_dir(path):
        yield str(_own_path(path)), None
    else:
        yield from ((directory, None) for directory in _subdirectories(path, problems, unread))


def _is_partition_dir(path: Path) -> bool:
    """A log dir may well be called `kafka-logs-1`: the name alone does not tell."""
    if not any(map(parse_partition_dir_name, (path.name, path.resolve().name))):
        return False
    if _has_log_dir_files(path):
        return False
    return not any(
        parse_partition_dir_name(entry.name) and entry.is_dir() for entry in path.iterdir()
    )


def _has_log_dir_files(path: Path) -> bool:
    return any((path / name).exists() for name in (META_PROPERTIES_FILE, *CHECKPOINT_FILES))


def _own_path(path: Path) -> Path:
    """Without links; but a link that stands in a log dir is a partition of that log dir, whatever
    is at its other end.
    """
    target = path.resolve()
    is_partition = parse_partition_dir_name(target.name) is not None
    if path.is_symlink() and (_has_log_dir_files(path.parent) or not is_partition):
        return path.parent.resolve() / path.name
    return target


def _subdirectories(
    log_dir: Path, problems: list[str], unread: list[UnreadPartition]
) -> Iterator[str]:
    root = str(log_dir.resolve()).rstrip("/")
    with os.scandir(log_dir) as listed:
        entries = sorted(listed, key=lambda entry: entry.name)
    for entry in entries:
        is_partition = is_partition_dir_name(entry.name)
        if is_partition and entry.is_symlink() and not Path(entry.path).exists():
            reason = "a link to nowhere: a broker cannot load or make it"
            problems.append(f"{entry.path}: {reason}")
            _note_unread(Path(f"{root}/{entry.name}"), reason, unread)
        if not is_directory_entry(entry) or entry.name == REMOTE_INDEX_CACHE_DIR:
            continue
        if not is_partition:
            problems.append(f"{entry.path}: {NO_PARTITION}: a broker refuses to start on it")
        else:
            yield f"{root}/{entry.name}"


def _read(
    directory: Path,
    files: LogDirFiles,
    only_files: Collection[str] | None,
    problems: list[str],
    unread: list[UnreadPartition],
    known: Mapping[str, KnownDirectory] | None = None,
    digest: str = "",
) -> PartitionInventory | None:
    """None, and a problem, if the directory cannot be read.

    A file that is there and then is not was deleted by a live broker: looked at once more, the
    directory makes sense again.
    """
    for is_last in (False, True):
        try:
            return read_partition_dir(
                directory, files, only_files, known, "" if is_last else digest
            )
        except (OSError, KafkaLogError) as error:
            if is_last or not isinstance(error, FileNotFoundError | LogChangedError):
                problems.append(f"{path_text(directory)}: {error}")
                if not isinstance(error, FileNotFoundError | LogChangedError):
                    _note_unread(directory, str(error), unread)
                break
    return None


def _note_unread(directory: Path, reason: str, unread: list[UnreadPartition]) -> None:
    """Unless it is a copy, or waits for its deletion."""
    name = parse_partition_dir_name(directory.name)
    if name is not None and name.kind is PartitionKind.LIVE:
        unread.append(UnreadPartition(name.topic_partition, path_text(directory), reason))


def _refuse_duplicates(
    partitions: Sequence[PartitionInventory], log_dirs: Iterable[LogDirFiles]
) -> list[PartitionInventory]:
    """Two live directories of a partition on one node, or in one log dir (`orders-0` and
    `orders-00`): a broker does not start, and we do not choose.

    Replicas of several nodes opened together are no conflict.
    """
    nodes = {path_text(files.path): _node(files) for files in log_dirs}
    own = [_owner(partition, nodes) for partition in partitions]
    owners: dict[tuple[object, ...], list[str]] = {}
    for partition, owner in zip(partitions, own, strict=True):
        owners.setdefault(owner, []).append(partition.path)
    if len(owners) == len(partitions):
        return [*partitions]
    result = []
    for partition, owner in zip(partitions, own, strict=True):
        others = [path for path in owners[owner] if path != partition.path]
        if others and partition.kind is PartitionKind.LIVE:
            problem = f"the same node has this partition in {', '.join(others)} as well"
            partition = replace(partition, problems=(*partition.problems, problem))
        result.append(partition)
    return result


def _node(files: LogDirFiles) -> tuple[object, ...]:
    """Whose a log dir is: of no known node it stands for itself."""
    meta = files.meta
    if meta is None or meta.node_id is None:
        return (path_text(files.path),)
    return meta.cluster_id, meta.node_id


def _owner(
    partition: PartitionInventory, nodes: Mapping[str, tuple[object, ...]]
) -> tuple[object, ...]:
    if partition.kind is not PartitionKind.LIVE:
        return (partition.path,)
    name = partition.topic_partition
    return nodes[partition.log_dir], name.topic, name.partition
