"""One segment read from its first byte: every batch checked as a broker's recovery checks it, and
what its indexes must hold.

Source: Kafka LogSegment.recover, DefaultRecordBatch.ensureValid, LegacyRecord.ensureValid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.batch_table import verify_checksums
from kafkalog.cleaning.segment_indexes import SegmentIndexes
from kafkalog.errors import (
    KafkaLogError,
    LogCleaningRefusedError,
    LogSegmentOffsetOverflowError,
)
from kafkalog.format.constants import MAX_BATCH_BYTES, MAX_INT32
from kafkalog.format.transaction_index import AbortedTxn
from kafkalog.kernels.status import CORRUPT_LENGTH
from kafkalog.log.inventory import SegmentInfo
from kafkalog.log.leader_epochs import LeaderEpochReplay
from kafkalog.log.recovered_producers import RecoveredProducers
from kafkalog.log.segment_file import Chunk, ChunkBuffers, read_chunks
from kafkalog.planning.log_config import LogConfig

# Small enough to be in the processor's cache still when the checksums are computed.
_CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ScannedSegment:
    """What a segment's batches say. `trailing_bytes` follow the last whole batch (a torn tail, or
    what was preallocated); `next_offset` is one past the last batch.
    """

    indexes: SegmentIndexes
    aborted_transactions: tuple[AbortedTxn, ...]
    next_offset: int
    batches_count: int
    valid_bytes: int
    trailing_bytes: int


def scan_segment(
    segment: SegmentInfo,
    segments_behind: int,
    config: LogConfig,
    producers: RecoveredProducers,
    epochs: LeaderEpochReplay,
    buffers: ChunkBuffers,
    max_batch_bytes: int = MAX_BATCH_BYTES,
    watch: Callable[[NDArray[np.void]], None] | None = None,
) -> ScannedSegment:
    """Read a segment and bring `producers` and `epochs` to its end; `watch` gets the batches.

    LogCleaningRefusedError for damage, with what a broker's recovery would do about it; of a
    segment that others follow this includes a torn tail. LogSegmentOffsetOverflowError for one
    that must be split before anything can be said about its indexes. OSError, LogChangedError as
    from reading.
    """
    indexes = SegmentIndexes(segment.base_offset, config)
    aborted: list[AbortedTxn] = []
    chunks = read_chunks(
        segment.path,
        chunk_bytes=_CHUNK_BYTES,
        buffers=buffers,
        max_batch_bytes=max_batch_bytes,
    )
    last_offset, batches_count = segment.base_offset - 1, 0
    try:
        for chunk in chunks:
            # The checksums first: until they hold, nothing else that a batch says is to be
            # believed.
            _check_checksums(segment, chunk, segments_behind)
            _check_offsets(segment, chunk.rows, last_offset)
            indexes.add(chunk.rows)
            aborted += producers.apply(chunk, segment.path)
            epochs.apply(chunk.rows)
            last_offset = int(chunk.rows["last_offset"][-1])
            batches_count += chunk.rows.size
            if watch is not None:
                watch(chunk.rows)
    except (LogCleaningRefusedError, LogSegmentOffsetOverflowError):
        raise
    except KafkaLogError as error:
        if chunks.status == CORRUPT_LENGTH:
            raise _damage(segment, chunks.valid_bytes, error.reason, segments_behind) from error
        raise
    if chunks.trailing_bytes and segments_behind:
        reason = f"the last {chunks.trailing_bytes} bytes are no whole batch"
        raise _damage(segment, chunks.valid_bytes, reason, segments_behind)
    return ScannedSegment(
        indexes,
        tuple(aborted),
        last_offset + 1,
        batches_count,
        chunks.valid_bytes,
        chunks.trailing_bytes,
    )


def _check_checksums(segment: SegmentInfo, chunk: Chunk, segments_behind: int) -> None:
    valid = verify_checksums(chunk.buf, chunk.position, chunk.rows)
    if valid.all():
        return
    bad = chunk.rows[int(np.argmin(valid))]
    raise _damage(
        segment,
        int(bad["position"]),
        f"the batch of offsets {bad['base_offset']} to {bad['last_offset']} has not the checksum "
        "it states",
        segments_behind,
    )


def _check_offsets(segment: SegmentInfo, rows: NDArray[np.void], last_offset: int) -> None:
    before = np.concatenate([[last_offset], rows["last_offset"][:-1]])
    wrong = (rows["base_offset"] <= before) | (rows["last_offset"] < rows["base_offset"])
    too_far = rows["last_offset"] - segment.base_offset > MAX_INT32
    if not (wrong | too_far).any():
        return
    # The first of them in the file; where both hold, its order is what is wrong with it.
    bad = rows[int(np.argmax(wrong | too_far))]
    what = f"the batch of offsets {bad['base_offset']} to {bad['last_offset']}"
    if not wrong[int(np.argmax(wrong | too_far))]:
        raise LogSegmentOffsetOverflowError(
            f"{what} is more than {MAX_INT32} behind the segment's base",
            path=segment.path,
            position=int(bad["position"]),
        )
    reason = (
        f"{what} does not lie behind the one before it: a broker's recovery does not see that "
        "or, where an index entry falls on it, empties this segment and deletes those behind"
    )
    raise _refusal(segment, int(bad["position"]), reason)


def _damage(
    segment: SegmentInfo, position: int, reason: str, segments_behind: int
) -> LogCleaningRefusedError:
    lost = segment.size_in_bytes - position
    behind = f" and delete what follows ({segments_behind})" if segments_behind else ""
    return _refusal(
        segment, position, f"{reason}; a broker's recovery would cut {lost} bytes here{behind}"
    )


def _refusal(segment: SegmentInfo, position: int, reason: str) -> LogCleaningRefusedError:
    return LogCleaningRefusedError(reason, path=segment.path, position=position)
