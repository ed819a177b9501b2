"""Runs `kafkalog` with these arguments and prints, as the last line, the peak resident size of the
process in MiB.

    python -m tests.support.peak_memory compact --log-dir DIR …

In a process of its own: the peak of one that was forked begins at its parent's.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def peak_mib() -> float:
    """The peak resident size of this process so far."""
    status = Path("/proc/self/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def run_measured(*arguments: str) -> tuple[int, str, float]:
    """(exit code, what it printed, peak in MiB) of `kafkalog` with these arguments."""
    command = [sys.executable, "-m", "tests.support.peak_memory", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    *printed, peak = done.stdout.splitlines()
    return done.returncode, "\n".join(printed) or done.stderr, float(peak)


if __name__ == "__main__":
    from kafkalog.cli.main import main

    code = main(sys.argv[1:])
    print(peak_mib())  # noqa: T201 - a command's result
    sys.exit(code)
