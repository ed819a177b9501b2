"""The `.lock` of a log dir, taken as a broker takes it, so that both can never write at once.

A broker holds a Java FileLock, which on Linux is a POSIX record lock over the whole file:
`fcntl.lockf` sees it, `fcntl.flock` does not. POSIX gives the lock up as soon as the process closes
*any* descriptor of that file, so the file is opened once and left alone; and it knows no two
holders within a process, so this module does. The existence of `.lock` means nothing.

Tasks in other processes cannot take the lock as well; they ask who holds it (`check_lock_holder`)
right before they swap, so that a task that outlives its driver changes nothing.

A partition is changed by its own path only, in the log dir where it lies: one that is reached by a
symbolic link is refused, wherever the link is, and so is any of which a broker has a `.log` open
for writing. A broker that follows a link holds the lock of the log dir with the link.

Source: Kafka LogManager.lockLogDirs, FileLock.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from kafkalog.errors import LogDirLockedError
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.lock_holder import LOCK_FILE_NAME, lock_holder
from kafkalog.swap.local_files import give_to_owner_of

# The log dirs this process holds, resolved: opening and closing their `.lock` would give them up.
_held: set[Path] = set()


def log_dirs_to_lock(partitions: Iterable[PartitionInventory]) -> list[str]:
    """The log dirs of partitions, each directory once."""
    held = sorted({partition.log_dir for partition in partitions})
    return sorted({str(Path(log_dir).resolve()): log_dir for log_dir in held}.values())


def check_no_writer(directories: Iterable[str], proc: Path = Path("/proc")) -> None:
    """LogDirLockedError for a partition of which a broker has a `.log` open for writing: one whose
    log dir holds a link to it, and whose lock is another one.

    Only Linux tells, and only of processes that this user may look at: a user who may give new
    files to the broker's user may do so.
    """
    # What may not be looked at is left out.
    brokers = [
        (process, descriptors)
        for process in sorted(proc.glob("[0-9]*"))
        if int(process.name) != os.getpid() and (descriptors := _open_logs(process))
    ]
    logs = _logs_of(directories) if brokers else {}
    # A descriptor that leads to one of these files and may write is a broker at work, whose lock of
    # its own log dir says nothing of this one.
    for process, descriptors in brokers if logs else ():
        for descriptor in descriptors:
            with suppress(OSError):
                stat = (process / "fd" / descriptor).stat()
                written = logs.get((stat.st_dev, stat.st_ino))
                if written is not None and _is_written(process, descriptor):
                    raise LogDirLockedError(
                        f"process {process.name} has it open for writing, most likely a running "
                        "broker whose log dir has a link to the partition: stop it first",
                        path=written,
                    )


def _logs_of(directories: Iterable[str]) -> dict[tuple[int, int], str]:
    """The `.log` files by device and inode: another log dir has them under another path."""
    logs: dict[tuple[int, int], str] = {}
    for directory in directories:
        for path in Path(directory).glob("*.log"):
            with suppress(OSError):
                stat = path.stat()
                logs[stat.st_dev, stat.st_ino] = str(path)
    return logs


def _open_logs(process: Path) -> list[str]:
    """Descriptors that lead to a `.log`, of a process that has a `.lock` open as brokers have."""
    directory = str(process / "fd")
    logs, has_lock = [], False
    try:
        # Names, not a path each: a broker has hundreds of thousands of others.
        for descriptor in os.listdir(directory):  # noqa: PTH208
            with suppress(OSError):
                target = os.readlink(f"{directory}/{descriptor}")  # noqa: PTH115
                has_lock = has_lock or target.endswith(f"/{LOCK_FILE_NAME}")
                if target.endswith(".log"):
                    logs.append(descriptor)
    except OSError:
        return []
    return logs if has_lock else []


def _is_written(process: Path, descriptor: str) -> bool:
    lines = (process / "fdinfo" / descriptor).read_text().splitlines()
    flags = next(int(line.split()[1], 8) for line in lines if line.startswith("flags:"))
    return flags & os.O_ACCMODE != os.O_RDONLY


class LogDirLock:
    """Holds the `.lock` of one log dir from `__enter__` to `__exit__`; LogDirLockedError if
    somebody else does.
    """

    def __init__(self, log_dir: str) -> None:
        self.path = str(Path(log_dir) / LOCK_FILE_NAME)
        self._log_dir = Path(log_dir).resolve()
        self._fd: int | None = None

    def __enter__(self) -> LogDirLock:
        if self._log_dir in _held:
            raise LogDirLockedError("this process holds the lock of this log dir", path=self.path)
        try:
            fd = self._open()
        except OSError as error:
            raise LogDirLockedError(
                f"the lock of this log dir cannot be taken: {error.strerror}", path=self.path
            ) from error
        try:
            # This process does not hold it yet (`_held`), so that closing after a failure gives
            # nothing up.
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                raise
            raise LogDirLockedError(
                "another process holds the lock of this log dir, most likely a running broker: "
                "stop it first",
                path=self.path,
            ) from error
        self._fd = fd
        _held.add(self._log_dir)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
            _held.discard(self._log_dir)

    def _open(self) -> int:
        try:
            return os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            give_to_owner_of(fd, str(self._log_dir))
            return fd


def check_lock_holder(log_dir: str, holder_pid: int) -> None:
    """LogDirLockedError unless the driver `holder_pid` still holds the lock of this log dir."""
    if holder_pid == os.getpid():
        return
    found = lock_holder(log_dir)
    if found != holder_pid:
        raise LogDirLockedError(
            f"the lock of this log dir should be held by process {holder_pid}, found "
            f"{'nobody' if found is None else f'process {found}'}: "
            "the run that planned this is over",
            path=str(Path(log_dir) / LOCK_FILE_NAME),
        )
