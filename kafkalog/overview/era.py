"""Which Kafka it was, by what is on the disk.

 registration     a broker registers the range of metadata.version that its release can do: its
                  highest level is the release's own (KRaft)
 metadata.version what the cluster has switched on: the release is that one or a later one
 files            each since some release: a lower bound only

Source: Kafka MetadataVersion; KIP-516 (partition.metadata), KIP-858 (directory.id), KIP-966 (text
in .kafka_cleanshutdown), KIP-101 (leader-epoch-checkpoint), KIP-33 (time index), KIP-32 (magic 1),
KIP-98 (magic 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafkalog.format.constants import MAGIC_VALUE_V0, MAGIC_VALUE_V1, MAGIC_VALUE_V2
from kafkalog.format.file_names import LEADER_EPOCH_CHECKPOINT_FILE, PARTITION_METADATA_FILE
from kafkalog.format.meta_properties import KRAFT_VERSION
from kafkalog.log.cluster_settings import METADATA_VERSION
from kafkalog.overview.cluster import Cluster
from kafkalog.overview.disk import LogDir, Partition

KRAFT, ZOOKEEPER, MIGRATING, UNKNOWN = "KRaft", "ZooKeeper", "ZooKeeper to KRaft", "unknown"
# The first level of metadata.version of each release.
FIRST_LEVELS = {
    (3, 0): 1, (3, 1): 2, (3, 2): 3, (3, 3): 4, (3, 4): 8, (3, 5): 9, (3, 6): 12, (3, 7): 15,
    (3, 8): 20, (3, 9): 21, (4, 0): 22, (4, 1): 26, (4, 2): 28, (4, 3): 30, (4, 4): 31,
}  # fmt: skip
_FORMATS = {MAGIC_VALUE_V0: (0, 8), MAGIC_VALUE_V1: (0, 10), MAGIC_VALUE_V2: (0, 11)}
_LOOKED_AT = 50
# States of a migration in which the metadata is ZooKeeper's still, or both.
_MIGRATING = (1, 2)

Release = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Era:
    """mode: KRAFT, ZOOKEEPER, MIGRATING or UNKNOWN. release: the newest that something on the disk
    proves, None where nothing does; is_exact: the broker itself said so. evidence: why, in words.
    """

    mode: str
    release: Release | None
    is_exact: bool
    evidence: tuple[str, ...]

    @property
    def text(self) -> str:
        """For people: `4.3`, `3.7 or later`."""
        if self.release is None:
            return "unknown"
        name = f"{self.release[0]}.{self.release[1]}"
        is_newest = self.release == max(FIRST_LEVELS)
        return name if self.is_exact and not is_newest else f"{name} or later"


def judge_era(log_dirs: Sequence[LogDir], cluster: Cluster | None, magics: Iterable[int]) -> Era:
    """The era of the brokers of these log dirs."""
    facts = sorted([*_of_cluster(log_dirs, cluster), *_of_files(log_dirs, magics)], reverse=True)
    registered = [fact for fact in facts if fact[2]]
    best = registered[0] if registered else facts[0] if facts else None
    return Era(
        mode=_mode(log_dirs, cluster),
        release=best[0] if best else None,
        is_exact=bool(registered),
        evidence=tuple(dict.fromkeys(text for _, text, _ in facts)),
    )


def _mode(log_dirs: Sequence[LogDir], cluster: Cluster | None) -> str:
    versions = {log_dir.meta.version for log_dir in log_dirs if log_dir.meta is not None}
    if cluster is not None and cluster.migration in _MIGRATING:
        return MIGRATING
    if not versions:
        return KRAFT if cluster is not None else UNKNOWN
    if versions == {KRAFT_VERSION}:
        return KRAFT
    return ZOOKEEPER if cluster is None else MIGRATING


def _of_cluster(
    log_dirs: Sequence[LogDir], cluster: Cluster | None
) -> Iterator[tuple[Release, str, bool]]:
    if cluster is None:
        return
    nodes = {log_dir.meta.node_id for log_dir in log_dirs if log_dir.meta is not None}
    for node, (_, highest) in cluster.supported.items():
        release = release_of(highest)
        if node in nodes and release is not None:
            name = f"{release[0]}.{release[1]}"
            yield release, f"node {node} registered as one of {name}", True
    level = cluster.feature_levels.get(METADATA_VERSION)
    release = None if level is None else release_of(level)
    if release is not None:
        text = f"{METADATA_VERSION} {level} ({release[0]}.{release[1]})"
        yield release, text, False


def _of_files(
    log_dirs: Sequence[LogDir], magics: Iterable[int]
) -> Iterator[tuple[Release, str, bool]]:
    for log_dir in log_dirs:
        if log_dir.meta is not None and log_dir.meta.directory_id is not None:
            yield (3, 7), "directory.id in meta.properties (3.7)", False
        elif log_dir.meta is not None and log_dir.meta.cluster_id is not None:
            yield (0, 10), "cluster.id in meta.properties (0.10.1)", False
        if log_dir.clean_stop_epoch is not None:
            yield (3, 7), "broker epoch in .kafka_cleanshutdown (3.7)", False
        looked_at = [p for p in log_dir.partitions if p.is_live][:_LOOKED_AT]
        if any(_has(partition, PARTITION_METADATA_FILE) for partition in looked_at):
            yield (2, 8), f"{PARTITION_METADATA_FILE} (2.8)", False
        if any(_has(partition, LEADER_EPOCH_CHECKPOINT_FILE) for partition in looked_at):
            yield (0, 11), f"{LEADER_EPOCH_CHECKPOINT_FILE} (0.11)", False
        if any(partition.has_time_index for partition in looked_at):
            yield (0, 10), "time indexes (0.10.1)", False
    for magic in sorted(magics, reverse=True):
        if magic in _FORMATS:
            release = _FORMATS[magic]
            yield release, f"message format {magic} ({release[0]}.{release[1]})", False


def release_of(level: int) -> Release | None:
    """The release that brought a level of metadata.version; of a later one the newest known."""
    found = [release for release, first in FIRST_LEVELS.items() if level >= first]
    return max(found, default=None)


def _has(partition: Partition, name: str) -> bool:
    return Path(partition.path, name).exists()
