"""The tables of a real three-node cluster against what its admin API said while it happened."""

from __future__ import annotations

import base64
import random
import uuid
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from data.copy_samples import SAMPLES
from data.maker.three_nodes import read_events
from kafkalog.cluster.find import metadata_directories
from kafkalog.cluster.history import ClusterHistory, Until
from kafkalog.cluster.moments import METADATA_LOG, METADATA_SNAPSHOT, Row
from kafkalog.columns.cluster_rows import build_cluster_table
from kafkalog.columns.cluster_schemas import CLUSTER_TABLES
from kafkalog.format.secret_settings import REDACTED
from kafkalog.log.log_dir import open_log_dir
from tests.support.metadata_builder import MetadataBuilder
from tests.support.reference.batches import parse_batches

CLUSTER = SAMPLES / "cluster"
NODE_DIRS = [CLUSTER / "1" / "data", CLUSTER / "2" / "data", CLUSTER / "3" / "data"]
EVENTS = read_events(CLUSTER / "events.json")
STEPS = [event["step"] for event in EVENTS]


@cache
def history() -> ClusterHistory:
    (directory,) = metadata_directories(open_log_dir(*NODE_DIRS))
    return ClusterHistory(directory)


def rows(table: str) -> list[Row]:
    return list(history().rows[table])


def at(event: dict[str, Any], table: str) -> list[Row]:
    """The rows of a table of spans in force at an event's end offset."""
    end = event["endOffset"]
    return [
        row
        for row in rows(table)
        if row["offset"] < end and (row["endOffset"] is None or row["endOffset"] >= end)
    ]


def latest(found: Iterable[Row], end: int, *key: str) -> dict[tuple[Any, ...], Row]:
    """The last row of each key below an offset."""
    return {tuple(row[name] for name in key): row for row in found if row["offset"] < end}


by_event = pytest.mark.parametrize("event", EVENTS, ids=STEPS)


def test_the_whole_history_can_be_read() -> None:
    assert history().problems == []
    assert not history().unread
    assert {row["source"] for row in rows("partition_changes")} == {METADATA_LOG}


@by_event
def test_brokers_are_those_the_admin_api_saw(event: dict[str, Any]) -> None:
    now = latest(rows("brokers"), event["endOffset"], "brokerId")
    seen = {
        str(row["brokerId"]): {"rack": row["rack"], "isFenced": row["isFenced"]}
        for row in now.values()
    }
    # A broker that stopped in order is fenced; the API lists fenced ones too.
    assert seen == event["brokers"]


@by_event
def test_the_controller_is_the_one_the_admin_api_saw(event: dict[str, Any]) -> None:
    elected = [row for row in rows("controllers") if row["event"] == "elected"]
    last = [row for row in elected if row["offset"] < event["endOffset"]][-1]
    assert last["controllerId"] == event["controllerId"]
    assert last["controllerEpoch"] == event["controllerEpoch"]
    assert last["voters"] == event["voters"]


@by_event
def test_topics_and_partitions_are_those_the_admin_api_saw(event: dict[str, Any]) -> None:
    topics = {row["topic"]: row for row in at(event, "topics")}
    assert set(topics) == set(event["topics"])
    changes = latest(rows("partition_changes"), event["endOffset"], "topicId", "partition")
    for name, seen in event["topics"].items():
        topic_id = topics[name]["topicId"]
        ours = {
            str(number): {
                "leader": row["leader"],
                "leaderEpoch": row["leaderEpoch"],
                "replicas": row["replicas"],
                "isr": sorted(row["isr"]),
            }
            for (its_topic, number), row in changes.items()
            if its_topic == topic_id
        }
        assert ours == seen["partitions"], name
        assert uuid.UUID(bytes=base64.urlsafe_b64decode(f"{topic_id}==")) == uuid.UUID(
            seen["topicId"]
        )


ENTITY_TYPES = {"2": "topic", "4": "broker", "32": "group"}


