"""A restored log whose batches stay as they are has the source's bytes up to the cut, and behind
them nothing but the markers that were added: consumers get the same. That every batch has its
checksum was seen when its indexes were built.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack

from kafkalog.errors import LogChangedError
from kafkalog.log.inventory import PartitionInventory
from kafkalog.restoring.cut import LogCut
from kafkalog.restoring.segments import Identity, abort_markers

# Two pieces stay in a processor's cache.
_PIECE_BYTES = 256 * 1024


def check_same_bytes(cut: LogCut, restored: PartitionInventory, identity: Identity) -> None:
    """LogChangedError where a byte differs, or a segment is missing or too many; OSError as from
    reading.
    """
    made = {segment.base_offset: segment for segment in restored.segments}
    if [*made] != [segment.base_offset for segment in cut.segments]:
        raise LogChangedError("other segments than the source's", path=restored.path)
    for number, segment in enumerate(cut.segments):
        is_last = number == len(cut.segments) - 1
        tail = abort_markers(cut, identity) if is_last else b""
        path = made[segment.base_offset].path
        with ExitStack() as opened:
            fds = [os.open(each, os.O_RDONLY | os.O_CLOEXEC) for each in (segment.path, path)]
            for fd in fds:
                opened.callback(os.close, fd)
            for position, before, after in _pieces(fds[0], fds[1], segment.valid_bytes):
                if before != after:
                    differs = next(n for n in range(len(before)) if before[n] != after[n])
                    raise LogChangedError(
                        "differs from the source's", path=path, position=position + differs
                    )
            if os.pread(fds[1], len(tail) + 1, segment.valid_bytes) != tail:
                raise LogChangedError(
                    "does not end as the source's does, with the markers that were added",
                    path=path,
                    position=segment.valid_bytes,
                )


def _pieces(source: int, restored: int, length: int) -> Iterator[tuple[int, bytearray, bytearray]]:
    """Position and bytes of both."""
    before, after = bytearray(_PIECE_BYTES), bytearray(_PIECE_BYTES)
    for position in range(0, length, _PIECE_BYTES):
        size = min(_PIECE_BYTES, length - position)
        if size < _PIECE_BYTES:
            before, after = bytearray(size), bytearray(size)
        for fd, buffer in ((source, before), (restored, after)):
            if os.preadv(fd, [buffer], position) < size:
                raise LogChangedError("is shorter than it was when it was read", position=position)
        yield position, before, after
