"""The settings of a run's partitions: files and metadata logs read once, resolved per partition.

The metadata log of a log dir is `__cluster_metadata-0` in it, or in another log dir of the same
node that the run was given: a broker keeps one, in `metadata.log.dir`. A log dir of the ZooKeeper
era has none: its settings are in the ZooKeeper that was given, in the cluster of the dir's own id.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from kafkalog.errors import CorruptCheckpointError, InvalidConfigError, KafkaLogError
from kafkalog.format.checkpoints import EpochEntry
from kafkalog.format.file_names import LEADER_EPOCH_CHECKPOINT_FILE
from kafkalog.format.java_properties import parse_properties
from kafkalog.format.meta_properties import META_PROPERTIES_FILE, MetaProperties
from kafkalog.log.cluster_settings import ClusterSettings, ZooKeeperClusters
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.listing import is_directory
from kafkalog.log.log_dir_files import read_log_dir_files
from kafkalog.log.metadata_log import METADATA_DIR, read_cluster_settings
from kafkalog.log.retention_facts import read_leader_epochs
from kafkalog.log.small_files import read_small_file
from kafkalog.planning.config_file import parse_config_file
from kafkalog.planning.config_sources import GivenSettings, ResolvedConfig, resolve_config
from kafkalog.planning.kafka_version import kafka_version_of
from kafkalog.planning.policy_evidence import PolicyStanding


def read_config_file(path: str | None) -> dict[str, dict[str, str]]:
    """The tables of `--config-file`; none without a file.

    InvalidConfigError for a file that cannot be read or that Kafka's rules refuse.
    """
    return {} if path is None else parse_config_file(_read(path), path)


def read_server_properties(path: str | None) -> dict[str, str] | None:
    """The settings of a broker's own file. InvalidConfigError for one that cannot be read."""
    if path is None:
        return None
    try:
        return parse_properties(_read(path), path)
    except CorruptCheckpointError as error:
        raise InvalidConfigError(error.reason, path=path) from None


def _read(path: str) -> bytes:
    try:
        return read_small_file(Path(path))
    except OSError as error:
        raise InvalidConfigError(error.strerror or str(error), path=path) from None


@dataclass(frozen=True, slots=True)
class KnownEpoch:
    """A partition's leader epoch, and the metadata that has it, in words."""

    epoch: int
    read_from: str


def why_metadata_is_older(epochs: Iterable[EpochEntry], known: KnownEpoch) -> str | None:
    """A leader writes with the epoch that the metadata gave it: a log with a later one (`epochs`:
    its leader epochs) than the metadata here knows has been written since. None if it has not.
    """
    newest = max((epoch for epoch, _ in epochs), default=-1)
    if newest <= known.epoch:
        return None
    return (
        f"the cluster metadata ({known.read_from}) is older than the log: leader epoch "
        f"{newest} in {LEADER_EPOCH_CHECKPOINT_FILE}, {known.epoch} in the metadata; settings may "
        "have changed since"
    )


@dataclass(frozen=True, slots=True)
class _LogDir:
    """Whose a log dir is, and what its node's metadata log says; None without one."""

    meta: MetaProperties | None
    cluster: ClusterSettings | None

    @property
    def node_id(self) -> int | None:
        return None if self.meta is None else self.meta.node_id


