"""How fast this process may read segments and write new ones (`--max-bytes-per-second`).

One pace holds for a whole process, whoever reads in it and on how many threads: `LocalFile` and
whoever writes segments tell it of every byte; small files beside them do not count. It is paid
afterwards: whoever read or wrote n bytes waits until the time they are worth has passed since the
last payment. So the mean from the beginning never passes the limit by more than the one read or
write that was last, of a few MiB, and time that went by without reading is not made up for.

Several processes share a limit by taking a part of it each.

The same bytes can be counted (`counting`), which is how a run knows how far it has come within a
partition. The counts lie in memory that worker processes share with the one that forked them.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from mmap import mmap

# Shorter waits are added up: a system sleeps no shorter than this with any precision.
SHORTEST_WAIT_S = 0.005


class Pace:
    """Bytes a second, with the clock and the sleep (both in seconds) that measure them."""

    def __init__(
        self,
        bytes_per_second: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._bytes_per_second = bytes_per_second
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._paid_at = clock()

    def spend(self, size: int) -> None:
        """So many bytes were read or written: wait for what they are worth."""
        with self._lock:
            now = self._clock()
            # The moment up to which all bytes so far are paid for. Time in which nothing was read
            # is not saved up: a run that paused does not catch up with a burst.
            self._paid_at = max(self._paid_at, now) + size / self._bytes_per_second
            wait = self._paid_at - now
        # Outside of the lock, so that threads wait side by side and not one behind the other.
        if wait >= SHORTEST_WAIT_S:
            self._sleep(wait)

    def settle(self) -> None:
        """Wait for what is not paid yet."""
        if (wait := self._paid_at - self._clock()) > 0:
            self._sleep(wait)


_current: Pace | None = None
# A number for each process, by its id: nobody waits for another one, and where two have the same
# one a count may get lost, of some 100,000.
_COUNTS = 256
_counts: memoryview[int] | None = None


def spend(size: int) -> None:
    """This process read or wrote so many bytes of a log."""
    if _counts is not None:
        _counts[os.getpid() % _COUNTS] += size
    if _current is not None:
        _current.spend(size)


@contextmanager
def paced(bytes_per_second: float | None) -> Iterator[None]:
    """Within, this process keeps to a pace; None for none, or the one it keeps to already."""
    global _current
    before = _current
    if bytes_per_second is not None:
        _current = Pace(bytes_per_second)
    try:
        yield
        if _current is not None and _current is not before:
            _current.settle()
    finally:
        _current = before


@contextmanager
def counting() -> Iterator[Callable[[], int]]:
    """Within, what this process and those it forks read and write is counted; the function given
    says how many bytes so far.
    """
    global _counts
    # Of no file: memory that forks have in common.
    before, _counts = _counts, memoryview(mmap(-1, 8 * _COUNTS)).cast("q")
    own = _counts
    try:
        yield lambda: sum(own)
    finally:
        _counts = before
