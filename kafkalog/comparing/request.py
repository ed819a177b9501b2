"""Which copies of which partitions are compared, from log dirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafkalog.comparing.alignment import MOST_REPLICAS
from kafkalog.errors import InvalidConfigError
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.selection import select_partitions
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.replicas.copies import copies_by_partition
from kafkalog.replicas.replica import Replica
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
    _check_cluster(copies_by_partition(inventory))
    copies = copies_by_partition(chosen)
    if not any(len(own) > 1 for own in copies.values()):
        raise InvalidConfigError(
            f"no partition is in two of the log dirs: {', '.join(request.log_dirs)}"
        )
    for name, own in copies.items():
        if len(own) > MOST_REPLICAS:
            raise InvalidConfigError(
                f"{name}: {len(own)} copies, up to {MOST_REPLICAS} can be compared"
            )
    return [
        CompareTask(name, own, request.memory_bytes, request.max_batch_bytes)
        for name, own in copies.items()
    ]


def _check_cluster(copies: Mapping[TopicPartition, Sequence[Replica]]) -> None:
    clusters: dict[str, str] = {}
    for own in copies.values():
        for each in own:
            if each.cluster_id is not None:
                clusters.setdefault(each.cluster_id, each.partition.log_dir)
    if len(clusters) > 1:
        named = ", ".join(f"{log_dir} of cluster {name}" for name, log_dir in clusters.items())
        raise InvalidConfigError(f"log dirs of more than one cluster: {named}")
