"""Decoded blocks of objects, kept by a process up to a bound: the least recently used one goes.

Readers open a segment again for each question (an index entry, a header, a split), and a block
costs a round trip, a decryption and a decompression. Each process has one cache. Its size comes
from the environment, which reaches worker processes, or with a task of Spark.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from kafkalog.errors import InvalidConfigError

Block = bytes | memoryview

CACHE_BYTES = 64 * 1024 * 1024
CACHE_VARIABLE = "KAFKALOG_REMOTE_CACHE_BYTES"


# What a task was told, which goes before the environment of its process.
_told: int | None = None


def check_cache_bytes(most_bytes: int | None) -> int | None:
    """The bound itself; InvalidConfigError for one that cannot be."""
    if most_bytes is not None and most_bytes < 0:
        raise InvalidConfigError(f"a cache of {most_bytes} bytes; it is 0 (keeps none) or more")
    return most_bytes


def tell_cache_bytes(most_bytes: int | None) -> None:
    """The bound of this process from now on; None: what its environment says."""
    global _told
    _told = most_bytes


@contextmanager
def cache_bytes_in_environment(most_bytes: int | None) -> Iterator[None]:
    """Within, the bound of this process and of those that it starts; None changes nothing."""
    if most_bytes is None:
        yield
        return
    before = os.environ.get(CACHE_VARIABLE)
    os.environ[CACHE_VARIABLE] = str(most_bytes)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(CACHE_VARIABLE, None)
        else:
            os.environ[CACHE_VARIABLE] = before


def cache_bytes() -> int:
    """What the process was told, what its environment says, or CACHE_BYTES; InvalidConfigError for
    what is no number."""
    if _told is not None:
        return _told
    text = os.environ.get(CACHE_VARIABLE, "")
    if not text:
        return CACHE_BYTES
    if not (text.isascii() and text.isdigit()):
        raise InvalidConfigError(f"{CACHE_VARIABLE}={text!r}: a number of bytes is expected")
    return int(text)


class BlockCache:
    """Bytes by key. Threads may share it; two that miss the same block both read it."""

    def __init__(self, most_bytes: Callable[[], int] = cache_bytes) -> None:
        self._most_bytes = most_bytes
        self._blocks: OrderedDict[Hashable, Block] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable, read: Callable[[], Block]) -> Block:
        """The block of a key, read where it is not here; what `read` raises is not kept."""
        block = self.find(key)
        if block is None:
            block = read()
            self.keep(key, block)
        return block

    def find(self, key: Hashable) -> Block | None:
        """The block of a key if it is here."""
        with self._lock:
            block = self._blocks.get(key)
            if block is not None:
                self._blocks.move_to_end(key)
            return block

    def keep(self, key: Hashable, block: Block) -> None:
        """Have a block here, as long as others do not need its place."""
        most_bytes = self._most_bytes()
        with self._lock:
            if key not in self._blocks:
                self._blocks[key] = block
                self._bytes += len(block)
            while self._bytes > most_bytes and self._blocks:
                _, dropped = self._blocks.popitem(last=False)
                self._bytes -= len(dropped)

    @property
    def size_in_bytes(self) -> int:
        return self._bytes

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._blocks.clear()
            self._bytes = 0


BLOCKS = BlockCache()
