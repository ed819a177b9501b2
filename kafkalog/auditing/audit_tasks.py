"""Tasks of an audit: each partition with what is known of it from outside its directory: its
topic's settings, its cluster, its broker's last sign of life, other directories of the partition.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

from kafkalog.auditing.kept_scans import KeptScans
from kafkalog.auditing.request import DEFAULT_DEDUPE_BUFFER_SIZE, AuditRequest, AuditTask
from kafkalog.auditing.signs_of_life import signs_of_life
from kafkalog.contents.stored_uploads import with_stored
from kafkalog.contents.uploads import read_uploads, uploaded_offset
from kafkalog.errors import InvalidConfigError
from kafkalog.format.topics import TRANSACTION_TOPIC
from kafkalog.log.inventory import LogInventory, PartitionInventory, PartitionKind
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.planning.compaction import usable_entries
from kafkalog.planning.config_sources import ResolvedConfig
from kafkalog.planning.policy_evidence import presumed_config
from kafkalog.requests.run_settings import RunSettings


class AuditTasks:
    """Of all partitions below some log dirs; `kept`: as `audit_run` has it."""

    def __init__(
        self,
        request: AuditRequest,
        everything: LogInventory,
        settings: RunSettings,
        kept: KeptScans | None = None,
    ) -> None:
        self._request = request
        self._kept = kept
        self._settings = settings
        self._of_topics: dict[
            tuple[str, str, str | None], tuple[ResolvedConfig, dict[str, Any]]
        ] = {}
        self.log_dirs = sorted({partition.log_dir for partition in everything})
        by_log_dir: dict[str, list[PartitionInventory]] = {path: [] for path in self.log_dirs}
        for partition in everything:
            by_log_dir[partition.log_dir].append(partition)
        self.signs = {
            path: signs_of_life(path, own, request.now_ms) for path, own in by_log_dir.items()
        }
        self._live = [p for p in everything if p.kind is PartitionKind.LIVE]
        transactions: dict[str, list[str]] = {}
        for partition in self._live:
            if partition.topic_partition.topic == TRANSACTION_TOPIC:
                transactions.setdefault(self._owner(partition)[0], []).append(partition.path)
        self._transactions = {owner: tuple(paths) for owner, paths in transactions.items()}
        self._map_entries = _map_entries(request)
        self._other_options = _other_options(request)
        self._uploads = with_stored(
            read_uploads(everything, request.max_batch_bytes),
            request.scope.remote,
            {partition.topic_id for partition in self._live if partition.topic_id is not None},
        )

    def task(self, partition: PartitionInventory) -> AuditTask:
        """What a process needs to audit a partition."""
        log_dir, name = partition.log_dir, partition.topic_partition
        of_topic = log_dir, name.topic, partition.topic_id
        if of_topic not in self._of_topics:
            self._of_topics[of_topic] = self._of_topic(partition)
        resolved, shared = self._of_topics[of_topic]
        resolved, signs = _in_force(partition, resolved), self.signs[log_dir]
        place, kept = (partition.topic_id or "", name.partition), self._kept
        uploads = () if self._uploads is None else self._uploads.get(place, ())
        reads_keys = self._request.scope.looks_at_keys(resolved.in_force)
        return AuditTask(
            partition=partition,
            resolved=resolved,
            alive_ms=min(self._request.now_ms, signs.alive_ms(partition)),
            is_copied=signs.is_copied,
            current_path=self._current_path(partition),
            copy_path=self._copy_path(partition),
            reads_records=self._request.scope.reads_records or reads_keys,
            reads_keys=reads_keys,
            known_epoch=self._settings.leader_epoch(partition),
            known=b"" if kept is None else kept.scan(partition.path),
            is_unchanged=kept is not None and kept.has_seen(partition.path, partition.digest),
            uploaded_offset=None if self._uploads is None else uploaded_offset(uploads),
            uploads=uploads,
            **shared,
        )

    def _of_topic(self, partition: PartitionInventory) -> tuple[ResolvedConfig, dict[str, Any]]:
        """The settings, and what else of a task is the same for all partitions of a topic in a log
        dir; of a topic that was deleted and made anew those of its id.
        """
        cluster = self._settings.cluster(partition)
        has_cluster = cluster is not None and not cluster.problems
        known = None
        if cluster is not None and has_cluster:
            known = cluster.topics.get(partition.topic_partition.topic)
        is_foreign = known is None or (
            partition.topic_id is not None
            and known.topic_id != ""
            and known.topic_id != partition.topic_id
        )
        cluster_id = self._cluster_id(partition)
        return self._resolved(partition), {
            "now_ms": self._request.now_ms,
            "kafka_version": self._settings.kafka_version(partition),
            "assumed_high_watermark": self._request.high_watermark,
            "transaction_paths": self._transactions.get(cluster_id, ()),
            "map_entries": self._map_entries,
            "is_stray": has_cluster and is_foreign,
            "cluster_topic_id": "" if known is None else known.topic_id,
            "has_no_metadata": cluster is None,
            "cluster_id": cluster_id,
            "redact": self._request.scope.redact,
            "is_now_given": self._request.is_now_given,
            "max_batch_bytes": self._request.max_batch_bytes,
            "clock_ms": self._request.clock_ms,
            "other_options": self._other_options,
            "keeps_scan": self._kept is not None,
        }

    def _current_path(self, partition: PartitionInventory) -> str:
        """Of a future replica the one that it will replace."""
        is_future = partition.kind is PartitionKind.FUTURE
        return self._current.get(self._owner(partition), "") if is_future else ""

    @cached_property
    def _current(self) -> dict[tuple[str, int | None, TopicPartition], str]:
        return {self._owner(partition): partition.path for partition in self._live}

    def _copy_path(self, partition: PartitionInventory) -> str:
        """Of a directory that a broker has set aside a live one with all its offsets, of the same
        topic id.
        """
        if partition.kind is not PartitionKind.STRAY or not partition.topic_id:
            return ""
        same = partition.topic_id, partition.topic_partition
        return next(
            (
                live.path
                for live in self._live
                if (live.topic_id, live.topic_partition) == same
                and live.log_start_offset <= partition.log_start_offset
                and live.log_end_offset >= partition.log_end_offset
            ),
            "",
        )

    def _owner(self, partition: PartitionInventory) -> tuple[str, int | None, TopicPartition]:
        """Cluster, node and name: another cluster may have a partition of this name."""
        meta = self._settings.meta(partition)
        node_id = None if meta is None else meta.node_id
        return self._cluster_id(partition), node_id, partition.topic_partition

    def _cluster_id(self, partition: PartitionInventory) -> str:
        meta = self._settings.meta(partition)
        return "" if meta is None else meta.cluster_id or ""

    def _resolved(self, partition: PartitionInventory) -> ResolvedConfig:
        """The settings; those of a topic that Kafka would refuse are its own trouble."""
        try:
            return self._settings.resolve(partition, needs_policy=False)
        except InvalidConfigError as error:
            if self._request.config_file or self._request.config.given():
                raise
            return ResolvedConfig(self._request.config, unreliable=str(error))


def _in_force(partition: PartitionInventory, resolved: ResolvedConfig) -> ResolvedConfig:
    """In force is a policy that is known, or that the disk suggests: none is made up."""
    in_force = presumed_config(partition, resolved.in_force, resolved.standing)
    if in_force is resolved.in_force:
        return resolved
    return replace(resolved, in_force=in_force)


def _other_options(request: AuditRequest) -> tuple[str, ...]:
    given = {
        "--config-file": request.config_file,
        "--server-properties": request.server_properties,
        "--zookeeper-dir": request.zookeeper,
        "--kafka-version": request.kafka_version,
    }
    return tuple(name for name, value in given.items() if value)


def _map_entries(request: AuditRequest) -> int:
    """Keys in the offset map of one cleaner thread, as the broker's file says."""
    broker = request.server_properties or {}
    try:
        size = int(broker.get("log.cleaner.dedupe.buffer.size", DEFAULT_DEDUPE_BUFFER_SIZE))
        threads = max(int(broker.get("log.cleaner.threads", 1)), 1)
        return usable_entries(size // threads)
    except ValueError as error:
        raise InvalidConfigError(f"log.cleaner.dedupe.buffer.size or threads: {error}") from None
