"""Where the other replicas of a partition end: what a cleaner has to know before it lets go of what
deletes.

Kafka's cleaner removes tombstones and transaction markers by time alone. A replica that was away
for longer comes back with what they deleted, fetches from where it ended, and never learns of them.
So they stay here from the offset on that some replica has not reached.

Source: Kafka Cleaner.shouldDiscardBatch, ReplicaFetcherThread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

from kafkalog.errors import KafkaLogError
from kafkalog.log.inventory import PartitionInventory, TopicPartition
from kafkalog.log.log_dir import open_log_dir
from kafkalog.replicas.copies import Copy, copies_by_partition, is_same_replica, why_unlike
from kafkalog.replicas.digested import DigestedReplica, is_digest, read_digest
from kafkalog.replicas.epochs import truncation_offset
from kafkalog.replicas.replica import Replica, ReplicaFacts, replica_facts

# Said once of a run that does not know all replicas.
BY_TIME_ALONE = (
    "tombstones and transaction markers go by time alone, as in a broker: a replica that was away "
    "for longer than delete.retention.ms may serve deleted keys or aborted records again; "
    "--replicas DIR|DIGEST takes the other nodes' logs into account"
)


@dataclass(frozen=True, slots=True)
class ReplicatedEnd:
    """What the other replicas of one partition say.

    offset: up to where all of them have this log, None where none is known; where: who has no more,
    for people; missing: nodes that have a replica nobody gave; is_complete: the cluster's metadata
    tells of no other; problem: why a replica that was given does not tell.
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

    by_name: the copies of each partition; given: places of those that were given.
    """

    by_name: Mapping[TopicPartition, tuple[Copy, ...]]
    given: frozenset[str] = frozenset()

    @classmethod
    def of(cls, own: Iterable[PartitionInventory], paths: Sequence[str]) -> ReplicaLogs:
        """`own`: the partitions of a run; `paths`: log dirs and digests of other nodes.
        InvalidConfigError for a path that is not there, CorruptRecordError for a digest that is not
        whole.
        """
        digests = [path for path in paths if is_digest(path)]
        log_dirs = [path for path in paths if path not in digests]
        given = open_log_dir(*log_dirs, reads_buckets=False).partitions if log_dirs else ()
        digested = [each for path in digests for each in read_digest(path)]
        places = frozenset([*(p.path for p in given), *digests])
        return cls(copies_by_partition([*own, *given], digested), places)

    def replicated_end(
        self, partition: PartitionInventory, assigned: Sequence[int] | None
    ) -> ReplicatedEnd:
        """`assigned`: the nodes that have a replica by the cluster's metadata, None if it does not
        tell.
        """
        copies = self.by_name.get(partition.topic_partition, ())
        own = _own_copy(copies, partition)
        if own is None:
            return ReplicatedEnd(missing=tuple(assigned or ()))
        ends: list[tuple[int, Copy]] = []
        others = [c for c in copies if c is not own and not is_same_replica(own, c)]
        own_facts = cache(partial(_facts_of, own))  # headers are read once for all others
        for other in others:
            end, problem = _common_end(own, own_facts, other)
            if problem is not None and other.place in self.given:
                return ReplicatedEnd(problem=f"the replica in {other.place} {problem}")
            is_assigned = assigned is None or other.node_id is None or other.node_id in assigned
            if problem is None and is_assigned:
                ends.append((end, other))
        seen = {own.node_id, *(other.node_id for _, other in ends)}
        missing = tuple(node for node in assigned or () if node not in seen)
        offset, lowest = min(ends, key=lambda each: each[0], default=(None, None))
        return ReplicatedEnd(
            offset,
            "" if lowest is None else _where(lowest),
            missing,
            is_complete=assigned is not None and not missing,
        )


def _own_copy(copies: Sequence[Copy], partition: PartitionInventory) -> Copy | None:
    """The one that is this very directory, by whatever path."""
    # Nearly always the path is the same text: to follow links is a dozen calls of the system.
    for each in copies:
        if isinstance(each, Replica) and each.partition.path == partition.path:
            return each
    key = Replica("", partition, None, None).key
    return next((each for each in copies if each.key == key), None)


def _common_end(
    own: Copy, own_facts: Callable[[], ReplicaFacts], other: Copy
) -> tuple[int, str | None]:
    """(up to where another replica has what this one has, why it does not tell)."""
    if other.problems:
        return 0, f"cannot be relied on: {'; '.join(other.problems)}"
    unlike = why_unlike(own, other)
    if unlike is not None:
        return 0, unlike
    try:
        leader, follower = own_facts(), _facts_of(other)
    except (KafkaLogError, OSError) as error:
        return 0, f"cannot be compared: {error}"
    # What it got from another leader it cuts off before it follows this one: there its offsets are
    # ours, and its tombstones and markers are not.
    kept = truncation_offset(
        leader.leader_epochs,
        leader.sound_end_offset,
        follower.leader_epochs,
        follower.sound_end_offset,
    )
    return min(follower.sound_end_offset, kept), None


def _facts_of(copy: Copy) -> ReplicaFacts:
    return copy.facts if isinstance(copy, DigestedReplica) else replica_facts(copy)


def _where(replica: Copy) -> str:
    node = replica.node_id
    return replica.place if node is None else f"node {node} ({replica.where})"
