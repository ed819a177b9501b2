"""Parts of `__consumer_offsets` put together: the commits in force, the last records of groups and
members, and what decides about a group's offsets.

Of a key's records in several parts the one with the highest offset counts, and a tombstone there
means that nothing is there. Coordinators have all of it in memory, and so has this.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.reading.views import select_columns

# Of several copies of a partition each has its own commits; their messages are one.
_COMMIT_KEY = ("group", "topic", "partition", "offsetsPartition", "path")
_MESSAGE_KEY = ("offsetsPartition", "messageType", "key")

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
# Of view `partitions` what is known without a walk over headers.
LOG_END_COLUMNS = select_columns(
    "partitions", ("topic", "partition", "kind", "topicId", "logStartOffset", "logEndOffset")
)
# Where the partitions that groups read begin and end on this disk.
LOG_ENDS = pa.schema(
    [
        ("topic", pa.string()), ("partition", pa.int32()), ("diskTopicId", pa.string()),
        ("logStartOffset", pa.int64()), ("logEndOffset", pa.int64()),
    ]
)  # fmt: skip


def commits_in_force(records: pa.Table) -> pa.Table:
    """Of LATEST_RECORDS of all parts."""
    commits = records.filter(pc.is_null(records["messageType"]))
    return _latest(commits, _COMMIT_KEY)


def group_messages(records: pa.Table) -> pa.Table:
    """Of LATEST_RECORDS of all parts the columns GROUP_MESSAGES."""
    messages = records.filter(pc.is_valid(records["messageType"]))
    latest = _latest(messages, _MESSAGE_KEY)
    times = latest["timestampMs"]
    columns = [
        latest["offsetsPartition"], latest["messageType"], latest["key"], latest["value"],
        latest["recordOffset"], pc.if_else(pc.equal(times, -1), None, times),
    ]  # fmt: skip
    return pa.table(columns, schema=GROUP_MESSAGES)


def _latest(records: pa.Table, key: Sequence[str]) -> pa.Table:
    """The record with the highest offset of each key, unless it is a tombstone.

    Texts are neither sorted nor taken by row numbers: both make one array of a column, and Arrow's
    texts end at 2 GiB. What is kept is filtered, chunk by chunk.
    """
    order = np.argsort(records["recordOffset"].to_numpy(), kind="stable")
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    ranked = pa.table({name: _numbers(records[name]) for name in key} | {"rank": ranks})
    last = ranked.group_by(key, use_threads=False).aggregate([("rank", "max")])
    is_latest = np.zeros(len(order), np.bool_)
    is_latest[order[last["rank_max"].to_numpy()]] = True
    return records.filter(pc.and_(pa.array(is_latest), pc.invert(records["isTombstone"])))


def _numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A number for each different text; other columns as they are."""
    if not pa.types.is_string(column.type):
        return column
    chunks = column.dictionary_encode().unify_dictionaries().chunks
    return pa.chunked_array([chunk.indices for chunk in chunks], pa.int32())


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
    return _table([(*name, *facts) for name, facts in ends.items()], LOG_ENDS)


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
