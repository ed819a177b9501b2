"""What benchmarks have in common that run whole processes beside their peer."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

_SHARED_MEMORY = Path("/dev/shm")
# A variable of the environment: the directory in memory that is ours alone.
FAST_DIRECTORY = "KAFKALOG_BENCH_DIRECTORY"


@dataclass(frozen=True, slots=True)
class Cost:
    """What one process took."""

    wall_seconds: float
    cpu_seconds: float
    peak_mib: float
    system_seconds: float = 0.0


def run_measured(command: list[str], cores: str, codes: Collection[int] = (0,)) -> Cost:
    """Run a process on these cores and wait for it; another exit code than these is our failure."""
    started = time.perf_counter()
    process = subprocess.Popen(
        ["taskset", "-c", cores, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    talk = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in codes:
        raise RuntimeError(f"{command} ended with {code}: {talk.decode()[-2000:]}")
    wall = time.perf_counter() - started
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, usage.ru_stime)


def forget(log_dir: Path) -> None:
    """Nothing of its segments in the page cache; an error where that is the file system itself."""
    os.sync()
    for path in log_dir.glob("*/*.log"):
        with path.open("rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            with suppress(BlockingIOError):  # it would have to be read
                if os.preadv(file.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT):
                    raise RuntimeError(f"{path} is still in the page cache")


def median(costs: Sequence[Cost]) -> dict[str, float]:
    """Of each field."""
    names = asdict(costs[0])
    return {
        name: round(statistics.median(getattr(cost, name) for cost in costs), 2) for name in names
    }


def times_faster(ours: Sequence[Cost], kafkas: Sequence[Cost]) -> float:
    """The median of pairs: a machine that changes its speed does so for both."""
    pairs = zip(ours, kafkas, strict=True)
    return round(statistics.median(k.wall_seconds / o.wall_seconds for o, k in pairs), 2)


def circumstances() -> dict[str, object]:
    """Under which a figure was measured, for its line."""
    return {
        "machine": platform.processor() or platform.machine(),
        "load": round(os.getloadavg()[0], 1),
    }


def fast_directory() -> Path | None:
    """Where to work if nothing else was asked for: in memory, else the system's place."""
    if own := os.environ.get(FAST_DIRECTORY):
        return Path(own)
    return _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else None
