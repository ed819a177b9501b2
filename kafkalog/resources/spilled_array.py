"""An array that grows at its end, in memory up to a bound and on local disk past it.

The file has no name: it is the process's own, is never mapped, and goes with it however that ends.
Where it lies is `spill_directory`: Spark's local directories for its workers, else the system's
place for temporary files.
"""

from __future__ import annotations

import os
import tempfile
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kafkalog.errors import KafkaLogError

# So many parts of a write the system takes at once (IOV_MAX).
_MOST_PARTS = 1024
_BLOCK_BYTES = 1024 * 1024
# What an array is beside its values: parts of one value each are mostly that.
_ARRAY_BYTES = 128


def spill_directory() -> str:
    """Spark tells its workers their local directories; others take the system's."""
    named = os.environ.get("SPARK_LOCAL_DIRS") or os.environ.get("LOCAL_DIRS") or ""
    writable = [path for path in named.split(",") if path and os.access(path, os.W_OK)]
    return writable[0] if writable else tempfile.gettempdir()


class SpilledArray:
    """Append in order, read any range. Past `memory_bytes` what was appended goes to disk.

    KafkaLogError if there is no room for it.
    """

    def __init__(self, dtype: Any, memory_bytes: int) -> None:
        self._dtype = np.dtype(dtype)
        # As bytes, where numpy would copy records field by field.
        self._copied = (
            np.dtype((np.void, self._dtype.itemsize)) if self._dtype.names else self._dtype
        )
        self._memory_bytes = memory_bytes
        self._fd: int | None = None
        self._on_disk = 0
        self._parts: list[NDArray[Any]] = []
        self._starts: list[int] = []
        self._bytes_held = 0
        self.size = 0

    def append(self, values: NDArray[Any]) -> None:
        """Put values [n] behind the others; the array keeps them, so they must not change."""
        if not values.size:
            return
        self._parts.append(values)
        self._starts.append(self.size)
        self.size += values.size
        # An array object is memory, too: thousands of parts of a few values each are mostly that.
        self._bytes_held += values.nbytes + _ARRAY_BYTES
        if self._bytes_held > self._memory_bytes:
            self.spill()

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """A copy of [start, stop), which the caller may change."""
        out = np.empty(stop - start, self._dtype)
        # What lies below `_on_disk` is in the file, what lies above in the parts: a range may need
        # both.
        on_disk = min(stop, self._on_disk) - start
        if on_disk > 0:
            self._read_file(out[:on_disk], start)
        at = max(start, self._on_disk)
        # The last part that begins at or before the place.
        part = bisect_right(self._starts, at) - 1
        while at < stop:
            first = at - self._starts[part]
            piece = self._parts[part][first : first + stop - at]
            place = out[at - start : at - start + piece.size]
            place.view(self._copied)[:] = piece.view(self._copied)
            at += piece.size
            part += 1
        return out

    def blocks(self) -> Iterator[NDArray[Any]]:
        """All values, some at a time."""
        step = max(_BLOCK_BYTES // self._dtype.itemsize, 1)
        for start in range(0, self.size, step):
            yield self.read(start, min(start + step, self.size))

    def spill(self) -> None:
        """Put on disk what is in memory."""
        if self._parts:
            self._write([part.view(np.uint8).data for part in self._parts])
        self._parts, self._starts = [], []
        self._bytes_held = 0
        self._on_disk = self.size

    def close(self) -> None:
        """Forget everything; a second call does nothing."""
        self._parts, self._starts = [], []
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __del__(self) -> None:
        self.close()

    def _write(self, parts: Sequence[memoryview]) -> None:
        try:
            if self._fd is None:
                self._fd = _unnamed_file(spill_directory())
            for first in range(0, len(parts), _MOST_PARTS):
                _write_all(self._fd, parts[first : first + _MOST_PARTS])
        except OSError as error:
            raise KafkaLogError(
                f"no room to spill to: {error.strerror}", path=spill_directory()
            ) from error

    def _read_file(self, out: NDArray[Any], start: int) -> None:
        assert self._fd is not None, "nothing was spilled"  # noqa: S101
        view = out.view(np.uint8).data
        position = start * self._dtype.itemsize
        while len(view):
            # Straight into the result, at a place of its own: reads do not move a position that
            # appends go by.
            count = os.preadv(self._fd, [view], position)
            assert count > 0, "the file is ours alone"  # noqa: S101
            view, position = view[count:], position + count


def _unnamed_file(directory: str) -> int:
    fd, path = tempfile.mkstemp(prefix="kafkalog-", dir=directory)
    # The descriptor keeps the bytes: they are gone when it is closed, or with the process.
    os.unlink(path)  # noqa: PTH108 (beside mkstemp)
    return fd


def _write_all(fd: int, parts: Sequence[memoryview]) -> None:
    waiting = list(parts)
    while waiting:
        written = os.writev(fd, waiting)
        # The system may take less than it was given: go on behind what it took.
        while waiting and written >= len(waiting[0]):
            written -= len(waiting.pop(0))
        if written:
            waiting[0] = waiting[0][written:]
