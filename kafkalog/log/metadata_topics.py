"""Topics and their partitions as the records of the metadata log make them.

A change record names what is new and leaves out the rest; a leader that is named raises the leader
epoch even where it is the same one, and each record raises the partition epoch. Replicas that come
without directories keep the ones they had, new ones have none yet.

Source: Kafka TopicsDelta, TopicDelta, PartitionRegistration.merge,
DirectoryId.createDirectoriesFrom.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kafkalog.errors import CorruptRecordError

Fields = Mapping[str, Any]
# The columns of a partition: leader, leaderEpoch, partitionEpoch, leaderRecoveryState, directories,
# and those of _LISTS.
PartitionState = dict[str, Any]

UNCHANGED_LEADER = -2
UNCHANGED_STATE = -1
# Kafka's DirectoryId.UNASSIGNED: the log dir of the replica is not known.
UNASSIGNED = "AAAAAAAAAAAAAAAAAAAAAA"

# What a change leaves out stays.
_LISTS = (
    "isr",
    "replicas",
    "addingReplicas",
    "removingReplicas",
    "eligibleLeaderReplicas",
    "lastKnownElr",
)


@dataclass(frozen=True, slots=True)
class PartitionEvent:
    """What became of a partition; `before` is empty where it is new, `state` the last one where it
    is gone. partitions_count: how many the topic has then.
    """

    topic: str
    topic_id: str
    number: int
    state: PartitionState
    before: PartitionState
    partitions_count: int


class MetadataTopics:
    """Names by topic id, and states by topic id and number. Each method applies a record, and
    raises CorruptRecordError if that contradicts the ones before.
    """

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.partitions: dict[str, dict[int, PartitionState]] = {}
        self._ids: dict[str, str] = {}

    def create(self, fields: Fields) -> None:
        """TopicRecord."""
        name, topic_id = fields["name"], fields["topicId"]
        if topic_id in self.names or name in self._ids:
            raise CorruptRecordError(f"topic {name} ({topic_id}) is created twice")
        self.names[topic_id], self._ids[name] = name, topic_id
        self.partitions[topic_id] = {}

    def remove(self, fields: Fields) -> list[PartitionEvent]:
        """RemoveTopicRecord; the partitions that go, by number."""
        topic_id = fields["topicId"]
        name = self._name(topic_id)
        gone = self.partitions.pop(topic_id)
        del self.names[topic_id], self._ids[name]
        return [PartitionEvent(name, topic_id, n, gone[n], {}, 0) for n in sorted(gone)]

    def create_partition(self, fields: Fields) -> PartitionEvent:
        """PartitionRecord."""
        topic_id, number = fields["topicId"], fields["partitionId"]
        self._name(topic_id)
        state = {column: list(fields[column] or ()) for column in _LISTS}
        state |= {column: fields[column] for column in ("leader", "leaderEpoch", "partitionEpoch")}
        state["leaderRecoveryState"] = fields["leaderRecoveryState"]
        state["directories"] = list(fields["directories"]) or [UNASSIGNED] * len(state["replicas"])
        return self._put(topic_id, number, state, {})

    def change_partition(self, fields: Fields) -> PartitionEvent:
        """PartitionChangeRecord."""
        topic_id, number = fields["topicId"], fields["partitionId"]
        name = self._name(topic_id)
        before = self.partitions[topic_id].get(number)
        if before is None:
            raise CorruptRecordError(f"{name}-{number} changes and was never created")
        state = dict(before)
        for column in _LISTS:
            if fields[column] is not None:
                state[column] = list(fields[column])
        state["directories"] = _directories(before, state["replicas"], fields["directories"])
        # As PartitionRegistration.merge: the epoch of the leader rises with each change that names
        # one, the epoch of the partition with every change.
        if fields["leader"] != UNCHANGED_LEADER:
            state["leader"] = fields["leader"]
            state["leaderEpoch"] = before["leaderEpoch"] + 1
        if fields["leaderRecoveryState"] != UNCHANGED_STATE:
            state["leaderRecoveryState"] = fields["leaderRecoveryState"]
        state["partitionEpoch"] = before["partitionEpoch"] + 1
        return self._put(topic_id, number, state, before)

    def clear_eligible_leaders(self, fields: Fields) -> list[PartitionEvent]:
        """ClearElrRecord: of one topic, or of all; who may lead is no partition's epoch."""
        found = []
        for topic_id, name in self.names.items():
            if fields["topicName"] not in ("", name):
                continue
            for number, before in sorted(self.partitions[topic_id].items()):
                if before["eligibleLeaderReplicas"] or before["lastKnownElr"]:
                    state = {**before, "eligibleLeaderReplicas": [], "lastKnownElr": []}
                    found.append(self._put(topic_id, number, state, before))
        return found

    def states(self) -> Iterator[dict[str, Any]]:
        """The partitions as they are now: place, and their columns."""
        for topic_id, name in sorted(self.names.items(), key=lambda item: item[1]):
            for number, state in sorted(self.partitions[topic_id].items()):
                yield {"topic": name, "topicId": topic_id, "partition": number, **state}

    def _put(
        self, topic_id: str, number: int, state: PartitionState, before: PartitionState
    ) -> PartitionEvent:
        own = self.partitions[topic_id]
        own[number] = state
        return PartitionEvent(self.names[topic_id], topic_id, number, state, before, len(own))

    def _name(self, topic_id: str) -> str:
        if topic_id not in self.names:
            raise CorruptRecordError(f"topic {topic_id} was never created")
        return self.names[topic_id]


def _directories(before: PartitionState, replicas: list[int], given: list[str] | None) -> list[str]:
    if given:
        return list(given)
    # A change of replicas need not name their directories: those that stay keep theirs.
    had = dict(zip(before["replicas"], before["directories"], strict=False))
    return [had.get(replica, UNASSIGNED) for replica in replicas]
