"""Tables `topics` and `partition_changes`: rows of what `MetadataTopics` says happened.

An election is unclean if the controller says that its leader has to recover (3.2 and newer). The
in-sync replicas before it do not tell: the change that ends a reassignment may bring a leader into
them and elect it at once, and eligible leader replicas (KIP-966) lead cleanly from outside.

Source: Kafka PartitionRegistration, ReplicationControlManager; KIP-704.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkalog.cluster.moments import Moment, Row, Spans
from kafkalog.log.metadata_state import Events
from kafkalog.log.metadata_topics import PartitionEvent

Fields = Mapping[str, Any]

NO_LEADER = -1
RECOVERING = 1


class Topics:
    """Topics by id, and what happened to each partition."""

    def __init__(self) -> None:
        self.spans = Spans()
        self.changes: list[Row] = []

    def create(self, fields: Fields, moment: Moment) -> None:
        """TopicRecord."""
        name, topic_id = fields["name"], fields["topicId"]
        self.spans.hold(
            topic_id, name, moment,
            {"topic": name, "topicId": topic_id, "partitionsCount": 0, "replicationFactor": None},
        )  # fmt: skip

    def remove(self, fields: Fields, events: Events, moment: Moment) -> str:
        """RemoveTopicRecord; the topic's name."""
        for event in events:
            self._add(moment, "deleted", event)
        row = self.spans.end(fields["topicId"], moment)
        return "" if row is None else str(row["topic"])

    def note(self, events: Events, moment: Moment) -> None:
        """What became of partitions of topics that stay."""
        for event in events:
            self._add(moment, "changed" if event.before else "created", event)
            row = self.spans.row(event.topic_id)
            if row is None:
                continue
            row["partitionsCount"] = event.partitions_count
            if event.number == 0:
                row["replicationFactor"] = len(event.state["replicas"])

    def _add(self, moment: Moment, what: str, event: PartitionEvent) -> None:
        state, before = event.state, event.before
        isr, was = set(state["isr"]), set(before.get("isr", ()))
        is_gone = what == "deleted"
        self.changes.append(
            moment.row(
                topic=event.topic,
                topicId=event.topic_id,
                partition=event.number,
                event=what,
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
