"""What the metadata log of a cluster, or its ZooKeeper, says about settings: the facts, as a frozen
value.

`metadata_log` and `zookeeper.settings` read them, `planning.config_sources` weighs them against
what else is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

METADATA_VERSION = "metadata.version"
# The features of the releases all of whose records have their tables here.
KNOWN_FEATURES = frozenset(
    {
        METADATA_VERSION, "kraft.version", "transaction.version", "group.version",
        "eligible.leader.replicas.version", "share.version", "streams.version",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """One topic that exists: id (empty before there were any), the settings of its own; by
    partition the replicas, the directory ids of their log dirs in the same order (none in older
    clusters), and the leader epoch (none in ZooKeeper).
    """

    topic_id: str
    config: Mapping[str, str] = field(default_factory=dict)
    replicas: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    directories: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    leader_epochs: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """The cluster as its metadata log has it at `end_offset`, or its ZooKeeper at that zxid.

    path: the partition directory, or ZooKeeper's. read_from: for people, what was read. topics by
    name. broker_configs: dynamic settings by node id as text, of all brokers under "". unread:
    records that are not known, by type and version, or by feature and level. problems: why nothing
    may be done by this; what it tells is then the state at `end_offset`, which may be long past.
    """

    path: str
    read_from: str
    end_offset: int
    topics: Mapping[str, TopicSettings] = field(default_factory=dict)
    broker_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    feature_levels: Mapping[str, int] = field(default_factory=dict)
    unread: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def metadata_version(self) -> int | None:
        """The feature level of `metadata.version`, None if no record set it."""
        return self.feature_levels.get(METADATA_VERSION)


ZooKeeperClusters: TypeAlias = Mapping[str | None, ClusterSettings]
"""Of what ZooKeeper holds, by cluster id; None before there were any."""
