"""How far share groups are: their last snapshot of each partition, and the updates behind it.

Source: Kafka ShareCoordinatorShard; KIP-932.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kafkalog.columns import coordinator_schemas
from kafkalog.columns.column import arrow_schema

SHARE_STATES = arrow_schema(coordinator_schemas.SHARE_STATES, all_nullable=True)
# Columns of view `messages` that are looked at.
STATE_COLUMNS = ("partition", "offset", "messageType", "key", "value", "valueBytes")

_BATCH = ("firstOffset", "lastOffset", "deliveryState", "deliveryCount")


@dataclass(slots=True)
class _State:
    """snapshot: the last one, or the tombstone behind it, which has no value."""

    offset: int = -1
    snapshot: dict[str, Any] | None = None
    updates: list[tuple[int, dict[str, Any]]] = field(default_factory=list)

    def add_snapshot(self, offset: int, snapshot: dict[str, Any] | None) -> None:
        if offset > self.offset:
            self.offset, self.snapshot = offset, snapshot
            self.updates = [update for update in self.updates if update[0] > offset]

    def add_update(self, offset: int, update: dict[str, Any]) -> None:
        if offset > self.offset:
            self.updates.append((offset, update))


def share_states(messages: Iterable[pa.RecordBatch]) -> pa.Table:
    """SHARE_STATES of rows with STATE_COLUMNS, of any parts of the topic in any order; a row for
    each group and partition. A tombstone ends a state.
    """
    states: dict[tuple[Any, ...], _State] = {}
    for batch in messages:
        for row in batch.to_pylist():
            if row["key"] is None:
                continue
            key = json.loads(row["key"])
            name = key.get("groupId"), key.get("topicId"), key.get("partition"), row["partition"]
            state = states.setdefault(name, _State())
            if row["messageType"] == "ShareSnapshot" and row["valueBytes"] is None:
                state.add_snapshot(row["offset"], None)
            elif row["value"] is None:
                continue
            elif row["messageType"] == "ShareSnapshot":
                state.add_snapshot(row["offset"], json.loads(row["value"]))
            elif row["messageType"] == "ShareUpdate":
                state.add_update(row["offset"], json.loads(row["value"]))
    rows = [
        _row(name, state, state.snapshot)
        for name, state in states.items()
        if state.snapshot is not None
    ]
    rows.sort(key=lambda row: (row["group"] or "", row["topicId"] or "", row["partition"] or 0))
    return pa.Table.from_pylist(rows, SHARE_STATES)


def _row(name: tuple[Any, ...], state: _State, snapshot: dict[str, Any]) -> dict[str, Any]:
    group, topic_id, partition, state_partition = name
    epoch = snapshot.get("snapshotEpoch")
    updates = [
        update
        for _, update in sorted(state.updates, key=lambda pair: pair[0])
        if update.get("snapshotEpoch") == epoch
    ]
    last = updates[-1] if updates else {}
    starts = [u["startOffset"] for u in updates if _first(u.get("startOffset"), -1) >= 0]
    return {
        "group": group,
        "topicId": topic_id,
        "partition": partition,
        "snapshotEpoch": epoch,
        "stateEpoch": snapshot.get("stateEpoch"),
        "leaderEpoch": _first(last.get("leaderEpoch"), snapshot.get("leaderEpoch")),
        "startOffset": starts[-1] if starts else snapshot.get("startOffset"),
        "deliveryCompleteCount": _first(
            last.get("deliveryCompleteCount"), snapshot.get("deliveryCompleteCount")
        ),
        "createMs": snapshot.get("createTimestamp"),
        "writeMs": snapshot.get("writeTimestamp"),
        "snapshotBatches": _batches(snapshot),
        "updates": len(updates),
        "updateBatches": [batch for update in updates for batch in _batches(update) or ()],
        "statePartition": state_partition,
    }


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _batches(value: dict[str, Any]) -> list[dict[str, Any]] | None:
    found = value.get("stateBatches")
    return None if found is None else [{name: b.get(name) for name in _BATCH} for b in found]
