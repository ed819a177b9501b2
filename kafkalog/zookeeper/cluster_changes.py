"""Changes of one cluster's nodes, and how tables are made of them, one change after the other.

A `TableBuilder` gets every change of a cluster; `build_tables` drives some over a history. Rows
are in the order of what they tell, keyed by the columns of `columns.cluster_schemas`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kafkalog.errors import KafkaLogError
from kafkalog.zookeeper.changes import NodeChange
from kafkalog.zookeeper.clusters import ClusterRoots
from kafkalog.zookeeper.history import ZooKeeperHistory
from kafkalog.zookeeper.znodes import parse_cluster_id

LOG, SNAPSHOT = "zookeeper log", "zookeeper snapshot"

Row = dict[str, Any]
Value = TypeVar("Value")


@dataclass(slots=True)
class Problems:
    """What could not be read, each once."""

    texts: list[str] = field(default_factory=list)

    def parsed(self, change: NodeChange, parse: Callable[[bytes, str], Value]) -> Value | None:
        """The value of a change, None if it has none or cannot be read."""
        if not change.data:
            return None
        try:
            return parse(change.data, change.path)
        except KafkaLogError as error:
            self.texts.append(f"zxid {change.zxid:#x}: {error}")
            return None


class TableBuilder:
    """One table of one cluster. A subclass implements `add`, and `close` if rows stay open."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.rows: list[Row] = []

    def add(self, change: NodeChange, parts: Sequence[str]) -> None:
        """A change of the node whose path below the root has these parts."""
        raise NotImplementedError


def when(change: NodeChange) -> Row:
    """The columns that say when and where a change was."""
    return {
        "timestampMs": change.time_ms,
        "offset": change.zxid,
        "source": LOG if change.is_from_log else SNAPSHOT,
        "znode": change.path,
        "path": change.file,
    }


def how_it_went(change: NodeChange) -> str:
    """Of an ephemeral node that is gone: why."""
    if change.is_expiry:
        return "expired"
    return "closed" if change.is_closing else "deleted"


@dataclass(frozen=True, slots=True)
class ClusterTables:
    """Rows by table name, of all clusters; what was wrong; the roots and ids of the clusters."""

    rows: Mapping[str, list[Row]]
    problems: tuple[str, ...]
    clusters: Mapping[str, str | None]


def build_tables(
    history: ZooKeeperHistory,
    builders: Mapping[str, Callable[[Problems], TableBuilder]],
    zk_root: str | None = None,
) -> ClusterTables:
    """Some tables of every cluster, or of the one at `zk_root`. InvalidConfigError without one."""
    roots, problems = ClusterRoots(zk_root), Problems()
    made: dict[str, dict[str, TableBuilder]] = {}
    ids: dict[str, str | None] = {}
    for change in history.changes():
        roots.see(change.path)
        place = roots.split(change.path)
        if place is None:
            continue
        root, below = place
        if root not in made:
            made[root] = {name: builder(problems) for name, builder in builders.items()}
            ids[root] = None
        if below == "/cluster/id":
            ids[root] = problems.parsed(change, parse_cluster_id) or ids[root]
        parts = below[1:].split("/")
        for builder in made[root].values():
            builder.add(change, parts)
    roots.require()
    rows: dict[str, list[Row]] = {name: [] for name in builders}
    for root in sorted(made):
        for name, builder in made[root].items():
            rows[name] += ({**row, "clusterId": ids[root]} for row in builder.rows)
    return ClusterTables(rows, (*history.problems, *problems.texts), ids)
