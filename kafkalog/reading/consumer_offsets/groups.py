"""Groups and their members, from the last record of each of their keys: what a coordinator has in
memory when it has loaded them.

Source: Kafka GroupMetadataManager; KIP-848, KIP-932, KIP-1071.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kafkalog.columns import group_schemas
from kafkalog.columns.column import arrow_schema
from kafkalog.messages.group_types import CLASSIC, SIMPLE, kind_of
from kafkalog.messages.json_form import json_text

# The last record of each key of groups and members.
GROUP_MESSAGES = pa.schema(
    [
        ("partition", pa.int32()), ("messageType", pa.string()), ("key", pa.string()),
        ("value", pa.string()), ("offset", pa.int64()), ("timestampMs", pa.int64()),
    ]
)  # fmt: skip
GROUPS = arrow_schema(group_schemas.GROUPS, all_nullable=True)
GROUP_MEMBERS = arrow_schema(group_schemas.GROUP_MEMBERS, all_nullable=True)

# States of a member's assignment in which it is not yet what it shall be.
_UNSTEADY = {"consumer": (1, 2), "share": (1, 2), "streams": (2, 3)}


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """The last record of a key. what: the message's name without the kind's prefix, `Metadata` or
    `MemberMetadata` …; text: the value's JSON."""

    kind: str
    what: str
    group: str
    member_id: str | None
    value: dict[str, Any]
    text: str
    partition: int
    timestamp_ms: int | None


def group_records(messages: pa.Table) -> Iterator[GroupRecord]:
    """Those of GROUP_MESSAGES that are about a group."""
    for batch in messages.to_batches():
        for row in batch.to_pylist():
            kind, what = kind_of(row["messageType"])
            key = json.loads(row["key"])
            group = key.get("group", key.get("groupId"))
            if kind is None or group is None:
                continue
            yield GroupRecord(
                kind, what, group, key.get("memberId"), json.loads(row["value"]), row["value"],
                row["partition"], row["timestampMs"],
            )  # fmt: skip


def groups(messages: pa.Table, commits: pa.Table) -> pa.Table:
    """GROUPS of GROUP_MESSAGES, and of commits in force: a group that has nothing but offsets is a
    simple one.
    """
    by_group: dict[tuple[str, str, int], list[GroupRecord]] = {}
    for record in group_records(messages):
        key = record.group, record.kind, record.partition
        by_group.setdefault(key, []).append(record)
    rows = []
    for (_, kind, _), records in by_group.items():
        row = _classic_group(records[0]) if kind == CLASSIC else _new_group(records)
        if row is not None:
            rows.append(row)
    known = {row["group"] for row in rows}
    found = commits.group_by("group").aggregate([("offsetsPartition", "max")]).to_pylist()
    for row in found:
        if row["group"] not in known:
            place = {"group": row["group"], "coordinatorPartition": row["offsetsPartition_max"]}
            rows.append(
                {"kind": SIMPLE, "state": "Empty", "protocolType": "", "members": 0, **place}
            )
    return pa.Table.from_pylist(rows, GROUPS)


def _classic_group(record: GroupRecord) -> dict[str, Any]:
    value = record.value
    since = value.get("currentStateTimestamp", -1)
    return {
        "group": record.group,
        "kind": CLASSIC,
        "state": "Stable" if value["members"] else "Empty",
        "protocolType": value["protocolType"],
        "protocol": value["protocol"],
        "epoch": value["generation"],
        "members": len(value["members"]),
        "stateTimestampMs": None if since == -1 else since,
        "coordinatorPartition": record.partition,
    }


def _new_group(records: Sequence[GroupRecord]) -> dict[str, Any] | None:
    """None without metadata of the group itself."""
    of: dict[str, list[GroupRecord]] = {}
    for record in records:
        of.setdefault(record.what, []).append(record)
    if "Metadata" not in of:
        return None
    (group, *_), members = of["Metadata"], of.get("MemberMetadata", [])
    assignors = [str(a) for m in members if (a := m.value.get("serverAssignor")) is not None]
    return {
        "group": group.group,
        "kind": group.kind,
        "state": _state(group, of),
        "protocolType": group.kind,
        "protocol": max(assignors, default=None),
        "epoch": group.value["epoch"],
        "members": len(members),
        "stateTimestampMs": group.timestamp_ms,
        "coordinatorPartition": group.partition,
    }


def _state(group: GroupRecord, of: Mapping[str, Sequence[GroupRecord]]) -> str:
    """Assigning: the target is behind the group's epoch; Reconciling: a member is behind it."""
    if not of.get("MemberMetadata"):
        return "Empty"
    targets = of.get("TargetAssignmentMetadata", ())
    assigned = max((target.value["assignmentEpoch"] for target in targets), default=None)
    if assigned is not None and assigned < group.value["epoch"]:
        return "Assigning"
    for current in of.get("CurrentMemberAssignment", ()):
        is_behind = assigned is not None and current.value["memberEpoch"] < assigned
        if is_behind or current.value.get("state") in _UNSTEADY[group.kind]:
            return "Reconciling"
    return "Stable"


def group_members(messages: pa.Table) -> pa.Table:
    """GROUP_MEMBERS of GROUP_MESSAGES."""
    rows: list[dict[str, Any]] = []
    members: list[GroupRecord] = []
    assignments: dict[tuple[str, str, str | None], GroupRecord] = {}
    for record in group_records(messages):
        if record.kind == CLASSIC:
            rows += _classic_members(record)
        elif record.what == "MemberMetadata":
            members.append(record)
        elif record.what == "CurrentMemberAssignment":
            assignments[record.group, record.kind, record.member_id] = record
    for member in members:
        assignment = assignments.get((member.group, member.kind, member.member_id))
        rows.append(_new_member(member, assignment))
    return pa.Table.from_pylist(rows, GROUP_MEMBERS)


def _classic_members(record: GroupRecord) -> Iterator[dict[str, Any]]:
    for member in record.value["members"]:
        subscription = subscription_of(member)
        yield {
            "group": record.group,
            "kind": CLASSIC,
            "memberId": member["memberId"],
            "instanceId": member.get("groupInstanceId"),
            "rackId": subscription.get("rackId"),
            "clientId": member["clientId"],
            "clientHost": member["clientHost"],
            "epoch": record.value["generation"],
            "subscribedTopics": subscription.get("topics"),
            "subscription": _text(member["subscription"]),
            "assignment": _text(member["assignment"]),
            "isLeader": None
            if record.value["leader"] is None
            else member["memberId"] == record.value["leader"],
        }


def subscription_of(member: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a member of a classic group subscribes to; empty where its bytes are no subscription of
    a consumer, which are left as they are."""
    subscription: Mapping[str, Any] | str | None = member["subscription"]
    return subscription if isinstance(subscription, Mapping) else {}


def _text(value: Any) -> str | None:
    """What is in a message as JSON; base64 as it is."""
    return value if value is None or isinstance(value, str) else json_text(value)


def _new_member(member: GroupRecord, assignment: GroupRecord | None) -> dict[str, Any]:
    value = member.value
    return {
        "group": member.group,
        "kind": member.kind,
        "memberId": member.member_id,
        "instanceId": value.get("instanceId"),
        "rackId": value.get("rackId"),
        "clientId": value.get("clientId"),
        "clientHost": value.get("clientHost"),
        "epoch": None if assignment is None else assignment.value["memberEpoch"],
        "subscribedTopics": value.get("subscribedTopicNames"),
        "subscription": member.text,
        "assignment": None if assignment is None else assignment.text,
    }
