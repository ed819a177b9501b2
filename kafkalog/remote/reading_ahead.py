"""Blocks of a scan read before they are asked for: a store answers late, and many at once.

Threads of the process fetch and decode up to so many bytes in front of the reader, several small
blocks by one request. Codecs, ciphers and the store's client let go of the interpreter meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from kafkalog.remote.cache import Block, cache_bytes

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

# A connection of a store sends some ten MB a second, so the rate is what is asked for at once.
_THREADS = 12
# Of one scan, beside the cache, and never more than that has; at least the next request.
_AHEAD_BYTES = 48 * 1024 * 1024
# What a request waits for its answer costs as much as to send some hundred KiB.
_REQUEST_BYTES = 4 * 1024 * 1024


class ReadingAhead:
    """The blocks of one scan. For one thread."""

    def __init__(
        self, read: Callable[[int, int], list[Block]], block_bytes: int, start: int, end: int
    ) -> None:
        """`read`: blocks in a row, by the number of the first and how many they are. Bytes `start`
        to `end` (excluded) are what is wanted."""
        self._read = read
        most_bytes = min(_AHEAD_BYTES, cache_bytes())
        self._first = start // block_bytes
        self._last = (end - 1) // block_bytes
        self._at_once = max(min(_REQUEST_BYTES, most_bytes // 4) // block_bytes, 1)
        self._most = max(most_bytes // (block_bytes * self._at_once), 1)
        self._requests = (self._last - self._first) // self._at_once + 1
        # By the number of the request: the first has blocks from `_first` on.
        self._coming: dict[int, Future[list[Block]]] = {}
        # Called with how many requests more may be under way, when all of these are.
        self.behind: Callable[[int], None] | None = None

    def block(self, number: int) -> Block:
        """A block, and those behind it begun. Raises what `read` raises."""
        if not self._first <= number <= self._last:
            return self._read(number, 1)[0]
        request, place = divmod(number - self._first, self._at_once)
        self._begin(request, self._most + 1)
        for passed in [n for n in self._coming if n < request]:
            self._coming.pop(passed).cancel()
        spare = request + 1 + self._most - self._requests
        if self.behind is not None and spare > 0:
            self.behind(spare)
        return self._coming[request].result()[place]

    def begin(self, requests: int) -> None:
        """Have so many requests under way, or all that one scan may have."""
        self._begin(0, min(requests, self._most))

    def _begin(self, first: int, count: int) -> None:
        for request in range(first, min(first + count, self._requests)):
            if request not in self._coming:
                start = self._first + request * self._at_once
                blocks = min(self._at_once, self._last + 1 - start)
                self._coming[request] = _threads(os.getpid()).submit(self._read, start, blocks)

    def close(self) -> None:
        """What is not begun yet is not read."""
        for coming in self._coming.values():
            coming.cancel()
        self._coming.clear()


@lru_cache(maxsize=1)
def _threads(_process: int) -> ThreadPoolExecutor:
    """Those of this process: they do not come with a fork."""
    # With logging and queues, for who reads remote storage.
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(_THREADS, thread_name_prefix="kafkalog-ahead")
