"""What the checks of a cluster look at: its history, settings in force, and directories on disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from kafkalog.checking.cluster_stop import ClusterStop, find_stop
from kafkalog.checking.finding import Finding
from kafkalog.checking.finding_kind import Severity
from kafkalog.checking.finding_kinds import KIND
from kafkalog.checking.zookeeper_cluster import ZooKeeperCluster
from kafkalog.cluster.history import ClusterHistory
from kafkalog.cluster.moments import Row
from kafkalog.format.meta_properties import MetaProperties
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.listing import path_text

MIN_ISR = "min.insync.replicas"


@dataclass(frozen=True)
class ClusterView:
    """One cluster. `partitions` are the directories of its nodes that were given, by log dir
    `metas`; both empty where the past is looked at, for files are of the end.

    static: settings of server.properties, which stand behind the dynamic ones.
    """

    history: ClusterHistory | ZooKeeperCluster
    partitions: tuple[PartitionInventory, ...] = ()
    metas: Mapping[str, MetaProperties] = field(default_factory=dict)
    static: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def states(self) -> list[Row]:
        """The partitions as they are."""
        return self.history.partitions_now()

    @cached_property
    def brokers(self) -> dict[int, Row]:
        """The registered brokers by node."""
        return self.history.brokers_now()

    @cached_property
    def stop(self) -> ClusterStop | None:
        """How the cluster was stopped, None if a broker is up."""
        return find_stop(self.brokers, self.history.rows["brokers"])

    def is_of_stop(self, offset: int) -> bool:
        """Whether something that is so since then is so because the cluster is stopped."""
        return self.stop is not None and offset >= self.stop.from_offset

    @property
    def path(self) -> str:
        """Of the metadata partition; what findings without another place are about."""
        return path_text(self.history.directory)

    @property
    def log_dir(self) -> str:
        return path_text(self.history.directory.parent)

    def own_configs(self, topic: str) -> dict[str, str]:
        """A topic's own settings in force."""
        return {
            row["key"]: row["value"]
            for row in self.history.rows["configs"]
            if row["entityType"] == "topic" and row["entity"] == topic and row["endOffset"] is None
        }

    def finding(
        self,
        kind: str,
        text: str,
        state: Row | None = None,
        *,
        path: str | None = None,
        log_dir: str | None = None,
        severity: Severity | None = None,
        offset: int | None = None,
    ) -> Finding:
        """A finding about a partition, or the cluster."""
        return Finding(
            kind,
            severity or KIND[kind].severity,
            text,
            path or self.path,
            offset=offset,
            log_dir=log_dir or self.log_dir,
            topic=None if state is None else state["topic"],
            partition=None if state is None else state["partition"],
        )


def listed(partitions: Iterable[Row], most: int = 16) -> str:
    """`orders-0, orders-1 and 5 more`."""
    names = [f"{each['topic']}-{each['partition']}" for each in partitions]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def nodes(numbers: Iterable[int]) -> str:
    """`1, 2`."""
    return ", ".join(map(str, sorted(numbers)))


def by_partition(changes: Iterable[Row]) -> Iterator[tuple[tuple[str, int], list[Row]]]:
    """The rows of `partition_changes` of each partition, by topic id and number, in order."""
    found: dict[tuple[str, int], list[Row]] = {}
    for row in changes:
        found.setdefault((row["topicId"], row["partition"]), []).append(row)
    yield from found.items()
