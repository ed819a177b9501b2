"""Memory that grows and is used again, for what is decompressed or laid out anew."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_FIRST_ARENA_BYTES = 1024 * 1024


class Arena:
    """A buffer that grows and is used again."""

    __slots__ = ("_scratch", "data", "size")

    def __init__(self) -> None:
        self.data: NDArray[np.uint8] = np.empty(0, np.uint8)
        self.size = 0
        self._scratch: Arena | None = None

    @property
    def scratch(self) -> Arena:
        """Another arena, for what has to be laid out before it goes into this one."""
        if self._scratch is None:
            self._scratch = Arena()
        return self._scratch

    def make_room(self, size: int) -> None:
        """At least this much memory in all; its content is lost."""
        if self.data.size < size:
            self.data = np.empty(max(size, _FIRST_ARENA_BYTES), np.uint8)

    def clear(self) -> None:
        """Forget the content, keep the memory."""
        self.size = 0

    def reserve(self, size: int) -> memoryview:
        """All memory, with room for `size` more bytes behind the content, which stays."""
        end = self.size + size
        if end > self.data.size:
            # Doubled, so that a content of n bytes is copied about once however small the steps
            # are. Memory that was handed out before stays as it is: whoever looks at it still sees
            # what was there.
            grown = np.empty(max(end, 2 * self.data.size, _FIRST_ARENA_BYTES), np.uint8)
            grown[: self.size] = self.data[: self.size]
            self.data = grown
        return self.data.data

    def append(self, payload: bytes | memoryview) -> None:
        """Copy bytes to the end."""
        end = self.size + len(payload)
        self.reserve(len(payload))[self.size : end] = payload
        self.size = end
