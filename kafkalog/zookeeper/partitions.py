"""Topics and their partitions: assignment, leader and in-sync replicas over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kafkalog.zookeeper.changes import ChangeKind, NodeChange
from kafkalog.zookeeper.cluster_changes import Problems, Row, TableBuilder, when
from kafkalog.zookeeper.members import is_node_id
from kafkalog.zookeeper.znodes import PartitionState, TopicValue, parse_partition_state, parse_topic


class Topics(TableBuilder):
    """Table `topics`: a row for each life of `/brokers/topics/T`; `/admin/delete_topics/T` asks for
    its end.
    """

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._alive: dict[str, Row] = {}

    def add(self, change: NodeChange, parts: Sequence[str]) -> None:
        if len(parts) != 3:
            return
        if parts[:2] == ["admin", "delete_topics"] and change.kind is ChangeKind.CREATED:
            if parts[2] in self._alive:
                self._alive[parts[2]]["deletionRequestedMs"] = change.time_ms
        elif parts[:2] == ["brokers", "topics"]:
            self._add_topic(change, parts[2])

    def _add_topic(self, change: NodeChange, topic: str) -> None:
        if change.kind is ChangeKind.CREATED:
            row = {"topic": topic, **when(change), "partitionsCount": 0}
            self._alive[topic] = row
            self.rows.append(row)
        row = self._alive.get(topic, {})
        if change.kind is ChangeKind.DELETED:
            row |= {"endTimestampMs": change.time_ms, "endOffset": change.zxid}
            self._alive.pop(topic, None)
            return
        value = self.problems.parsed(change, parse_topic)
        if value is not None:
            row |= {"topicId": value.topic_id, "partitionsCount": len(value.replicas)}
            row["replicationFactor"] = len(value.replicas[0]) if 0 in value.replicas else None


class PartitionChanges(TableBuilder):
    """Table `partition_changes`: `/brokers/topics/T/partitions/P/state`, and what of the topic's
    assignment changes for a partition that has a state.
    """

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._topics: dict[str, TopicValue] = {}
        self._last: dict[tuple[str, int], Row] = {}

    def add(self, change: NodeChange, parts: Sequence[str]) -> None:
        if parts[:2] != ["brokers", "topics"] or change.kind is ChangeKind.ACL:
            return
        if len(parts) == 3:
            self._add_assignment(change, parts[2])
        elif (
            len(parts) == 6 and parts[3] == "partitions" and parts[5] == "state"
            and is_node_id(parts[4])
        ):  # fmt: skip
            self._add_state(change, parts[2], int(parts[4]))

    def _add_assignment(self, change: NodeChange, topic: str) -> None:
        if change.kind is ChangeKind.DELETED:
            self._topics.pop(topic, None)
            return
        value = self.problems.parsed(change, parse_topic)
        if value is None:
            return
        self._topics[topic] = value
        for (name, partition), last in list(self._last.items()):
            assigned = self._assigned(topic, partition)
            if name == topic and any(last.get(key) != nodes for key, nodes in assigned.items()):
                kept = (
                    "leader", "leaderEpoch", "partitionEpoch", "controllerEpoch", "isr",
                    "leaderRecoveryState",
                )  # fmt: skip
                row = {key: last.get(key) for key in kept}
                self._append(change, topic, partition, "changed", row | assigned)

    def _add_state(self, change: NodeChange, topic: str, partition: int) -> None:
        key = topic, partition
        if change.kind is ChangeKind.DELETED:
            self._append(change, topic, partition, "deleted", {})
            self._last.pop(key, None)
            return
        state = self.problems.parsed(change, parse_partition_state)
        if state is None:
            return
        last = self._last.get(key)
        event = "created" if last is None else "changed"
        row = {
            "leader": state.leader,
            "leaderEpoch": state.leader_epoch,
            "partitionEpoch": change.version,
            "controllerEpoch": state.controller_epoch,
            "isr": list(state.isr),
            "leaderRecoveryState": state.recovery_state,
            **self._assigned(topic, partition),
        }
        # Between the last row and one from a snapshot others may be missing.
        if last is not None and change.is_from_log:
            row |= _compared(last, state)
        self._append(change, topic, partition, event, row)

    def _append(self, change: NodeChange, topic: str, partition: int, event: str, row: Row) -> None:
        value = self._topics.get(topic)
        last = self._last.get((topic, partition), {})
        made = {
            "topic": topic,
            "topicId": last.get("topicId") if value is None else value.topic_id,
            "partition": partition,
            "event": event,
            **when(change),
            **row,
        }
        self.rows.append(made)
        self._last[topic, partition] = made

    def _assigned(self, topic: str, partition: int) -> Row:
        value = self._topics.get(topic)
        if value is None:
            return {}
        return {
            "replicas": _list(value.replicas.get(partition)),
            "addingReplicas": _list(value.adding.get(partition)),
            "removingReplicas": _list(value.removing.get(partition)),
        }


def _compared(last: Row, state: PartitionState) -> Row:
    """What a change did to leader and in-sync replicas. Without a leader (-1) the last in-sync
    replica stays listed, so a leader that is not in the list was elected uncleanly.
    """
    before = last["isr"]
    is_elected = state.leader >= 0 and state.leader != last["leader"]
    return {
        "previousLeader": last["leader"],
        "isrJoined": sorted(set(state.isr) - set(before)),
        "isrLeft": sorted(set(before) - set(state.isr)),
        "isUnclean": is_elected and state.leader not in before,
    }


def _list(nodes: Iterable[int] | None) -> list[int]:
    return [] if nodes is None else list(nodes)
