"""Decide what a round of log compaction does to one partition, as Kafka's cleaner would.

Strategy: refuse what must not be touched; find the dirty range [first dirty, first uncleanable);
round its end down to a segment's base; weigh the bytes; then group every segment below that end,
the already clean ones too, because a round rewrites the log from its first segment. Nothing is read
here and there is no clock: `now_ms` is sampled once a round by the caller.

Source: Kafka LogCleanerManager.cleanableOffsets and maxCompactionDelay, LogToClean, Cleaner.
"""

from __future__ import annotations

from kafkalog.errors import InvalidConfigError
from kafkalog.format.constants import MAGIC_VALUE_V2, MAX_INT32
from kafkalog.log.header_facts import PartitionFacts
from kafkalog.log.inventory import PartitionInventory
from kafkalog.planning.cleanable_range import CleanableRange, find_cleanable_range
from kafkalog.planning.compaction_plan import (
    ACROSS_TASKS,
    CLEAN,
    WITHIN_TASK,
    CompactionPlan,
    SegmentGroup,
)
from kafkalog.planning.high_watermark import effective_high_watermark
from kafkalog.planning.kafka_version import parse_kafka_version
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.policy_evidence import PolicyStanding, why_not_compacted
from kafkalog.planning.refusals import (
    refuse_by_facts,
    refuse_by_inventory,
)
from kafkalog.planning.segment_groups import group_segments, segments_between
from kafkalog.planning.statuses import REFUSED, SKIP
from kafkalog.texts import format_setting_ms

# Kafka SkimpyOffsetMap: an MD5 and an offset; log.cleaner.io.buffer.load.factor.
_SLOT_BYTES = 24
_LOAD_FACTOR = 0.9

# From this size on more tasks than one are worth a shuffle.
ACROSS_TASKS_BYTES = 8 * 1024 * 1024 * 1024

# A legacy record has 26 bytes at least, and deflate gives at most 1032 for one.
_LEGACY_RECORDS_PER_BYTE = 40

__all__ = ["CLEAN", "REFUSED", "SKIP", "CompactionPlan", "SegmentGroup", "plan_compaction"]


def plan_compaction(
    partition: PartitionInventory,
    config: LogConfig,
    facts: PartitionFacts,
    *,
    now_ms: int,
    high_watermark: int | None = None,
    kafka_version: str = "4.3",
    dedupe_buffer_size: int | None = None,
    strategy: str | None = None,
    with_token: bool = True,
    standing: PolicyStanding | None = None,
    is_forced: bool = False,
) -> CompactionPlan:
    """The plan of one round for one partition.

    `facts` covers every live segment below the active one. `high_watermark` is for logs whose
    checkpoint does not tell; where both are known the lower one holds. `kafka_version` is 4.1 to
    4.4. `dedupe_buffer_size` in bytes asks for Kafka's bounded map. `strategy`: see
    CompactionPlan; chosen by size without it. A plan without token is to be looked at, not carried
    out. `standing`, `is_forced`: as for `plan_retention`. Bad settings raise
    InvalidConfigError; everything about the partition itself is a status and a reason in the plan,
    never an error.
    """
    parse_kafka_version(kafka_version)
    watermark = effective_high_watermark(partition, high_watermark)
    cleanable = find_cleanable_range(
        partition, config, now_ms=now_ms, high_watermark=watermark,
        first_unstable_offset=facts.first_unstable_offset(watermark, partition.log_start_offset),
    )  # fmt: skip
    must_compact = _must_compact(partition, config, facts, cleanable, now_ms)
    refusal = refuse_by_inventory(partition, config, watermark) or _refuse_by_policy(
        partition, facts, standing or PolicyStanding.SAID, is_forced=is_forced
    )
    chosen = refusal or _choose(config, cleanable, must_compact=must_compact)
    status, reason, groups = _grouped(partition, config, facts, cleanable.end_offset, chosen)
    return CompactionPlan(
        topic_partition=partition.topic_partition,
        path=partition.path,
        log_dir=partition.log_dir,
        status=status,
        reason=reason,
        first_dirty_offset=cleanable.first_dirty_offset,
        first_uncleanable_offset=cleanable.first_uncleanable_offset,
        uncleanable_reason=cleanable.uncleanable_reason,
        end_offset=cleanable.end_offset,
        log_start_offset=partition.log_start_offset,
        log_end_offset=partition.log_end_offset,
        high_watermark=watermark,
        clean_bytes=cleanable.clean_bytes,
        cleanable_bytes=cleanable.cleanable_bytes,
        cleanable_ratio=cleanable.ratio,
        must_compact=must_compact,
        checkpoint_reset=None if refusal or status == REFUSED else cleanable.checkpoint_reset,
        groups=groups,
        now_ms=now_ms,
        kafka_version=kafka_version,
        config=config,
        active_producers=tuple(sorted(facts.active_producers, key=lambda p: p.producer_id)),
        token=partition.token if with_token else "",
        # Before the swap all new files lie beside the old; none is meant to outgrow its sources.
        peak_bytes=sum(group.file_bytes for group in groups),
        leftovers=partition.leftovers,
        map_entries=None if dedupe_buffer_size is None else usable_entries(dedupe_buffer_size),
        source_records=_source_records(facts, groups),
        has_transactions=any(f.has_transactional or f.has_control for f in facts.segments),
        strategy=_strategy(groups, strategy, is_bounded=dedupe_buffer_size is not None),
        deleted_files=partition.deleted_files if status == CLEAN else (),
        codecs=_codecs(facts, groups),
    )


