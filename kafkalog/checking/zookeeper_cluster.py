"""A cluster as a dead ZooKeeper tells it, in the shape in which `cluster` looks at one.

Places are zxids where a metadata log has offsets. A broker whose session has ended counts as
fenced, as after a controlled shutdown where it closed it itself. What ZooKeeper does not know
(directory ids, racks' fences, eligible leaders) is as with a cluster that has none of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kafkalog.cluster.moments import Row
from kafkalog.columns.cluster_schemas import CLUSTER_TABLES
from kafkalog.log.metadata_topics import UNASSIGNED
from kafkalog.zookeeper.cluster_changes import build_tables
from kafkalog.zookeeper.data_dir import open_zookeeper_dir
from kafkalog.zookeeper.entities import Configs
from kafkalog.zookeeper.history import Until, ZooKeeperHistory
from kafkalog.zookeeper.members import Brokers, Controllers
from kafkalog.zookeeper.partitions import PartitionChanges, Topics

_BUILDERS = {
    "brokers": Brokers,
    "controllers": Controllers,
    "partition_changes": PartitionChanges,
    "topics": Topics,
    "configs": Configs,
}
_THERE = ("registered", "changed")
_CLOSED = "closed"


@dataclass(frozen=True)
class ZooKeeperCluster:
    """As ClusterHistory, of one cluster in one server's files."""

    directory: Path
    cluster_id: str | None
    end_offset: int
    rows: Mapping[str, Sequence[Row]]
    problems: Sequence[str]
    unread: Mapping[str, int] = field(default_factory=dict)

    @property
    def end_ms(self) -> int | None:
        """When the last change was made that a table has."""
        times = (row["timestampMs"] for rows in self.rows.values() for row in rows)
        return max((time_ms for time_ms in times if time_ms is not None), default=None)

    def partitions_now(self) -> list[Row]:
        """The partitions as they are, in the order of their names."""
        last: dict[tuple[str, int], Row] = {}
        for row in self.rows["partition_changes"]:
            last[row["topic"], row["partition"]] = row
        return [row for _, row in sorted(last.items()) if row["event"] != "deleted"]

    def brokers_now(self) -> dict[int, Row]:
        """The last row of each broker that was ever there."""
        return {row["brokerId"]: row for row in self.rows["brokers"]}


def read_zookeeper_clusters(
    paths: Sequence[str], zk_root: str | None, at_ms: int | None
) -> list[ZooKeeperCluster]:
    """The clusters in the files of one server, up to a time. InvalidConfigError without one."""
    history = ZooKeeperHistory(open_zookeeper_dir(paths), Until(time_ms=at_ms))
    found = build_tables(history, _BUILDERS, zk_root)
    return [
        ZooKeeperCluster(
            Path(paths[0]),
            cluster_id,
            history.zxid + 1,
            {
                name: [_row(name, row) for row in rows if row["clusterId"] == cluster_id]
                for name, rows in found.rows.items()
            },
            found.problems,
        )
        for cluster_id in dict.fromkeys(found.clusters.values())
    ]


def _row(table: str, found: Row) -> Row:
    """With all columns of the table, and with what the checks need of it."""
    row = {column.name: found.get(column.name) for column in CLUSTER_TABLES[table]}
    if table == "brokers":
        row["isFenced"] = row["event"] not in _THERE
        row["inControlledShutdown"] = row["event"] == _CLOSED
    elif table == "partition_changes":
        row["topicId"] = row["topicId"] or row["topic"]  # before 2.8 there were none
        replicas = row["replicas"] or []
        row |= {"replicas": replicas, "isr": row["isr"] or []}
        row["directories"] = [UNASSIGNED] * len(replicas)
    return row
