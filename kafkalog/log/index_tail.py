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

import os
from dataclasses import dataclass
from pathlib import Path

from kafkalog.format.time_index import TIME_INDEX_ENTRY_BYTES


@dataclass(frozen=True, slots=True)
class IndexTail:
    """`valid_bytes` of whole genuine entries, and the last of them as on disk (or empty)."""

    valid_bytes: int = 0
    last_entry: bytes = b""


def read_index_tail(path: str | Path, entry_bytes: int) -> IndexTail:
    """The end of an index of `entry_bytes` wide entries; nothing if there is no file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return IndexTail()
    try:
        entries_count = os.fstat(descriptor).st_size // entry_bytes
        count = _genuine_entries(descriptor, entries_count, entry_bytes)
        last = _entry(descriptor, count - 1, entry_bytes) if count else b""
    finally:
        os.close(descriptor)
    return IndexTail(count * entry_bytes, last)


def _genuine_entries(descriptor: int, entries_count: int, entry_bytes: int) -> int:
    if entries_count == 0:
        return 0
    if entries_count > 1 and any(_entry(descriptor, 1, entry_bytes)):
        low, high = 1, entries_count  # entry `low` is genuine, entry `high` is not or is the end
        while high - low > 1:
            middle = (low + high) // 2
            if any(_entry(descriptor, middle, entry_bytes)):
                low = middle
            else:
                high = middle
        return high
    if any(_entry(descriptor, 0, entry_bytes)):
        return 1
    return int(entries_count == 1 and entry_bytes == TIME_INDEX_ENTRY_BYTES)


def _entry(descriptor: int, number: int, entry_bytes: int) -> bytes:
    return os.pread(descriptor, entry_bytes, number * entry_bytes)