def _grouped(
    partition: PartitionInventory,
    config: LogConfig,
    facts: PartitionFacts,
    end_offset: int,
    chosen: tuple[str, str],
) -> tuple[str, str, tuple[SegmentGroup, ...]]:
    """Status and reason, and the groups of what is cleaned, unless the facts refuse that."""
    if chosen[0] != CLEAN:
        return *chosen, ()
    sources = segments_between(partition.segments, 0, end_offset)
    refusal = refuse_by_facts(facts, sources, end_offset)
    if refusal is not None:
        return *refusal, ()
    return *chosen, group_segments(sources, end_offset, config)


def _refuse_by_policy(
    partition: PartitionInventory,
    facts: PartitionFacts,
    standing: PolicyStanding,
    *,
    is_forced: bool,
) -> tuple[str, str] | None:
    """Status and reason of a topic whose policy does not count for compaction."""
    doubt = why_not_compacted(partition, facts, standing, is_forced=is_forced)
    return None if doubt is None else (REFUSED, doubt)


def _source_records(facts: PartitionFacts, groups: tuple[SegmentGroup, ...]) -> tuple[int, ...]:
    """Of each source as many records as its headers say, or where there are legacy wrappers, which
    do not say, as its offsets and its bytes have room for.
    """
    if not groups:
        return ()
    # Numbers are given out by these counts before any record is read, so that they must be enough:
    # too many cost a bit each, too few would give one number to two records.
    counts = {
        segment.base_offset: min(
            segment.next_offset - segment.base_offset,
            segment.records_count + segment.valid_bytes * _LEGACY_RECORDS_PER_BYTE,
        )
        if any(magic < MAGIC_VALUE_V2 for magic in segment.magics)
        else segment.records_count
        for segment in facts.segments
    }
    return tuple(counts[source.base_offset] for group in groups for source in group.sources)


def _codecs(facts: PartitionFacts, groups: tuple[SegmentGroup, ...]) -> tuple[int, ...]:
    """Of the batches of all sources."""
    sources = {source.base_offset for group in groups for source in group.sources}
    found = {c for each in facts.segments if each.base_offset in sources for c in each.codecs}
    return tuple(sorted(found))


def _strategy(groups: tuple[SegmentGroup, ...], asked: str | None, *, is_bounded: bool) -> str:
    """A bounded map is made in offset order, by one task; one group alone leaves nothing to
    share.
    """
    if is_bounded or (asked is None and len(groups) < 2):
        return WITHIN_TASK
    source_bytes = sum(group.size_in_bytes for group in groups)
    return asked or (ACROSS_TASKS if source_bytes >= ACROSS_TASKS_BYTES else WITHIN_TASK)


def usable_entries(dedupe_buffer_size: int) -> int:
    """How many keys Kafka's offset map of this many bytes holds: 24 bytes a slot, filled to the
    default load factor. InvalidConfigError for a buffer that holds none.
    """
    # A Java buffer has no more than 2^31 - 1 bytes, whatever the setting says.
    slots = min(dedupe_buffer_size, MAX_INT32) // _SLOT_BYTES
    entries = int(slots * _LOAD_FACTOR)
    if entries < 1:
        raise InvalidConfigError(f"a dedupe buffer of {dedupe_buffer_size} bytes holds no key")
    return entries


def _must_compact(
    partition: PartitionInventory,
    config: LogConfig,
    facts: PartitionFacts,
    cleanable: CleanableRange,
    now_ms: int,
) -> bool:
    """Whether a dirty segment waits for longer than `max.compaction.lag.ms`.

    A segment's age is that of its first batch; one without a timestamp above 0 does not count.
    """
    if not cleanable.dirty_segments:
        return False
    first_timestamps = {
        segment.base_offset: segment.first_batch_max_timestamp_ms or 0 for segment in facts.segments
    }
    waiting = [
        timestamp
        for segment in cleanable.dirty_segments
        if (timestamp := first_timestamps.get(segment.base_offset, 0)) > 0
    ]
    return bool(waiting) and min(waiting) < now_ms - config.max_compaction_lag_ms


def _choose(config: LogConfig, cleanable: CleanableRange, *, must_compact: bool) -> tuple[str, str]:
    total_bytes = cleanable.clean_bytes + cleanable.cleanable_bytes
    if cleanable.cleanable_bytes == 0:
        return SKIP, (
            f"nothing to clean: first dirty offset {cleanable.first_dirty_offset}, "
            f"cleanable up to {cleanable.end_offset} ({cleanable.uncleanable_reason})"
        )
    # Above the ratio, not at it, as LogCleanerManager.grabFilthiestCompactedLog: 1.0 is never
    # exceeded, which is how people turn cleaning off.
    ratio, limit = cleanable.ratio, config.min_cleanable_dirty_ratio
    numbers = f"({cleanable.cleanable_bytes} of {total_bytes} bytes)"
    if ratio > limit:
        return CLEAN, f"cleanable ratio {ratio:.4g} is above {limit:.4g} {numbers}"
    if must_compact:
        return (
            CLEAN,
            "a dirty segment is older than max.compaction.lag.ms "
            f"{format_setting_ms(config.max_compaction_lag_ms)}",
        )
    return SKIP, (
        f"cleanable ratio {ratio:.4g} {numbers} is not above min.cleanable.dirty.ratio {limit:.4g}"
    )
