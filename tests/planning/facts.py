"""Partitions as values, for plans without a disk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from kafkalog.log.header_facts import ActiveProducer, PartitionFacts, SegmentFacts
from kafkalog.log.inventory import (
    FileIdentity,
    PartitionCheckpoints,
    PartitionInventory,
    PartitionKind,
    SegmentInfo,
    TopicPartition,
)
from kafkalog.planning.compaction import CompactionPlan, plan_compaction
from kafkalog.planning.log_config import LogConfig

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
OLD_MS = NOW_MS - 1000 * HOUR_MS
# (base offset, bytes) of five segments, the last one active and the log ending at 50.
FIVE = ((0, 100), (10, 100), (20, 100), (30, 100), (40, 100))


def segment(base_offset: int, size_in_bytes: int = 100, **changes: Any) -> SegmentInfo:
    info = SegmentInfo(
        base_offset=base_offset,
        path=f"/data/orders-0/{base_offset:020d}.log",
        state="live",
        size_in_bytes=size_in_bytes,
        identity=FileIdentity(size_in_bytes, OLD_MS * 1_000_000, base_offset + 1),
        is_active=False,
        offset_index_bytes=0,
        time_index_bytes=12,
        txn_index_bytes=0,
        has_snapshot=True,
        largest_timestamp_ms=OLD_MS,
        modification_time_ms=OLD_MS,
    )
    return replace(info, **changes)


def facts_of(info: SegmentInfo, **changes: Any) -> SegmentFacts:
    is_empty = info.size_in_bytes == 0
    facts = SegmentFacts(
        base_offset=info.base_offset,
        batches_count=0 if is_empty else 1,
        records_count=0 if is_empty else 1,
        first_offset=None if is_empty else info.base_offset,
        last_offset=None if is_empty else info.base_offset,
        min_timestamp_ms=OLD_MS,
        max_timestamp_ms=OLD_MS,
        first_batch_max_timestamp_ms=None if is_empty else OLD_MS,
        has_transactional=False,
        has_control=False,
        has_producer_ids=False,
        magics=(2,),
        codecs=(0,),
        largest_batch_bytes=info.size_in_bytes,
        valid_bytes=info.size_in_bytes,
        trailing_bytes=0,
    )
    return replace(facts, **changes)


def partition(
    segments: Sequence[SegmentInfo] | Iterable[tuple[int, int]] = FIVE,
    *,
    end: int = 50,
    start: int | None = None,
    high_watermark: int | None = -1,
    cleaner: int | None = None,
    **changes: Any,
) -> PartitionInventory:
    """A live partition; a high watermark of -1 means the log's end."""
    infos = [info if isinstance(info, SegmentInfo) else segment(*info) for info in segments]
    infos = [replace(info, is_active=info is infos[-1]) for info in infos]
    inventory = PartitionInventory(
        topic_partition=TopicPartition("orders", 0),
        kind=PartitionKind.LIVE,
        path="/data/orders-0",
        log_dir="/data",
        directory_id="QV6HkAN4wiUW_Jo7G4Y02Q",
        dir_device=1,
        dir_inode=2,
        topic_id="4L6g3nShT-eMCtK--X86sw",
        segments=tuple(infos),
        other_segments=(),
        leftovers=(),
        log_start_offset=infos[0].base_offset if start is None else start,
        log_end_offset=end,
        checkpoints=PartitionCheckpoints(
            high_watermark=end if high_watermark == -1 else high_watermark,
            log_start=start,
            cleaner=cleaner,
        ),
        snapshot_offsets=tuple(info.base_offset for info in infos[1:]),
        has_remote_segments=False,
    )
    return replace(inventory, **changes)


def config(*overrides: str) -> LogConfig:
    return LogConfig.from_overrides(
        ["cleanup.policy=compact", "min.cleanable.dirty.ratio=0", *overrides]
    )


def plan(
    inventory: PartitionInventory,
    *overrides: str,
    facts: Iterable[SegmentFacts] = (),
    producers: tuple[ActiveProducer, ...] = (),
    completed: tuple[tuple[int, int], ...] = (),
    batches_at: tuple[tuple[int, int], ...] = (),
    problems: tuple[str, ...] = (),
    now_ms: int = NOW_MS,
    **options: Any,
) -> CompactionPlan:
    """The plan with healthy facts, but for the `facts` given."""
    special = {item.base_offset: item for item in facts}
    segments = tuple(special.get(info.base_offset, facts_of(info)) for info in inventory.segments)
    return plan_compaction(
        inventory,
        config(*overrides),
        PartitionFacts(
            segments,
            producers,
            completed_transactions=completed,
            batches_at=batches_at,
            problems=problems,
        ),
        now_ms=now_ms,
        **options,
    )
