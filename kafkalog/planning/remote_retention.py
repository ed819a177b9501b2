"""Which segments of a tiered partition retention lets go from remote storage, as the partition's
leader does it.

It goes over the leader epochs of its log, the oldest first, and in each over the segments that were
written in it, by offset. A segment goes that

    was begun to be deleted
    ends below the log start, and has no epoch behind the first of the log
    is within the leader epochs of the log, and of the time before retention.ms (strictly)
    is within them, and as large as what the log has above retention.bytes, or smaller

The first that is within the leader epochs and stays ends the walk; those that are not within them
are passed by. Then go those all of whose epochs are below the first one of the log. A copy that
did not end is treated as one that did, but its bytes do not count. Sizes are those of the segments
as they were on the disk; of the local ones only those that begin at or behind the last uploaded
offset count. cleanup.policy is not asked.

What ends below the log start still counts against retention.bytes in the pass that lets it go: that
pass lets as much go besides, as a running broker did. Of a cluster that is gone it does not: there
it may be what an earlier run should have deleted, and did not come to.

Source: Kafka RemoteLogManager.RLMExpirationTask, RemoteLogRetentionHandler,
isRemoteSegmentWithinLeaderEpochs, buildFilteredLeaderEpochMap; UnifiedLog.onlyLocalLogSegmentsSize.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

from kafkalog.log.inventory import JsonFacts
from kafkalog.planning.log_config import LogConfig
from kafkalog.texts import format_setting_bytes, format_setting_ms, format_timestamp

Epochs = tuple[tuple[int, int], ...]

NEVER = -1
_GIB = 1024**3


class CopyStage(StrEnum):
    """How far a segment in remote storage has come, by the last record about it."""

    STARTED = "started"
    FINISHED = "finished"
    DELETING = "deleting"


class RemoteRule(StrEnum):
    """What lets a segment go from remote storage, or keeps it."""

    DELETION_BEGUN = "deletion-begun"
    LOG_START = "log-start-offset"
    RETENTION_MS = "retention.ms"
    RETENTION_BYTES = "retention.bytes"
    OLDER_EPOCHS = "older-leader-epochs"
    EARLIER_SEGMENT = "earlier-segment"
    OTHER_EPOCHS = "other-leader-epochs"
    NO_LIMIT = "no-limit"
    NOT_TIERED = "remote.storage.enable"


@dataclass(frozen=True, slots=True)
class RemoteSegment(JsonFacts):
    """A segment in remote storage by its record. end_offset: the last one; size_in_bytes: of the
    `.log` on the disk; leader_epochs: (epoch, its first offset in the segment); stored_bytes: of
    its objects, -1 where nobody looked."""

    segment_id: str
    start_offset: int
    end_offset: int
    size_in_bytes: int
    max_timestamp_ms: int
    leader_epochs: Epochs
    stage: CopyStage = CopyStage.FINISHED
    stored_bytes: int = -1

    @property
    def billed_bytes(self) -> int:
        """What a store bills, as far as it is known."""
        return self.size_in_bytes if self.stored_bytes < 0 else self.stored_bytes


@dataclass(frozen=True, slots=True)
class RemoteLog(JsonFacts):
    """A partition's segments in remote storage, and what of its leader's log decides about them.
    local_bytes: of the segments that are on the disk only; topic_id: empty where nobody asks;
    counts_below_start: whether what ends below the log start counts against retention.bytes."""

    segments: tuple[RemoteSegment, ...]
    leader_epochs: Epochs
    log_start_offset: int
    log_end_offset: int
    local_bytes: int
    topic_id: str = ""
    counts_below_start: bool = True

    @property
    def finished_bytes(self) -> int:
        """Of the segments that are there to be read."""
        return sum(s.size_in_bytes for s in self.segments if s.stage is CopyStage.FINISHED)


@dataclass(frozen=True, slots=True)
class RemoteVerdict(JsonFacts):
    """A segment, and the rule that lets it go or keeps it."""

    segment: RemoteSegment
    rule: RemoteRule
    reason: str


@dataclass(frozen=True, slots=True)
class RemoteRetentionPlan(JsonFacts):
    """What one pass lets go and what stays, by offset; log_start_offset: the one after the pass;
    next_due_ms: when the first that is held by retention.ms alone goes, -1 for never."""

    deleted: tuple[RemoteVerdict, ...]
    kept: tuple[RemoteVerdict, ...]
    log_start_offset: int
    next_due_ms: int = NEVER
    topic_id: str = ""

    @property
    def deleted_bytes(self) -> int:
        """Of the segments that go, as they were on the disk."""
        return sum(each.segment.size_in_bytes for each in self.deleted)


def plan_remote_retention(log: RemoteLog, config: LogConfig, now_ms: int) -> RemoteRetentionPlan:
    """One pass at `now_ms`. A topic that is not tiered (any more) keeps what it has there."""
    own = sorted(log.segments, key=lambda s: (s.start_offset, s.end_offset, s.segment_id))
    if not config.remote_storage_enable:
        is_said = "remote.storage.enable" in config.sources
        why = (
            "remote.storage.enable is false: a broker does not look after it"
            if is_said
            else "nothing here says that remote.storage.enable is true (--config does)"
        )
        kept = tuple(RemoteVerdict(s, RemoteRule.NOT_TIERED, why) for s in own)
        return RemoteRetentionPlan((), kept, log.log_start_offset, topic_id=log.topic_id)
    walk = _Pass(log, config, now_ms)
    walk.run(own)
    deleted = tuple(walk.gone[s.segment_id] for s in own if s.segment_id in walk.gone)
    left = [s for s in own if s.segment_id not in walk.gone]
    return RemoteRetentionPlan(
        deleted,
        tuple(walk.kept(segment) for segment in left),
        max(log.log_start_offset, walk.log_start_offset),
        walk.next_due_ms,
        log.topic_id,
    )


@dataclass(slots=True)
class _Pass:
    log: RemoteLog
    config: LogConfig
    now_ms: int
    gone: dict[str, RemoteVerdict] = field(default_factory=dict)
    log_start_offset: int = 0
    next_due_ms: int = NEVER
    _excess: int = 0
    _epochs: dict[int, int] = field(default_factory=dict)
    _held_by: RemoteSegment | None = None

    def run(self, segments: Sequence[RemoteSegment]) -> None:
        """Decide about all of them."""
        self._epochs = with_records(self.log.leader_epochs)
        self._excess = self._bytes_above_limit(segments)
        by_epoch: dict[int, list[RemoteSegment]] = defaultdict(list)
        for segment in segments:
            for epoch, _ in segment.leader_epochs:
                by_epoch[epoch].append(segment)
        for segment in self._in_order(by_epoch):
            rule = self._rule(segment)
            if rule is not None:
                self._delete(segment, *rule)
            elif self._is_within(segment):
                self._held_by = segment
                self._note_due(segment)
                break
        # Leftovers of leaders that were elected uncleanly: the unfiltered epochs say where it is.
        first = min((epoch for epoch, _ in self.log.leader_epochs), default=NEVER)
        for segment in segments:
            last = max((epoch for epoch, _ in segment.leader_epochs), default=first)
            if last < first and segment.segment_id not in self.gone:
                why = f"of leader epochs up to {last}, the log begins in epoch {first}"
                self._delete(segment, RemoteRule.OLDER_EPOCHS, why)

    def _in_order(self, by_epoch: dict[int, list[RemoteSegment]]) -> Iterator[RemoteSegment]:
        for epoch in self._epochs:
            yield from (s for s in by_epoch[epoch] if s.segment_id not in self.gone)

    def _delete(self, segment: RemoteSegment, rule: RemoteRule, reason: str) -> None:
        self.gone[segment.segment_id] = RemoteVerdict(segment, rule, reason)

    def _rule(self, segment: RemoteSegment) -> tuple[RemoteRule, str] | None:
        """What lets it go now."""
        if segment.stage is CopyStage.DELETING:
            return RemoteRule.DELETION_BEGUN, "its deletion was begun and did not end"
        start, first = self.log.log_start_offset, next(iter(self._epochs), NEVER)
        if segment.end_offset < start and all(e <= first for e, _ in segment.leader_epochs):
            why = f"ends at offset {segment.end_offset}, below the log start offset {start}"
            return RemoteRule.LOG_START, why
        if not self._is_within(segment):
            return None
        retention_ms, size = self.config.retention_ms, segment.size_in_bytes
        if segment.max_timestamp_ms < self._limit_ms:
            self._excess = max(0, self._excess - size)
            self.log_start_offset = max(self.log_start_offset, segment.end_offset + 1)
            limit = format_setting_ms(retention_ms)
            return RemoteRule.RETENTION_MS, f"{_age(segment)}, more than retention.ms {limit} ago"
        if 0 < self._excess and size <= self._excess:
            self._excess -= size
            self.log_start_offset = max(self.log_start_offset, segment.end_offset + 1)
            limit = format_setting_bytes(self.config.retention_bytes)
            return RemoteRule.RETENTION_BYTES, f"without it at least retention.bytes {limit} remain"
        return None

    @property
    def _limit_ms(self) -> int:
        """What is older goes; 0 for nothing."""
        return self.now_ms - self.config.retention_ms if self.config.retention_ms >= 0 else 0

    def _note_due(self, segment: RemoteSegment) -> None:
        if self.config.retention_ms >= 0:
            self.next_due_ms = segment.max_timestamp_ms + self.config.retention_ms + 1

    def _bytes_above_limit(self, segments: Iterable[RemoteSegment]) -> int:
        limit = self.config.retention_bytes
        if limit < 0:
            return 0
        first = 0 if self.log.counts_below_start else self.log.log_start_offset
        there = sum(
            s.size_in_bytes
            for s in segments
            if s.stage is CopyStage.FINISHED and self._is_within(s) and s.end_offset >= first
        )
        return max(0, self.log.local_bytes + there - limit)

    def _is_within(self, segment: RemoteSegment) -> bool:
        return is_within_epochs(segment, self.log.log_end_offset, self._epochs)

    def kept(self, segment: RemoteSegment) -> RemoteVerdict:
        """Why a segment stays that does."""
        if not self._is_within(segment):
            why = "not within the leader epochs of the log: no reader gets it, and none is deleted"
            return RemoteVerdict(segment, RemoteRule.OTHER_EPOCHS, why)
        config, held_by = self.config, self._held_by
        if segment.max_timestamp_ms < self._limit_ms and held_by is not None:
            why = f"{_age(segment)}, but the segment from offset {held_by.start_offset} on stays"
            return RemoteVerdict(segment, RemoteRule.EARLIER_SEGMENT, why)
        if config.retention_ms >= 0:
            until = format_timestamp(segment.max_timestamp_ms + config.retention_ms)
            return RemoteVerdict(
                segment, RemoteRule.RETENTION_MS, f"{_age(segment)}, goes after {until}"
            )
        if config.retention_bytes >= 0:
            limit = format_setting_bytes(config.retention_bytes)
            why = f"without it less than retention.bytes {limit} would remain"
            return RemoteVerdict(segment, RemoteRule.RETENTION_BYTES, why)
        why = "retention.ms and retention.bytes are off"
        return RemoteVerdict(segment, RemoteRule.NO_LIMIT, why)


def _age(segment: RemoteSegment) -> str:
    return f"largest timestamp {format_timestamp(segment.max_timestamp_ms)}"


def cost_per_month(size_in_bytes: int, price: float | None) -> float | None:
    """Of so many bytes, where a GiB has this price; None without one."""
    return None if price is None else round(size_in_bytes / _GIB * price, 6)


def with_records(epochs: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Epoch → its first offset, rising, without epochs that have no record."""
    rising = sorted(epochs)
    found = {epoch: start for (epoch, start), (_, after) in pairwise(rising) if start != after}
    return found | dict(rising[-1:])


def is_within_epochs(
    segment: RemoteSegment, log_end_offset: int, leader_epochs: dict[int, int]
) -> bool:
    """Whether a leader whose log has these epochs (rising, without empty ones) takes the segment
    for a part of it."""
    own = with_records(segment.leader_epochs)
    if not own or not leader_epochs:
        return False
    epochs = list(leader_epochs)
    last = max(own)
    first = min((epoch for epoch in own if epoch >= epochs[0]), default=None)
    if first is None or not epochs[0] <= last <= epochs[-1]:
        return False
    following = dict(pairwise(epochs))
    own_following = dict(pairwise(own))
    for epoch, start in own.items():
        if epoch < first:
            continue
        if epoch not in leader_epochs:
            return False
        # Retention may have cut the log's first epoch anywhere, and no other.
        if epoch == first and epoch != epochs[0] and start < leader_epochs[epoch]:
            return False
        after = following.get(epoch)
        if epoch == last:
            if after is not None and segment.end_offset >= leader_epochs[after]:
                return False
        elif after != own_following[epoch] or leader_epochs[after] != own[after]:
            return False
    return segment.end_offset < log_end_offset
