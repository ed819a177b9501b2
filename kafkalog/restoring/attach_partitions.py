"""Each partition as the new metadata has it: replicas and log dirs as the copies lie, the copy that
goes furthest as leader, in sync only those that end where it does.

A topic has no gaps in its numbers: of a number below others of which nothing is there a partition
is made anew, empty, if that is asked for.

Source: Kafka ReplicationControlManager, PartitionRegistration; KIP-858.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kafkalog.log.metadata_topics import UNASSIGNED
from kafkalog.planning.force_rules import FORCE_LOST_PARTITIONS
from kafkalog.restoring.attach_facts import NO_LEADER, Notes, PlannedPartition, PlannedReplica
from kafkalog.restoring.disks import DiskCopy, Disks
from kafkalog.restoring.left_metadata import LeftMetadata


def partitions_of(
    disks: Disks,
    left: LeftMetadata | None,
    ids: Mapping[str, str],
    force: frozenset[str],
    notes: Notes,
) -> Iterator[PlannedPartition]:
    copies: dict[str, dict[int, list[DiskCopy]]] = {topic: {} for topic in ids}
    for each in disks.copies:
        if each.topic_id is not None and ids.get(each.name.topic) == each.topic_id:
            copies[each.name.topic].setdefault(each.name.partition, []).append(each)
    known = {} if left is None else left.ids
    for topic in sorted({*ids, *known}):
        topic_id = ids.get(topic) or known[topic]
        its = copies.get(topic, {})
        states = {}
        if left is not None and known.get(topic) == topic_id:
            states = left.topics.partitions[topic_id]
        for number in range(max([*its, *states], default=-1) + 1):
            own, state = its.get(number, []), states.get(number)
            if own:
                order = state["replicas"] if state else _by_turns(disks.nodes, number)
                yield _planned(topic, topic_id, number, own, order, keeps_all=bool(state))
            elif state:
                notes.lost.append(
                    f"{topic}-{number}: no copy is in these log dirs; it has no leader until one "
                    f"of the brokers {state['replicas']} is there"
                )
                yield _without_copy(topic, topic_id, number, state)
            else:
                yield _lost(topic, topic_id, number, its, force, notes)
        _say_missing(topic, its, states, notes)


def _by_turns(nodes: Sequence[int], number: int) -> list[int]:
    """The nodes in an order by which preferred leaders are spread."""
    turn = number % len(nodes)
    return [*nodes[turn:], *nodes[:turn]]


def _planned(
    topic: str,
    topic_id: str,
    number: int,
    own: Sequence[DiskCopy],
    order: Sequence[int],
    *,
    keeps_all: bool,
) -> PlannedPartition:
    by_node = {each.node_id: each for each in own}
    best = max((each.last_epoch, each.end_offset) for each in own)
    in_order = [node for node in order if keeps_all or node in by_node]
    in_order += [node for node in sorted(by_node) if node not in in_order]
    replicas = []
    for node in in_order:
        copy = by_node.get(node)
        if copy is None:
            replicas.append(PlannedReplica(node, UNASSIGNED, None, None, None, is_in_sync=False))
            continue
        is_in_sync = (copy.last_epoch, copy.end_offset) == best
        directory = copy.directory_id or UNASSIGNED
        replicas.append(
            PlannedReplica(node, directory, copy.path, copy.last_epoch, copy.end_offset, is_in_sync)
        )
    leader = next(each.node_id for each in replicas if each.is_in_sync)
    return PlannedPartition(topic, topic_id, number, leader, tuple(replicas))


def _without_copy(
    topic: str, topic_id: str, number: int, state: Mapping[str, object]
) -> PlannedPartition:
    """One that only the metadata log knows: as it was, for a broker that comes later."""
    nodes, isr = _ints(state["replicas"]), _ints(state["isr"])
    directories = state["directories"]
    given = directories if isinstance(directories, list) else []
    replicas = tuple(
        PlannedReplica(node, directory, None, None, None, node in isr)
        for node, directory in zip(nodes, given, strict=True)
    )
    return PlannedPartition(topic, topic_id, number, NO_LEADER, replicas)


def _ints(value: object) -> list[int]:
    return [int(each) for each in value] if isinstance(value, list) else []


def _lost(
    topic: str,
    topic_id: str,
    number: int,
    its: Mapping[int, Sequence[DiskCopy]],
    force: frozenset[str],
    notes: Notes,
) -> PlannedPartition:
    """A number below others of which nothing is there: a topic has no gaps."""
    what = f"{topic}-{number}: no copy is in these log dirs, and partitions above it are"
    if FORCE_LOST_PARTITIONS in force:
        notes.lost.append(f"{what}: it begins anew, empty, at offset 0")
    else:
        notes.refusals.append(
            f"{what}: give the log dirs of all nodes; if that disk is lost, "
            f"--force {FORCE_LOST_PARTITIONS} makes it anew, empty"
        )
    nearest = its[min(its, key=lambda other: abs(other - number))]
    nodes = sorted(each.node_id for each in nearest)
    replicas = tuple(
        PlannedReplica(node, UNASSIGNED, None, None, None, is_in_sync=True) for node in nodes
    )
    return PlannedPartition(topic, topic_id, number, nodes[0], replicas, is_empty=True)


def _say_missing(
    topic: str,
    its: Mapping[int, Sequence[DiskCopy]],
    states: Mapping[int, Mapping[str, object]],
    notes: Notes,
) -> None:
    """Partitions with fewer copies than they had, or than others of their topic have."""
    most = max((len(own) for own in its.values()), default=0)
    fewer: dict[tuple[int, int], list[int]] = {}
    for number, own in sorted(its.items()):
        state = states.get(number)
        wanted = len(_ints(state["replicas"])) if state else most
        if len(own) < wanted:
            fewer.setdefault((len(own), wanted), []).append(number)
    for (have, wanted), numbers in fewer.items():
        listed = ", ".join(map(str, numbers))
        notes.warnings.append(f"{topic}: {have} of {wanted} copies of partition {listed} are here")
