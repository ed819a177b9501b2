"""Brokers, leaders and replicas: who is away, who leads too much, whose replicas share a rack.

Imbalance is Kafka's: of the partitions a broker is the first replica of, those it does not lead
(leader.imbalance.per.broker.percentage, 10). Brokers that are fenced lead nothing and are out of
the averages. Skew counts from half again the average on, and from a difference that matters.

Source: Kafka ReplicationControlManager (arePartitionLeadersImbalanced), StripedReplicaPlacer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeVar

from kafkalog.checking.cluster_view import ClusterView, listed, nodes
from kafkalog.checking.finding import Finding
from kafkalog.cluster.moments import Row
from kafkalog.log.listing import path_text
from kafkalog.texts import format_timestamp

IMBALANCE_PERCENT = 10
SKEW_PERCENT = 150
MIN_SKEW_LEADERS = 2
MIN_SKEW_BYTES = 64 * 1024 * 1024

_Key = TypeVar("_Key", int, str)


def check_placement(view: ClusterView) -> Iterator[Finding]:
    """Everything about where replicas and leaders are."""
    yield from _away(view)
    yield from _imbalance(view)
    yield from _leader_skew(view)
    yield from _racks(view)
    yield from _bytes(view)


def unfenced(view: ClusterView) -> list[int]:
    """Brokers that can lead."""
    return [node for node, row in sorted(view.brokers.items()) if not row["isFenced"]]


def bytes_of(view: ClusterView) -> tuple[dict[int, int], dict[int, dict[str, int]]]:
    """(bytes by node, bytes by node and log dir) of the log dirs that were given."""
    per_dir: dict[int, dict[str, int]] = {}
    for log_dir, meta in view.metas.items():
        if meta.node_id is not None:
            per_dir.setdefault(meta.node_id, {})[log_dir] = 0
    for partition in view.partitions:
        node = view.metas[partition.log_dir].node_id
        if node is not None:
            per_dir[node][partition.log_dir] += partition.size_in_bytes
    return {node: sum(dirs.values()) for node, dirs in per_dir.items()}, per_dir


def _away(view: ClusterView) -> Iterator[Finding]:
    stop = view.stop
    if stop is not None:
        others = f"; not in order: {nodes(stop.others)}" if stop.others else ""
        at = "" if stop.end_ms is None else f", {format_timestamp(stop.end_ms)}"
        yield view.finding(
            "cluster-stopped",
            f"all {len(view.brokers)} brokers are down, stopped in order: {nodes(stop.nodes)}"
            f"{others}; the last one at offset {stop.end_offset}{at}",
            offset=stop.from_offset,
        )
    for node, row in sorted(view.brokers.items()):
        if row["isFenced"] and (stop is None or node in stop.others):
            since = _last_change(view, node)
            count = sum(node in state["replicas"] for state in view.states)
            how = "after a controlled shutdown" if row["inControlledShutdown"] else "not in order"
            yield view.finding(
                "broker-fenced",
                f"broker {node} is fenced since offset {since['offset']}, {how}; it has "
                f"{count} replicas",
                offset=since["offset"],
            )


def _last_change(view: ClusterView, node: int) -> Row:
    """Since when a broker is as it is: the first row of the last run of fenced ones."""
    rows = [row for row in view.history.rows["brokers"] if row["brokerId"] == node]
    first = rows[-1]
    for row in reversed(rows):
        if not row["isFenced"]:
            break
        first = row
    return first


def _imbalance(view: ClusterView) -> Iterator[Finding]:
    if view.stop is not None:
        return  # nobody leads anything
    preferred: dict[int, list[Row]] = {}
    for state in view.states:
        if state["replicas"]:
            preferred.setdefault(state["replicas"][0], []).append(state)
    for node, states in sorted(preferred.items()):
        elsewhere = [state for state in states if state["leader"] != node]
        if len(elsewhere) * 100 > IMBALANCE_PERCENT * len(states):
            yield view.finding(
                "leader-imbalance",
                f"broker {node} is preferred for {len(states)} partitions and does not lead "
                f"{len(elsewhere)} of them: {listed(elsewhere)}",
            )


def _leader_skew(view: ClusterView) -> Iterator[Finding]:
    leaders = Counter(state["leader"] for state in view.states)
    counts = {node: leaders[node] for node in unfenced(view)}
    for node, count, mean in _outliers(counts, MIN_SKEW_LEADERS):
        yield view.finding(
            "leader-skew",
            f"broker {node} leads {count} partitions, {mean:.1f} are the average of {len(counts)}",
        )


def _racks(view: ClusterView) -> Iterator[Finding]:
    racks = {node: row["rack"] for node, row in view.brokers.items()}
    known = {rack for rack in racks.values() if rack is not None}
    if len(known) < 2 or None in racks.values():
        return
    for state in view.states:
        used = {racks[node] for node in state["replicas"] if node in racks}
        # More racks than replicas cannot be used, more replicas than racks must share some.
        possible = min(len(known), len(state["replicas"]))
        if len(used) < possible:
            yield view.finding(
                "replicas-off-rack",
                f"replicas {state['replicas']} are in {len(used)} of {len(known)} racks: "
                f"{', '.join(sorted(used))}",
                state,
            )


def _bytes(view: ClusterView) -> Iterator[Finding]:
    per_node, per_dir = bytes_of(view)
    for node, size, mean in _outliers(per_node, MIN_SKEW_BYTES):
        yield view.finding(
            "bytes-skew",
            f"broker {node} holds {size} bytes, {mean:.0f} are the average of brokers "
            f"{nodes(per_node)}",
        )
    for node, dirs in sorted(per_dir.items()):
        for log_dir, size, mean in _outliers(dirs, MIN_SKEW_BYTES):
            yield view.finding(
                "log-dir-skew",
                f"it holds {size} bytes, {mean:.0f} are the average of the {len(dirs)} of broker "
                f"{node}",
                path=path_text(log_dir),
                log_dir=path_text(log_dir),
            )


def _outliers(counts: Mapping[_Key, int], at_least: int) -> Iterator[tuple[_Key, int, float]]:
    """(key, count, mean) of those far above the mean of two or more."""
    if len(counts) < 2:
        return
    mean = sum(counts.values()) / len(counts)
    for key, count in counts.items():
        # By share and by number: of three partitions one more is a large share, and nobody's
        # concern.
        if count * 100 > mean * SKEW_PERCENT and count - mean >= at_least:
            yield key, count, mean
