"""Log compaction in plain words: a dict of last offsets, then batch by batch.

For data batches of magic 2 without transactions
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kafkalog.format.constants import DELETE_HORIZON_FLAG_MASK, TIMESTAMP_TYPE_MASK
from kafkalog.format.record import Record
from kafkalog.format.record_batch import RecordBatchHeader

Batch = tuple[RecordBatchHeader, list[Record]]


@dataclass(frozen=True, slots=True)
class CleanedBatch:
    """What compaction may not choose: everything but length, CRC and the bytes of compression."""

    base_offset: int
    last_offset: int
    partition_leader_epoch: int
    producer: tuple[int, int, int]
    codec: int
    timestamp_type: int
    horizon: int | None
    base_timestamp: int
    max_timestamp: int
    records: tuple[Record, ...]


def as_cleaned(header: RecordBatchHeader, records: Sequence[Record]) -> CleanedBatch:
    """A batch as it is."""
    has_horizon = bool(header.attributes & DELETE_HORIZON_FLAG_MASK)
    return CleanedBatch(
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        partition_leader_epoch=header.partition_leader_epoch,
        producer=(header.producer_id, header.producer_epoch, header.base_sequence),
        codec=header.codec,
        timestamp_type=header.attributes & TIMESTAMP_TYPE_MASK,
        horizon=header.base_timestamp if has_horizon else None,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        records=tuple(records),
    )


def clean(
    cleanable: Sequence[Batch],
    *,
    first_dirty_offset: int,
    last_offsets_kept: Iterable[int],
    now_ms: int,
    delete_retention_ms: int,
) -> list[CleanedBatch]:
    """What is left of the batches below the round's end. `last_offsets_kept`: batches ending there
    stay at least as headers.
    """
    latest: dict[bytes, int] = {}
    for _, records in cleanable:
        for record in records:
            if record.key is not None and record.offset >= first_dirty_offset:
                latest[record.key] = record.offset
    must_stay = frozenset(last_offsets_kept)
    result = []
    for header, records in cleanable:
        batch = as_cleaned(header, records)
        is_expired = batch.horizon is not None and batch.horizon <= now_ms
        kept = [
            record
            for record in records
            if record.key is not None
            and record.offset >= latest.get(record.key, -1)
            and not (record.value is None and is_expired)
        ]
        if kept:
            result.append(_rebuilt(batch, kept, now_ms + delete_retention_ms))
        elif header.last_offset in must_stay:
            result.append(_emptied(batch))
    return result


def _rebuilt(batch: CleanedBatch, kept: list[Record], new_horizon: int) -> CleanedBatch:
    has_tombstone = any(record.value is None for record in kept)
    is_stamped = has_tombstone and batch.horizon is None
    if len(kept) == len(batch.records) and not is_stamped:
        return batch
    horizon = new_horizon if is_stamped else batch.horizon
    latest = max(record.timestamp for record in kept)
    return CleanedBatch(
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        partition_leader_epoch=batch.partition_leader_epoch,
        producer=batch.producer,
        codec=batch.codec,
        timestamp_type=batch.timestamp_type,
        horizon=horizon,
        base_timestamp=kept[0].timestamp if horizon is None else horizon,
        max_timestamp=batch.max_timestamp if batch.timestamp_type else latest,
        records=tuple(kept),
    )


def _emptied(batch: CleanedBatch) -> CleanedBatch:
    return CleanedBatch(
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        partition_leader_epoch=batch.partition_leader_epoch,
        producer=batch.producer,
        codec=0,
        timestamp_type=batch.timestamp_type,
        horizon=None,
        base_timestamp=-1,
        max_timestamp=batch.max_timestamp,
        records=(),
    )
