"""The log dirs by names and sizes: one listing and one stat a segment for each partition directory.

Of 20,000 partitions that is most of the time there is, so the loop over files is as plain as can
be. What cannot be listed is a problem, never an exception.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

from kafkalog.errors import InvalidConfigError
from kafkalog.format.clean_shutdown import CLEAN_SHUTDOWN_FILE, parse_clean_shutdown
from kafkalog.format.file_names import REMOTE_INDEX_CACHE_DIR, is_of_kafka_0_7
from kafkalog.format.meta_properties import META_PROPERTIES_FILE, MetaProperties
from kafkalog.format.topics import CLUSTER_METADATA_TOPIC, OFFSETS_TOPIC
from kafkalog.log.listing import is_directory_entry
from kafkalog.log.lock_holder import lock_holder
from kafkalog.log.log_dir_files import CHECKPOINT_FILES, LogDirFiles, read_log_dir_files
from kafkalog.log.small_files import read_small_file
from kafkalog.log.topic_partition import PartitionDirName, PartitionKind, parse_partition_dir_name
from kafkalog.log.wrong_directory import refuse_uri, refuse_wrong_directory

_LOG = ".log"
_DIGITS = 20
_LEFT = (".swap", ".cleaned", ".deleted")
# What is behind 20 characters of a name that is passed over; `int` is of leader-epoch-checkpoint.
_PASSED_OVER = {"", "int", ".index", ".snapshot", ".txnindex"}


@dataclass(slots=True)
class Partition:
    """A partition directory. log_bytes: of live `.log` files, first_base and last_base their lowest
    and highest base offset, -1 without any; last_bytes: of the last one. newest_ms, oldest_ms:
    modification times of these. left: files by the endings that an interrupted cleaning or deletion
    leaves. logs: (base offset, bytes) of each, of the offsets topic alone.
    """

    name: PartitionDirName
    path: str
    log_bytes: int = 0
    segments: int = 0
    first_base: int = -1
    last_base: int = -1
    last_bytes: int = 0
    logs: Sequence[tuple[int, int]] = ()
    newest_ms: int = 0
    oldest_ms: int = 0
    left: Mapping[str, int] | None = None
    has_time_index: bool = False
    has_kafka_0_7: bool = False

    @property
    def topic(self) -> str:
        return self.name.topic_partition.topic

    @property
    def is_live(self) -> bool:
        return self.name.kind is PartitionKind.LIVE

    def log_path(self, base_offset: int) -> str:
        """Of the segment with this base offset."""
        return f"{self.path}/{base_offset:020d}{_LOG}"


@dataclass(frozen=True, slots=True)
class Space:
    """Of the file system: its size and what is free to its user, in bytes."""

    total: int
    free: int


@dataclass(frozen=True, slots=True)
class LogDir:
    """One log dir. foreign: directories that no broker takes; is_clean_stop: the file that says so
    is there, clean_stop_epoch: the broker epoch in it; locked_by: who runs on it now; is_whole: it
    was not named by a partition of it; times_ms: oldest and newest modification of what was seen.
    """

    path: Path
    files: LogDirFiles
    partitions: tuple[Partition, ...]
    foreign: tuple[str, ...]
    problems: tuple[str, ...]
    is_clean_stop: bool
    clean_stop_epoch: int | None
    locked_by: int | None
    has_remote_cache: bool
    is_whole: bool
    checkpoints_ms: int
    oldest_file_ms: int
    space: Space | None

    @property
    def meta(self) -> MetaProperties | None:
        return self.files.meta

    @property
    def has_broker_logs(self) -> bool:
        """Whether there is a log of a broker: a controller has the metadata alone, and leaves no
        sign of its stop.
        """
        return any(p.is_live and p.topic != CLUSTER_METADATA_TOPIC for p in self.partitions)

    @property
    def log_bytes(self) -> int:
        """Of all live segments, whatever the directory is for."""
        return sum(partition.log_bytes for partition in self.partitions)


def read_log_dirs(paths: Iterable[str | Path]) -> list[LogDir]:
    """The log dirs that the paths name: themselves, or by a partition directory or a `.log` file.
    InvalidConfigError for a path that is not there, or leads to no log dir.
    """
    wanted: dict[Path, set[Path] | None] = {}
    for path in _expanded(paths):
        log_dir, only = _place(path)
        known = wanted.get(log_dir, set())
        wanted[log_dir] = None if only is None or known is None else known | {only}
    return [_read(log_dir, only) for log_dir, only in wanted.items()]


def _expanded(paths: Iterable[str | Path]) -> Iterator[Path]:
    """Globs as what they match; InvalidConfigError for what is not there."""
    for name in map(str, paths):
        refuse_uri(name, reads_buckets=False)
        if Path(name).exists():
            yield Path(name)
            continue
        matches = sorted(glob.glob(name)) if name else []  # noqa: PTH207 - it may be absolute
        if not matches:
            raise InvalidConfigError("no such file or directory", path=name)
        yield from map(Path, matches)


def _place(path: Path) -> tuple[Path, Path | None]:
    """(log dir, the partition directory where only that was named)."""
    if path.is_file():
        if path.suffix != _LOG:
            raise InvalidConfigError("neither a directory nor a .log file", path=str(path))
        path = path.absolute().parent
    else:
        refuse_wrong_directory(path)
    own = path.resolve()
    is_named = parse_partition_dir_name(own.name) is not None
    if is_named and not any((own / n).exists() for n in (META_PROPERTIES_FILE, *CHECKPOINT_FILES)):
        inside = (entry for entry in _entries(own) if parse_partition_dir_name(entry.name))
        if not any(map(is_directory_entry, inside)):
            return own.parent, own
    return own, None


def _entries(path: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as listed:
            return list(listed)
    except OSError:
        return []


def _read(path: Path, only: set[Path] | None) -> LogDir:
    problems: list[str] = []
    foreign: list[str] = []
    directories = _partition_dirs(path, foreign, problems) if only is None else _named(only)
    partitions = tuple(_partition(name, at, problems) for name, at in directories)
    files = read_log_dir_files(path)
    clean_stop = _clean_stop(path)
    checkpoints = [_mtime_ms(path / name) for name in CHECKPOINT_FILES]
    times = [*checkpoints, _mtime_ms(path / META_PROPERTIES_FILE)]
    oldest = [each for each in times if each] + [p.oldest_ms for p in partitions if p.segments]
    return LogDir(
        path=path,
        files=files,
        partitions=partitions,
        foreign=tuple(foreign),
        problems=(*files.problems, *problems),
        is_clean_stop=clean_stop is not None,
        clean_stop_epoch=parse_clean_shutdown(clean_stop) if clean_stop else None,
        locked_by=_locked_by(path),
        has_remote_cache=(path / REMOTE_INDEX_CACHE_DIR).is_dir(),
        is_whole=only is None,
        checkpoints_ms=max(checkpoints),
        oldest_file_ms=min(oldest, default=0),
        space=_space(path),
    )


def _locked_by(log_dir: Path) -> int | None:
    try:
        return lock_holder(log_dir)
    except OSError:
        return None  # nothing can be told


def _partition_dirs(
    path: Path, foreign: list[str], problems: list[str]
) -> Iterator[tuple[PartitionDirName, str]]:
    try:
        with os.scandir(path) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
    except OSError as error:
        problems.append(f"{path}: cannot be listed: {error.strerror or error}")
        return
    for entry in entries:
        if not is_directory_entry(entry) or entry.name == REMOTE_INDEX_CACHE_DIR:
            continue
        name = parse_partition_dir_name(entry.name)
        if name is not None:
            yield name, entry.path
        elif entry.name != CLEAN_SHUTDOWN_FILE or _entries(Path(entry.path)):
            foreign.append(entry.name)


def _named(only: set[Path]) -> Iterator[tuple[PartitionDirName, str]]:
    for path in sorted(only):
        name = parse_partition_dir_name(path.name)
        if name is not None:
            yield name, str(path)


def _partition(name: PartitionDirName, path: str, problems: list[str]) -> Partition:
    found = Partition(name, path)
    logs = []
    try:
        for file in os.listdir(path):  # noqa: PTH208 - 20,000 Paths take longer
            ending = file[_DIGITS:]
            if ending == _LOG:
                stat = os.stat(f"{path}/{file}")  # noqa: PTH116 - as above
                if S_ISREG(stat.st_mode) and file[:_DIGITS].isdigit():
                    logs.append((int(file[:_DIGITS]), stat.st_size, stat.st_mtime_ns))
            elif ending == ".timeindex":
                found.has_time_index = True
            elif ending not in _PASSED_OVER:
                _note_other(found, file)
    except OSError as error:
        problems.append(f"{error.filename or path}: {error.strerror or error}")
    if logs:
        logs.sort()
        found.segments = len(logs)
        found.first_base = logs[0][0]
        found.last_base, found.last_bytes, _ = logs[-1]
        found.log_bytes = sum([size for _, size, _ in logs])
        times = [time for _, _, time in logs]
        found.oldest_ms, found.newest_ms = min(times) // 1_000_000, max(times) // 1_000_000
        if name.topic_partition.topic == OFFSETS_TOPIC:
            found.logs = [(base, size) for base, size, _ in logs]
    return found


def _note_other(partition: Partition, file: str) -> None:
    if file.endswith(_LEFT):
        ending = file[file.rindex(".") :]
        known = partition.left or {}
        partition.left = {**known, ending: known.get(ending, 0) + 1}
    elif is_of_kafka_0_7(file):
        partition.has_kafka_0_7 = True


def _clean_stop(path: Path) -> bytes | None:
    """What is in the file; empty where it is there and cannot be read."""
    file = path / CLEAN_SHUTDOWN_FILE
    try:
        return read_small_file(file) if file.exists() else None
    except Exception:
        return b""


def _mtime_ms(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns // 1_000_000
    except OSError:
        return 0


def _space(path: Path) -> Space | None:
    try:
        stat = os.statvfs(path)
    except OSError:
        return None
    return Space(stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize)
