"""Blocks of a scan read before they are asked for: a store answers late, and many at once.

Threads of the process fetch and decode up to so many bytes in front of the reader. Codecs, ciphers
and the store's client let go of the interpreter meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache

from kafkalog.remote.cache import cache_bytes

Block = bytes | memoryview

_THREADS = 6
# Of one scan, beside the cache, and never more than that has; at least the next block.
_AHEAD_BYTES = 24 * 1024 * 1024


class ReadingAhead:
    """The blocks of one scan. For one thread."""

    def __init__(
        self, read: Callable[[int], Block], block_bytes: int, start: int, end: int
    ) -> None:
        """`read`: a block by its number. Bytes `start` to `end` (excluded) are what is wanted."""
        self._read = read
        self._first = start // block_bytes
        self._last = (end - 1) // block_bytes
        self._most = max(min(_AHEAD_BYTES, cache_bytes()) // block_bytes, 1)
        self._coming: dict[int, Future[Block]] = {}

    def block(self, number: int) -> Block:
        """A block, and those behind it begun. Raises what `read` raises."""
        if not self._first <= number <= self._last:
            return self._read(number)
        for ahead in range(number, min(number + self._most, self._last) + 1):
            if ahead not in self._coming:
                self._coming[ahead] = _threads(os.getpid()).submit(self._read, ahead)
        for passed in [n for n in self._coming if n < number]:
            self._coming.pop(passed).cancel()
        return self._coming[number].result()

    def close(self) -> None:
        """What is not begun yet is not read."""
        for coming in self._coming.values():
            coming.cancel()
        self._coming.clear()


@lru_cache(maxsize=1)
def _threads(_process: int) -> ThreadPoolExecutor:
    """Those of this process: they do not come with a fork."""
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="kafkalog-ahead")