@by_event
def test_configs_in_force_are_those_the_admin_api_saw(event: dict[str, Any]) -> None:
    ours: dict[tuple[str, str], dict[str, str]] = {}
    for row in at(event, "configs"):
        ours.setdefault((row["entityType"], row["entity"] or ""), {})[row["key"]] = row["value"]
    for resource, config in event["configs"].items():
        kind, _, name = resource.partition("/")
        if config is not None:  # of a broker that was away nobody told
            # Kafka shows no secret, not even as one.
            shown = {key: REDACTED if value is None else value for key, value in config.items()}
            assert ours.get((ENTITY_TYPES[kind], name), {}) == shown, resource


@by_event
def test_quotas_are_those_the_admin_api_saw(event: dict[str, Any]) -> None:
    ours = {(row["entityType"], row["entity"], row["key"], row["value"])
            for row in at(event, "client_quotas")}  # fmt: skip
    seen = set()
    for entity, quotas in event["quotas"]:
        parts = [(kind, entity[kind]) for kind in ("user", "client-id", "ip") if kind in entity]
        types = "/".join(kind for kind, _ in parts)
        names = "/".join("<default>" if name is None else name for _, name in parts)
        seen |= {(types, names, key, value) for key, value in quotas.items()}
    assert ours == seen


@by_event
def test_rights_and_features_are_those_the_admin_api_saw(event: dict[str, Any]) -> None:
    names = [column.name for column in CLUSTER_TABLES["acls"][:7]]
    assert sorted([row[name] for name in names] for row in at(event, "acls")) == event["acls"]
    scram: dict[str, dict[str, int]] = {}
    for row in at(event, "scram"):
        mechanism = row["mechanism"].replace("-", "_")
        scram.setdefault(row["user"], {})[mechanism] = row["iterations"]
    assert scram == event["scram"]
    assert {row["feature"]: row["level"] for row in at(event, "features")} == event["features"]


def test_what_happened_is_told_as_such() -> None:
    """The steps of the sample's maker leave their marks."""
    unclean = [row for row in rows("partition_changes") if row["isUnclean"]]
    fragile = [row for row in unclean if row["topic"] == "fragile"]
    assert len(fragile) == 1
    assert fragile[0]["isrJoined"] == [fragile[0]["leader"]]
    # A reassignment's last record elects a leader that it brings into the replicas in sync.
    assert "moved" not in {row["topic"] for row in unclean}
    moved = [row for row in rows("partition_changes") if row["addingReplicas"]]
    assert {row["topic"] for row in moved} == {"moved"}
    assert {row["event"] for row in rows("brokers")} >= {
        *("registered", "fenced", "unfenced", "changed", "controlled-shutdown"),
    }
    returned = [row for row in rows("brokers") if row["event"] == "registered" and row["isReturn"]]
    assert {row["brokerId"] for row in returned} == {1, 2, 3}
    removed = [row for row in rows("topics") if row["topic"] == "removed"]
    assert [row["endOffset"] is None for row in removed] == [False, True]
    assert removed[0]["topicId"] != removed[1]["topicId"]
    deleted = [row for row in rows("partition_changes") if row["event"] == "deleted"]
    assert {row["offset"] for row in deleted if row["topic"] == "removed"} == {
        removed[0]["endOffset"]
    }
    states = [row for row in rows("controllers") if row["event"] == "quorum-state"]
    assert len(states) == 1


def test_no_secret_is_in_any_row() -> None:
    everything = str(history().rows)
    assert "a secret" not in everything
    assert [row["credential"] for row in rows("scram")] == [REDACTED] * 3


@pytest.mark.parametrize("table", CLUSTER_TABLES)
def test_rows_fit_their_columns(table: str) -> None:
    names = {column.name for column in CLUSTER_TABLES[table]}
    assert all(set(row) <= names for row in rows(table))
    built = build_cluster_table(rows(table), CLUSTER_TABLES[table])
    built.validate(full=True)
    assert built.num_rows == len(rows(table))
    offsets = [row["offset"] for row in rows(table)]
    assert offsets == sorted(offsets)