class RunSettings:
    """Settings and Kafka version of every partition in some log dirs."""

    def __init__(
        self,
        given: GivenSettings,
        log_dirs: Iterable[str],
        *,
        force_differs: bool,
        kafka_version: str | None,
        zookeeper: ZooKeeperClusters | None = None,
    ) -> None:
        self._given = given
        self._force_differs = force_differs
        self._kafka_version = kafka_version
        self._resolved: dict[tuple[Hashable, ...], ResolvedConfig] = {}
        self._log_dirs = _read_log_dirs(sorted(set(log_dirs)), zookeeper or {})

    def resolve(
        self, partition: PartitionInventory, *, needs_policy: bool = True
    ) -> ResolvedConfig:
        """The settings of a partition's topic; see `resolve_config`."""
        topic = partition.topic_partition.topic
        log_dir = self._log_dirs[partition.log_dir]
        key = id(log_dir.cluster), log_dir.node_id, topic, partition.topic_id, needs_policy
        if key not in self._resolved:
            self._resolved[key] = self._resolve(partition, needs_policy=needs_policy)
        return self._resolved[key]

    def _resolve(self, partition: PartitionInventory, *, needs_policy: bool) -> ResolvedConfig:
        log_dir = self._log_dirs[partition.log_dir]
        resolved = resolve_config(
            partition.topic_partition.topic,
            partition.topic_id,
            self._given,
            log_dir.cluster,
            log_dir.node_id,
            force_differs=self._force_differs,
            needs_policy=needs_policy,
            kafka_version=self.kafka_version(partition),
        )
        stranger = self._why_not_its_broker(log_dir)
        return resolved if stranger is None else replace(resolved, refusal=stranger)

    def resolve_for_change(
        self, partition: PartitionInventory, *, needs_policy: bool = True
    ) -> ResolvedConfig:
        """The same for a run that changes the log: metadata that is older than the log tells of
        settings that may have changed since.
        """
        resolved = self.resolve(partition, needs_policy=needs_policy)
        older = None if resolved.unreliable else self._why_older(partition)
        if older is None:
            return resolved
        is_said = self._given.says_policy_of(partition.topic_partition.topic)
        standing = PolicyStanding.SAID if is_said else PolicyStanding.UNKNOWN
        refusal = resolved.refusal if is_said and resolved.is_forced else older
        return replace(resolved, unreliable=older, refusal=refusal, standing=standing)

    def _why_older(self, partition: PartitionInventory) -> str | None:
        known = self.leader_epoch(partition)
        if known is None:
            return None
        try:
            epochs = read_leader_epochs(partition.path)
        except (KafkaLogError, OSError):
            return None  # its plan tells
        return why_metadata_is_older(epochs or (), known)

    def leader_epoch(self, partition: PartitionInventory) -> KnownEpoch | None:
        """The partition's leader epoch in the cluster's metadata; None if it does not tell."""
        cluster, name = self.cluster(partition), partition.topic_partition
        known = cluster.topics.get(name.topic) if cluster is not None else None
        epoch = -1 if known is None else known.leader_epochs.get(name.partition, -1)
        return None if cluster is None or epoch < 0 else KnownEpoch(epoch, cluster.read_from)

    def replicas(self, partition: PartitionInventory) -> tuple[int, ...] | None:
        """The nodes that have a replica of the partition by the cluster's metadata; None if it does
        not tell."""
        cluster, name = self.cluster(partition), partition.topic_partition
        known = cluster.topics.get(name.topic) if cluster is not None else None
        return None if known is None else known.replicas.get(name.partition)

    def kafka_version(self, partition: PartitionInventory) -> str:
        """The version asked for, else the one of the cluster's feature level."""
        if self._kafka_version is not None:
            return self._kafka_version
        cluster = self._log_dirs[partition.log_dir].cluster
        return kafka_version_of(None if cluster is None else cluster.metadata_version)

    def cluster(self, partition: PartitionInventory) -> ClusterSettings | None:
        """The metadata of the partition's cluster, None without a log of it."""
        return self._log_dirs[partition.log_dir].cluster

    def meta(self, partition: PartitionInventory) -> MetaProperties | None:
        """Whose the partition's log dir is."""
        return self._log_dirs[partition.log_dir].meta

    def cluster_of(self, log_dir: str) -> ClusterSettings | None:
        """The metadata of the cluster of a log dir's node, None without a log of it."""
        return self._log_dirs[log_dir].cluster

    def has_metadata(self, partition: PartitionInventory) -> bool:
        """Whether there is a metadata log of the partition's cluster, sound or not."""
        return self._log_dirs[partition.log_dir].cluster is not None

    @property
    def notes(self) -> tuple[str, ...]:
        """Where the settings of each log dir come from, a sentence each."""
        return tuple(_note(path, each.cluster) for path, each in self._log_dirs.items())

    def _why_not_its_broker(self, log_dir: _LogDir) -> str | None:
        """A file of server.properties that names another node's id is not this broker's."""
        properties = self._given.server_properties or {}
        stated = properties.get("node.id", properties.get("broker.id", "-1")).strip()
        if log_dir.node_id is None or stated in ("-1", str(log_dir.node_id)):
            return None
        return f"the log dir is of node {log_dir.node_id}, --server-properties of node {stated}"


def _read_log_dirs(paths: list[str], zookeeper: ZooKeeperClusters) -> dict[str, _LogDir]:
    metas = {path: read_log_dir_files(Path(path)).meta for path in paths}
    found = {
        path: read_cluster_settings(Path(path) / METADATA_DIR)
        for path in paths
        if is_directory(Path(path) / METADATA_DIR)
    }
    return {
        path: _LogDir(meta, _cluster_of(path, metas, found) or _in_zookeeper(meta, zookeeper))
        for path, meta in metas.items()
    }


def _in_zookeeper(
    meta: MetaProperties | None, zookeeper: ZooKeeperClusters
) -> ClusterSettings | None:
    """The log dir's cluster there: the one of its id; without an id, the only one."""
    if not zookeeper:
        return None
    cluster_id = None if meta is None else meta.cluster_id
    if cluster_id in zookeeper:
        return zookeeper[cluster_id]
    some = next(iter(zookeeper.values()))
    if cluster_id is None and len(zookeeper) == 1:
        return some
    there = ", ".join(sorted(str(each) for each in zookeeper))
    problem = (
        f"ZooKeeper has the clusters {there}: --zk-root says whose the log dir is"
        if cluster_id is None
        else f"the log dir is of cluster {cluster_id}, ZooKeeper has {there}"
    )
    return ClusterSettings(some.path, some.read_from, some.end_offset, problems=(problem,))


def _cluster_of(
    path: str, metas: dict[str, MetaProperties | None], found: dict[str, ClusterSettings]
) -> ClusterSettings | None:
    node = _node(metas[path])
    of_node = [p for p in found if p == path or (node is not None and _node(metas[p]) == node)]
    if len(of_node) <= 1:
        return found[of_node[0]] if of_node else None
    problem = f"the node has a metadata log in each of {', '.join(of_node)}"
    return replace(found[of_node[0]], problems=(problem,))


def _node(meta: MetaProperties | None) -> tuple[str, int] | None:
    if meta is None or meta.cluster_id is None or meta.node_id is None:
        return None
    return meta.cluster_id, meta.node_id


def _note(path: str, cluster: ClusterSettings | None) -> str:
    if cluster is None:
        return (
            f"{path}: no cluster metadata, so settings that are not given are Kafka's defaults; "
            f"the log dir with {METADATA_DIR} and {META_PROPERTIES_FILE} has them"
        )
    if cluster.problems:
        return f"{path}: the cluster metadata cannot be relied on: {'; '.join(cluster.problems)}"
    unread = ", ".join(f"{count} of {name}" for name, count in sorted(cluster.unread.items()))
    left = f"; not needed and not decoded: {unread}" if unread else ""
    return f"{path}: settings from the cluster metadata, {cluster.read_from}{left}"
