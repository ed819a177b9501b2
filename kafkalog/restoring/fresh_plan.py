"""Which topics a restore makes in a fresh target, where their replicas go, up to where each log is
taken, and why not. Nothing is written.

Topics keep their ids, and settings where the source's metadata log tells them. Replicas are spread
over nodes by turns, over the log dirs of a node by bytes. One leader epoch, above all epochs in the
logs, and producer ids above all that are in them: the logs stay as they are, byte for byte, and
whoever writes next cannot meet what is in them. A topic is restored whole or not at all.

Source: Kafka ReplicationControlManager, StripedReplicaPlacer, ProducerIdControlManager.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kafkalog.format.topics import INTERNAL_POLICIES
from kafkalog.log.inventory import LogInventory, PartitionInventory
from kafkalog.log.metadata_topics import UNASSIGNED
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.statuses import REFUSED
from kafkalog.restoring.attach_facts import (
    ELIGIBLE_LEADERS,
    AttachPlan,
    PlannedPartition,
    PlannedReplica,
)
from kafkalog.restoring.attach_plan import EPOCH_MARGIN, PRODUCER_ID_MARGIN
from kafkalog.restoring.disks import NodeDir
from kafkalog.restoring.fresh import FreshDirs
from kafkalog.restoring.groups import GroupScript, group_scripts, restored_ranges
from kafkalog.restoring.left_metadata import read_left_metadata
from kafkalog.restoring.new_topic import NewTopic, new_offsets_topic, new_topic
from kafkalog.restoring.offsets_topic import offsets_topic
from kafkalog.restoring.plan import RestorePlan, TransactionalIds, wanted
from kafkalog.restoring.request import RestoreRequest
from kafkalog.restoring.space import refuse_without_space
from kafkalog.restoring.topic_settings import log_config_of


@dataclass(frozen=True, slots=True)
class FreshPlan:
    """plans: of each directory that is filled; metadata: all that the new cluster begins with;
    configs: by topic, for the indexes that are built; notes: what somebody has to know; groups:
    whose offsets are restored.
    """

    plans: tuple[RestorePlan, ...]
    metadata: AttachPlan
    configs: Mapping[str, LogConfig]
    notes: tuple[str, ...]
    groups: tuple[GroupScript, ...]


def plan_fresh(
    request: RestoreRequest,
    source: LogInventory,
    target: FreshDirs,
    work_dir: Path,
    limits: tuple[int, int],
) -> FreshPlan:
    """The plan; of what is refused a plan each, with the reason. work_dir: an empty directory, in
    which the offsets of groups are written as a log to restore from; limits: the time, and the
    largest batch. InvalidConfigError as of `group_scripts`.
    """
    now_ms, max_batch_bytes = limits
    left = read_left_metadata(source)
    ids = TransactionalIds(source, max_batch_bytes)
    by_topic: dict[str, list[PartitionInventory]] = {}
    for each in wanted(request, source):
        by_topic.setdefault(each.topic_partition.topic, []).append(each)
    notes: list[str] = []
    topics = [
        new_topic(request, name, found, source, left, target, ids, notes)
        for name, found in sorted(by_topic.items())
    ]
    placed = _Places(target.dirs)
    plans: list[RestorePlan] = []
    partitions: list[PlannedPartition] = []
    for number, topic in enumerate(topics):
        _place(topic, number, placed, request, plans, partitions)
    scripts: list[GroupScript] = []
    if request.groups and partitions:
        found = group_scripts(request.sources, request.groups, restored_ranges(plans))
        offsets = offsets_topic(found, source, request.offsets_partitions, work_dir, now_ms)
        scripts += offsets.scripts
        topics.append(new_offsets_topic(offsets.partitions, left, target, request, notes))
        _place(topics[-1], len(topics), placed, request, plans, partitions)
    made = {each.topic for each in partitions}
    notes += _what_is_made([topic for topic in topics if topic.name in made])
    metadata = _metadata(target, plans, partitions, [t for t in topics if t.name in made])
    configs = {topic.name: log_config_of(topic.config) for topic in topics}
    notes += _what_brokers_copy(metadata, plans)
    return FreshPlan(tuple(plans), metadata, configs, tuple(notes), tuple(scripts))


def _metadata(
    target: FreshDirs,
    plans: Sequence[RestorePlan],
    partitions: Sequence[PlannedPartition],
    topics: Sequence[NewTopic],
) -> AttachPlan:
    """All that the new cluster begins with."""
    cuts = [plan.cut for plan in plans if plan.status != REFUSED and plan.cut is not None]
    return AttachPlan(
        target.cluster_id,
        tuple(target.nodes),
        dict(target.feature_levels),
        "bootstrap.checkpoint",
        max((cut.highest_epoch for cut in cuts), default=0) + EPOCH_MARGIN,
        max((cut.highest_producer_id for cut in cuts), default=-1) + 1 + PRODUCER_ID_MARGIN,
        tuple(partitions),
        {topic.name: topic.config for topic in topics},
        # As a broker of which nothing is known: its first registration finds itself (KIP-966).
        {str(node): -1 for node in target.nodes}
        if target.feature_levels.get(ELIGIBLE_LEADERS)
        else {},
    )


def _place(
    topic: NewTopic,
    turn: int,
    placed: _Places,
    request: RestoreRequest,
    plans: list[RestorePlan],
    partitions: list[PlannedPartition],
) -> None:
    """A topic as a whole, or its refusals."""
    is_refused = any(plan.status == REFUSED for plan in topic.plans)
    own = [] if is_refused else [*_spread(topic, turn, placed, request)]
    filled = [*refuse_without_space([plan for _, its in own for plan in its], placed.left)]
    if is_refused or any(plan.status == REFUSED for plan in filled):
        plans += _whole(filled or topic.plans)
        return
    plans += filled
    partitions += (partition for partition, _ in own)


class _Places:
    """Where replicas go: the log dir of a node with the fewest bytes. left: of each device."""

    def __init__(self, dirs: Sequence[NodeDir]) -> None:
        self._bytes = {each.path: 0 for each in dirs}
        self._dirs = dirs
        self.left: dict[int, int] = {}
        self.nodes = sorted({each.node_id for each in dirs})

    def take(self, node: int, size: int) -> NodeDir:
        own = [each for each in self._dirs if each.node_id == node]
        chosen = min(own, key=lambda each: self._bytes[each.path])
        self._bytes[chosen.path] += size + 1  # empty ones are spread as well
        return chosen


def _spread(
    topic: NewTopic, turn: int, places: _Places, request: RestoreRequest
) -> Iterator[tuple[PlannedPartition, list[RestorePlan]]]:
    """Each partition with the plans of its directories that are filled."""
    for plan in topic.plans:
        if plan.cut is None:
            continue
        number = plan.topic_partition.partition
        first = (turn + number) % len(places.nodes)
        nodes = [*places.nodes[first:], *places.nodes[:first]][: topic.replicas]
        replicas: list[PlannedReplica] = []
        filled: list[RestorePlan] = []
        for node in nodes:
            place = places.take(node, plan.cut.size_in_bytes)
            is_filled = not filled or not request.leaves_followers_empty
            path = f"{place.path}/{plan.topic_partition}"
            if is_filled:
                filled.append(replace(plan, path=path, log_dir=place.path))
            replicas.append(
                PlannedReplica(
                    node,
                    place.directory_id or UNASSIGNED,
                    path if is_filled else None,
                    plan.cut.highest_epoch,
                    plan.cut.end_offset,
                    is_filled,
                )
            )
        yield (
            PlannedPartition(topic.name, topic.topic_id, number, nodes[0], tuple(replicas)),
            filled,
        )


def _whole(plans: Sequence[RestorePlan]) -> Iterator[RestorePlan]:
    """Of a topic that is refused in one place nothing is restored."""
    refused = next(plan for plan in plans if plan.status == REFUSED)
    for plan in plans:
        reason = f"{refused.topic_partition} of the same topic is refused: {refused.reason}"
        yield plan if plan.status == REFUSED else plan.refused(reason)


def _what_is_made(topics: Sequence[NewTopic]) -> Iterator[str]:
    for topic in topics:
        settings = ", ".join(f"{name}={value}" for name, value in sorted(topic.config.items()))
        yield (
            f"topic {topic.name} is made with {len(topic.plans)} partitions, id {topic.topic_id}, "
            f"replication factor {topic.replicas}, {settings or 'no settings of its own'}"
        )
        least = topic.config.get("min.insync.replicas", "1")
        if topic.name not in INTERNAL_POLICIES and int(least) > topic.replicas:
            yield (
                f"{topic.name}: min.insync.replicas={least} is more than its replicas: producers "
                "with acks=all are refused until it is set lower"
            )


def _what_brokers_copy(metadata: AttachPlan, plans: Sequence[RestorePlan]) -> Iterator[str]:
    sizes = {plan.topic_partition: plan.cut.size_in_bytes for plan in plans if plan.cut is not None}
    empty = [
        sizes[TopicPartition(each.topic, each.partition)]
        for each in metadata.partitions
        for replica in each.replicas
        if replica.path is None
    ]
    if empty:
        yield (
            f"{len(empty)} replicas begin empty and out of sync: brokers copy {sum(empty)} bytes "
            "from the leaders once they run"
        )