@by_event
def test_a_history_can_stop_at_any_offset(event: dict[str, Any]) -> None:
    early = ClusterHistory(history().directory, Until(offset=event["endOffset"]))
    assert early.end_offset == event["endOffset"]
    states = {
        (row["topic"], row["partition"]): (row["leader"], row["leaderEpoch"], sorted(row["isr"]))
        for row in early.partitions_now()
    }
    assert states == {
        (name, int(number)): (each["leader"], each["leaderEpoch"], each["isr"])
        for name, topic in event["topics"].items()
        for number, each in topic["partitions"].items()
    }


def test_without_the_beginning_of_the_log_a_snapshot_is_where_it_begins(tmp_path: Path) -> None:
    """As after a broker deleted the segments that a snapshot makes superfluous."""
    whole = history()
    snapshots = sorted(whole.directory.glob("*.checkpoint"))[1:]
    assert snapshots, "the sample has a snapshot"
    directory = tmp_path / "data" / "__cluster_metadata-0"
    directory.mkdir(parents=True)
    end = int(snapshots[-1].name[:20])
    (log,) = whole.directory.glob("*.log")
    (directory / f"{end:020d}.log").write_bytes(_from(log.read_bytes(), end))
    for snapshot in snapshots:
        (directory / snapshot.name).write_bytes(snapshot.read_bytes())
    short = ClusterHistory(directory)
    assert short.problems == []
    assert short.partitions_now() == whole.partitions_now()
    for table in ("configs", "client_quotas", "acls", "scram", "features", "topics"):
        assert _held(short.rows[table], table) == _held(whole.rows[table], table)
    assert {row["source"] for row in short.rows["topics"]} <= {METADATA_LOG, METADATA_SNAPSHOT}
    assert {row["offset"] for row in short.rows["features"]} == {end}


def _held(found: Iterable[Row], table: str) -> set[tuple[Any, ...]]:
    """What holds at the end."""
    when = {"offset", "timestampMs", "endOffset", "endTimestampMs", "source", "path", "clusterId"}
    names = [c.name for c in CLUSTER_TABLES[table] if c.name not in when]
    return {tuple(row.get(name) for name in names) for row in found if row["endOffset"] is None}


def _from(log: bytes, offset: int) -> bytes:
    """The batches from the one that begins at `offset` on."""
    position = 0
    while int.from_bytes(log[position : position + 8], "big") < offset:
        position += 12 + int.from_bytes(log[position + 8 : position + 12], "big")
    return log[position:]


def test_damage_becomes_problems_and_never_an_error(tmp_path: Path) -> None:
    """Records replaced by garbage in sound batches, and bytes flipped without."""
    rng = random.Random(11)
    values = [
        record.value or b""
        for _, header, records in parse_batches(_log().read_bytes())
        if not header.is_control
        for record in records
    ]
    for number in range(40):
        broken = list(values)
        for at in rng.sample(range(len(broken)), 20):
            value = bytearray(broken[at])
            for _ in range(rng.randint(1, 4)):
                value[rng.randrange(len(value))] = rng.randrange(256)
            broken[at] = bytes(value[: rng.randint(1, len(value))])
        log_dir = tmp_path / str(number)
        directory = MetadataBuilder(log_dir).batch(*broken).write()
        found = ClusterHistory(directory)
        assert found.problems
        assert found.end_offset == len(values)
        for table, columns in CLUSTER_TABLES.items():
            build_cluster_table(found.rows[table], columns).validate(full=True)


def test_a_flipped_byte_ends_the_history_there(tmp_path: Path) -> None:
    data = bytearray(_log().read_bytes())
    data[len(data) // 2] ^= 1
    directory = tmp_path / "__cluster_metadata-0"
    directory.mkdir()
    (directory / _log().name).write_bytes(data)
    found = ClusterHistory(directory)
    assert len(found.problems) == 1
    assert "CRC" in found.problems[0]
    assert 0 < found.end_offset < history().end_offset


def _log() -> Path:
    (log,) = history().directory.glob("*.log")
    return log
