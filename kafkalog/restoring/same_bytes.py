"""A restored log has the source's batches up to the cut, and behind them nothing but the markers
that were added: consumers get the same.

Where batches stay as they are their headers are compared, checksums among them, by a digest that
the plan took of the source's: what no checksum covers is there, and that every restored batch has
its checksum is seen when its indexes are built. So each byte of both is looked at, and is read
once, as a copy of more than fits into memory needs. Where batches get other leader epochs and
producer ids all bytes are compared but these and the checksum, which are looked at by themselves.
"""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kafkalog.cleaning.checked_chunks import CLEANER_CHUNK_BYTES
from kafkalog.errors import LogChangedError
from kafkalog.format.record_batch import field_position
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.segment_file import Chunk, ChunkBuffers, read_chunks
from kafkalog.log.segment_headers import iterate_headers
from kafkalog.restoring.cut import KeptSegment, LogCut
from kafkalog.restoring.segments import RESTORED_EPOCH, Identity, abort_markers

_DIFFERS = "differs from the source's"


def is_compared_by_bytes(cut: LogCut) -> bool:
    """Whether bytes tell all. Not where legacy entries have to be opened to count them, nor where
    segments are in remote storage, of which some have no transaction index.
    """
    return cut.records is not None and not any(segment.is_remote for segment in cut.segments)


def check_tail(cut: LogCut, number: int, path: str, identity: Identity) -> None:
    """LogChangedError where this segment of the cut does not end with what was added."""
    end, tail = cut.segments[number].valid_bytes, _tail(cut, number, identity)
    with Path(path).open("rb") as file:
        file.seek(end)
        if file.read(len(tail) + 1) != tail:
            raise LogChangedError(
                "does not end as the source's does, with the markers that were added",
                path=path,
                position=end,
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


def check_headers(segment: KeptSegment, path: str) -> None:
    """LogChangedError for the first batch whose header is another than the source's. All that no
    checksum covers is in the headers, and so are the checksums.
    """
    scans = (iterate_headers(each, end=segment.valid_bytes) for each in (segment.path, path))
    position = 0
    for before, after in zip_longest(*scans):
        rows, made = (None if scan is None else scan.rows for scan in (before, after))
        if rows is None or made is None or rows.size != made.size or (rows != made).any():
            if rows is not None and made is not None:
                count = min(rows.size, made.size)
                same = int(np.argmin(np.append(rows[:count] == made[:count], np.False_)))
                position = int(rows["position"][same]) if same < rows.size else position
            raise LogChangedError(_DIFFERS, path=path, position=position)
        position = after.valid_bytes
    if position != segment.valid_bytes:
        raise LogChangedError(_DIFFERS, path=path, position=position)


def check_batches(
    segment: KeptSegment, path: str, identity: Identity, max_batch_bytes: int
) -> None:
    """LogChangedError unless all but what `Identity` changes is the same, and that is what it is to
    be; OSError as from reading.
    """
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
