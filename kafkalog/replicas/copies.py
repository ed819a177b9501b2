"""Which copies are copies of one partition: live directories of its name, each path once, and what
digests have of it; of one cluster and one topic id as far as these are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from kafkalog.log.inventory import PartitionInventory, PartitionKind
from kafkalog.log.log_dir_files import read_log_dir_files
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.replicas.digested import DigestedReplica
from kafkalog.replicas.replica import Replica

Copy = Replica | DigestedReplica


def copies_by_partition(
    partitions: Iterable[PartitionInventory], digested: Iterable[DigestedReplica] = ()
) -> dict[TopicPartition, tuple[Copy, ...]]:
    """The live ones of these directories, and those of digests, by node."""
    live = [each for each in partitions if each.kind is PartitionKind.LIVE]
    metas = {path: read_log_dir_files(Path(path)).meta for path in {p.log_dir for p in live}}
    found: dict[TopicPartition, list[Copy]] = {}
    for partition in live:
        meta = metas[partition.log_dir]
        ids = (None, None) if meta is None else (meta.cluster_id, meta.node_id)
        found.setdefault(partition.topic_partition, []).append(Replica("", partition, *ids))
    for each in digested:
        found.setdefault(each.topic_partition, []).append(each)
    return {name: _named(_each_once(its)) for name, its in sorted(found.items())}


def _each_once(copies: Sequence[Copy]) -> Sequence[Copy]:
    """Each path once. One alone is not asked for its own: to follow links is a dozen calls of the
    system.
    """
    return list({each.key: each for each in copies}.values()) if len(copies) > 1 else copies


def _named(own: Sequence[Copy]) -> tuple[Copy, ...]:
    nodes, places = [each.node_id for each in own], [each.where for each in own]
    named: list[Copy] = []
    for each, node in zip(own, nodes, strict=True):
        # A node that is not known, or has the partition twice, is called by its directory; hosts
        # may have the same ones.
        name = each.where if places.count(each.where) == 1 else f"{each.where} in {each.place}"
        is_known = node is not None and nodes.count(node) == 1
        named.append(each.named(f"node {node}" if is_known else name))
    return tuple(sorted(named, key=lambda each: (each.node_id or 0, each.name)))


def is_same_replica(own: Copy, other: Copy) -> bool:
    """Whether both are the replica of one node, which has one of each partition."""
    return own.key == other.key or (own.node_id is not None and own.node_id == other.node_id)


def why_unlike(own: Copy, other: Copy) -> str | None:
    """What shows that they are no copies of one partition, in words behind the other's name."""
    for what, one, its in (
        ("cluster", own.cluster_id, other.cluster_id),
        ("topic", own.topic_id, other.topic_id),
    ):
        if one is not None and its is not None and one != its:
            return f"is of another {what}: id {its}, here {one}"
    return None
