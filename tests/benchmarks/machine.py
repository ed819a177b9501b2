"""What machine figures are from, and a quiet machine made slow."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# By the seconds of Kafka's cleaner for the first row of docs/benchmarks.md.
QUIET, BETWEEN, SLOW = "quiet", "between", "slow"
_MOST_QUIET_SECONDS, _LEAST_SLOW_SECONDS = 13.5, 17.0

_PR_SET_PDEATHSIG, _PR_SET_THP_DISABLE, _SIGKILL = 1, 41, 9
# More than a core's own cache; touched anew each time.
_NEIGHBOUR = """
import mmap
source = bytes(64 << 20)
while True:
    with mmap.mmap(-1, 64 << 20) as target:
        target[:] = source
"""


def machine() -> dict[str, Any]:
    """Processor, cores, memory, kernel, what else runs, huge pages."""
    huge = Path("/sys/kernel/mm/transparent_hugepage")
    return {
        "processor": _field("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory": _field("/proc/meminfo", "MemTotal"),
        "kernel": platform.release(),
        "load": [round(load, 1) for load in os.getloadavg()],
        "hugePages": _chosen(huge / "enabled"),
        "hugePagesOfFilesInMemory": _chosen(huge / "shmem_enabled"),
        "python": platform.python_version(),
        "commit": commit(),
    }


def kind_of(kafka_seconds: float) -> str:
    """By what its cleaner took for the first row."""
    if kafka_seconds <= _MOST_QUIET_SECONDS:
        return QUIET
    return SLOW if kafka_seconds >= _LEAST_SLOW_SECONDS else BETWEEN


def commit() -> str:
    """What is measured."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


@contextmanager
def made_slow() -> Iterator[None]:
    """Like a busy machine of a cloud, for what is started within, on core 0, and for Kafka alike.

    No huge pages: memory costs a fault for each 4 KiB. A neighbour on the other core, which copies
    64 MiB into new memory again and again: caches, memory and the kernel's allocator are shared. A
    neighbour on the same core with half the weight: the processor is away for a third of the time.
    It imitates neither slower cores nor a host that takes memory back. What kind it is then Kafka's
    own seconds say.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    neighbours = [_neighbour(1, 0), _neighbour(0, 3)]
    try:
        # Processes that are started inherit it.
        if libc.prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "huge pages cannot be switched off")
        yield
    finally:
        libc.prctl(_PR_SET_THP_DISABLE, 0, 0, 0, 0)
        for process in neighbours:
            process.kill()
            process.wait()


def _neighbour(core: int, nice: int) -> subprocess.Popen[bytes]:
    """It ends with this process, however that ends."""
    code = f"import ctypes; ctypes.CDLL(None).prctl({_PR_SET_PDEATHSIG}, {_SIGKILL})\n{_NEIGHBOUR}"
    words = ["taskset", "-c", str(core), "nice", "-n", str(nice), sys.executable, "-c", code]
    return subprocess.Popen(words)


def _field(path: str, name: str) -> str:
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def _chosen(path: Path) -> str:
    """The word in brackets."""
    text = path.read_text() if path.exists() else ""
    return text.partition("[")[2].partition("]")[0] or "unknown"
