"""Where the other replicas of a partition end: what a cleaner has to know before it lets go of what
deletes.

Kafka's cleaner removes tombstones and transaction markers by time alone. A replica that was away
for longer comes back with what they deleted, fetches from where it ended, and never learns of them.
So they stay here from the offset on that some replica has not reached.

Source: Kafka Cleaner.shouldDiscardBatch, ReplicaFetcherThread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kafkalog.format.meta_properties import MetaProperties
from kafkalog.log.inventory import PartitionInventory, PartitionKind, TopicPartition
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.log_dir_files import read_log_dir_files

# Said once of a run that does not know all replicas.
BY_TIME_ALONE = (
    "tombstones and transaction markers go by time alone, as in a broker: a replica that was away "
    "for longer than delete.retention.ms may serve deleted keys or aborted records again; "
    "--replicas DIR takes the other nodes' log dirs into account"
)


@dataclass(frozen=True, slots=True)
class ReplicatedEnd:
    """What the other replicas of one partition say.

    offset: the lowest end of any of them, None where none is known; where: whose it is, for people;
    missing: nodes that have a replica nobody gave; is_complete: the cluster's metadata tells of no
    other; problem: why a replica that was given does not tell.
    """

    offset: int | None = None
    where: str = ""
    missing: tuple[int, ...] = ()
    is_complete: bool = False
    problem: str | None = None

    @property
    def why_incomplete(self) -> str:
        """Why not all replicas are known."""
        if self.missing:
            nodes = ", ".join(map(str, self.missing))
            return f"the replicas of nodes {nodes} are not given (--replicas)"
        return "no cluster metadata tells which nodes have a replica"


@dataclass(frozen=True, slots=True)
class ReplicaLogs:
    """Log dirs that may hold replicas of each other: those of a run, and those given beside them.

    by_name: the live partitions of each name; given: paths of those that were given; metas: whose a
    log dir is, None where that cannot be read.
    """

    by_name: Mapping[TopicPartition, tuple[PartitionInventory, ...]]
    given: frozenset[str] = frozenset()
    metas: Mapping[str, MetaProperties | None] = field(default_factory=dict)

    @classmethod
    def of(cls, own: Iterable[PartitionInventory], paths: Sequence[str]) -> ReplicaLogs:
        """`own`: the partitions of a run; `paths`: log dirs of other nodes. InvalidConfigError for
        a path that is not there.
        """
        given = open_log_dir(*paths).partitions if paths else ()
        found: dict[TopicPartition, dict[Path, PartitionInventory]] = {}
        for partition in (*own, *given):
            if partition.kind is PartitionKind.LIVE:
                path = Path(partition.path).resolve()
                found.setdefault(partition.topic_partition, {})[path] = partition
        log_dirs = {p.log_dir for its in found.values() for p in its.values()}
        return cls(
            {name: tuple(its.values()) for name, its in found.items()},
            frozenset(p.path for p in given),
            {path: read_log_dir_files(Path(path)).meta for path in log_dirs},
        )

    def replicated_end(
        self, partition: PartitionInventory, assigned: Sequence[int] | None
    ) -> ReplicatedEnd:
        """`assigned`: the nodes that have a replica by the cluster's metadata, None if it does not
        tell.
        """
        others = []
        own_node = self._node(partition)
        for other in self.by_name.get(partition.topic_partition, ()):
            node = self._node(other)
            is_same = Path(other.path).resolve() == Path(partition.path).resolve()
            if is_same or (node is not None and node == own_node):
                continue
            problem = self._why_unusable(partition, other)
            if problem is not None and other.path in self.given:
                return ReplicatedEnd(problem=f"the replica in {other.path} {problem}")
            if problem is None and (assigned is None or node is None or node in assigned):
                others.append(other)
        seen = {own_node, *(self._node(other) for other in others)}
        missing = tuple(node for node in assigned or () if node not in seen)
        lowest = min(others, key=lambda p: p.log_end_offset, default=None)
        return ReplicatedEnd(
            None if lowest is None else lowest.log_end_offset,
            "" if lowest is None else self._where(lowest),
            missing,
            is_complete=assigned is not None and not missing,
        )

    def _where(self, partition: PartitionInventory) -> str:
        node = self._node(partition)
        return partition.path if node is None else f"node {node} ({partition.log_dir})"

    def _node(self, partition: PartitionInventory) -> int | None:
        meta = self.metas.get(partition.log_dir)
        return None if meta is None else meta.node_id

    def _why_unusable(self, own: PartitionInventory, other: PartitionInventory) -> str | None:
        if other.problems:
            return f"cannot be relied on: {'; '.join(other.problems)}"
        metas = self.metas.get(own.log_dir), self.metas.get(other.log_dir)
        clusters = [meta.cluster_id for meta in metas if meta is not None]
        for what, ids in (("cluster", clusters), ("topic", [own.topic_id, other.topic_id])):
            if None not in ids and len(ids) == 2 and ids[0] != ids[1]:
                return f"is of another {what}: id {ids[1]}, here {ids[0]}"
        return None
