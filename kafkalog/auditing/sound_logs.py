"""Logs that nothing is wrong with, judged by the numbers that an earlier audit kept of them.

What is said is what `partition_audit` says, and goes by the same rules: only that of most rules it
is known beforehand that they have nothing to say here. That is so of logs from which time alone
deletes. Of a log of other settings, with a time that is not plausible, with segments that are held
back or records that are too old, nothing is said here, and it goes the long way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kafkalog.auditing.advice import nothing_to_compact
from kafkalog.auditing.audited_partition import AuditedPartition, CompactionVerdict
from kafkalog.auditing.compaction_verdict import NOT_COMPACTED
from kafkalog.auditing.finding_context import FindingContext
from kafkalog.auditing.kept_scans import KeptScans
from kafkalog.auditing.known_files import KnownFiles
from kafkalog.auditing.request import AuditTask
from kafkalog.auditing.retention_findings import find_due
from kafkalog.auditing.sound_facts import NONE, SLICE_NUMBERS, SegmentNumbers, SoundLog
from kafkalog.auditing.sound_retention import are_times_plausible, sound_forecast
from kafkalog.auditing.thresholds import MANY_SEGMENTS
from kafkalog.contents.header_contents import HeaderContents, TimeSlice
from kafkalog.contents.log_contents import Contents
from kafkalog.contents.segment_statistics import CODEC_NAMES, SegmentStatistics
from kafkalog.format.constants import MAX_INT64
from kafkalog.log.header_facts import PartitionFacts, SegmentFacts
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.log_dir_files import is_clean_stop
from kafkalog.planning.config_sources import ResolvedConfig
from kafkalog.planning.policy_evidence import POLICY, SUGGESTED
from kafkalog.planning.refusals import refuse_by_inventory
from kafkalog.planning.retention_forecast import NEVER


class SoundLogs:
    """Those of one audit, known by `kept`; what several have in common is looked at once."""

    def __init__(self, kept: KeptScans) -> None:
        self._kept = kept
        self._settings: dict[int, tuple[ResolvedConfig, bool]] = {}
        self._clean_stops: dict[str, bool] = {}

    def judge(self, task: AuditTask) -> AuditedPartition | None:
        """What there is to say of a partition; None where only the long way tells."""
        if not self._may_be(task):
            return None
        known = self._kept.sound_log(task.partition.path)
        if known is None or not _holds(known, task):
            return None
        return _judged(task, known, self._first_repaired(task.partition))

    def _may_be(self, task: AuditTask) -> bool:
        """Whether what is known of it from outside its directory leaves nothing to be said."""
        if not task.is_unchanged or task.is_stray or task.reads_records or task.uploads:
            return False
        partition = task.partition
        if partition.problems or partition.topic_partition.topic.startswith("__"):
            return False
        key = id(task.resolved)
        if key not in self._settings:
            # With the settings themselves, so that no others are made at their address.
            self._settings[key] = task.resolved, _goes_by_time(task.resolved)
        return self._settings[key][1]

    def _first_repaired(self, partition: PartitionInventory) -> int:
        """From which base offset on a broker makes indexes anew; see `log.retention_facts`."""
        log_dir = partition.log_dir
        if log_dir not in self._clean_stops:
            self._clean_stops[log_dir] = is_clean_stop(log_dir)
        if self._clean_stops[log_dir]:
            return MAX_INT64
        point = partition.checkpoints.recovery_point or 0
        return max((s.base_offset for s in partition.segments if s.base_offset <= point), default=0)


def _goes_by_time(resolved: ResolvedConfig) -> bool:
    """Whether time alone deletes, by settings that are certain."""
    config = resolved.in_force
    return (
        config.cleanup_policy == ("delete",)
        and config.source(POLICY) not in SUGGESTED
        and config.retention_bytes < 0
        and not config.remote_storage_enable
        and config.min_compaction_lag_ms <= 0
        and not (resolved.differences or resolved.undeclared)
        and resolved.unreliable is None
    )


def _holds(known: SoundLog, task: AuditTask) -> bool:
    """Whether the numbers are still those of the log: what `known_scan.scan_key` goes by."""
    log, partition = known.log, task.partition
    lines = partition.checkpoints
    return (
        task.assumed_high_watermark is None
        and not partition.has_remote_segments
        and partition.log_start_offset == log.log_start_offset
        and partition.log_end_offset == log.log_end_offset
        and lines.cleaner is None
        and lines.high_watermark == log.checkpointed_high_watermark
        and lines.recovery_point == _line(log.recovery_point)
        and lines.log_start == _line(log.checkpointed_log_start)
        and task.expiration_ms == log.expiration_ms
        and task.now_ms >= log.now_ms
        and not any(
            _expires(last_ms, log.now_ms, task.now_ms, log.expiration_ms)
            for last_ms in known.producers
        )
        and len(known.segments) == len(partition.segments) < MANY_SEGMENTS
    )


def _line(number: int) -> int | None:
    return None if number == NONE else number


def _judged(task: AuditTask, known: SoundLog, first_repaired: int) -> AuditedPartition | None:
    config, log = task.resolved.in_force, known.log
    headers = _headers(known)
    limit_ms = task.alive_ms - config.retention_ms
    if config.retention_ms >= 0 and any(0 <= part.to_ms < limit_ms for part in headers.slices):
        return None
    statistics = _statistics(task.partition, known.segments)
    if not (log.log_start_offset == 0 or any(s.records_count for s in statistics)):
        return None  # what retention may have taken `timestamp_findings` looks for
    if not are_times_plausible(statistics, task, first_repaired):
        return None
    retention = sound_forecast(task, known, first_repaired)
    if retention is None:
        return None
    audited = AuditedPartition(
        **task.outline(),
        high_watermark=log.log_end_offset,
        last_stable_offset=log.log_end_offset,
        segments=statistics,
        bytes_by_kind={
            "log": log.log_bytes, "index": log.index_bytes, "snapshot": log.snapshot_bytes,
            "leftover": 0, "undo": 0, "other": log.other_bytes,
        },
        leftovers=(),
        retention=retention,
        compaction=_verdict(task, known),
        is_carried=True,
        carried_segments=len(statistics),
        contents=Contents(headers),
    )  # fmt: skip
    return audited if retention.status != "due" else _with_due(audited, task, known, first_repaired)


def _headers(known: SoundLog) -> HeaderContents:
    log, numbers = known.log, known.slices
    return HeaderContents(
        committed_bytes=log.committed_bytes,
        aborted_bytes=0,
        open_bytes=0,
        marker_bytes=0,
        markers=0,
        bare_markers=0,
        oldest_timestamp_ms=log.oldest_timestamp_ms,
        newest_timestamp_ms=log.newest_timestamp_ms,
        slices=tuple(
            TimeSlice(*numbers[first : first + SLICE_NUMBERS])
            for first in range(0, len(numbers), SLICE_NUMBERS)
        ),
        horizons=(),
    )


def _statistics(
    partition: PartitionInventory, segments: Sequence[SegmentNumbers]
) -> tuple[SegmentStatistics, ...]:
    return tuple(
        SegmentStatistics(
            numbers.base_offset,
            numbers.next_offset,
            info.path,
            info.is_active,
            numbers.size_in_bytes,
            numbers.valid_bytes,
            numbers.batches_count,
            numbers.records_count,
            numbers.min_timestamp_ms,
            numbers.largest_timestamp_ms,
            numbers.largest_timestamp_offset,
            numbers.largest_timestamp_position,
            numbers.first_timestamp_ms,
            numbers.indexed_timestamp_ms,
            info.modification_time_ms,
            {} if numbers.codec == NONE else {CODEC_NAMES[numbers.codec]: numbers.codec_bytes},
            0, 0, 0, 0, -1, "", "", -1, False,
            numbers.index_bytes,
            max(numbers.time_file_bytes - numbers.time_index_bytes, 0),
        )
        for numbers, info in zip(segments, partition.segments, strict=True)
    )  # fmt: skip


def _verdict(task: AuditTask, known: SoundLog) -> CompactionVerdict:
    """That of a log whose policy is not to compact."""
    config, segments = task.resolved.in_force, known.segments
    closed = segments[:-1]
    _, reason = refuse_by_inventory(task.partition, config, known.log.log_end_offset) or ("", "")
    start, closed_bytes = known.log.log_start_offset, sum(s.size_in_bytes for s in closed)
    first_times = [s.first_timestamp_ms for s in closed if s.first_timestamp_ms > 0]
    waits_since_ms = min(first_times, default=MAX_INT64)
    return CompactionVerdict(
        status=NOT_COMPACTED,
        reason=reason,
        first_dirty_offset=start,
        first_uncleanable_offset=segments[-1].base_offset,
        uncleanable_reason="active segment",
        clean_bytes=0,
        dirty_bytes=closed_bytes + segments[-1].size_in_bytes,
        cleanable_bytes=closed_bytes,
        cleanable_ratio=1.0 if closed_bytes else 0.0,
        must_compact=waits_since_ms < task.now_ms - config.max_compaction_lag_ms,
        cleanable_at_ms=NEVER,
        cleaned_up_to_ms=NEVER,
        dirty_since_ms=min(
            (s.min_timestamp_ms for s in segments if s.min_timestamp_ms >= 0), default=NEVER
        ),
        can_clean_again=False,
        advice=nothing_to_compact(reason),
    )


def _with_due(
    audited: AuditedPartition, task: AuditTask, known: SoundLog, first_repaired: int
) -> AuditedPartition:
    """With the finding that segments are due, and the command for it, tried."""
    # Of the leader epochs the newest is all that the command is held against.
    newest = known.log.newest_leader_epoch
    files = KnownFiles(leader_epochs=None if newest == NONE else ((newest, 0),), is_mark_known=True)
    repaired = tuple(
        _retention_facts(numbers)
        for numbers in known.segments
        if numbers.base_offset >= first_repaired
    )
    context = FindingContext(
        audited,
        task,
        task.partition,
        PartitionFacts(()),
        PartitionFacts(repaired),
        frozenset(facts.base_offset for facts in repaired),
        files,
        is_high_watermark_known=True,
        indexes_end_in_log=True,
    )
    return replace(audited, findings=tuple(find_due(context)))


def _retention_facts(numbers: SegmentNumbers) -> SegmentFacts:
    """What retention looks at in a segment that a broker repairs."""
    has_batches = numbers.next_offset > numbers.base_offset
    return SegmentFacts(
        base_offset=numbers.base_offset,
        batches_count=numbers.batches_count,
        records_count=numbers.records_count,
        first_offset=numbers.base_offset if has_batches else None,
        last_offset=numbers.next_offset - 1 if has_batches else None,
        min_timestamp_ms=numbers.min_timestamp_ms,
        max_timestamp_ms=numbers.max_timestamp_ms,
        first_batch_max_timestamp_ms=_line(numbers.first_timestamp_ms),
        has_transactional=False,
        has_control=False,
        has_producer_ids=False,
        magics=(),
        codecs=(),
        largest_batch_bytes=0,
        valid_bytes=numbers.valid_bytes,
        trailing_bytes=0,
    )


def _expires(last_ms: int, from_ms: int, to_ms: int, after_ms: int) -> bool:
    """Whether a broker forgets an idle producer between two times."""
    return (from_ms - last_ms >= after_ms) != (to_ms - last_ms >= after_ms)
