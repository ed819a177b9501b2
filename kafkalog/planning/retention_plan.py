"""The plan of one partition's retention: which segments go, by which rule, and which rule keeps
each of the others.

A value like the plan of a compaction: frozen, printable (`explain`), JSON both ways, valid as long
as the partition's token is what the plan says.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from kafkalog.log.inventory import DeletedFile, JsonFacts, TopicPartition
from kafkalog.planning.compaction_plan import describe_deleted_files
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.remote_retention import RemoteRetentionPlan
from kafkalog.planning.statuses import REFUSED
from kafkalog.texts import format_bytes

# A plan's status beside SKIP and REFUSED.
DELETE = "delete"  # segments will be deleted


class RetentionRule(StrEnum):
    """What decides about a segment. The first three delete or keep, the others only keep."""

    LOG_START = "log-start-offset"
    RETENTION_BYTES = "retention.bytes"
    RETENTION_MS = "retention.ms"
    EMPTY_ACTIVE = "empty-active-segment"
    HIGH_WATERMARK = "high-watermark"
    CLEANUP_POLICY = "cleanup.policy"
    FUTURE_TIMESTAMP = "future-timestamp"
    EARLIER_SEGMENT = "earlier-segment"  # due itself, but one in front of it stays
    AWAITS_UPLOAD = "awaits-upload"  # of a tiered topic, and not in remote storage
    NO_LIMIT = "no-limit"


# The reason of a plan whose segments time alone deletes.
BY_TIME = f"by {RetentionRule.RETENTION_MS}"


@dataclass(frozen=True, slots=True)
class SegmentVerdict(JsonFacts):
    """A segment and the rule that deletes or keeps it.

    `timestamp_ms` is what time retention goes by: the largest timestamp of its records, or, with
    `is_file_time`, the modification time of a file whose records have none.
    """

    base_offset: int
    size_in_bytes: int
    timestamp_ms: int
    is_file_time: bool
    rule: RetentionRule
    reason: str


@dataclass(frozen=True, slots=True)
class RetentionPlan(JsonFacts):
    """What one pass of retention deletes.

    `deleted` are the first segments of the log, `kept` the rest, both in offset order; a refused
    plan has neither. `log_start_offset` is the one after the pass, `log_start_before` the one in
    force. `roll_offset` is the base of the empty active segment that is made first where all
    segments go, else None; `high_watermark` the one in force, None if unknown. `deleted_files` are
    those that a broker marked `.deleted` and left: they go as well, if anything does. `remote`: the
    same of a tiered topic's segments in remote storage, None where nothing is said of them.
    """

    topic_partition: TopicPartition
    path: str
    log_dir: str
    status: str
    reason: str
    deleted: tuple[SegmentVerdict, ...]
    kept: tuple[SegmentVerdict, ...]
    roll_offset: int | None
    log_start_before: int
    log_start_offset: int
    log_end_offset: int
    high_watermark: int | None
    now_ms: int
    kafka_version: str
    config: LogConfig
    token: str
    leftovers: tuple[str, ...]
    deleted_files: tuple[DeletedFile, ...] = ()
    remote: RemoteRetentionPlan | None = None

    @property
    def deleted_bytes(self) -> int:
        """Bytes of the `.log` files that go."""
        return sum(segment.size_in_bytes for segment in self.deleted)

    @property
    def kept_bytes(self) -> int:
        """Bytes of the `.log` files that stay."""
        return sum(segment.size_in_bytes for segment in self.kept)

    def refused(self, reason: str) -> RetentionPlan:
        """The same facts, and nothing to be done."""
        return replace(
            self,
            status=REFUSED,
            reason=reason,
            deleted=(),
            kept=(),
            roll_offset=None,
            log_start_offset=self.log_start_before,
            deleted_files=(),
            remote=None,
        )

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from kafkalog.planning.plan_html import retention_plan_html

        return retention_plan_html(self)

    def explain(self) -> str:
        """One line for people."""
        if self.status != DELETE:
            return f"{self.topic_partition}: {self.status}: {self.reason}"
        roll = "" if self.roll_offset is None else f", a new segment starts at {self.roll_offset}"
        return (
            f"{self.topic_partition}: {len(self.deleted)} segments go "
            f"({format_bytes(self.deleted_bytes)}), {len(self.kept)} stay, log start offset "
            f"{self.log_start_before} to {self.log_start_offset}{roll}; {self.reason}"
            f"{describe_deleted_files(self.deleted_files)}"
        )
