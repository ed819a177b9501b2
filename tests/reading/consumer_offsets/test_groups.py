"""What parts of `__consumer_offsets` say together of groups, and of the logs that they read."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from kafkalog.columns.column import arrow_schema
from kafkalog.columns.schemas import LATEST_RECORDS
from kafkalog.reading.consumer_offsets.groups import GROUP_MESSAGES, group_members, groups
from kafkalog.reading.consumer_offsets.offset_facts import (
    GROUP_OFFSETS,
    GROUP_USE,
    LOG_END_COLUMNS,
    group_offsets,
    group_use,
    log_ends,
    with_facts,
    with_use,
)
from kafkalog.reading.consumer_offsets.parts import commits_in_force


def _messages(*rows: tuple[str, dict[str, Any], dict[str, Any]]) -> pa.Table:
    found = [
        {"messageType": kind, "key": json.dumps(key), "value": json.dumps(value)}
        for kind, key, value in rows
    ]
    return pa.Table.from_pylist(found, GROUP_MESSAGES)


def test_the_use_of_classic_groups() -> None:
    members = [
        {"subscription": {"topics": ["b", "a"]}},
        {"subscription": "AAECAw=="},
        {"subscription": {"topics": ["a", "c"]}},
    ]
    used = {"members": members, "currentStateTimestamp": -1}
    empty = {"members": [], "currentStateTimestamp": 7}
    found = group_use(
        _messages(
            ("GroupMetadata", {"group": "used"}, used),
            ("GroupMetadata", {"group": "empty"}, empty),
            ("GroupMetadata", {"group": "of version 0"}, {"members": []}),
        )
    ).to_pylist()
    names = ("group", "isClassic", "groupMembers", "stateTimestampMs", "usedTopics")
    assert [tuple(row[name] for name in names) for row in found] == [
        ("used", True, 3, None, ["b", "a", "c"]),
        ("empty", True, 0, 7, []),
        ("of version 0", True, 0, None, []),
    ]


def test_the_use_of_new_groups_counts_members_where_the_group_is_there() -> None:
    found = group_use(
        _messages(
            ("ConsumerGroupMemberMetadata", {"groupId": "g"}, {"subscribedTopicNames": ["t"]}),
            ("ConsumerGroupMemberMetadata", {"groupId": "gone"}, {"subscribedTopicNames": ["t"]}),
            ("StreamsGroupMemberMetadata", {"groupId": "s"}, {}),
            ("ConsumerGroupMetadata", {"groupId": "g"}, {"epoch": 3}),
            ("ConsumerGroupCurrentMemberAssignment", {"groupId": "g"}, {"memberEpoch": 3}),
            ("ConsumerGroupMemberMetadata", {"groupId": "g"}, {"subscribedTopicNames": None}),
            ("StreamsGroupMetadata", {"groupId": "s"}, {"epoch": 1}),
        )
    ).to_pylist()
    assert [(row["group"], row["isClassic"], row["groupMembers"]) for row in found] == [
        ("g", False, 2),
        ("s", False, 1),
    ]
    assert [row["usedTopics"] for row in found] == [["t"], []]


def test_log_ends_are_those_of_the_replica_that_goes_furthest() -> None:
    names = [column.name for column in LOG_END_COLUMNS]
    rows = [
        ("t", 0, "live", None, 5, 90),
        ("t", 0, "live", "id", 0, 80),
        ("t", 0, "future", "id", 0, 900),
        ("u", 1, "delete", "id", 0, 1),
    ]
    table = pa.Table.from_pylist(
        [dict(zip(names, row, strict=True)) for row in rows], arrow_schema(LOG_END_COLUMNS)
    )
    found = log_ends(table).to_pylist()
    assert found == [
        {
            "topic": "t", "partition": 0, "diskTopicId": "id",
            "logStartOffset": 5, "logEndOffset": 90,
        }
    ]  # fmt: skip


def test_facts_are_joined_in_the_order_of_the_rows() -> None:
    rows = pa.table({"group": ["b", "none", "a", "b"], "n": [1, 2, 3, 4]})
    facts = pa.table(
        {"group": ["a", "b"], "topics": pa.array([["x"], None], pa.list_(pa.string()))}
    )
    found = with_facts(rows, facts, ("group",))
    assert found.column_names == ["group", "n", "topics"]
    assert found["n"].to_pylist() == [1, 2, 3, 4]
    assert found["topics"].to_pylist() == [None, None, ["x"], None]
    assert with_facts(rows, facts.slice(0, 0), ("group",))["topics"].null_count == 4


def _commits(count: int, **columns: Any) -> pa.Table:
    """LATEST_RECORDS of commits of one group; a column is a value of all or one of each."""
    facts = {
        "group": "g", "topic": "t", "partition": 0, "offsetsPartition": 3, "path": "p",
        "isTombstone": False, "recordOffset": range(count),
    } | columns  # fmt: skip
    schema = arrow_schema(LATEST_RECORDS, all_nullable=True)
    arrays = [
        pa.array([fact] * count if isinstance(fact, str | int | None) else fact, field.type)
        for field, fact in ((field, facts.get(field.name)) for field in schema)
    ]
    return pa.table(arrays, schema)


@pytest.mark.soak
def test_texts_beyond_two_gibibytes_are_put_together() -> None:
    part = _commits(3200, metadata="m" * 32_767, partition=[*range(4)] * 800)
    others = part.slice(0, 0), _commits(1, partition=3, recordOffset=[9999], isTombstone=True)
    records = pa.concat_tables([*[part] * 21, *others])
    assert records["metadata"].nbytes > 2**31
    found = commits_in_force(records)
    assert sorted(found["partition"].to_pylist()) == [0, 1, 2]
    assert set(found["recordOffset"].to_pylist()) == {3196, 3197, 3198}
    nothing = pa.table({"group": pa.array([], pa.string()), "n": pa.array([], pa.int64())})
    found = with_facts(records, nothing, ("group",))
    assert len(found) == len(records)


def test_the_topics_of_a_group_are_not_repeated_with_each_commit() -> None:
    topics = [f"a topic with a long name {i}" for i in range(1000)]
    rows = [("g", True, 1, None, topics), ("all", False, 1, None, []), ("h", False, 2, None, ["t"])]
    names = GROUP_USE.names
    use = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], GROUP_USE)
    commits = pa.concat_tables(
        [
            _commits(10_000, topic=topics * 10),
            *(_commits(1, group=g) for g in ("g", "all", "h", "no")),
        ]
    )
    found = with_use(commits, use)
    assert found.nbytes < 4 * commits.nbytes
    assert found["usesTopic"].to_pylist() == [True] * 10_000 + [None, None, True, None]
    assert found["usedTopicsCount"].to_pylist() == [1000] * 10_001 + [0, 1, None]
    assert with_use(commits, use.slice(0, 0))["usesTopic"].null_count == len(commits)


_SIMPLE = pa.table({"group": ["g", "alone"], "offsetsPartition": pa.array([1, 2], pa.int32())})


def _state(*rows: tuple[str, dict[str, Any], dict[str, Any]]) -> tuple[str, int, str | None]:
    """State, members and protocol of the one group of its kind, beside a simple one."""
    group, simple = groups(_messages(*rows), _SIMPLE).to_pylist()
    assert (simple["group"], simple["kind"], simple["state"]) == ("alone", "simple", "Empty")
    assert (simple["coordinatorPartition"], simple["members"], simple["epoch"]) == (2, 0, None)
    return group["state"], group["members"], group["protocol"]


def _member(kind: str, name: str, epoch: int, state: int) -> list[Any]:
    key = {"groupId": "g", "memberId": name}
    return [
        (f"{kind}GroupMemberMetadata", key, {"serverAssignor": None if name == "a" else name}),
        (f"{kind}GroupCurrentMemberAssignment", key, {"memberEpoch": epoch, "state": state}),
    ]


@pytest.mark.parametrize(
    ("kind", "unsteady"), [("Consumer", (1, 2)), ("Share", (1, 2)), ("Streams", (2, 3))]
)
def test_the_state_of_a_new_group(kind: str, unsteady: tuple[int, int]) -> None:
    key = {"groupId": "g"}
    group = (f"{kind}GroupMetadata", key, {"epoch": 5})
    behind = (f"{kind}GroupTargetAssignmentMetadata", key, {"assignmentEpoch": 4})
    target = (f"{kind}GroupTargetAssignmentMetadata", key, {"assignmentEpoch": 5})
    steady, slow = _member(kind, "a", 5, 0), _member(kind, "b", 4, 0)
    assert _state(group, target) == ("Empty", 0, None)
    assert _state(group, behind, *steady) == ("Assigning", 1, None)
    assert _state(group, target, *steady, *slow) == ("Reconciling", 2, "b")
    assert _state(group, target, *steady) == ("Stable", 1, None)
    assert _state(group, *slow) == ("Stable", 1, "b")  # no target yet: nobody is behind it
    for state in unsteady:
        assert _state(group, target, *_member(kind, "a", 5, state))[0] == "Reconciling"
    # Without metadata of its own it is no group of the kind.
    assert [row["kind"] for row in groups(_messages(target, *steady), _SIMPLE).to_pylist()] == [
        "simple",
        "simple",
    ]


def test_members_of_every_kind() -> None:
    subscription = {"topics": ["t"], "userData": None, "rackId": "r"}
    member = {
        "memberId": "m",
        "clientId": "c",
        "clientHost": "/h",
        "subscription": subscription,
        "assignment": "AAECAw==",
    }
    classic = {"members": [member], "generation": 3, "leader": "m"}
    consumer = {"instanceId": None, "clientId": "d", "clientHost": "/i", "rackId": None}
    found = group_members(
        _messages(
            ("GroupMetadata", {"group": "g"}, classic),
            ("ConsumerGroupMemberMetadata", {"groupId": "n", "memberId": "x"}, consumer),
            ("ConsumerGroupMemberMetadata", {"groupId": "n", "memberId": "y"}, consumer),
            *_member("Consumer", "z", 7, 0)[1:],
            ("ConsumerGroupCurrentMemberAssignment", {"groupId": "n", "memberId": "y"},
             {"memberEpoch": 9}),
        )
    ).to_pylist()  # fmt: skip
    assert [(row["memberId"], row["epoch"], row["isLeader"]) for row in found] == [
        ("m", 3, True),
        ("x", None, None),
        ("y", 9, None),
    ]
    assert (found[0]["rackId"], found[0]["subscribedTopics"]) == ("r", ["t"])
    assert found[0]["subscription"] == '{"topics":["t"],"userData":null,"rackId":"r"}'
    assert (found[0]["assignment"], found[2]["assignment"]) == ("AAECAw==", '{"memberEpoch": 9}')


_DAY_MS = 86_400_000
_COMMIT = {"offset": 5, "commitTimestampMs": 1000, "source": "__consumer_offsets"}


@pytest.mark.parametrize(
    ("facts", "lag", "expires_at"),
    [
        ({}, None, 1000 + _DAY_MS),
        ({"logEndOffset": 9}, 4, 1000 + _DAY_MS),
        ({"logEndOffset": 3}, 0, 1000 + _DAY_MS),
        ({"logEndOffset": 3, "offset": None}, None, 1000 + _DAY_MS),  # a tombstone
        ({"expireTimestampMs": 7}, None, 7),
        ({"isClassic": True, "groupMembers": 0}, None, 1000 + _DAY_MS),
        ({"isClassic": True, "groupMembers": 0, "stateTimestampMs": 50}, None, 50 + _DAY_MS),
        ({"isClassic": False, "groupMembers": 0, "stateTimestampMs": 50}, None, 1000 + _DAY_MS),
        ({"isClassic": True, "groupMembers": 2, "usedTopicsCount": 0}, None, None),
        ({"groupMembers": 2, "usedTopicsCount": 3, "usesTopic": True}, None, None),
        ({"groupMembers": 2, "usedTopicsCount": 3}, None, 1000 + _DAY_MS),
        ({"groupMembers": 2}, None, 1000 + _DAY_MS),
        ({"source": "zookeeper", "logEndOffset": 6}, 1, None),
    ],
)
def test_lag_and_expiry(facts: dict[str, Any], lag: int | None, expires_at: int | None) -> None:
    names = {*GROUP_OFFSETS.names, *GROUP_USE.names, "usedTopicsCount", "usesTopic"}
    fields = {field.name: field for schema in (GROUP_OFFSETS, GROUP_USE) for field in schema}
    fields["usedTopicsCount"] = pa.field("usedTopicsCount", pa.int32())
    fields["usesTopic"] = pa.field("usesTopic", pa.bool_())
    schema = pa.schema([fields[name] for name in sorted(names)])
    commits = pa.Table.from_pylist([_COMMIT | facts], schema)
    for now_ms in (0, expires_at or 0):
        (row,) = group_offsets(commits, now_ms, _DAY_MS).to_pylist()
        assert (row["lag"], row["expiresAtMs"]) == (lag, expires_at)
        assert row["isExpired"] is (expires_at is not None and now_ms >= expires_at)
