"""Rows read from the dead disk are the events that were seen while it lived."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kafkalog.errors import InvalidConfigError
from kafkalog.reading.zookeeper_tables import ZOOKEEPER_TABLES, read_zookeeper
from tests.zookeeper.live import (
    ENSEMBLE,
    SECOND,
    cluster_id,
    created,
    deleted,
    live,
    value,
    watched,
)

ROOTS = ["", SECOND]


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    return read_zookeeper(list(ZOOKEEPER_TABLES), ENSEMBLE)


def rows(tables: dict[str, pa.Table], name: str, root: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tables[name].to_pylist()
    return [row for row in found if row["clusterId"] == cluster_id(root)]


@pytest.mark.parametrize("root", ROOTS)
def test_brokers_joined_left_and_returned_as_they_did(
    tables: dict[str, pa.Table], root: str
) -> None:
    events = watched(f"{root}/brokers/ids", depth=1)
    found = rows(tables, "brokers", root)
    joined = [
        (
            int(event["below"][0]), event["zxid"], event["ctimeMs"], event["owner"],
            ",".join(value(event)["endpoints"]), value(event).get("rack"),
        )
        for event in created(events)
    ]  # fmt: skip
    assert joined == [
        (
            row["brokerId"], row["offset"], row["timestampMs"], row["sessionId"],
            row["endpoints"], row["rack"],
        )
        for row in found
        if row["event"] == "registered"
    ]  # fmt: skip
    assert all(row["brokerEpoch"] == row["offset"] for row in found if row["event"] == "registered")
    hows = [end for end in live()["ends"] if end["root"] == root]
    left = [
        (int(event["below"][0]), event["zxid"], end["how"])
        for event, end in zip(deleted(events), hows, strict=False)
    ]
    gone = [row for row in found if row["event"] != "registered"]
    assert left == [(row["brokerId"], row["offset"], row["event"]) for row in gone]
    seen: set[int] = set()
    for row in found:
        if row["event"] == "registered":
            assert row["isReturn"] == (row["brokerId"] in seen)
            seen.add(row["brokerId"])


def test_some_broker_was_killed_and_returned(tables: dict[str, pa.Table]) -> None:
    found = [(row["brokerId"], row["event"], row["isReturn"]) for row in rows(tables, "brokers")]
    assert (2, "expired", False) in found
    assert (2, "registered", True) in found
    assert any(event == "closed" for _, event, _ in found)


@pytest.mark.parametrize("root", ROOTS)
def test_controllers_came_and_went_as_they_did(tables: dict[str, pa.Table], root: str) -> None:
    events = [event for event in live()["watched"] if event["path"] == f"{root}/controller"]
    epochs = {
        event["zxid"]: int(event["data"])
        for event in live()["watched"]
        if event["path"] == f"{root}/controller_epoch" and "data" in event
    }
    found = rows(tables, "controllers", root)
    assert [
        (value(event)["brokerid"], event["zxid"], event["owner"], epochs[event["zxid"]])
        for event in created(events)
    ] == [
        (row["controllerId"], row["offset"], row["sessionId"], row["controllerEpoch"])
        for row in found
        if row["event"] == "elected"
    ]
    assert [event["zxid"] for event in deleted(events)] == [
        row["offset"] for row in found if row["event"] != "elected"
    ]
    assert root or len(created(events)) >= 3  # it moved


@pytest.mark.parametrize("root", ROOTS)
def test_partitions_changed_as_they_did(tables: dict[str, pa.Table], root: str) -> None:
    events = watched(f"{root}/brokers/topics", depth=4, ends="/state")
    found = rows(tables, "partition_changes", root)
    by_place = {(row["topic"], row["partition"], row["offset"]): row for row in found}
    names = {"NodeCreated": "created", "NodeDataChanged": "changed", "NodeDeleted": "deleted"}
    compared = 0
    for event in events:
        row = by_place.pop((event["below"][0], int(event["below"][2]), event["zxid"]))
        assert row["event"] == names[event["type"]]
        if "data" in event:
            state = value(event)
            compared += 1
            assert row["timestampMs"] == event["mtimeMs"]
            assert row["partitionEpoch"] == event["version"]
            assert (row["leader"], row["leaderEpoch"]) == (state["leader"], state["leader_epoch"])
            assert (row["isr"], row["controllerEpoch"]) == (state["isr"], state["controller_epoch"])
    assert compared > 0.8 * len(events)
    # What is left are assignments that changed: of the reassigned topic.
    assert {topic for topic, _, _ in by_place} <= {"moved"}
    assert root or any(row["addingReplicas"] == [2] for row in by_place.values())


def test_in_sync_replicas_shrank_and_grew(tables: dict[str, pa.Table]) -> None:
    found = [row for row in rows(tables, "partition_changes") if row["topic"] == "plain"]
    assert any(row["isrLeft"] == [2] for row in found)
    assert any(row["isrJoined"] == [2] for row in found)
    assert not any(row["isUnclean"] for row in found)


def test_the_unclean_election_is_marked(tables: dict[str, pa.Table]) -> None:
    found = [row for row in rows(tables, "partition_changes") if row["topic"] == "unclean"]
    (unclean,) = [row for row in found if row["isUnclean"]]
    (before,) = [row for row in found if row["partitionEpoch"] == unclean["partitionEpoch"] - 1]
    assert unclean["leader"] not in before["isr"]
    assert unclean["isr"] == [unclean["leader"]]
    assert unclean["leaderRecoveryState"] in (0, 1)


@pytest.mark.parametrize("root", ROOTS)
def test_topics_lived_as_they_did(tables: dict[str, pa.Table], root: str) -> None:
    events = watched(f"{root}/brokers/topics", depth=1)
    found = rows(tables, "topics", root)
    assert [(event["below"][0], event["zxid"], event["ctimeMs"]) for event in created(events)] == [
        (row["topic"], row["offset"], row["timestampMs"]) for row in found
    ]
    ends = {event["below"][0]: event["zxid"] for event in deleted(events)}
    assert ends == {row["topic"]: row["endOffset"] for row in found if row["endOffset"] is not None}
    assert root or set(ends) == {"gone"}
    (asked,) = created(watched("/admin/delete_topics", depth=1))
    gone = [row for row in found if row["topic"] == "gone"]
    assert root or gone[0]["deletionRequestedMs"] == asked["ctimeMs"]


def test_topics_at_the_end_are_those_the_brokers_described(tables: dict[str, pa.Table]) -> None:
    described = live()["admin"]["topics"]
    alive = [row for row in rows(tables, "topics") if row["endOffset"] is None]
    assert {row["topic"]: row["partitionsCount"] for row in alive} == {
        topic: len(partitions) for topic, partitions in described.items()
    }
    last = {(row["topic"], row["partition"]): row for row in _before_the_end(tables)}
    for topic, partitions in described.items():
        for number, partition in partitions.items():
            row = last[topic, int(number)]
            assert row["leader"] == partition["leader"]
            assert sorted(row["isr"]) == partition["isr"]
            assert row["replicas"] == partition["replicas"]


def _before_the_end(tables: dict[str, pa.Table]) -> list[dict[str, Any]]:
    """Changes up to where the maker asked the brokers."""
    end = live()["trees"][-2]["zxid"]
    return [row for row in rows(tables, "partition_changes") if row["offset"] <= end]


def test_settings_in_force_are_those_the_brokers_described(tables: dict[str, pa.Table]) -> None:
    described = {topic: config for topic, config in live()["admin"]["configs"].items() if config}
    found: dict[str, dict[str, str]] = {}
    for row in rows(tables, "configs"):
        if row["entityType"] == "topic" and row["endOffset"] is None:
            found.setdefault(row["entity"], {})[row["key"]] = row["value"]
    assert {topic: config for topic, config in found.items() if topic in described} == described


def test_settings_have_spans_and_secrets_are_not_shown(tables: dict[str, pa.Table]) -> None:
    found = rows(tables, "configs")
    retention = [row for row in found if row["entity"] == "plain" and row["key"] == "retention.ms"]
    first, second = retention
    assert (first["value"], second["value"]) == ("86400000", "3600000")
    assert first["endOffset"] == second["offset"]
    assert first["endTimestampMs"] == second["timestampMs"]
    (size,) = [row for row in found if row["key"] == "max.message.bytes"]
    assert size["offset"] < size["endOffset"]
    kinds = {(row["entityType"], row["entity"], row["key"], row["value"]) for row in found}
    assert ("broker", None, "log.retention.ms", "50000000") in kinds
    assert ("broker", "1", "log.retention.ms", "60000000") in kinds
    assert {kind for kind, *_ in kinds} == {"topic", "broker"}
    (quota,) = rows(tables, "client_quotas")
    assert (quota["entityType"], quota["entity"]) == ("user/client-id", "al/<default>")
    assert (quota["key"], quota["value"]) == ("producer_byte_rate", 1000.0)
    (scram,) = rows(tables, "scram")
    assert (scram["user"], scram["mechanism"]) == ("bob", "SCRAM-SHA-256")
    assert (scram["iterations"], scram["credential"]) == (4096, "(redacted)")
    assert not any("salt=" in str(table.to_pylist()) for table in tables.values())


def test_acls_in_force_are_those_the_brokers_described(tables: dict[str, pa.Table]) -> None:
    names = "resourceType resourceName patternType principal host operation permissionType".split()
    found = rows(tables, "acls")
    in_force = [[row[name] for name in names] for row in found if row["endOffset"] is None]
    assert sorted(in_force) == live()["admin"]["acls"]
    (dropped,) = [row for row in found if row["endOffset"] is not None]
    assert (dropped["operation"], dropped["permissionType"]) == ("WRITE", "DENY")


def test_offsets_of_old_consumers_are_in_their_order(tables: dict[str, pa.Table]) -> None:
    found = [
        (row["group"], row["topic"], row["partition"], row["committedOffset"])
        for row in rows(tables, "old_consumer_offsets")
    ]
    assert found == [("old", "plain", 0, 5), ("old", "plain", 1, 7), ("old", "plain", 0, 15),
                     ("old", "plain", 0, 25)]  # fmt: skip


def test_clusters_are_told_apart_and_found_by_their_root() -> None:
    one = read_zookeeper(["topics"], ENSEMBLE, zk_root="second/")["topics"]
    assert set(one["clusterId"].to_pylist()) == {cluster_id(SECOND)}
    assert one["topic"].to_pylist() == ["plain"]
    both = read_zookeeper(["topics"], ENSEMBLE)["topics"]
    assert set(both["clusterId"].to_pylist()) == {cluster_id(""), cluster_id(SECOND)}
    with pytest.raises(InvalidConfigError, match=r"no cluster at '/third'.*'/', '/second'"):
        read_zookeeper(["topics"], ENSEMBLE, zk_root="/third")


def test_until_leaves_later_rows_out() -> None:
    zxid = live()["trees"][0]["zxid"]
    found = read_zookeeper(["brokers"], ENSEMBLE, until_zxid=zxid)["brokers"]
    assert max(found["offset"].to_pylist()) <= zxid
    assert set(found["event"].to_pylist()) == {"registered"}


def test_unknown_tables_are_refused() -> None:
    with pytest.raises(InvalidConfigError, match="no table quotas in ZooKeeper; there are brokers"):
        read_zookeeper(["quotas"], ENSEMBLE)
