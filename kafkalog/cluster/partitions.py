"""Tables `topics` and `partition_changes`.

A change record names what is new and leaves out the rest; a leader that is named raises the leader
epoch even where it is the same one, and each record raises the partition epoch. Replicas that come
without directories keep the ones they had, new ones have none yet.

An election is unclean if the controller says that its leader has to recover (3.2 and newer). The
in-sync replicas before it do not tell: the change that ends a reassignment may bring a leader into
them and elect it at once, and eligible leader replicas (KIP-966) lead cleanly from outside.

Source: Kafka PartitionRegistration.merge, TopicDelta, DirectoryId.createDirectoriesFrom.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kafkalog.cluster.moments import Moment, Row, Spans
from kafkalog.errors import CorruptRecordError

Fields = Mapping[str, Any]

NO_LEADER = -1
UNCHANGED_LEADER = -2
UNCHANGED_STATE = -1
RECOVERING = 1
UNASSIGNED = "AAAAAAAAAAAAAAAAAAAAAA"

# Column → field of the records; what a change leaves out stays.
_LISTS = {
    "isr": "isr",
    "replicas": "replicas",
    "addingReplicas": "addingReplicas",
    "removingReplicas": "removingReplicas",
    "eligibleLeaderReplicas": "eligibleLeaderReplicas",
    "lastKnownElr": "lastKnownElr",
}


class Topics:
    """Topics by id, their partitions, and what happened to each."""

    def __init__(self) -> None:
        self.spans = Spans()
        self.changes: list[Row] = []
        self._names: dict[str, str] = {}
        self._partitions: dict[str, dict[int, Row]] = {}

    def create(self, fields: Fields, moment: Moment) -> None:
        """TopicRecord."""
        name, topic_id = fields["name"], fields["topicId"]
        if topic_id in self._names or name in self._names.values():
            raise CorruptRecordError(f"topic {name} ({topic_id}) is created twice")
        self._names[topic_id] = name
        self._partitions[topic_id] = {}
        self.spans.hold(
            topic_id, name, moment,
            {"topic": name, "topicId": topic_id, "partitionsCount": 0, "replicationFactor": None},
        )  # fmt: skip

    def remove(self, fields: Fields, moment: Moment) -> str:
        """RemoveTopicRecord; the topic's name."""
        topic_id = fields["topicId"]
        name = self._name(topic_id)
        for number, state in sorted(self._partitions.pop(topic_id).items()):
            self._note(moment, "deleted", name, topic_id, number, state, {})
        self.spans.end(topic_id, moment)
        del self._names[topic_id]
        return name

    def create_partition(self, fields: Fields, moment: Moment) -> None:
        """PartitionRecord."""
        topic_id, number = fields["topicId"], fields["partitionId"]
        name = self._name(topic_id)
        state = {column: list(fields[field] or ()) for column, field in _LISTS.items()}
        state |= {column: fields[column] for column in ("leader", "leaderEpoch", "partitionEpoch")}
        state["leaderRecoveryState"] = fields["leaderRecoveryState"]
        state["directories"] = list(fields["directories"]) or [UNASSIGNED] * len(state["replicas"])
        self._partitions[topic_id][number] = state
        self._note(moment, "created", name, topic_id, number, state, {})
        self._count(topic_id, number, state)

    def change_partition(self, fields: Fields, moment: Moment) -> None:
        """PartitionChangeRecord."""
        topic_id, number = fields["topicId"], fields["partitionId"]
        name = self._name(topic_id)
        before = self._partitions[topic_id].get(number)
        if before is None:
            raise CorruptRecordError(f"{name}-{number} changes and was never created")
        state = dict(before)
        for column, field in _LISTS.items():
            if fields[field] is not None:
                state[column] = list(fields[field])
        state["directories"] = _directories(before, state["replicas"], fields["directories"])
        if fields["leader"] != UNCHANGED_LEADER:
            state["leader"] = fields["leader"]
            state["leaderEpoch"] = before["leaderEpoch"] + 1
        if fields["leaderRecoveryState"] != UNCHANGED_STATE:
            state["leaderRecoveryState"] = fields["leaderRecoveryState"]
        state["partitionEpoch"] = before["partitionEpoch"] + 1
        self._partitions[topic_id][number] = state
        self._note(moment, "changed", name, topic_id, number, state, before)
        self._count(topic_id, number, state)

    def clear_eligible_leaders(self, fields: Fields, moment: Moment) -> None:
        """ClearElrRecord: of one topic, or of all; who may lead is no partition's epoch."""
        for topic_id, name in list(self._names.items()):
            if fields["topicName"] in ("", name):
                for number, before in sorted(self._partitions[topic_id].items()):
                    if before["eligibleLeaderReplicas"] or before["lastKnownElr"]:
                        state = {**before, "eligibleLeaderReplicas": [], "lastKnownElr": []}
                        self._partitions[topic_id][number] = state
                        self._note(moment, "changed", name, topic_id, number, state, before)

    def states(self) -> Iterator[Row]:
        """The partitions as they are now: place, and the columns of a change."""
        for topic_id, name in sorted(self._names.items(), key=lambda item: item[1]):
            for number, state in sorted(self._partitions[topic_id].items()):
                yield {"topic": name, "topicId": topic_id, "partition": number, **state}

    def _name(self, topic_id: str) -> str:
        if topic_id not in self._names:
            raise CorruptRecordError(f"topic {topic_id} was never created")
        return self._names[topic_id]

    def _count(self, topic_id: str, number: int, state: Row) -> None:
        row = self.spans.row(topic_id)
        if row is not None:
            row["partitionsCount"] = len(self._partitions[topic_id])
            if number == 0:
                row["replicationFactor"] = len(state["replicas"])

    def _note(
        self,
        moment: Moment,
        event: str,
        name: str,
        topic_id: str,
        number: int,
        state: Row,
        before: Row,
    ) -> None:
        isr, was = set(state["isr"]), set(before.get("isr", ()))
        is_gone = event == "deleted"
        self.changes.append(
            moment.row(
                topic=name,
                topicId=topic_id,
                partition=number,
                event=event,
                **state,
                previousLeader=before.get("leader"),
                isrJoined=sorted(isr - was) if not is_gone else [],
                isrLeft=sorted(was - isr),
                isUnclean=bool(before) and _is_unclean(state, before),
            )
        )


def _is_unclean(state: Row, before: Row) -> bool:
    if state["leaderRecoveryState"] != RECOVERING:
        return False
    is_new = state["leaderEpoch"] != before["leaderEpoch"] and state["leader"] not in before["isr"]
    return before["leaderRecoveryState"] != RECOVERING or (is_new and state["leader"] != NO_LEADER)


def _directories(before: Row, replicas: list[int], told: list[str] | None) -> list[str]:
    if told:
        return list(told)
    had = dict(zip(before["replicas"], before["directories"], strict=False))
    return [had.get(replica, UNASSIGNED) for replica in replicas]
