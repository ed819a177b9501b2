"""When a replica was not in sync: from the change that took it out of the in-sync replicas to the
one that took it back, as the rows of `partition_changes` have them.

A broker that is fenced, stops, or falls behind leaves the in-sync replicas by such a change, so
nothing else has to be asked. A new replica is out of sync until it has caught up: it copies from
the log's start, and misses what goes meanwhile as any other. A snapshot tells what holds at its
end: who is out of sync there is so since then at the latest.

Source: Kafka ReplicationControlManager (handleBrokerFenced, handleBrokerUnfenced, alterPartition).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kafkalog.cluster.moments import METADATA_SNAPSHOT, Row


@dataclass(frozen=True, slots=True)
class Absence:
    """A replica out of sync: `to_ms` is None where it still is when the history ends. is_longer: it
    was so before `from_ms` already, as a snapshot says.
    """

    topic: str
    partition: int
    node: int
    from_ms: int
    to_ms: int | None = None
    is_longer: bool = False

    def length_ms(self, now_ms: int) -> int:
        """How long; one that still goes on counts to `now_ms`."""
        return (now_ms if self.to_ms is None else self.to_ms) - self.from_ms


class Absences:
    """Fed with the changes of partitions, in their order. `found`: by topic id and partition those
    of nodes that still have a replica, in the order in which they began.
    """

    def __init__(self, changes: Sequence[Row]) -> None:
        self.found: dict[tuple[str, int], list[Absence]] = {}
        for row in changes:
            place = row["topicId"], row["partition"]
            if row["event"] == "deleted":
                self.found.pop(place, None)
            elif row["timestampMs"] is not None:
                self.found[place] = _after(self.found.get(place, ()), row)


def _after(known: Sequence[Absence], row: Row) -> list[Absence]:
    """The absences of a partition after a change of it."""
    in_sync, at_ms = set(row["isr"]), row["timestampMs"]
    kept = [each for each in known if each.node in row["replicas"]]
    still = {each.node for each in kept if each.to_ms is None}
    kept = [
        replace(each, to_ms=at_ms) if each.to_ms is None and each.node in in_sync else each
        for each in kept
    ]
    is_longer = row["source"] == METADATA_SNAPSHOT
    kept += [
        Absence(row["topic"], row["partition"], node, at_ms, None, is_longer)
        for node in row["replicas"]
        if node not in in_sync and node not in still
    ]
    return kept
