"""Which topics a restore makes in a fresh target, where their replicas go, up to where each log is
taken, and why not. Nothing is written.

Topics keep their ids, and settings where the source's metadata log tells them. Replicas are spread
over nodes by turns, over the log dirs of a node by bytes. One leader epoch, above all epochs in the
logs, and producer ids above all that are in them: the logs stay as they are, byte for byte, and
whoever writes next cannot meet what is in them. A topic is restored whole or not at all.

Source: Kafka ReplicationControlManager, StripedReplicaPlacer, ProducerIdControlManager.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kafkalog.format.topics import INTERNAL_POLICIES, OFFSETS_TOPIC
from kafkalog.format.uuid_text import is_reserved_directory_id
from kafkalog.log.inventory import LogInventory, PartitionInventory
from kafkalog.log.metadata_topics import UNASSIGNED
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.statuses import REFUSED
from kafkalog.restoring.attach_facts import (
    ELIGIBLE_LEADERS,
    AttachPlan,
    PlannedPartition,
    PlannedReplica,
)
from kafkalog.restoring.attach_plan import EPOCH_MARGIN, PRODUCER_ID_MARGIN
from kafkalog.restoring.cut import Until, cut_log
from kafkalog.restoring.disks import NodeDir
from kafkalog.restoring.fresh import FreshDirs
from kafkalog.restoring.groups import GroupScript, group_scripts
from kafkalog.restoring.left_metadata import LeftMetadata, read_left_metadata
from kafkalog.restoring.offsets_topic import offsets_topic
from kafkalog.restoring.plan import (
    RestorePlan,
    TransactionalIds,
    blank_plan,
    cut_of,
    wanted,
    warnings_of,
    why_not_from,
)
from kafkalog.restoring.request import RestoreRequest
from kafkalog.restoring.space import refuse_without_space
from kafkalog.restoring.topic_settings import log_config_of, settings_of

# Of a source whose metadata log is not here; more copies than that are rarely wanted.
_REPLICAS = 3


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


@dataclass(slots=True)
class _Topic:
    """A topic of the target: its partitions' plans, without a place yet."""

    name: str
    source_name: str
    topic_id: str
    config: Mapping[str, str]
    plans: list[RestorePlan]
    replicas: int


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
        _topic(request, name, found, source, left, target, ids, notes)
        for name, found in sorted(by_topic.items())
    ]
    placed = _Places(target.dirs)
    plans: list[RestorePlan] = []
    partitions: list[PlannedPartition] = []
    for number, topic in enumerate(topics):
        _place(topic, number, placed, request, plans, partitions)
    scripts: list[GroupScript] = []
    if request.groups and partitions:
        found = group_scripts(request.sources, request.groups, plans)
        offsets = offsets_topic(found, source, request.offsets_partitions, work_dir, now_ms)
        scripts += offsets.scripts
        topics.append(_offsets_topic(offsets.partitions, left, target, request, notes))
        _place(topics[-1], len(topics), placed, request, plans, partitions)
    made = {each.topic for each in partitions}
    notes += _what_is_made([topic for topic in topics if topic.name in made])
    cuts = [plan.cut for plan in plans if plan.status != REFUSED and plan.cut is not None]
    metadata = AttachPlan(
        target.cluster_id,
        tuple(target.nodes),
        dict(target.feature_levels),
        "bootstrap.checkpoint",
        max((cut.highest_epoch for cut in cuts), default=0) + EPOCH_MARGIN,
        max((cut.highest_producer_id for cut in cuts), default=-1) + 1 + PRODUCER_ID_MARGIN,
        tuple(partitions),
        {topic.name: topic.config for topic in topics if topic.name in made},
        # As a broker of which nothing is known: its first registration finds itself (KIP-966).
        {str(node): -1 for node in target.nodes}
        if target.feature_levels.get(ELIGIBLE_LEADERS)
        else {},
    )
    configs = {topic.name: log_config_of(topic.config) for topic in topics}
    notes += _what_brokers_copy(metadata, plans)
    return FreshPlan(tuple(plans), metadata, configs, tuple(notes), tuple(scripts))


def _place(
    topic: _Topic,
    turn: int,
    placed: _Places,
    request: RestoreRequest,
    plans: list[RestorePlan],
    partitions: list[PlannedPartition],
) -> None:
    """A topic as a whole, or its refusals."""
    is_refused = any(plan.status == REFUSED for plan in topic.plans)
    own = [] if is_refused else [*_spread(topic, turn, placed, request)]
    filled = [*refuse_without_space([plan for _, its in own for plan in its])]
    if is_refused or any(plan.status == REFUSED for plan in filled):
        plans += _whole(filled or topic.plans)
        return
    plans += filled
    partitions += (partition for partition, _ in own)


