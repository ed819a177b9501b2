"""A cluster that was stopped: no partition has a leader, and that is no finding of single ones.

A broker that is stopped in order asks for it (controlled shutdown): its partitions get other
leaders, the last ones none, and it is fenced. The stop begins with the first such request of those
that are still down where no broker is up; what was wrong before is a finding as ever.

Source: Kafka ReplicationControlManager.handleBrokerInControlledShutdown; KIP-841.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafkalog.cluster.moments import Row


@dataclass(frozen=True, slots=True)
class ClusterStop:
    """From this offset of the metadata log on. `nodes` went in order, `others` did not; the last of
    all was fenced at `end_offset`, `end_ms`.
    """

    from_offset: int
    nodes: tuple[int, ...]
    others: tuple[int, ...]
    end_offset: int
    end_ms: int | None


def find_stop(brokers: Mapping[int, Row], history: Iterable[Row]) -> ClusterStop | None:
    """None where a broker is up, or none was stopped in order. `brokers`: as they are; `history`:
    all rows about them, in order.
    """
    if not brokers or not all(row["isFenced"] for row in brokers.values()):
        return None
    nodes = tuple(sorted(node for node, row in brokers.items() if row["inControlledShutdown"]))
    if not nodes:
        return None
    starts: dict[int, int] = {}
    for row in history:
        node = row["brokerId"]
        if not row["inControlledShutdown"]:
            starts.pop(node, None)
        elif node in nodes:
            starts.setdefault(node, row["offset"])
    last = max(brokers.values(), key=lambda row: int(row["offset"]))
    return ClusterStop(
        from_offset=min(starts.values()),
        nodes=nodes,
        others=tuple(sorted(set(brokers) - set(nodes))),
        end_offset=last["offset"],
        end_ms=last["timestampMs"],
    )
