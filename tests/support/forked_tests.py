"""pytest in processes forked off one that has the libraries loaded, and none of our own modules.

Run as a program it is that one: a line of JSON in (pytest's arguments, where its output goes), its
exit code out. What is under test is imported by each process anew, from the directory that comes
first on the path.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path

PLUGINS = ("cacheprovider", "xdist", "hypothesispytest", "cov")


class ForkedTests:
    """Runs tests of the copy of the project in one directory, one call at a time.

    Kernels run as plain Python, which is what saves compiling them; it warns of sums that wrap,
    which compiled kernels do in silence.
    """

    def __init__(self, project: Path) -> None:
        self._project = project
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            cwd=project,
            env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(project)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, tests: Iterable[str]) -> tuple[int, str]:
        """pytest's exit code, negative for the signal that ended it, and its output."""
        output = self._project / "output.txt"
        words = ["-q", "--no-header", "--tb=short", "-W", "ignore::RuntimeWarning", "-m", ""]
        words += [word for plugin in PLUGINS for word in ("-p", f"no:{plugin}")]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([[*words, *sorted(tests)], str(output)]) + "\n")
        self._process.stdin.flush()
        code = self._process.stdout.readline()
        assert code, "the process that forks died"
        return int(code), output.read_text()

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(300)
        self._process.stdout.close()


def main() -> None:
    """The process that forks."""
    sys.path.remove(str(Path(__file__).parent))
    import pytest
    import zstandard  # noqa: F401

    for line in sys.stdin:
        words, output = json.loads(line)
        assert not [name for name in sys.modules if name.split(".")[0] in ("kafkalog", "tests")]
        pid = os.fork()
        if pid == 0:
            code = 70
            try:
                fd = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                os.dup2(fd, 1)
                os.dup2(fd, 2)
                code = int(pytest.main(words))
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
