"""Where the entries of an index file end, without reading the file.

While a segment is active its indexes are preallocated (10 MiB) and filled with zeros behind the
last entry; after a crash they stay so. Kafka trusts the file's length, we do not: the last entry
that is not all zeros is found by bisection, which costs a handful of small reads for a directory of
any size. Entries are strictly increasing, so behind the first zero entry there is nothing.

An all-zero entry at the very front is genuine in a time index only (timestamp 0 at the base
offset), and only if it is alone or others follow it. In an offset index it means position 0, which
never gets an entry.

Source: Kafka AbstractIndex, OffsetIndex, TimeIndex.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kafkalog.format.time_index import TIME_INDEX_ENTRY_BYTES
from kafkalog.log.index_file import IndexFile, small_index


@dataclass(frozen=True, slots=True)
class IndexTail:
    """`valid_bytes` of whole genuine entries, and the last of them as on disk (or empty); how long
    the file is, None without one.
    """

    valid_bytes: int = 0
    last_entry: bytes = b""
    file_bytes: int | None = None


_EMPTY = IndexTail(file_bytes=0)


def read_index_tail(path: str | Path, entry_bytes: int) -> IndexTail:
    """The end of an index of `entry_bytes` wide entries; nothing if there is no file."""
    try:
        data = small_index(path)
        if data is not None:
            return _tail_of(data, entry_bytes)
        with IndexFile(path, entry_bytes) as index:
            count = _genuine_entries(index.entry, index.count, entry_bytes)
            last = index.entry(count - 1) if count else b""
    except FileNotFoundError:
        return IndexTail()
    return IndexTail(count * entry_bytes, last, index.file_bytes)


def _tail_of(data: bytes, entry_bytes: int) -> IndexTail:
    if not data:
        return _EMPTY

    def entry(number: int) -> bytes:
        return data[number * entry_bytes : (number + 1) * entry_bytes]

    count = _genuine_entries(entry, len(data) // entry_bytes, entry_bytes)
    return IndexTail(count * entry_bytes, entry(count - 1) if count else b"", len(data))


def _genuine_entries(entry: Callable[[int], bytes], count: int, entry_bytes: int) -> int:
    if count == 0:
        return 0
    if count > 1 and any(entry(1)):
        low, high = 1, count  # entry `low` is genuine, entry `high` is not or is the end
        # Bisection is right because zeros begin once: entries rise, so none behind the first can be
        # zero.
        while high - low > 1:
            middle = (low + high) // 2
            if any(entry(middle)):
                low = middle
            else:
                high = middle
        return high
    if any(entry(0)):
        return 1
    return int(count == 1 and entry_bytes == TIME_INDEX_ENTRY_BYTES)
