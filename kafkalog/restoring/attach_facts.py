"""What a plan of `attach` is made from, and what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kafkalog.log.json_facts import JsonFacts
from kafkalog.restoring.disks import Disks
from kafkalog.restoring.left_metadata import LeftMetadata

# Levels of metadata.version.
DIRECTORIES_LEVEL = 17  # 3.7-IV2
TRANSACTIONS_LEVEL = 13  # 3.6-IV1
KAFKA_4_LEVEL = 22  # 4.0-IV0
METADATA_VERSION = "metadata.version"
ELIGIBLE_LEADERS = "eligible.leader.replicas.version"
NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class PlannedReplica(JsonFacts):
    """A replica: where it lies, and how far it goes; of one whose disk is not here neither."""

    node_id: int
    directory_id: str
    path: str | None
    last_epoch: int | None
    end_offset: int | None
    is_in_sync: bool


@dataclass(frozen=True, slots=True)
class PlannedPartition(JsonFacts):
    """A partition as it will be. leader: -1 where no copy is here; is_empty: no copy is anywhere,
    and it begins anew.
    """

    topic: str
    topic_id: str
    partition: int
    leader: int
    replicas: tuple[PlannedReplica, ...]
    is_empty: bool = False

    @property
    def in_sync(self) -> list[int]:
        """The replicas that may be elected."""
        return [each.node_id for each in self.replicas if each.is_in_sync]


@dataclass(frozen=True, slots=True)
class AttachPlan(JsonFacts):
    """All that will be written. configs: settings by topic that are made up for lost ones;
    refusals: why it must not be carried out; warnings, lost: what somebody has to know before.
    """

    cluster_id: str
    nodes: tuple[int, ...]
    feature_levels: Mapping[str, int]
    features_from: str
    leader_epoch: int
    next_producer_id: int
    partitions: tuple[PlannedPartition, ...]
    configs: Mapping[str, Mapping[str, str]]
    registrations: Mapping[str, int]
    refusals: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AttachFacts:
    """What a plan is made from. feature_levels: where no metadata log tells them, and features_from
    who does; left: None where none is; with_records: directories of metadata logs that have some.
    """

    disks: Disks
    left: LeftMetadata | None
    feature_levels: Mapping[str, int]
    features_from: str
    with_records: Sequence[str] = ()
    force: frozenset[str] = frozenset()


@dataclass(slots=True)
class Notes:
    """What a plan has to say; see AttachPlan."""

    refusals: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
