"""Decide which segments retention deletes from one partition, as Kafka's `deleteOldSegments` would.

Three walks from the oldest segment, each on what the one before left:

    log start   the next segment starts at or below the log start offset
    size        without it at least retention.bytes remain
    time        its largest timestamp is older than retention.ms (strictly)

A walk stops at the first segment that is not due, reaches to the high watermark or past it, or is
the empty active one: what goes is always a prefix of the log, and a segment of future timestamps
shields all behind it. Without `delete` in cleanup.policy only the first walk is made. Where every
segment goes, an empty one is made at the log's end first. Nothing is read here and there is no
clock.

Source: Kafka UnifiedLog.deleteOldSegments (order: KAFKA-12177; high watermark: KAFKA-5634; empty
cleanup.policy: KIP-1161).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from kafkalog.errors import InvalidConfigError
from kafkalog.log.header_facts import PartitionFacts
from kafkalog.log.inventory import PartitionInventory
from kafkalog.planning.high_watermark import effective_high_watermark
from kafkalog.planning.kafka_version import parse_kafka_version
from kafkalog.planning.loaded_segments import LoadedSegment, loaded_segments
from kafkalog.planning.local_retention import is_tiered, local_config
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.policy_evidence import PolicyStanding, why_not_deleted_from
from kafkalog.planning.refusals import refuse_retention, refuse_tiered
from kafkalog.planning.retention_plan import (
    DELETE,
    RetentionPlan,
    RetentionRule,
    SegmentVerdict,
)
from kafkalog.planning.statuses import REFUSED, SKIP
from kafkalog.texts import format_setting_ms, format_timestamp

__all__ = ["DELETE", "REFUSED", "SKIP", "RetentionPlan", "RetentionRule", "plan_retention"]

Reason = tuple[RetentionRule, str]


@dataclass(frozen=True, slots=True)
class RetentionLimits:
    """What the segments of a log are held against in one pass. `uploaded_offset`: of a tiered log
    the last offset that is in remote storage, -1 for nothing; None of a local log.
    """

    config: LogConfig
    now_ms: int
    high_watermark: int
    log_start_offset: int
    uploaded_offset: int | None = None

    @property
    def deletes(self) -> bool:
        """Whether more than the log start offset decides."""
        return "delete" in self.config.cleanup_policy

    def is_expired(self, segment: LoadedSegment) -> bool:
        """Whether its largest timestamp is older than retention.ms."""
        retention_ms = self.config.retention_ms
        is_limited = self.deletes and retention_ms >= 0
        return is_limited and self.now_ms - segment.timestamp_ms > retention_ms

    def may_go(self, segment: LoadedSegment) -> bool:
        """Whether no rule but age and size keeps it."""
        is_safe = self.uploaded_offset is None or (
            0 < segment.end_offset <= self.uploaded_offset + 1
            or self.is_below_start(segment)
            or self.is_rolled_first(segment)
        )
        is_replicated = self.high_watermark >= segment.end_offset
        return is_replicated and is_safe and not segment.is_empty_active

    def is_rolled_first(self, segment: LoadedSegment) -> bool:
        """Whether it is the active segment of a tiered log whose records are all deleted: the pass
        by whose limits it is due rolls it, and as a closed one it goes, in the next pass at the
        latest.
        """
        is_tiered = self.uploaded_offset is not None
        return is_tiered and segment.is_active and segment.end_offset <= self.log_start_offset

    def is_below_start(self, segment: LoadedSegment) -> bool:
        """Whether no reader may see any of it."""
        return not segment.is_active and segment.end_offset <= self.log_start_offset


def plan_retention(
    partition: PartitionInventory,
    config: LogConfig,
    facts: PartitionFacts,
    *,
    now_ms: int,
    high_watermark: int | None = None,
    kafka_version: str = "4.3",
    standing: PolicyStanding | None = None,
    is_forced: bool = False,
    with_token: bool = True,
    uploaded_offset: int | None = None,
) -> RetentionPlan:
    """The plan of one pass of retention over one partition; of a tiered one over its local
    segments, of which `uploaded_offset` (the last one in remote storage, -1 for nothing, None if it
    is not known) may go. The log start stays there: older offsets are in remote storage.

    `facts` covers the segments a broker would repair on load (`log.retention_facts`). `standing`:
    how the policy is known; without it `config` was made for this topic, and says the policy or
    does not, in which case the partition is refused (`policy_evidence`). `is_forced`: the policy
    counts against what the disk shows. A plan without token is to be looked at, not carried out.
    `high_watermark` is for logs whose checkpoint does not tell; where both are known the lower one
    holds. `kafka_version` is 4.1 to 4.4. Bad settings raise InvalidConfigError; everything about
    the partition itself is a status and a reason in the plan, never an error.
    """
    if not config.cleanup_policy and parse_kafka_version(kafka_version) < (4, 2):
        raise InvalidConfigError("cleanup.policy is empty, which Kafka allows from 4.2 on")
    watermark = effective_high_watermark(partition, high_watermark)
    refusal = refuse_retention(partition, config, facts, watermark)
    if refusal is None:
        standing = standing or PolicyStanding.of(config)
        doubt = why_not_deleted_from(partition, config, facts, standing, is_forced=is_forced)
        refusal = None if doubt is None else (REFUSED, doubt)
    is_local_part = is_tiered(config)
    if refusal is None and config.remote_storage_enable:
        refusal = refuse_tiered(partition, config, uploaded_offset)
    deleted: tuple[SegmentVerdict, ...] = ()
    kept: tuple[SegmentVerdict, ...] = ()
    if refusal is None and watermark is not None:
        limits = RetentionLimits(
            local_config(config),
            now_ms,
            watermark,
            partition.log_start_offset,
            uploaded_offset if is_local_part else None,
        )
        deleted, kept = _decide(loaded_segments(partition, facts), limits)
    status, reason = refusal or _summed_up(deleted, kept)
    # A broker never has a log without a segment: where all go it rolls an empty one at the log's
    # end.
    roll_offset = partition.log_end_offset if deleted and not kept else None
    first_offset = kept[0].base_offset if kept else roll_offset
    return RetentionPlan(
        topic_partition=partition.topic_partition,
        path=partition.path,
        log_dir=partition.log_dir,
        status=status,
        reason=reason,
        deleted=deleted,
        kept=kept,
        roll_offset=roll_offset,
        log_start_before=partition.log_start_offset,
        log_start_offset=partition.log_start_offset
        if is_local_part
        else max(partition.log_start_offset, first_offset or 0),
        log_end_offset=partition.log_end_offset,
        high_watermark=watermark,
        now_ms=now_ms,
        kafka_version=kafka_version,
        config=config,
        token=partition.token if with_token else "",
        leftovers=partition.leftovers,
        deleted_files=partition.deleted_files if status == DELETE else (),
    )


def _decide(
    segments: Sequence[LoadedSegment], limits: RetentionLimits
) -> tuple[tuple[SegmentVerdict, ...], tuple[SegmentVerdict, ...]]:
    """The verdicts of those that go and of those that stay."""
    deleted: list[SegmentVerdict] = []

    def walk(
        is_due: Callable[[LoadedSegment], bool], why: Callable[[LoadedSegment], Reason]
    ) -> None:
        # Only ever from the front: the first segment that stays holds all behind it, whatever they
        # are.
        for segment in segments[len(deleted) :]:
            if not (limits.may_go(segment) and is_due(segment)):
                return
            deleted.append(_verdict(segment, why(segment)))

    # The three passes of a broker (deleteOldSegments). By size only what is left after the first,
    # by time what is left after both.
    walk(limits.is_below_start, lambda segment: _below_start(segment, limits))
    excess = excess_bases(segments[len(deleted) :], limits)
    walk(lambda segment: segment.base_offset in excess, lambda _: _too_large(limits))
    walk(limits.is_expired, lambda segment: _expired(segment, limits))
    remaining = segments[len(deleted) :]
    kept = [
        _verdict(
            segment, why_kept(segment, islice(remaining, number + 1, None), remaining[0], limits)
        )
        for number, segment in enumerate(remaining)
    ]
    return tuple(deleted), tuple(kept)


def excess_bases(segments: Sequence[LoadedSegment], limits: RetentionLimits) -> frozenset[int]:
    """Bases of the oldest segments without which at least `retention.bytes` remain."""
    if not limits.deletes or limits.config.retention_bytes < 0:
        return frozenset()
    excess = sum(segment.size_in_bytes for segment in segments) - limits.config.retention_bytes
    bases = set()
    for segment in segments:
        excess -= segment.size_in_bytes
        if excess < 0:
            break
        bases.add(segment.base_offset)
    return frozenset(bases)


def _verdict(segment: LoadedSegment, reason: Reason) -> SegmentVerdict:
    return SegmentVerdict(
        base_offset=segment.base_offset,
        size_in_bytes=segment.size_in_bytes,
        timestamp_ms=segment.timestamp_ms,
        is_file_time=segment.is_file_time,
        rule=reason[0],
        reason=reason[1],
    )


def _below_start(segment: LoadedSegment, limits: RetentionLimits) -> Reason:
    return RetentionRule.LOG_START, (
        f"ends at offset {segment.end_offset - 1}, below the log start offset "
        f"{limits.log_start_offset}"
    )


def _too_large(limits: RetentionLimits) -> Reason:
    return RetentionRule.RETENTION_BYTES, (
        f"without it at least retention.bytes {limits.config.retention_bytes} remain"
    )


def _expired(segment: LoadedSegment, limits: RetentionLimits) -> Reason:
    retention = format_setting_ms(limits.config.retention_ms)
    return RetentionRule.RETENTION_MS, f"{_age(segment)}, more than retention.ms {retention} ago"


def why_kept(
    segment: LoadedSegment,
    behind: Iterable[LoadedSegment],
    oldest: LoadedSegment,
    limits: RetentionLimits,
) -> Reason:
    """The rule that keeps a segment, of those that do the one nobody can lift first."""
    config = limits.config
    # From the rule that no setting lifts to the one that any lifts: the answer names what would
    # have to change for it to go.
    if segment.is_empty_active:
        return RetentionRule.EMPTY_ACTIVE, "the empty active segment is never deleted"
    if limits.high_watermark < segment.end_offset:
        return RetentionRule.HIGH_WATERMARK, (
            f"ends at offset {segment.end_offset - 1}, not below the high watermark "
            f"{limits.high_watermark}"
        )
    if not limits.deletes:
        policy = ",".join(config.cleanup_policy) or "empty"
        return RetentionRule.CLEANUP_POLICY, (
            f"cleanup.policy is {policy}: only what is below the log start offset goes"
        )
    is_limited = config.retention_ms >= 0 or config.retention_bytes >= 0
    if is_limited and not limits.may_go(segment):  # which leaves of its rules the upload
        return RetentionRule.AWAITS_UPLOAD, _not_uploaded(segment, limits.uploaded_offset)
    local = "" if limits.uploaded_offset is None else "local."
    if limits.is_expired(segment):
        return RetentionRule.EARLIER_SEGMENT, (
            f"{_age(segment)}, more than {local}retention.ms ago, but segment {oldest.base_offset} "
            "in front of it stays"
        )
    if config.retention_ms >= 0 and segment.timestamp_ms > limits.now_ms:
        shielded = sum(s.size_in_bytes for s in behind if limits.is_expired(s))
        return RetentionRule.FUTURE_TIMESTAMP, (
            f"{_age(segment)}, in the future; it shields {shielded} bytes behind it that are due"
        )
    if config.retention_ms >= 0:
        until = format_timestamp(segment.timestamp_ms + config.retention_ms)
        return RetentionRule.RETENTION_MS, f"{_age(segment)}, goes after {until}"
    if config.retention_bytes >= 0:
        return RetentionRule.RETENTION_BYTES, (
            f"without it less than {local}retention.bytes {config.retention_bytes} would remain"
        )
    return RetentionRule.NO_LIMIT, "retention.ms and retention.bytes are off"


def _not_uploaded(segment: LoadedSegment, uploaded_offset: int | None) -> str:
    """A broker uploads closed segments alone, and up to the last stable offset."""
    if segment.is_active:
        return f"{_age(segment)}; the active segment is not uploaded, and goes only when it is"
    there = (
        f"offsets up to {uploaded_offset}"
        if uploaded_offset is not None and uploaded_offset >= 0
        else "nothing of this partition"
    )
    return (
        f"{_age(segment)}; ends at offset {segment.end_offset - 1}, remote storage has {there}: it "
        "goes only when it is there"
    )


def _age(segment: LoadedSegment) -> str:
    what = "no timestamps, its file is of" if segment.is_file_time else "largest timestamp"
    return f"{what} {format_timestamp(segment.timestamp_ms)}"


def _summed_up(
    deleted: Sequence[SegmentVerdict], kept: Sequence[SegmentVerdict]
) -> tuple[str, str]:
    if deleted:
        rules = dict.fromkeys(str(segment.rule) for segment in deleted)
        return DELETE, "by " + ", ".join(rules)
    return SKIP, f"nothing to delete: segment {kept[0].base_offset}: {kept[0].reason}"
