"""Which directories are copies of one partition: live ones of its name, each path once, of one
cluster and one topic id as far as these are known.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from kafkalog.format.meta_properties import MetaProperties
from kafkalog.log.inventory import PartitionInventory, PartitionKind
from kafkalog.log.log_dir_files import read_log_dir_files
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.replicas.replica import Replica


class Copy(Protocol):
    """Whose a copy is. place: where it was read; problems: why it cannot be relied on."""

    @property
    def topic_partition(self) -> TopicPartition: ...
    @property
    def place(self) -> str: ...
    @property
    def cluster_id(self) -> str | None: ...
    @property
    def node_id(self) -> int | None: ...
    @property
    def topic_id(self) -> str | None: ...
    @property
    def problems(self) -> tuple[str, ...]: ...


def copies_by_partition(
    partitions: Iterable[PartitionInventory],
) -> dict[TopicPartition, tuple[Replica, ...]]:
    """The live ones of these, by node."""
    found: dict[TopicPartition, dict[Path, PartitionInventory]] = {}
    for partition in partitions:
        if partition.kind is PartitionKind.LIVE:
            path = Path(partition.path).resolve()
            found.setdefault(partition.topic_partition, {})[path] = partition
    log_dirs = {each.log_dir for its in found.values() for each in its.values()}
    metas = {path: read_log_dir_files(Path(path)).meta for path in log_dirs}
    return {
        name: _named([(each, metas[each.log_dir]) for each in its.values()])
        for name, its in sorted(found.items())
    }


def _named(own: list[tuple[PartitionInventory, MetaProperties | None]]) -> tuple[Replica, ...]:
    nodes = [None if meta is None else meta.node_id for _, meta in own]
    replicas = []
    for (partition, meta), node in zip(own, nodes, strict=True):
        # A node that is not known, or has the partition twice, is called by its directory.
        name = f"node {node}" if node is not None and nodes.count(node) == 1 else partition.log_dir
        replicas.append(Replica(name, partition, None if meta is None else meta.cluster_id, node))
    return tuple(sorted(replicas, key=lambda each: (each.node_id or 0, each.name)))


def is_same_replica(own: Copy, other: Copy) -> bool:
    """Whether both are the replica of one node, which has one of each partition."""
    is_same_place = Path(own.place).resolve() == Path(other.place).resolve()
    return is_same_place or (own.node_id is not None and own.node_id == other.node_id)


def why_unlike(own: Copy, other: Copy) -> str | None:
    """What shows that they are no copies of one partition, in words behind the other's name."""
    for what, one, its in (
        ("cluster", own.cluster_id, other.cluster_id),
        ("topic", own.topic_id, other.topic_id),
    ):
        if one is not None and its is not None and one != its:
            return f"is of another {what}: id {its}, here {one}"
    return None
