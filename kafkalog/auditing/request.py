"""What an audit is asked for, and what a task of it needs to know: values that travel to any
process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kafkalog.auditing.scenarios import Scenario
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.log.inventory import PartitionInventory
from kafkalog.planning.compaction import usable_entries
from kafkalog.planning.config_sources import ResolvedConfig
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.remote_retention import RemoteSegment
from kafkalog.remote.paths import NO_REMOTE_STORAGE, RemoteStorage
from kafkalog.requests.run_request import RunOptions, RunRequest, run_options_of
from kafkalog.requests.run_settings import KnownEpoch

# A broker's log.cleaner.dedupe.buffer.size where no other is given.
DEFAULT_DEDUPE_BUFFER_SIZE = 128 * 1024 * 1024
DEFAULT_MAP_ENTRIES = usable_entries(DEFAULT_DEDUPE_BUFFER_SIZE)


@dataclass(frozen=True, slots=True)
class AuditScope:
    """How far an audit looks beyond headers and settings.

    reads_records: decode the records of all topics, and what groups have committed; reads_keys:
    estimate what compaction would give back, of topics that are compacted or would be in a
    scenario; scenarios: other settings to simulate, "as configured" first; times: for which, see
    `what_if.times_from`; before_ms: what lies before this time is to be deleted; redact: names
    that clients chose (groups, transactional ids) as digests, see `format.redaction`; price: what a
    GiB in remote storage costs a month, None if that is not asked; remote: where objects of tiered
    topics are looked at.
    """

    reads_records: bool = False
    reads_keys: bool = False
    scenarios: tuple[Scenario, ...] = (Scenario(),)
    times: tuple[tuple[bool, int], ...] = ()
    before_ms: int | None = None
    redact: bool = False
    price: float | None = None
    remote: RemoteStorage = NO_REMOTE_STORAGE

    def looks_at_keys(self, config: LogConfig) -> bool:
        """Whether of a topic with these settings: without compaction keys tell nothing."""
        compacts = [config.is_compacted]
        if self.reads_keys:
            policies = (scenario.settings.get("cleanup.policy", "") for scenario in self.scenarios)
            compacts += ["compact" in policy for policy in policies]
        return (self.reads_records or self.reads_keys) and any(compacts)


@dataclass(frozen=True, slots=True)
class AuditRequest(RunRequest):
    """What to audit and by whose settings; see RunRequest. is_now_given: by an option."""

    scope: AuditScope = field(default_factory=AuditScope)
    is_now_given: bool = False

    @property
    def reads_buckets(self) -> bool:
        return True


def audit_request(
    log_dirs: Sequence[str], options: RunOptions, scope: AuditScope | None = None
) -> AuditRequest:
    """The request these options make; InvalidConfigError for settings Kafka would refuse."""
    return AuditRequest(
        **run_options_of(log_dirs, options),
        scope=scope or AuditScope(),
        is_now_given=options.get("now_ms") is not None,
    )


@dataclass(frozen=True, slots=True)
class AuditTask:
    """One partition directory, and what is known of it from elsewhere.

    resolved: the topic's settings and whether they may be relied on.
    now_ms: the time of the audit; is_now_given: by an option, not by the clock; clock_ms: this
        machine's.
    assumed_high_watermark: the option's, for logs whose checkpoint does not tell.
    alive_ms: the broker's last sign of life on the log dir, never later than `now_ms`; is_copied:
        by what logs tell, as the files' times look like a copy's.
    transaction_paths: where `__transaction_state` of its cluster is.
    map_entries: keys that a broker's offset map has room for.
    current_path: of a future replica the one that it will replace; copy_path: of a directory that
        was set aside a live one with all its offsets.
    is_stray: the cluster does not have the topic, or not with this id; cluster_topic_id: the one it
        has; has_no_metadata: nothing tells of the cluster; cluster_id: as the log dir says.
    uploaded_offset: the last one in remote storage, -1 for nothing, None if it is not known;
        uploads: its segments there.
    reads_records, reads_keys: whether to decode records, and to look at their keys.
    known: the scan of an earlier run; keeps_scan: whether the result is to have its own;
        is_unchanged: its directory is as the earlier run saw it.
    redact: as in AuditScope.
    max_batch_bytes: no larger batch is read, stored or decompressed.
    known_epoch: of the partition in the cluster's metadata; other_options: those of files, which a
        command that goes by the same settings needs.
    """

    partition: PartitionInventory
    resolved: ResolvedConfig
    now_ms: int
    kafka_version: str
    assumed_high_watermark: int | None = None
    alive_ms: int = 0
    is_copied: bool = False
    transaction_paths: tuple[str, ...] = ()
    map_entries: int = DEFAULT_MAP_ENTRIES
    current_path: str = ""
    copy_path: str = ""
    is_stray: bool = False
    cluster_topic_id: str = ""
    has_no_metadata: bool = False
    uploaded_offset: int | None = None
    uploads: tuple[RemoteSegment, ...] = ()
    reads_records: bool = False
    reads_keys: bool = False
    cluster_id: str = ""
    known: bytes = b""
    keeps_scan: bool = False
    is_unchanged: bool = False
    redact: bool = False
    is_now_given: bool = False
    max_batch_bytes: int = MAX_BATCH_BYTES
    clock_ms: int | None = None
    known_epoch: KnownEpoch | None = None
    other_options: tuple[str, ...] = ()

    @property
    def segments_to_read(self) -> int:
        """How much work it is: of an unchanged directory, if records are not asked for, none."""
        is_known = self.is_unchanged and self.known != b"" and not self.reads_records
        return 0 if is_known else len(self.partition.segments)

    @property
    def expiration_ms(self) -> int:
        """After how long a broker forgets an idle producer."""
        return self.resolved.in_force.producer_id_expiration_ms

    @property
    def loaded(self) -> PartitionInventory:
        """The partition as a broker loads it."""
        return self.partition.as_local_log() if self.resolved.is_local else self.partition

    def outline(self) -> dict[str, Any]:
        """What is known of an AuditedPartition before anything is read."""
        partition = self.loaded
        return {
            "log_dir": partition.log_dir,
            "topic": partition.topic_partition.topic,
            "partition": partition.topic_partition.partition,
            "kind": partition.kind,
            "path": partition.path,
            "config": self.resolved.in_force,
            "log_start_offset": partition.log_start_offset,
            "log_end_offset": partition.log_end_offset,
            "kafka_version": self.kafka_version,
            "cluster_id": self.cluster_id,
            "uploaded_offset": -1 if self.uploaded_offset is None else self.uploaded_offset,
        }
