"""What is known of a partition from outside its directory: its topic's settings, its cluster, its
broker's last sign of life, its twin.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from kafkalog.auditing.request import DEFAULT_DEDUPE_BUFFER_SIZE, AuditRequest, AuditTask
from kafkalog.auditing.signs_of_life import signs_of_life
from kafkalog.auditing.uploads import read_uploads
from kafkalog.cleaner.settings import RunSettings
from kafkalog.errors import InvalidConfigError
from kafkalog.log.inventory import LogInventory, PartitionInventory, PartitionKind
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.messages.internal_topics import TRANSACTION_TOPIC
from kafkalog.planning.compaction import usable_entries
from kafkalog.planning.config_sources import ResolvedConfig
from kafkalog.planning.policy_evidence import POLICY, presumed_config


class Surroundings:
    """Of all partitions below some log dirs."""

    def __init__(
        self, request: AuditRequest, everything: LogInventory, settings: RunSettings
    ) -> None:
        self._request = request
        self._settings = settings
        self.log_dirs = sorted({partition.log_dir for partition in everything})
        by_log_dir: dict[str, list[PartitionInventory]] = {path: [] for path in self.log_dirs}
        for partition in everything:
            by_log_dir[partition.log_dir].append(partition)
        self.signs = {
            path: signs_of_life(path, own, request.now_ms) for path, own in by_log_dir.items()
        }
        self._live = {
            self._owner(partition): partition.path
            for partition in everything
            if partition.kind is PartitionKind.LIVE
        }
        transactions: dict[str, list[str]] = {}
        for partition in everything:
            is_live = partition.kind is PartitionKind.LIVE
            if is_live and partition.topic_partition.topic == TRANSACTION_TOPIC:
                transactions.setdefault(self._owner(partition)[0], []).append(partition.path)
        self._transactions = {owner: tuple(paths) for owner, paths in transactions.items()}
        self._map_entries = _map_entries(request)
        self._other_options = _other_options(request)
        self._uploads = read_uploads(everything)
        self._digests: dict[int, tuple[ResolvedConfig, str]] = {}
        self._presumed: dict[tuple[int, str], tuple[ResolvedConfig, ResolvedConfig]] = {}

    def task(self, partition: PartitionInventory) -> AuditTask:
        """What a process needs to audit a partition."""
        cluster = self._settings.cluster(partition)
        known = None
        if cluster is not None and not cluster.problems:
            known = cluster.topics.get(partition.topic_partition.topic)
        is_foreign = known is None or (
            partition.topic_id is not None
            and known.topic_id != ""
            and known.topic_id != partition.topic_id
        )
        has_cluster = cluster is not None and not cluster.problems
        resolved, signs = self._resolved(partition), self.signs[partition.log_dir]
        reads_keys = self._request.scope.looks_at_keys(resolved.in_force)
        return AuditTask(
            partition=partition,
            resolved=resolved,
            now_ms=self._request.now_ms,
            kafka_version=self._settings.kafka_version(partition),
            assumed_high_watermark=self._request.high_watermark,
            alive_ms=min(self._request.now_ms, signs.alive_ms(partition)),
            is_copied=signs.is_copied,
            transaction_paths=self._transactions.get(self._owner(partition)[0], ()),
            map_entries=self._map_entries,
            twin_path=self._live.get(self._owner(partition), "")
            if partition.kind is PartitionKind.FUTURE
            else "",
            is_stray=has_cluster and is_foreign,
            cluster_topic_id="" if known is None else known.topic_id,
            has_no_metadata=cluster is None,
            cluster_id=self._owner(partition)[0],
            settings_digest=self._digest(resolved),
            reads_records=self._request.scope.reads_records or reads_keys,
            reads_keys=reads_keys,
            redact=self._request.scope.redact,
            known_epoch=self._settings.leader_epoch(partition),
            other_options=self._other_options,
            uploaded_offset=None
            if self._uploads is None
            else self._uploads.get(
                (partition.topic_id or "", partition.topic_partition.partition), -1
            ),
        )

    def _owner(self, partition: PartitionInventory) -> tuple[str, int | None, TopicPartition]:
        """Cluster, node and name: another cluster may have a partition of this name."""
        meta = self._settings.meta(partition)
        cluster_id = "" if meta is None else meta.cluster_id or ""
        return cluster_id, None if meta is None else meta.node_id, partition.topic_partition

    def _resolved(self, partition: PartitionInventory) -> ResolvedConfig:
        """The settings; those of a topic that Kafka would refuse are its own trouble. In force is a
        policy that is known, or that the disk suggests: none is made up.
        """
        try:
            resolved = self._settings.resolve(partition, needs_policy=False)
        except InvalidConfigError as error:
            if self._request.config_file or self._request.config.given():
                raise
            resolved = ResolvedConfig(self._request.config, unreliable=str(error))
        in_force = presumed_config(partition, resolved.in_force, resolved.standing)
        if in_force is resolved.in_force:
            return resolved
        # One value for all partitions that have the same: its digest is made once.
        key = id(resolved), in_force.source(POLICY)
        if key not in self._presumed:
            self._presumed[key] = resolved, replace(resolved, in_force=in_force)
        return self._presumed[key][1]

    def _digest(self, resolved: ResolvedConfig) -> str:
        """Of settings, once for all partitions that have the same ones."""
        if id(resolved) not in self._digests:
            digest = hashlib.sha256(repr(resolved).encode(errors="surrogateescape")).hexdigest()
            self._digests[id(resolved)] = resolved, digest
        return self._digests[id(resolved)][1]


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
