"""Commits beside what decides about them: where the partitions that groups read begin and end on
this disk, and what their groups are; and what follows from it, lag and expiry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns import group_schemas
from kafkalog.columns.column import arrow_schema
from kafkalog.columns.schemas import PARTITIONS
from kafkalog.columns.selection import choose_columns
from kafkalog.format.topics import OFFSETS_TOPIC
from kafkalog.messages.group_types import CLASSIC
from kafkalog.reading.consumer_offsets.groups import group_records, subscription_of

# Of view `partitions` what is known without a walk over headers.
LOG_END_COLUMNS = choose_columns(
    "partitions",
    PARTITIONS,
    ("topic", "partition", "kind", "topicId", "logStartOffset", "logEndOffset"),
)
# Where the partitions that groups read begin and end on this disk.
LOG_ENDS = pa.schema(
    [
        ("topic", pa.string()), ("partition", pa.int32()), ("diskTopicId", pa.string()),
        ("logStartOffset", pa.int64()), ("logEndOffset", pa.int64()),
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
# Commits and what is made of them: where they come from, how far behind they are, when they expire.
GROUP_OFFSETS = arrow_schema(group_schemas.GROUP_OFFSETS, all_nullable=True)


def group_use(messages: pa.Table) -> pa.Table:
    """GROUP_USE of GROUP_MESSAGES: a row for each group that has metadata of its own."""
    uses: dict[str, _Use] = {}
    for record in group_records(messages):
        if record.what not in ("Metadata", "MemberMetadata"):
            continue
        use, value = uses.setdefault(record.group, _Use()), record.value
        if record.what == "MemberMetadata":
            use.members += 1
            use.topics.update(dict.fromkeys(value.get("subscribedTopicNames") or ()))
            continue
        use.has_metadata = True
        if record.kind == CLASSIC:
            use.is_classic = True
            use.members += len(value["members"])
            since = value.get("currentStateTimestamp", -1)
            if since != -1:
                use.since_ms = max(since, since if use.since_ms is None else use.since_ms)
            for member in value["members"]:
                use.topics.update(dict.fromkeys(subscription_of(member).get("topics") or ()))
    rows = [
        dict(zip(GROUP_USE.names, (group, *use.columns()), strict=True))
        for group, use in uses.items()
        if use.has_metadata
    ]
    return pa.Table.from_pylist(rows, GROUP_USE)


@dataclass(slots=True)
class _Use:
    has_metadata: bool = False
    is_classic: bool = False
    members: int = 0
    since_ms: int | None = None
    topics: dict[str, None] = field(default_factory=dict)

    def columns(self) -> tuple[Any, ...]:
        return self.is_classic, self.members, self.since_ms, list(self.topics)


def log_ends(partitions: pa.Table) -> pa.Table:
    """LOG_ENDS of LOG_END_COLUMNS: of the live partitions; of several replicas the one that goes
    furthest.
    """
    ends: dict[tuple[str, int], list[Any]] = {}
    for row in partitions.to_pylist():
        if row["kind"] != "live":
            continue
        facts = [row["topicId"], row["logStartOffset"], row["logEndOffset"]]
        known = ends.setdefault((row["topic"], row["partition"]), facts)
        for at, fact in enumerate(facts):
            known[at] = max((f for f in (known[at], fact) if f is not None), default=None)
    rows = [dict(zip(LOG_ENDS.names, (*name, *facts), strict=True)) for name, facts in ends.items()]
    return pa.Table.from_pylist(rows, LOG_ENDS)


def with_use(commits: pa.Table, use: pa.Table) -> pa.Table:
    """The commits with the columns of GROUP_USE, but of usedTopics only how many they are, and
    whether the commit's is one of them: null or true as `usesTopic`. The topics of a group with
    each of its commits would be gigabytes where one group reads thousands of topics.
    """
    topics = use["usedTopics"].combine_chunks()
    use = use.drop_columns("usedTopics")
    counts = pc.list_value_length(topics)
    commits = with_facts(commits, use.append_column("usedTopicsCount", counts), ("group",))
    groups = use["group"].take(pc.list_parent_indices(topics))
    used = pa.table({"group": groups, "topic": pc.list_flatten(topics)})
    used = used.append_column("usesTopic", pa.repeat(True, len(used)))
    return with_facts(commits, used, ("group", "topic"))


def with_facts(rows: pa.Table, facts: pa.Table, key: Sequence[str]) -> pa.Table:
    """The rows with the columns of `facts` that are no key, null where it does not have the key.
    Keys of `facts` are unique.
    """
    numbered = facts.select(key).append_column("row", pa.array(np.arange(len(facts))))
    row_of = rows.select(key).append_column("at", pa.array(np.arange(len(rows))))
    row_of = row_of.join(numbered, list(key), join_type="left outer")
    row_of = row_of.select(["at", "row"]).sort_by("at")["row"]
    for name in facts.column_names:
        if name not in key:
            rows = rows.append_column(facts.schema.field(name), facts[name].take(row_of))
    return rows


def group_offsets(commits: pa.Table, now_ms: int, retention_ms: int) -> pa.Table:
    """GROUP_OFFSETS of commits with LOG_ENDS and what `with_use` adds; with a column `error` that
    one too, and of a commit that cannot be read nothing is judged.

    lag: to the log's end on the same disk, null where the partition is not there. expiresAtMs: when
    a coordinator may drop the offset if nothing changes; null while the group uses it, and of other
    sources, which never do.

    Source: Kafka OffsetExpirationConditionImpl; KIP-211.
    """
    offset, end = commits["offset"], commits["logEndOffset"]
    lag = pc.if_else(pc.less(end, offset), 0, pc.subtract(end, offset))
    expires_at = _expires_at(commits, retention_ms)
    is_expired = pc.fill_null(pc.less_equal(expires_at, now_ms), fill_value=False)
    schema = GROUP_OFFSETS
    if "error" in commits.column_names:
        schema = GROUP_OFFSETS.append(pa.field("error", pa.string()))
        is_expired = pc.if_else(pc.is_null(commits["error"]), is_expired, None)
    made = {"lag": lag, "expiresAtMs": expires_at, "isExpired": is_expired}
    columns = [made[n] if n in made else commits[n] for n in schema.names]
    return pa.table(columns, schema=schema)


def _expires_at(commits: pa.Table, retention_ms: int) -> pa.ChunkedArray:
    """A time that the client gave with the commit counts; otherwise the retention counts from when
    a classic group became empty, from the commit in a group without members or of a topic that none
    of them subscribes to, and not at all where the topic is subscribed to or nobody knows.
    """
    committed, members = commits["commitTimestampMs"], commits["groupMembers"]
    is_empty = _and(commits["isClassic"], pc.equal(members, 0))
    uses = pc.or_kleene(pc.equal(commits["usedTopicsCount"], 0), commits["usesTopic"])
    is_used = _and(pc.greater(members, 0), uses)
    began = pc.if_else(is_empty, pc.coalesce(commits["stateTimestampMs"], committed), committed)
    began = pc.if_else(is_used, pa.scalar(None, pa.int64()), began)
    expires_at = pc.coalesce(commits["expireTimestampMs"], pc.add(began, retention_ms))
    is_kept_here = pc.equal(commits["source"], OFFSETS_TOPIC)
    return pc.if_else(is_kept_here, expires_at, pa.scalar(None, pa.int64()))


def _and(left: pa.ChunkedArray, right: pa.ChunkedArray) -> pa.ChunkedArray:
    """False where either is not known."""
    return pc.fill_null(pc.and_kleene(left, right), fill_value=False)
