"""Groups and their members, from the last record of each of their keys: what a coordinator has in
memory when it has loaded them.

Source: Kafka GroupMetadataManager; KIP-848, KIP-932, KIP-1071.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

# The last record of each key of groups and members.
GROUP_MESSAGES = pa.schema(
    [
        ("partition", pa.int32()), ("messageType", pa.string()), ("key", pa.string()),
        ("value", pa.string()), ("offset", pa.int64()), ("timestampMs", pa.int64()),
    ]
)  # fmt: skip
# What decides about a group's offsets: the time of a classic one's state, and what its members
# subscribe to.
GROUP_USE = pa.schema(
    [
        ("group", pa.string()), ("isClassic", pa.bool_()), ("groupMembers", pa.int64()),
        ("stateTimestampMs", pa.int64()), ("usedTopics", pa.list_(pa.string())),
    ]
)  # fmt: skip


def group_use(messages: pa.Table) -> pa.Table:
    """GROUP_USE of GROUP_MESSAGES: a row for each group that has metadata of its own."""
    uses: dict[str, list[Any]] = {}
    with_metadata: set[str] = set()
    for row in messages.to_pylist():
        kind, key = row["messageType"], json.loads(row["key"])
        group = key.get("group", key.get("groupId"))
        if group is None or not kind.endswith(("GroupMetadata", "GroupMemberMetadata")):
            continue
        use, value = uses.setdefault(group, [False, 0, None, {}]), json.loads(row["value"])
        if kind.endswith("GroupMetadata"):
            with_metadata.add(group)
        if kind == "GroupMetadata":
            use[0] = True
            use[1] += len(value["members"])
            since = value.get("currentStateTimestamp", -1)
            use[2] = use[2] if since == -1 else max(since, since if use[2] is None else use[2])
            # What is no subscription of a consumer is left as its bytes are.
            said = [member["subscription"] for member in value["members"]]
            topics = [s.get("topics") for s in said if isinstance(s, dict)]
        elif kind.endswith("GroupMemberMetadata"):
            use[1] += 1
            topics = [value.get("subscribedTopicNames")]
        else:
            topics = []
        use[3].update(dict.fromkeys(topic for names in topics for topic in names or ()))
    found = [(g, *use[:3], list(use[3])) for g, use in uses.items() if g in with_metadata]
    return _table(found, GROUP_USE)


def _table(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else ([] for _ in schema)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)
