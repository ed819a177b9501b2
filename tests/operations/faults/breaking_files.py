"""Files that count what is done to them, and break at one step: the process dies, or the step
fails.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from kafkalog.swap.local_files import LocalFiles

CRASH_TIMEOUT_S = 300
# Before each how many steps a run is killed; a prime, as steps come in groups that repeat.
STRIDES = [
    23,
    pytest.param(11, marks=pytest.mark.thorough),
    pytest.param(1, marks=pytest.mark.soak),
]


class CountingFiles(LocalFiles):
    """`steps` names every operation, in order."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def before(self, step: str) -> None:
        """Called before each step, which it may prevent."""
        self.steps.append(step)

    def create(self, path: str) -> int:
        self.before(f"create {os.path.basename(path)}")  # noqa: PTH119
        return super().create(path)

    def write(self, fd: int, data: memoryview) -> None:
        self.before("write")
        # Two steps, so that a file may be left half written.
        super().write(fd, data[: len(data) // 2])
        self.before("write the other half")
        super().write(fd, data[len(data) // 2 :])

    def sync_file(self, fd: int) -> None:
        self.before("sync file")
        super().sync_file(fd)

    def sync_directory(self, path: str) -> None:
        self.before("sync directory")
        super().sync_directory(path)

    def set_owner(self, fd: int, source: os.stat_result) -> None:
        self.before("set owner")
        super().set_owner(fd, source)

    def set_modification_time(self, fd: int, modification_time_ms: int) -> None:
        self.before("set modification time")
        super().set_modification_time(fd, modification_time_ms)

    def truncate(self, path: str, size: int, mtime_ns: int | None = None) -> None:
        self.before(f"truncate {os.path.basename(path)}")  # noqa: PTH119
        super().truncate(path, size, mtime_ns)

    def rename(self, source: str, target: str) -> None:
        self.before(f"rename to {os.path.basename(target)}")  # noqa: PTH119
        super().rename(source, target)

    def link(self, source: str, target: str) -> None:
        self.before(f"link {os.path.basename(target)}")  # noqa: PTH119
        super().link(source, target)

    def append(self, path: str, data: bytes) -> None:
        self.before(f"append {os.path.basename(path)}")  # noqa: PTH119
        super().append(path, data)

    def restore_times(self, path: str, mtime_ns: int) -> None:
        self.before(f"restore times of {os.path.basename(path)}")  # noqa: PTH119
        super().restore_times(path, mtime_ns)

    def remove(self, path: str) -> None:
        self.before(f"remove {os.path.basename(path)}")  # noqa: PTH119
        super().remove(path)


class DyingFiles(CountingFiles):
    """The process is killed instead of doing step `last`."""

    def __init__(self, last: int) -> None:
        super().__init__()
        self._last = last

    def before(self, step: str) -> None:
        if len(self.steps) == self._last:
            os.kill(os.getpid(), signal.SIGKILL)
        super().before(step)


class FailingFiles(CountingFiles):
    """Step `failing` fails with an error number, once; or that one and every later one."""

    def __init__(self, failing: int, error_number: int, *, for_good: bool = False) -> None:
        super().__init__()
        self._failing = failing
        self._error_number = error_number
        self._for_good = for_good

    def before(self, step: str) -> None:
        at = len(self.steps)
        super().before(step)
        if at == self._failing or (self._for_good and at > self._failing):
            raise OSError(self._error_number, os.strerror(self._error_number), step)


def run_in_child(work: Callable[[], object]) -> int:
    """Run in a forked process; its exit code (0 if `work` returned, 1 if it raised), or the
    negated signal that ended it.
    """
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(CRASH_TIMEOUT_S)
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
