"""What must not be changed, whatever its bytes: each rule is a status and a reason.

The first rule that applies speaks. Rules by inventory come first because they cost nothing; rules
by facts look only at the segments a round would rewrite, or a broker would repair.

Source: Kafka LogCleanerManager (what a broker never picks); the rest are our own safety rules: a
log we cannot compact exactly as Kafka would is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kafkalog.log.header_facts import PartitionFacts, SegmentFacts
from kafkalog.log.inventory import (
    CLUSTER_METADATA_TOPIC,
    PartitionInventory,
    PartitionKind,
    SegmentInfo,
)
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.statuses import REFUSED, SKIP

Refusal = tuple[str, str]

_TIERED = "remote.storage.enable is true:"


def refuse_by_inventory(
    partition: PartitionInventory, config: LogConfig, high_watermark: int | None
) -> Refusal | None:
    """(status, reason) of the first rule against this partition that needs no `.log` to be read."""
    return next(_compaction_rules(partition, config, high_watermark), None)


def refuse_retention(
    partition: PartitionInventory,
    config: LogConfig,
    facts: PartitionFacts,
    high_watermark: int | None,
) -> Refusal | None:
    """(status, reason) of the first rule against deleting segments of this partition.

    `facts` has the segments a broker would repair on load: what it would cut off there is not ours
    to guess.
    """
    return next(_retention_rules(partition, config, facts, high_watermark), None)


def refuse_tiered(
    partition: PartitionInventory, config: LogConfig, uploaded_offset: int | None
) -> Refusal | None:
    """The same for local segments of a tiered topic, of which that is in remote storage."""
    if config.remote_log_copy_disable:
        return REFUSED, f"{_TIERED} with remote.log.copy.disable the whole log's limits hold"
    if uploaded_offset is None:
        return REFUSED, (
            f"{_TIERED} what may go depends on what is uploaded, and no log dir here has all of the"
            " partition of __remote_log_metadata with its records"
        )
    if partition.checkpoints.log_start is None:
        return REFUSED, f"{_TIERED} there is no line in log-start-offset-checkpoint"
    return None


def _compaction_rules(
    partition: PartitionInventory, config: LogConfig, high_watermark: int | None
) -> Iterator[Refusal]:
    yield from _never_rules(partition, "compacted")
    if not config.is_compacted:
        policy = ",".join(config.cleanup_policy) or "empty"
        source = config.source("cleanup.policy")
        yield SKIP, f"cleanup.policy is {policy} (from {source}), not compact"
    yield from _state_rules(partition, high_watermark)


def _retention_rules(
    partition: PartitionInventory,
    config: LogConfig,
    facts: PartitionFacts,
    high_watermark: int | None,
) -> Iterator[Refusal]:
    yield from _never_rules(partition, "deleted from")
    # Of a tiered topic the log begins in remote storage.
    if config.remote_storage_enable:
        local = replace(partition, has_remote_segments=False)
        yield from _state_rules(local, high_watermark)
    else:
        yield from _state_rules(partition, high_watermark)
    active_base = partition.segments[-1].base_offset
    for segment in facts.segments:
        base = segment.base_offset
        if segment.corrupt is not None:
            yield REFUSED, f"segment {base} @ {segment.corrupt_position}: {segment.corrupt}"
        if segment.trailing_bytes and base != active_base:
            yield _trailing_refusal(segment)
    yield from ((REFUSED, problem) for problem in facts.problems)


def _never_rules(partition: PartitionInventory, done: str) -> Iterator[Refusal]:
    if partition.kind is not PartitionKind.LIVE:
        yield REFUSED, f"a -{partition.kind} directory is never {done}"
    if partition.topic_partition.topic == CLUSTER_METADATA_TOPIC:
        yield REFUSED, f"{CLUSTER_METADATA_TOPIC} is never {done}"


def _state_rules(partition: PartitionInventory, high_watermark: int | None) -> Iterator[Refusal]:
    if partition.has_remote_segments:
        start, first = partition.checkpoints.log_start, partition.segments[:1]
        where = f"segment {first[0].base_offset}, the first" if first else "any segment"
        yield (
            REFUSED,
            f"the log start offset {start} is not above {where}: there are remote segments, or the "
            "line is stale; --config remote.storage.enable=false says that it is",
        )
    if not partition.segments:
        yield SKIP, "no segments"
    if partition.problems:
        yield REFUSED, "; ".join(partition.problems)
    swap_files = [name for name in partition.leftovers if name.endswith((".cleaned", ".swap"))]
    if swap_files:
        names = ", ".join(swap_files[:3]) + (", …" if len(swap_files) > 3 else "")
        yield REFUSED, f"leftovers of an interrupted cleaning ({names}): resolved first by --apply"
    if high_watermark is None:
        yield (
            REFUSED,
            "high watermark unknown: no checkpoint has it and --high-watermark is not given",
        )


def refuse_by_facts(
    facts: PartitionFacts, sources: Sequence[SegmentInfo], end_offset: int
) -> Refusal | None:
    """(status, reason) of the first rule against what the headers of `sources` show; the segment
    behind them starts at `end_offset`.
    """
    return next(_facts_rules(facts, sources, end_offset), None)


def _facts_rules(
    facts: PartitionFacts, sources: Sequence[SegmentInfo], end_offset: int
) -> Iterator[Refusal]:
    known = {segment.base_offset: segment for segment in facts.segments}
    next_bases = [*(source.base_offset for source in sources), end_offset][1:]
    for source, next_base in zip(sources, next_bases, strict=True):
        segment = known.get(source.base_offset)
        if segment is None:
            yield REFUSED, f"segment {source.base_offset} was not scanned"
            continue
        yield from _segment_rules(segment)
        if segment.next_offset > next_base:
            yield (
                REFUSED,
                f"segment {segment.base_offset} reaches offset {segment.next_offset - 1}, "
                f"into segment {next_base}",
            )
    if facts.problems:
        yield REFUSED, "producer state: " + "; ".join(facts.problems)


def _segment_rules(segment: SegmentFacts) -> Iterator[Refusal]:
    base = segment.base_offset
    if segment.unsupported_magic:
        yield (
            REFUSED,
            f"segment {base} @ {segment.corrupt_position}: {segment.corrupt}; "
            "it cannot be compacted",
        )
    if segment.corrupt is not None:
        yield REFUSED, f"segment {base} @ {segment.corrupt_position}: {segment.corrupt}"
    if segment.bad_control is not None:
        fails = (
            "a broker's cleaner fails on it"
            if segment.bad_control_stops_cleaner
            else "a broker does not load the log with it after a crash, cleaned or not"
        )
        place = f"segment {base} @ {segment.bad_control_position}"
        yield REFUSED, f"{place}: {segment.bad_control}: {fails}"
    if segment.trailing_bytes:
        yield _trailing_refusal(segment)


def _trailing_refusal(segment: SegmentFacts) -> Refusal:
    return REFUSED, (
        f"segment {segment.base_offset} @ {segment.valid_bytes}: {segment.trailing_bytes} bytes "
        "after the last whole batch of a segment that is not the active one"
    )
