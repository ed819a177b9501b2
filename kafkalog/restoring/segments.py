"""The segments of a restored log: those of the source up to the cut, and ABORT markers behind them.

The target's cluster has given out leader epochs and producer ids of its own. Two things must not
meet, or acknowledged records are lost: a batch of a leader epoch above the partition's makes a
broker drop its epochs, and a new producer with the id and sequence of a restored batch is told that
its record is there already. So

    leader epoch    0 in every batch, which a partition begins with; it lies outside of the checksum
    producer id     2^62 and more: a controller counts ids up from 0 and never comes that far

Records, offsets, timestamps and transactions stay as they are; only checksums of batches with a
producer are computed anew, after the old ones were checked.

A marker is the coordinator's when it aborts a transaction that took too long: one epoch above the
producer's, so that whoever still has the old one is fenced.

Source: Kafka DefaultRecordBatch, LeaderEpochFileCache.assign, ProducerIdControlManager,
TransactionCoordinator.abortTimedOutTransactions, MemoryRecords.writeEndTransactionalMarker.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.batch_table import verify_checksums
from kafkalog.cleaning.checked_chunks import CLEANER_CHUNK_BYTES
from kafkalog.errors import CorruptRecordError
from kafkalog.format.constants import MAX_INT16, NO_TIMESTAMP
from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.record import Record
from kafkalog.format.record_batch import CRC_POSITION, CRC_START, field_position, pack_batch
from kafkalog.log.segment_file import Chunk, ChunkBuffers, read_chunks
from kafkalog.native.checksums import crc32c_of_ranges
from kafkalog.restoring.cut import FIRST_RESTORED_ID, KeptSegment, LogCut
from kafkalog.swap.local_files import LocalFiles

RESTORED_EPOCH = 0
_PIECE_BYTES = 16 * 1024 * 1024
_EPOCH_POSITION = field_position("partition_leader_epoch")
_PRODUCER_POSITION = field_position("producer_id")
_CONTROL_KEY = struct.Struct(">hh")
_MARKER = struct.Struct(">hi")


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose a restored batch is. is_kept: as in the source, for a cluster that begins behind it."""

    is_kept: bool

    def producer_id(self, producer_id: int) -> int:
        """The id that a producer of the source has in the target. One that was restored before has
        an id that no target gives out.
        """
        if self.is_kept or not 0 <= producer_id < FIRST_RESTORED_ID:
            return producer_id
        return producer_id + FIRST_RESTORED_ID

    def producer_ids(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same of many."""
        if self.is_kept:
            return ids
        meets = (ids >= 0) & (ids < FIRST_RESTORED_ID)
        return np.where(meets, ids + FIRST_RESTORED_ID, ids)

    def leader_epoch(self, epoch: int) -> int:
        return epoch if self.is_kept else min(epoch, RESTORED_EPOCH)


def write_segment(
    cut: LogCut,
    number: int,
    path: str,
    like: os.stat_result,
    identity: Identity,
    files: LocalFiles,
    max_batch_bytes: int,
    written: Callable[[int], None],
) -> None:
    """Write one `.log` file of a cut, with this owner and mode. Nothing is synced. `written` gets
    the bytes of each piece once it is written.

    CorruptRecordError for a batch whose checksum is not the stored one, but where batches stay as
    they are: `check_source` tells then. OSError as from writing.
    """
    segment = cut.segments[number]
    fd = files.create(path)
    try:
        if identity.is_kept and not segment.is_remote:
            for start in range(0, segment.valid_bytes, _PIECE_BYTES):
                size = min(_PIECE_BYTES, segment.valid_bytes - start)
                files.copy_into(fd, segment.path, size, start)
                written(size)
        else:
            for data in _batches(segment, identity, max_batch_bytes):
                files.write(fd, data)
                written(len(data))
        markers = abort_markers(cut, identity) if number == len(cut.segments) - 1 else b""
        if markers:
            files.write(fd, memoryview(markers))
        files.set_owner(fd, like)
        files.set_modification_time(fd, segment.modification_time_ms)
    finally:
        os.close(fd)


def abort_markers(cut: LogCut, identity: Identity) -> bytes:
    """A marker batch for each open transaction, in the order in which they began."""
    in_order = sorted(cut.open, key=lambda each: each.first_offset)
    timestamp = max(cut.largest_timestamp_ms, NO_TIMESTAMP + 1)
    return b"".join(
        pack_batch(
            [
                Record(
                    cut.end_offset + n,
                    timestamp,
                    _CONTROL_KEY.pack(0, ControlRecordType.ABORT),
                    _MARKER.pack(0, each.coordinator_epoch),
                )
            ],
            partition_leader_epoch=identity.leader_epoch(max(cut.highest_epoch, 0)),
            producer_id=identity.producer_id(each.producer_id),
            producer_epoch=min(each.producer_epoch + 1, MAX_INT16),
            is_transactional=True,
            is_control=True,
        )
        for n, each in enumerate(in_order)
    )


def _batches(
    segment: KeptSegment, identity: Identity, max_batch_bytes: int
) -> Iterator[memoryview]:
    reader = read_chunks(
        segment.path, end=segment.valid_bytes, chunk_bytes=CLEANER_CHUNK_BYTES,
        buffers=ChunkBuffers(), max_batch_bytes=max_batch_bytes,
    )  # fmt: skip
    for chunk in reader:
        _check(chunk, segment.path)
        size = int(chunk.rows["size_in_bytes"].astype(np.int64).sum()) if chunk.rows.size else 0
        data = chunk.buf[:size]
        if not identity.is_kept:
            data = data if data.flags.writeable else data.copy()
            _give_new_ids(Chunk(data, chunk.position, chunk.rows), identity)
        yield data.data


def check_source(cut: LogCut, max_batch_bytes: int) -> None:
    """CorruptRecordError for a batch of the source whose checksum is not the stored one."""
    for segment in cut.segments:
        reader = read_chunks(
            segment.path, end=segment.valid_bytes, chunk_bytes=CLEANER_CHUNK_BYTES,
            buffers=ChunkBuffers(), max_batch_bytes=max_batch_bytes,
        )  # fmt: skip
        for chunk in reader:
            _check(chunk, segment.path)


def _check(chunk: Chunk, path: str) -> None:
    valid = verify_checksums(chunk.buf, chunk.position, chunk.rows)
    if not valid.all():
        bad = chunk.rows[int(np.argmin(valid))]
        raise CorruptRecordError(
            f"CRC of the batch is not the stored {int(bad['crc']):#010x}: `kafkalog salvage` makes "
            "a copy without what is damaged, which can be restored",
            path=path,
            position=int(bad["position"]),
            offset=int(bad["base_offset"]),
        )


def _give_new_ids(chunk: Chunk, identity: Identity) -> None:
    """Change leader epochs and producer ids in place; legacy entries have neither."""
    rows = chunk.rows[chunk.rows["magic"] >= 2]
    starts = rows["position"] - chunk.position
    led = rows["partition_leader_epoch"] > RESTORED_EPOCH
    epochs = np.full(int(led.sum()), RESTORED_EPOCH, ">i4")
    _put(chunk.buf, starts[led] + _EPOCH_POSITION, epochs)
    ids = rows["producer_id"]
    meets = (ids >= 0) & (ids < FIRST_RESTORED_ID)
    if not meets.any():
        return
    starts, sizes = starts[meets], rows["size_in_bytes"][meets]
    _put(chunk.buf, starts + _PRODUCER_POSITION, (ids[meets] + FIRST_RESTORED_ID).astype(">i8"))
    checksums = crc32c_of_ranges(chunk.buf, starts + CRC_START, starts + sizes)
    _put(chunk.buf, starts + CRC_POSITION, checksums.astype(">u4"))


def _put(buf: NDArray[np.uint8], starts: NDArray[np.int64], values: NDArray[np.generic]) -> None:
    """Write big-endian values at these places."""
    width = values.dtype.itemsize
    places = starts[:, None] + np.arange(width)
    buf[places] = values.view(np.uint8).reshape(-1, width)