def _offsets_topic(
    found: Sequence[PartitionInventory],
    left: LeftMetadata | None,
    target: FreshDirs,
    request: RestoreRequest,
    notes: list[str],
) -> _Topic:
    plans = [
        RestorePlan(
            each.topic_partition, "", "", each.topic_partition, each.path, each.token, "", RESTORE,
            cut=cut_log(each, Until(), to_stable=False),
        )
        for each in found
    ]  # fmt: skip
    config = settings_of(OFFSETS_TOPIC, found, left, notes)
    count = _replicas(request, left, OFFSETS_TOPIC, target)
    return _Topic(OFFSETS_TOPIC, OFFSETS_TOPIC, _new_topic_id(), config, plans, count)


def _replicas(
    request: RestoreRequest, left: LeftMetadata | None, topic: str, target: FreshDirs
) -> int:
    states = [] if left is None else [s for s in left.topics.states() if s["topic"] == topic]
    known = len(states[0]["replicas"]) if states else _REPLICAS
    return min(request.replication_factor or known, len(target.nodes))


def _topic(
    request: RestoreRequest,
    name: str,
    found: Sequence[PartitionInventory],
    source: LogInventory,
    left: LeftMetadata | None,
    target: FreshDirs,
    ids: TransactionalIds,
    notes: list[str],
) -> _Topic:
    new = request.renamed.get(name, name)
    config = settings_of(name, found, left, notes)
    log_config = log_config_of(config)
    missing = _missing(found, left, name)
    plans = []
    for each in found:
        plan = blank_plan(request.target_of(each.topic_partition), each)
        reason = "; ".join(target.why_not) or why_not_from(each, source) or missing
        if not reason:
            cut, reason = cut_of(request, each, ids)
            warnings = () if cut is None else tuple(warnings_of(cut, log_config))
            plan = replace(plan, cut=cut, warnings=warnings)
        plans.append(plan.refused(reason) if reason else plan)
    topic_ids = {each.topic_id for each in found}
    kept = topic_ids.pop() if len(topic_ids) == 1 and new == name else None
    count = _replicas(request, left, name, target)
    return _Topic(new, name, kept or _new_topic_id(), config, plans, count)


def _missing(
    found: Sequence[PartitionInventory], left: LeftMetadata | None, name: str
) -> str | None:
    """A topic has no gaps in its numbers."""
    here = {each.topic_partition.partition for each in found}
    count = max(here) + 1
    if left is not None:
        count = max(
            [count, *(s["partition"] + 1 for s in left.topics.states() if s["topic"] == name)]
        )
    missing = [str(number) for number in range(count) if number not in here]
    if not missing:
        return None
    return (
        f"{name} has {count} partitions, of {', '.join(missing)} nothing is in the source: give "
        "the log dirs with all of them"
    )


def _new_topic_id() -> str:
    while True:
        text = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode()[:22]
        # As Kafka: one that begins with a dash is taken for an option.
        if not text.startswith("-") and not is_reserved_directory_id(text):
            return text


class _Places:
    """Where replicas go: the log dir of a node with the fewest bytes."""

    def __init__(self, dirs: Sequence[NodeDir]) -> None:
        self._bytes = {each.path: 0 for each in dirs}
        self._dirs = dirs
        self.nodes = sorted({each.node_id for each in dirs})

    def take(self, node: int, size: int) -> NodeDir:
        own = [each for each in self._dirs if each.node_id == node]
        chosen = min(own, key=lambda each: self._bytes[each.path])
        self._bytes[chosen.path] += size + 1  # empty ones are spread as well
        return chosen


def _spread(
    topic: _Topic, turn: int, places: _Places, request: RestoreRequest
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


def _what_is_made(topics: Sequence[_Topic]) -> Iterator[str]:
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
        sizes[name]
        for each in metadata.partitions
        for replica in each.replicas
        if replica.path is None
        for name in sizes
        if (name.topic, name.partition) == (each.topic, each.partition)
    ]
    if empty:
        yield (
            f"{len(empty)} replicas begin empty and out of sync: brokers copy {sum(empty)} bytes "
            "from the leaders once they run"
        )
