"""What an audit knows of one partition directory: small, frozen, JSON both ways.

Made by `partition_audit` in whatever process reads the partition, kept from run to run, and put
together to a document by the process that asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kafkalog.auditing.advice import Advice
from kafkalog.auditing.audit_kinds import ALL_KINDS
from kafkalog.auditing.sound_facts import SoundFacts
from kafkalog.checking.finding import Finding
from kafkalog.contents.committed_offsets import Commits
from kafkalog.contents.log_contents import Contents
from kafkalog.contents.segment_statistics import SegmentStatistics
from kafkalog.log.inventory import JsonFacts, PartitionKind
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.remote_retention import RemoteLog, RemoteRetentionPlan, plan_remote_retention
from kafkalog.planning.retention_forecast import RetentionForecast

# What bytes are of, in a partition's directory.
BYTE_KINDS = ("log", "index", "snapshot", "leftover", "undo", "other")


@dataclass(frozen=True, slots=True)
class Leftover(JsonFacts):
    """A file or a directory that no log needs any more: `kind` is `deleted`, `cleaned`, `swap`,
    `tmp`, `undo`, or `delete-dir`, `stray-dir` of whole directories.
    """

    path: str
    kind: str
    size_in_bytes: int


@dataclass(frozen=True, slots=True)
class CompactionVerdict(JsonFacts):
    """What Kafka's cleaner manager makes of the log as it lies.

    status: `clean` (a round would begin now), `skip`, `refused` (it would fail, or may not be
    judged), `not-compacted` by policy. `cleanable_at_ms`: when a round first begins if nothing is
    appended, -1 for never. `cleaned_up_to_ms`: the largest timestamp below the first dirty offset,
    `dirty_since_ms` the first one from there on; -1 where there is none. `can_clean_again`: nothing
    is to be done, and would be if nothing counted as cleaned. `advice`: `kafkalog compact` for
    either, tried.
    """

    status: str
    reason: str
    first_dirty_offset: int
    first_uncleanable_offset: int
    uncleanable_reason: str
    clean_bytes: int
    dirty_bytes: int
    cleanable_bytes: int
    cleanable_ratio: float
    must_compact: bool
    cleanable_at_ms: int
    cleaned_up_to_ms: int
    dirty_since_ms: int
    can_clean_again: bool
    advice: Advice


@dataclass(frozen=True, slots=True)
class AuditedPartition(JsonFacts):
    """One partition directory, and what was found about it.

    `high_watermark` is the one assumed, `last_stable_offset` where the first open transaction
    begins, else the high watermark. `bytes_by_kind` has every one of BYTE_KINDS. `contents` is None
    of directories that no broker serves, and of logs that could not be read. `scan`: what a later
    run may take up in place of reading, if it was asked for and differs from what is kept already;
    `sound`: the same of a log that nothing is wrong with.
    `is_carried`: nothing was read, all is from an earlier run; `carried_segments`: of how many
    segments that holds. `cluster_id`: of the log dir's meta.properties, empty where it does not
    tell; `uploaded_offset`: the last one in remote storage, -1 for nothing; `remote`: what is
    there, None for nothing.
    """

    log_dir: str
    topic: str
    partition: int
    kind: PartitionKind
    path: str
    config: LogConfig
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    last_stable_offset: int
    segments: tuple[SegmentStatistics, ...]
    bytes_by_kind: Mapping[str, int]
    leftovers: tuple[Leftover, ...]
    retention: RetentionForecast
    compaction: CompactionVerdict
    findings: tuple[Finding, ...] = ()
    kafka_version: str = ""
    problems: tuple[str, ...] = field(default=())
    contents: Contents | None = None
    scan: bytes = b""
    sound: SoundFacts | None = None
    is_carried: bool = False
    carried_segments: int = 0
    cluster_id: str = ""
    uploaded_offset: int = -1
    remote: RemoteLog | None = None

    @property
    def name(self) -> str:
        """`orders-3`."""
        return f"{self.topic}-{self.partition}"

    @property
    def size_in_bytes(self) -> int:
        """All bytes of the directory."""
        return sum(self.bytes_by_kind.values())

    @property
    def log_bytes(self) -> int:
        """Bytes of the live `.log` files."""
        return self.bytes_by_kind["log"]

    @property
    def commits(self) -> Commits | None:
        """What groups have committed, of a partition of the offsets topic that was read."""
        return None if self.contents is None else self.contents.commits

    @property
    def whole(self) -> AuditedPartition:
        """As an object that holds all that is in it."""
        return self

    def finding(
        self, kind: str, text: str, *, segment: int | None = None, fix: str = ""
    ) -> Finding:
        """A finding about the partition's directory, with the severity of its kind."""
        place = self.log_dir, self.topic, self.partition, segment
        severity = ALL_KINDS[kind].severity
        return Finding(kind, severity, text, self.path, None, None, *place, fix=fix)

    def remote_plan(self, config: LogConfig | None = None) -> RemoteRetentionPlan | None:
        """What the next pass of retention does in remote storage, under other settings if given;
        None without anything there."""
        if self.remote is None:
            return None
        return plan_remote_retention(self.remote, config or self.config, self.retention.now_ms)

    @property
    def records_count(self) -> int:
        """Records by the headers."""
        return sum(segment.records_count for segment in self.segments)
