"""Logs that nothing is wrong with, judged by the numbers that an earlier audit kept of them.

What is said is what `partition_audit` says, and goes by the same rules: only that of most rules it
is known beforehand that they have nothing to say here. That is so of logs from which time alone
deletes. Of a log of other settings, with a time that is not plausible, with segments that are held
back or records that are too old, nothing is said here, and it goes the long way.

    here             which logs have numbers that still hold
    sound_columns    their numbers, some hundred logs at once
    sound_judgement  what there is to say of them
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from kafkalog.auditing.advice import AdviceByTime
from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.auditing.kept_scans import KeptScans
from kafkalog.auditing.request import AuditTask
from kafkalog.auditing.sound_columns import MOST_MS, SoundColumns
from kafkalog.auditing.sound_judgement import SoundTask, judge_columns
from kafkalog.auditing.thresholds import MANY_SEGMENTS
from kafkalog.format.constants import MAX_INT64
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.log_dir_files import is_clean_stop
from kafkalog.log.log_numbers import NONE, LogNumbers
from kafkalog.planning.config_sources import ResolvedConfig
from kafkalog.planning.policy_evidence import POLICY, SUGGESTED

_LOGS_AT_ONCE = 512


class SoundLogs:
    """Those of one audit, known by `kept`; what several have in common is looked at once."""

    def __init__(self, kept: KeptScans) -> None:
        self._kept = kept
        self._settings: dict[int, tuple[ResolvedConfig, bool]] = {}
        self._clean_stops: dict[str, bool] = {}
        self._advice = AdviceByTime()

    def judge(self, tasks: Sequence[AuditTask]) -> Iterator[AuditedPartition | None]:
        """What there is to say of each partition; None where only the long way tells. All tasks
        are of one moment.
        """
        for first in range(0, len(tasks), _LOGS_AT_ONCE):
            some = tasks[first : first + _LOGS_AT_ONCE]
            places = {
                number: place
                for number, task in enumerate(some)
                if self._may_be(task)
                and (place := self._kept.logs.place(task.partition.path)) is not None
            }
            judged = self._judged([some[number] for number in places], [*places.values()])
            found = dict(zip(places, judged, strict=True))
            yield from map(found.get, range(len(some)))

    def _judged(
        self, tasks: Sequence[AuditTask], places: Sequence[int]
    ) -> Iterable[AuditedPartition | None]:
        if not tasks:
            return ()
        columns = SoundColumns(self._kept.logs, places)
        logs = columns.logs()
        rows = zip(logs, tasks, columns.counts.tolist(), columns.last_written(), strict=True)
        holds = [
            _holds(log, task, count) and not _forgets_producer(log, task, last_times)
            for log, task, count, last_times in rows
        ]
        bases, ends = columns.column("base_offset").tolist(), (columns.actives + 1).tolist()
        firsts = [0, *ends[:-1]]
        own = [
            SoundTask(task, log, self._first_repaired(task.partition, bases[first:end]))
            for task, log, is_one, first, end in zip(tasks, logs, holds, firsts, ends, strict=True)
            if is_one
        ]
        if not own:
            return [None] * len(tasks)
        found = judge_columns(columns.of_logs(np.array(holds, np.bool_)), own, self._advice)
        return (next(found) if is_one else None for is_one in holds)

    def _may_be(self, task: AuditTask) -> bool:
        """Whether what is known of it from outside its directory leaves nothing to be said."""
        if not task.is_unchanged or task.is_stray or task.reads_records or task.uploads:
            return False
        if not 0 <= task.alive_ms <= task.now_ms <= MOST_MS:
            return False
        partition = task.partition
        if partition.problems or partition.topic_partition.topic.startswith("__"):
            return False
        key = id(task.resolved)
        if key not in self._settings:
            # With the settings themselves, so that no others are made at their address.
            self._settings[key] = task.resolved, _goes_by_time(task.resolved)
        return self._settings[key][1]

    def _first_repaired(self, partition: PartitionInventory, bases: Sequence[int]) -> int:
        """From which base offset on a broker makes indexes anew; see `log.retention_facts`."""
        log_dir = partition.log_dir
        if log_dir not in self._clean_stops:
            self._clean_stops[log_dir] = is_clean_stop(log_dir)
        if self._clean_stops[log_dir]:
            return MAX_INT64
        point = partition.checkpoints.recovery_point or 0
        return max((base for base in bases if base <= point), default=0)


def _goes_by_time(resolved: ResolvedConfig) -> bool:
    """Whether time alone deletes, by settings that are certain."""
    config = resolved.in_force
    return (
        config.cleanup_policy == ("delete",)
        and resolved.config == config
        and config.source(POLICY) not in SUGGESTED
        and config.retention_bytes < 0
        and not config.remote_storage_enable
        and config.min_compaction_lag_ms <= 0
        and not (resolved.differences or resolved.undeclared)
        and resolved.unreliable is None
    )


def _holds(log: LogNumbers, task: AuditTask, segments: int) -> bool:
    """Whether the numbers are still those of the log: what `known_scan.scan_key` goes by."""
    partition = task.partition
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
        and segments == len(partition.segments) < MANY_SEGMENTS
    )


def _forgets_producer(log: LogNumbers, task: AuditTask, last_times: Sequence[int]) -> bool:
    """Whether its broker has forgotten an idle producer since."""
    return any(
        _expires(last_ms, log.now_ms, task.now_ms, log.expiration_ms) for last_ms in last_times
    )


def _line(number: int) -> int | None:
    return None if number == NONE else number


def _expires(last_ms: int, from_ms: int, to_ms: int, after_ms: int) -> bool:
    """Whether a broker forgets an idle producer between two times."""
    return (from_ms - last_ms >= after_ms) != (to_ms - last_ms >= after_ms)
