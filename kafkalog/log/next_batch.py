"""Find the next batch behind bytes that nothing leads over: a batch whose length is wrong, a hole.

A log has no sync marks, so a place is believed if a header that makes sense begins there (length,
magic, attributes, counts, offsets that fit between what is known) and the CRC it states is the one
of its bytes. Headers are looked for by comparing whole windows of the file at once.

Bytes can be made up so that each of them looks like the header of a batch of 64 MiB. What checksums
may cost is therefore bounded for all searches in a file together: `work_for` it, then they give up.

Source: the fields are Kafka's DefaultRecordBatch and LegacyRecord; Kafka itself never searches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.format.constants import (
    HEADER_SIZE_UP_TO_MAGIC,
    LEGACY_RECORD_OVERHEAD_V0,
    LOG_OVERHEAD,
    MAGIC_VALUE_V2,
    MAX_BATCH_BYTES,
    MAX_INT32,
    MAX_INT64,
    RECORD_BATCH_OVERHEAD,
)
from kafkalog.log.single_batch import sound_batch_at
from kafkalog.log.storage import SourceFile, open_file

# Most searches end nearby; the windows of the others grow.
_FIRST_WINDOW_BYTES = 32 * 1024
_WINDOW_BYTES = 1024 * 1024
_GROWTH = 4

# Bytes 8 to 18 say what a batch is; a window needs so many behind the last place it looks at.
_LOOK = RECORD_BATCH_OVERHEAD
_HIGHEST_CODEC = 4
_HIGHEST_LEGACY_ATTRIBUTES = 0x0F


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where to search, [start, end) of the file, and which offsets fit there: a batch lies above
    `last_offset` and ends below `end_offset`.
    """

    start: int
    end: int
    last_offset: int
    end_offset: int


def work_for(size_in_bytes: int) -> int:
    """How many bytes may be summed up in vain in a file of this size."""
    return 4 * size_in_bytes + 2 * MAX_BATCH_BYTES


def find_next_batch(path: str, bounds: Bounds, work: int) -> tuple[int | None, int]:
    """(position of the first whole batch with a right checksum, what is left of `work`).

    None if there is none, or if more than `work` bytes were summed up. OSError, LogChangedError as
    from reading.
    """
    with open_file(path) as file:
        # Each place costs a checksum over the length it claims; `work` bounds them all together.
        for position, size_in_bytes in _plausible(file, bounds):
            # Taken before it is spent, and given back where it was not in vain.
            work -= size_in_bytes
            if work < 0:
                break
            if sound_batch_at(file, position, bounds.end) is not None:
                return position, work + size_in_bytes
    return None, work


def _plausible(file: SourceFile, bounds: Bounds) -> Iterator[tuple[int, int]]:
    """(position, size) of what could be a whole batch, in order."""
    buf = np.zeros(_WINDOW_BYTES + _LOOK, np.uint8)
    start, window_bytes = bounds.start, _FIRST_WINDOW_BYTES
    while start < bounds.end:
        count = min(window_bytes, bounds.end - start)
        # At the file's end zeros stand in for what is not there: no batch begins in them.
        length = min(count + _LOOK, bounds.end - start)
        file.read_into(buf, start, length)
        buf[length : count + _LOOK] = 0
        for at, size_in_bytes in _headers_in(buf, count, bounds.end - start, bounds):
            yield start + at, size_in_bytes
        start += count
        window_bytes = min(window_bytes * _GROWTH, _WINDOW_BYTES)


def _headers_in(
    buf: NDArray[np.uint8], count: int, left: int, bounds: Bounds
) -> Iterator[tuple[int, int]]:
    """Of the first `count` places in `buf` those where a header makes sense; `left` bytes of the
    file follow buf[0].
    """
    # Cheapest first: of random bytes one in 85 is a magic, and of zeros a length throws out all.
    at = np.flatnonzero(buf[HEADER_SIZE_UP_TO_MAGIC - 1 :][:count] <= MAGIC_VALUE_V2)
    # The length is looked at before the offset: it excludes more, and costs half.
    length = _int32(buf, at + 8)
    is_current = buf[at + HEADER_SIZE_UP_TO_MAGIC - 1] == MAGIC_VALUE_V2
    least = np.where(is_current, RECORD_BATCH_OVERHEAD - LOG_OVERHEAD, LEGACY_RECORD_OVERHEAD_V0)
    most = left - at - LOG_OVERHEAD
    fits = (length >= least) & (length <= most)
    at, length, is_current = at[fits], length[fits], is_current[fits]
    # Offsets must fit between what is known in front and behind: of random bytes hardly any do.
    base = _int64(buf, at)
    # Of a file named by one of the highest offsets the end is none of 64 bits.
    end_offset = min(bounds.end_offset, MAX_INT64)
    fits = (base > bounds.last_offset) & (base < end_offset)
    # magic 2: the high attribute byte is unused, a codec is known, counts and deltas are positive
    attributes = buf[at + 22]
    last_delta, records = _int32(buf, at + 23), _int32(buf, at + 57)
    current = (buf[at + 21] == 0) & (attributes < 0x80) & ((attributes & 7) <= _HIGHEST_CODEC)
    current &= (last_delta >= 0) & (records >= 0) & (records <= length)
    current &= base <= end_offset - 1 - np.maximum(last_delta, 0)
    legacy = buf[at + HEADER_SIZE_UP_TO_MAGIC] <= _HIGHEST_LEGACY_ATTRIBUTES
    fits &= np.where(is_current, current, legacy)
    yield from zip(at[fits].tolist(), (length[fits] + LOG_OVERHEAD).tolist(), strict=True)


def _int32(buf: NDArray[np.uint8], at: NDArray[np.int64]) -> NDArray[np.int64]:
    """The signed big-endian numbers at these places."""
    value = np.zeros(at.size, np.int64)
    for byte in range(4):
        value = (value << 8) | buf[at + byte]
    return np.where(value > MAX_INT32, value - (1 << 32), value)


def _int64(buf: NDArray[np.uint8], at: NDArray[np.int64]) -> NDArray[np.int64]:
    value = np.zeros(at.size, np.uint64)
    for byte in range(8):
        value = (value << np.uint64(8)) | buf[at + byte].astype(np.uint64)
    return value.view(np.int64)
