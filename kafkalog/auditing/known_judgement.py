"""What an audit made of a partition, kept for the next one, which takes it over as long as nothing
has changed that it depends on: the scan (see `known_scan`), the settings, what surrounds the
partition, and this program. Of such a partition nothing is read and nothing decided again.

Two things go on by themselves: the time, and the broker's last sign of life. How far they may go is
found out while it is judged (see `moment`). What is due at once is due at any later time as well:
those dates are kept as such.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kafkalog.auditing.audited_partition import AuditedPartition, CompactionVerdict, Leftover
from kafkalog.auditing.contents import Contents
from kafkalog.auditing.header_contents import HeaderContents
from kafkalog.auditing.known_scan import UNREADABLE, scan_key
from kafkalog.auditing.moment import Moment, Term
from kafkalog.auditing.request import AuditTask
from kafkalog.auditing.segment_statistics import SegmentStatistics
from kafkalog.checking.finding import Finding
from kafkalog.log.inventory import JsonFacts
from kafkalog.planning.retention_forecast import RetentionForecast

# In place of a time: that of the audit, whenever it is.
_AT_ONCE = -2


@dataclass(frozen=True, slots=True)
class KnownJudgement(JsonFacts):
    """Of an AuditedPartition without problems what neither the inventory nor the task tells."""

    high_watermark: int
    last_stable_offset: int
    segments: tuple[SegmentStatistics, ...]
    bytes_by_kind: Mapping[str, int]
    leftovers: tuple[Leftover, ...]
    retention: RetentionForecast
    compaction: CompactionVerdict
    findings: tuple[Finding, ...]
    headers: HeaderContents | None


class Terms:
    """A task whose times note how long what is made of them holds."""

    def __init__(self, task: AuditTask) -> None:
        self._task = task
        self.now, self.alive = Term(), Term()

    @property
    def task(self) -> AuditTask:
        """The task to judge by."""
        return replace(
            self._task,
            now_ms=Moment(self._task.now_ms, self.now),
            alive_ms=Moment(self._task.alive_ms, self.alive),
        )

    def settle(self, audited: AuditedPartition) -> AuditedPartition:
        """What was judged by `task` with plain times, and with the text to keep it as; that is
        empty if it holds at this moment only, or may not be kept.
        """
        retention, compaction = _dated(audited, self._task.now_ms)
        text = self._text(audited)
        return replace(audited, retention=retention, compaction=compaction, judgement=text)

    def _text(self, audited: AuditedPartition) -> str:
        key = judgement_key(self._task)
        if not key or audited.problems or self.now.lasts_ms == 1:
            return ""
        retention, compaction = _dated(audited, _AT_ONCE)
        judgement = KnownJudgement(
            high_watermark=audited.high_watermark,
            last_stable_offset=audited.last_stable_offset,
            segments=audited.segments,
            bytes_by_kind=audited.bytes_by_kind,
            leftovers=audited.leftovers,
            retention=retention,
            compaction=compaction,
            findings=audited.findings,
            headers=None if audited.contents is None else audited.contents.headers,
        )
        row = judgement.to_row()
        if _has_moment(row):
            return ""
        times = (self._task.now_ms, self.now.lasts_ms, self._task.alive_ms, self.alive.lasts_ms)
        return json.dumps([key, *times, row], separators=(",", ":"))


def _dated(audited: AuditedPartition, now_ms: int) -> tuple[RetentionForecast, CompactionVerdict]:
    """Its forecast and verdict with this in place of the times that are the audit's own: when the
    forecast was made, what is due whenever one asks, and when a round begins that would at once.
    """
    retention, compaction = audited.retention, audited.compaction
    if any(isinstance(s.due_ms, Moment) for s in retention.segments):
        segments = tuple(
            replace(s, due_ms=now_ms) if isinstance(s.due_ms, Moment) else s
            for s in retention.segments
        )
        retention = replace(retention, segments=segments)
    if isinstance(compaction.cleanable_at_ms, Moment):
        compaction = replace(compaction, cleanable_at_ms=now_ms)
    return replace(retention, now_ms=now_ms), compaction


def _has_moment(values: Iterable[Any]) -> bool:
    """Of a row, however deep: some hundred values a partition."""
    for value in values:
        kind = type(value)
        if (
            kind is Moment
            or (kind is list and _has_moment(value))
            or (kind is dict and _has_moment(value.values()))
        ):
            return True
    return False


def judgement_key(task: AuditTask) -> str:
    """Of all that what is made of a partition depends on, but for the times; empty if there is no
    scan it could be made from, or more than that was asked for.
    """
    scan = scan_key(task.loaded, task.expiration_ms)
    if not scan or task.reads_records:
        return ""
    depends_on = (
        scan, task.settings_digest, task.kafka_version, task.assumed_high_watermark,
        task.map_entries, task.twin_path, task.is_stray, task.cluster_topic_id,
        task.has_no_metadata, task.uploaded_offset, task.cluster_id, task.redact, task.is_copied,
        task.transaction_paths, task.other_options,
        # What the metadata was read from changes with each of its records.
        None if task.known_epoch is None else task.known_epoch.epoch,
    )  # fmt: skip
    return hashlib.sha256(repr(depends_on).encode()).hexdigest()


def recall_judgement(text: str, task: AuditTask) -> AuditedPartition | None:
    """The kept judgement, if it is what would be made of the partition now; None also of what
    cannot be understood.
    """
    key = judgement_key(task) if text else ""
    if not key or not text.startswith(f'["{key}"'):
        return None
    try:
        _, now_ms, lasts_ms, alive_ms, alive_lasts_ms, row = json.loads(text)
        if not 0 <= task.now_ms - now_ms < lasts_ms:
            return None
        if not 0 <= task.alive_ms - alive_ms < alive_lasts_ms:
            return None
        known = KnownJudgement.from_row(row)
        return _audited(task, known)
    except UNREADABLE:
        return None


def _audited(task: AuditTask, known: KnownJudgement) -> AuditedPartition:
    retention, compaction = known.retention, known.compaction
    segments = retention.segments
    if any(s.due_ms == _AT_ONCE for s in segments):
        segments = tuple(
            replace(s, due_ms=task.now_ms) if s.due_ms == _AT_ONCE else s for s in segments
        )
    if compaction.cleanable_at_ms == _AT_ONCE:
        compaction = replace(compaction, cleanable_at_ms=task.now_ms)
    return AuditedPartition(
        **task.outline(),
        high_watermark=known.high_watermark,
        last_stable_offset=known.last_stable_offset,
        segments=known.segments,
        bytes_by_kind=known.bytes_by_kind,
        leftovers=known.leftovers,
        retention=replace(retention, now_ms=task.now_ms, segments=segments),
        compaction=compaction,
        findings=known.findings,
        contents=None if known.headers is None else Contents(known.headers),
        is_carried=True,
        carried_segments=len(known.segments),
    )
