"""Which copies of which partitions are compared, from log dirs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafkalog.comparing.alignment import MOST_REPLICAS
from kafkalog.comparing.replica import Replica
from kafkalog.errors import InvalidConfigError
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.format.meta_properties import MetaProperties
from kafkalog.log.inventory import LogInventory, PartitionInventory, PartitionKind
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.log_dir_files import read_log_dir_files
from kafkalog.log.selection import select_partitions
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.resources.memory import DEFAULT_MEMORY_BYTES


@dataclass(frozen=True, slots=True)
class CompareRequest:
    """What to compare: the options of `compare`. memory_bytes: of a worker; max_batch_bytes: no
    larger batch is read, stored or decompressed.
    """

    log_dirs: tuple[str, ...]
    topics: tuple[str, ...] = ()
    topic_partitions: tuple[TopicPartition, ...] = ()
    memory_bytes: int = DEFAULT_MEMORY_BYTES
    max_batch_bytes: int = MAX_BATCH_BYTES


@dataclass(frozen=True, slots=True)
class CompareTask:
    """A partition and its copies, in the order of the log dirs."""

    topic_partition: TopicPartition
    replicas: tuple[Replica, ...]
    memory_bytes: int
    max_batch_bytes: int

    @property
    def size_in_bytes(self) -> int:
        """Bytes to read."""
        return sum(each.partition.size_in_bytes for each in self.replicas)


def compare_tasks(request: CompareRequest) -> list[CompareTask]:
    """A task for each partition asked for, by topic and partition.

    InvalidConfigError for paths and partitions that do not exist, log dirs of two clusters, and
    where no partition is there twice.
    """
    inventory = open_log_dir(*request.log_dirs)
    chosen = select_partitions(inventory, request.topics, request.topic_partitions)
    live = [partition for partition in chosen if partition.kind is PartitionKind.LIVE]
    metas = _metas(inventory)
    _check_cluster(metas)
    copies: dict[TopicPartition, list[PartitionInventory]] = defaultdict(list)
    for partition in live:
        copies[partition.topic_partition].append(partition)
    if not any(len(own) > 1 for own in copies.values()):
        raise InvalidConfigError(
            f"no partition is in two of the log dirs: {', '.join(request.log_dirs)}"
        )
    return [
        CompareTask(name, _replicas(own, metas), request.memory_bytes, request.max_batch_bytes)
        for name, own in sorted(copies.items())
    ]


def _metas(inventory: LogInventory) -> dict[str, MetaProperties | None]:
    log_dirs = sorted({partition.log_dir for partition in inventory})
    return {log_dir: read_log_dir_files(Path(log_dir)).meta for log_dir in log_dirs}


def _check_cluster(metas: Mapping[str, MetaProperties | None]) -> None:
    clusters: dict[str, str] = {}
    for log_dir, meta in metas.items():
        if meta is not None and meta.cluster_id is not None:
            clusters.setdefault(meta.cluster_id, log_dir)
    if len(clusters) > 1:
        named = ", ".join(f"{log_dir} of cluster {name}" for name, log_dir in clusters.items())
        raise InvalidConfigError(f"log dirs of more than one cluster: {named}")


def _replicas(
    own: Sequence[PartitionInventory], metas: Mapping[str, MetaProperties | None]
) -> tuple[Replica, ...]:
    if len(own) > MOST_REPLICAS:
        raise InvalidConfigError(
            f"{own[0].topic_partition}: {len(own)} copies, up to {MOST_REPLICAS} can be compared"
        )
    nodes = []
    for partition in own:
        meta = metas[partition.log_dir]
        nodes.append(None if meta is None else meta.node_id)
    replicas = []
    for partition, node in zip(own, nodes, strict=True):
        meta = metas[partition.log_dir]
        # A node that is not known, or has the partition twice, is called by its directory.
        name = f"node {node}" if node is not None and nodes.count(node) == 1 else partition.log_dir
        cluster = None if meta is None else meta.cluster_id
        replicas.append(Replica(name, partition, cluster, node))
    return tuple(sorted(replicas, key=lambda each: (each.node_id or 0, each.name)))
