"""A restored log has the source's bytes up to the cut, and behind them nothing but the markers that
were added: consumers get the same. Where batches get other leader epochs and producer ids, these
and the checksum are what may differ, and are looked at by themselves. That every batch has its
checksum was seen when its indexes were built.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from kafkalog.cleaning.checked_chunks import CLEANER_CHUNK_BYTES
from kafkalog.errors import LogChangedError
from kafkalog.format.record_batch import field_position
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.segment_file import Chunk, ChunkBuffers, read_chunks
from kafkalog.restoring.cut import KeptSegment, LogCut
from kafkalog.restoring.segments import RESTORED_EPOCH, Identity, abort_markers

_DIFFERS = "differs from the source's"
# Two pieces stay in a processor's cache.
_PIECE_BYTES = 256 * 1024


def is_compared_by_bytes(cut: LogCut) -> bool:
    """Whether bytes tell all. Not where legacy entries have to be opened to count them, nor where
    segments are in remote storage, of which some have no transaction index.
    """
    return cut.records is not None and not any(segment.is_remote for segment in cut.segments)


def check_segment(
    cut: LogCut, number: int, path: str, identity: Identity, max_batch_bytes: int
) -> None:
    """LogChangedError where a byte of this segment of the cut differs that must not; OSError as
    from reading.
    """
    segment = cut.segments[number]
    with ExitStack() as opened:
        fds = [os.open(each, os.O_RDONLY | os.O_CLOEXEC) for each in (segment.path, path)]
        for fd in fds:
            opened.callback(os.close, fd)
        if identity.is_kept:
            _check_all(fds[0], fds[1], segment.valid_bytes, path)
        else:
            _check_batches(segment, path, identity, max_batch_bytes)
        tail = _tail(cut, number, identity)
        if os.pread(fds[1], len(tail) + 1, segment.valid_bytes) != tail:
            raise LogChangedError(
                "does not end as the source's does, with the markers that were added",
                path=path,
                position=segment.valid_bytes,
            )


def check_layout(cut: LogCut, restored: PartitionInventory, identity: Identity) -> None:
    """LogChangedError where the log has other segments than those that were compared, or one has
    another length.
    """
    wanted = [
        (segment.base_offset, segment.valid_bytes + len(_tail(cut, number, identity)))
        for number, segment in enumerate(cut.segments)
    ]
    if [(each.base_offset, each.size_in_bytes) for each in restored.segments] != wanted:
        raise LogChangedError("other segments than the source's", path=restored.path)


def _tail(cut: LogCut, number: int, identity: Identity) -> bytes:
    """What is behind the source's bytes in a segment."""
    return abort_markers(cut, identity) if number == len(cut.segments) - 1 else b""


def _check_all(source: int, restored: int, length: int, path: str) -> None:
    for position, before, after in _pieces(source, restored, length):
        if before != after:
            differs = next(n for n in range(len(before)) if before[n] != after[n])
            raise LogChangedError(_DIFFERS, path=path, position=position + differs)


def _check_batches(
    segment: KeptSegment, path: str, identity: Identity, max_batch_bytes: int
) -> None:
    """All but what `Identity` changes is the same, and that is what it is to be."""
    readers = (
        read_chunks(
            each, end=segment.valid_bytes, chunk_bytes=CLEANER_CHUNK_BYTES, buffers=ChunkBuffers(),
            max_batch_bytes=max_batch_bytes,
        )
        for each in (segment.path, path)
    )  # fmt: skip
    for before, after in zip_longest(*readers):
        if before is None or after is None or not _has_same_layout(before, after):
            raise LogChangedError("has other batches than the source's", path=path)
        rows, made = before.rows, after.rows
        current = rows["magic"] >= 2
        same = identity.producer_ids(rows["producer_id"]) == made["producer_id"]
        same &= (
            np.minimum(rows["partition_leader_epoch"], RESTORED_EPOCH)
            == (made["partition_leader_epoch"])
        )
        same &= (rows["crc"] == made["crc"]) | (rows["producer_id"] != made["producer_id"])
        if not (same | ~current).all():
            position = int(rows["position"][int(np.argmin(same | ~current))])
            raise LogChangedError("is not of whom it is to be", path=path, position=position)
        starts = rows["position"][current] - before.position
        size = int(rows["size_in_bytes"].sum(dtype=np.int64))
        pair = [_without_identity(chunk.buf[:size], starts) for chunk in (before, after)]
        if not np.array_equal(pair[0], pair[1]):
            differs = int(np.argmax(pair[0] != pair[1]))
            raise LogChangedError(_DIFFERS, path=path, position=before.position + differs)


def _has_same_layout(before: Chunk, after: Chunk) -> bool:
    return before.position == after.position and all(
        np.array_equal(before.rows[name], after.rows[name])
        for name in ("position", "size_in_bytes")
    )


def _without_identity(data: NDArray[np.uint8], starts: NDArray[np.int64]) -> NDArray[np.uint8]:
    """The same with zeros for epoch, checksum and producer id."""
    data = data if data.flags.writeable else data.copy()
    for name, width in (("partition_leader_epoch", 4), ("crc", 4), ("producer_id", 8)):
        data[(starts + field_position(name))[:, None] + np.arange(width)] = 0
    return data


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
