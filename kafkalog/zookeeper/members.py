"""Who was in the cluster: registrations of brokers, and who held the controllership.

A registration is an ephemeral node: it goes when its broker closes its session, or when the session
expires because nothing is heard of it. Its zxid is the broker's epoch (KIP-380).
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkalog.zookeeper.changes import ChangeKind, NodeChange
from kafkalog.zookeeper.cluster_changes import (
    Problems,
    Row,
    TableBuilder,
    how_it_went,
    when,
)
from kafkalog.zookeeper.znodes import (
    parse_broker,
    parse_controller,
    parse_number,
)


class Brokers(TableBuilder):
    """Table `brokers`: `/brokers/ids/N`."""

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._last: dict[int, Row] = {}

    def add(self, change: NodeChange, parts: Sequence[str]) -> None:
        if len(parts) != 3 or parts[:2] != ["brokers", "ids"] or not is_node_id(parts[2]):
            return
        if change.kind is ChangeKind.ACL:
            return
        broker_id = int(parts[2])
        last = self._last.get(broker_id)
        value = self.problems.parsed(change, parse_broker)
        known: Row = {}
        if value is not None:
            known = {"endpoints": ",".join(value.endpoints), "rack": value.rack}
        # A registration is made and set in one transaction (2.2 and newer).
        if last is not None and change.kind is ChangeKind.SET and last["offset"] == change.zxid:
            last.update(known)
            return
        is_new = change.kind is ChangeKind.CREATED
        gone = how_it_went(change)
        event = "registered" if is_new else "changed" if change.kind is ChangeKind.SET else gone
        row = {
            "brokerId": broker_id,
            "event": event,
            **when(change),
            "brokerEpoch": change.zxid if is_new or last is None else last["brokerEpoch"],
            "sessionId": change.owner,
            "isReturn": last is not None and (is_new or last["isReturn"]),
            **known,
        }
        self.rows.append(row)
        self._last[broker_id] = row


class Controllers(TableBuilder):
    """Table `controllers`: `/controller`, and `/controller_epoch` which is set with it (2.2 and
    newer) or behind it.
    """

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._epoch: tuple[int, int] | None = None

    def add(self, change: NodeChange, parts: Sequence[str]) -> None:
        if parts == ["controller_epoch"]:
            self._add_epoch(change)
        elif parts == ["controller"] and change.kind is not ChangeKind.ACL:
            self._add_holder(change)

    def _add_holder(self, change: NodeChange) -> None:
        row = {**when(change), "sessionId": change.owner}
        if change.kind is ChangeKind.DELETED:
            self.rows.append({**row, "event": how_it_went(change)})
            return
        value = self.problems.parsed(change, parse_controller)
        if value is None:
            return
        last = self.rows[-1] if self.rows else {}
        is_same = last.get("event") == "elected" and last["controllerId"] == value.broker_id
        if change.kind is ChangeKind.SET and is_same and last["kraftEpoch"] == value.kraft_epoch:
            return
        row |= {"event": "elected", "controllerId": value.broker_id}
        row |= {"kraftEpoch": value.kraft_epoch, "controllerEpoch": None}
        if self._epoch is not None and self._epoch[0] == change.zxid:
            row["controllerEpoch"] = self._epoch[1]
        self.rows.append(row)

    def _add_epoch(self, change: NodeChange) -> None:
        epoch = self.problems.parsed(change, parse_number)
        if epoch is None or change.kind not in (ChangeKind.CREATED, ChangeKind.SET):
            return
        self._epoch = (change.zxid, epoch)
        last = self.rows[-1] if self.rows else {}
        if last.get("event") == "elected" and last["controllerEpoch"] is None:
            last["controllerEpoch"] = epoch


def is_node_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 10 and int(text) < 1 << 31
