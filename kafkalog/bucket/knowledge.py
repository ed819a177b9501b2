"""What the cluster knows: the topics it has and had, the copies in remote storage, and for which
partitions what is read of that is all there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kafkalog.cluster.find import metadata_directories
from kafkalog.cluster.history import ClusterHistory
from kafkalog.errors import InvalidConfigError
from kafkalog.format.remote_log_partition import remote_log_partition
from kafkalog.format.topics import REMOTE_LOG_TOPIC
from kafkalog.log.inventory import LogInventory, PartitionKind
from kafkalog.log.log_dir_files import read_log_dir_files
from kafkalog.reading.remote_copies import MetadataPartition, SegmentCopy, read_metadata_partitions


@dataclass(frozen=True, slots=True)
class ClusterTopics:
    """Topics by id: those that are there now, and when (None: not known) those that are not were
    removed; partitions of `__remote_log_metadata`; when the metadata ends; what of it could not be
    read."""

    now: Mapping[str, str] = field(default_factory=dict)
    removed: Mapping[str, tuple[str, int | None]] = field(default_factory=dict)
    metadata_partitions: int | None = None
    end_ms: int = -1
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterKnowledge:
    """`cluster`: None without a metadata log. had: every topic id of this cluster that any of its
    logs names, and the topic's name. newest_ms: when the last record about a copy of a topic was
    written, by topic id; places: (topic id, partition) → the partition of `__remote_log_metadata`
    that has records of it."""

    cluster_id: str | None
    cluster: ClusterTopics | None
    metadata: Mapping[int, MetadataPartition]
    copies: Mapping[str, SegmentCopy]
    had: Mapping[str, str]
    newest_ms: Mapping[str, int]
    places: Mapping[tuple[str, int], int]

    def gone_since(self, topic_id: str) -> tuple[bool, int | None]:
        """Whether the topic was deleted, and when, if that is known. What is not in the cluster's
        metadata is gone only if that goes further than the last record about the topic."""
        if self.cluster is None:
            return False, None
        if topic_id in self.cluster.removed:
            return True, self.cluster.removed[topic_id][1]
        if topic_id in self.cluster.now or self.cluster.problems or topic_id not in self.had:
            return False, None
        newest_ms = self.newest_ms.get(topic_id)
        return newest_ms is not None and newest_ms < self.cluster.end_ms, None

    def metadata_of(self, topic_id: str, partition: int) -> tuple[MetadataPartition | None, str]:
        """The partition of `__remote_log_metadata` that has the records of a tiered partition, and
        an empty text if it has all of them; else why that is not known."""
        count = self.cluster.metadata_partitions if self.cluster is not None else None
        if count:
            number = remote_log_partition(topic_id, partition, count)
            own = self.metadata.get(number)
            if own is None:
                return None, f"{REMOTE_LOG_TOPIC}-{number} is not in the log dirs that were given"
            return own, own.incomplete or ""
        # How many partitions the topic has is not known: the one that has records of it is known.
        known = self.places.get((topic_id, partition))
        if known is not None:
            return self.metadata[known], self.metadata[known].incomplete or ""
        why = "no metadata log of the cluster tells how many partitions it has"
        return None, f"which partition of {REMOTE_LOG_TOPIC} has its records is not known: {why}"

    def deletion_of(self, topic_id: str, partition: int) -> str:
        """What became of the deletion of a partition's segments, for people."""
        for own in self.metadata.values():
            found = own.deletions.get((topic_id, partition))
            if found is not None:
                return found[0].name
        return ""


def read_knowledge(inventory: LogInventory, max_batch_bytes: int) -> ClusterKnowledge:
    """From the log dirs of one cluster's nodes; InvalidConfigError for those of two."""
    clusters: dict[str, str] = {}
    for log_dir in sorted({partition.log_dir for partition in inventory}):
        meta = read_log_dir_files(Path(log_dir)).meta
        if meta is not None and meta.cluster_id is not None:
            clusters.setdefault(meta.cluster_id, log_dir)
    if len(clusters) > 1:
        named = ", ".join(f"{log_dir} of cluster {name}" for name, log_dir in clusters.items())
        raise InvalidConfigError(f"log dirs of more than one cluster: {named}")
    directories = metadata_directories(inventory)
    cluster = _topics(ClusterHistory(directories[0])) if directories else None
    metadata = read_metadata_partitions(inventory, max_batch_bytes)
    copies = {key: copy for own in metadata.values() for key, copy in own.copies.items()}
    had = {copy.topic_id: copy.topic for copy in copies.values()}
    for partition in inventory:
        if partition.kind is PartitionKind.LIVE and partition.topic_id is not None:
            had[partition.topic_id] = partition.topic_partition.topic
    if cluster is not None:
        had |= {topic_id: name for topic_id, (name, _) in cluster.removed.items()}
        had |= cluster.now
    newest_ms: dict[str, int] = {}
    for copy in copies.values():
        newest_ms[copy.topic_id] = max(newest_ms.get(copy.topic_id, -1), copy.changed_ms)
    places = {
        (copy.topic_id, copy.partition): number
        for number, own in metadata.items()
        for copy in own.copies.values()
    }
    cluster_id = next(iter(clusters), None)
    return ClusterKnowledge(cluster_id, cluster, metadata, copies, had, newest_ms, places)


def _topics(history: ClusterHistory) -> ClusterTopics:
    now = {row["topicId"]: row["topic"] for row in history.partitions_now()}
    removed = {
        row["topicId"]: (row["topic"], row["endTimestampMs"])
        for row in history.rows["topics"]
        if row["endOffset"] is not None
    }
    count = sum(row["topic"] == REMOTE_LOG_TOPIC for row in history.partitions_now())
    end_ms = -1 if history.end_ms is None else history.end_ms
    return ClusterTopics(now, removed, count or None, end_ms, tuple(history.problems))
