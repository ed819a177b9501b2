"""`python -m kafkalog` as a process that is there at once: forked off one that has its modules and
kernels loaded, so that a random kill lands in the work and not in the start.

    with Launcher(work) as launcher:
        command = launcher.start("compact", "--log-dir", ...)
        os.kill(command.pid, signal.SIGKILL)
        command.wait()          # -9, once none of its worker processes is left

Run as a program it is that parent: a line of JSON in (words, where its output goes), the pid out;
then the status, once the process has ended.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

WAIT_S = 300.0


@dataclass(frozen=True)
class Command:
    """A process that runs one command; the leader of a process group of its own."""

    pid: int
    output: Path
    launcher: Launcher

    def wait(self) -> int:
        """Its exit code, or the negated signal that ended it; when its workers have ended, too."""
        code = int(self.launcher._read())
        until = time.monotonic() + WAIT_S
        while _group_is_alive(self.pid):
            assert time.monotonic() < until, "a worker process lives on"
            time.sleep(0.001)
        return code

    @property
    def errors(self) -> str:
        return self.output.with_suffix(".err").read_text()


class Launcher:
    """The parent of the commands, which run one at a time."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self._count = 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.operations.faults.launcher"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Launcher:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(WAIT_S)
        self._process.stdout.close()

    def start(self, *words: str) -> Command:
        """Begin one command."""
        self._count += 1
        output = self._work / f"command-{self._count}.out"
        stdin = self._process.stdin
        assert stdin is not None
        stdin.write(json.dumps([words, str(output)]) + "\n")
        stdin.flush()
        return Command(int(self._read()), output, self)

    def run(self, *words: str) -> tuple[int, str]:
        """One command to its end: exit code and standard output."""
        command = self.start(*words)
        code = command.wait()
        return code, command.output.read_text()

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the launcher died"
        return line


def _group_is_alive(pid: int) -> bool:
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    return True


def main() -> None:
    """The parent: forks, and says how each child ended."""
    # What a command imports late, and the kernels it uses.

    for line in sys.stdin:
        words, output = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become(words, output)
        # The group must be there before anybody waits for its end.
        try:
            os.setpgid(pid, pid)
        except (PermissionError, ProcessLookupError):
            pass
        _say(pid)
        _say(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def _say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def _become(words: list[str], output: str) -> None:
    """In the child: `python -m kafkalog WORDS`."""
    os.setpgid(0, 0)
    for fd, path in ((0, "/dev/null"), (1, output), (2, str(Path(output).with_suffix(".err")))):
        flags = os.O_RDONLY if fd == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        os.dup2(os.open(path, flags, 0o600), fd)
    sys.argv = ["kafkalog", *words]
    code = 1
    try:
        runpy.run_module("kafkalog", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
