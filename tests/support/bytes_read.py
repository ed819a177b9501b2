"""What a process has asked the system to read."""

from __future__ import annotations

from pathlib import Path


def bytes_read() -> int:
    """By system calls of this process so far, from files, pipes and sockets."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("rchar"))
