"""A cluster that moved from ZooKeeper to KRaft: what each side tells of it is what was seen."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest

from data.copy_samples import SAMPLES
from data.maker.migration_story import CONTROLLER_ID
from kafkalog import read_view
from kafkalog.cli.main import main
from kafkalog.cluster.history import Until
from kafkalog.format.meta_properties import parse_meta_properties
from kafkalog.reading.cluster_tables import history_tables, read_histories
from kafkalog.reading.zookeeper_tables import read_zookeeper

SAMPLE = SAMPLES / "migration"
ENSEMBLE = SAMPLE / "ensemble"
BROKERS = (1, 2)
# From where on both are written.
BOTH = ("migrating", "both")

Row = dict[str, Any]


@functools.cache
def stages() -> dict[str, Row]:
    events = json.loads((SAMPLE / "events.json").read_text())
    return {stage["stage"]: stage for stage in events["stages"]}


@functools.cache
def kraft(table: str) -> list[Row]:
    """Rows of the metadata log, up to what was seen last."""
    until = Until(time_ms=stages()["kraft"]["timeMs"])
    tables = history_tables(read_histories([SAMPLE / "controller"], until))
    found: list[Row] = tables[table].to_pylist()
    return found


def zookeeper(table: str, stage: str | None = None) -> list[Row]:
    until = None if stage is None else stages()[stage]["zxid"]
    found: list[Row] = read_zookeeper([table], ENSEMBLE, until_zxid=until)[table].to_pylist()
    return found


def partition_states(rows: list[Row]) -> dict[str, dict[str, Row]]:
    """topic → partition → leader, replicas, isr at the end of the rows."""
    states: dict[str, dict[str, Row]] = {}
    for row in rows:
        states.setdefault(row["topic"], {})[str(row["partition"])] = {
            "leader": row["leader"], "replicas": row["replicas"], "isr": sorted(row["isr"]),
        }  # fmt: skip
    return states


@pytest.mark.parametrize("stage", ["zookeeper", *BOTH])
def test_partitions_and_settings_in_zookeeper_are_those_described(stage: str) -> None:
    live = stages()[stage]
    assert partition_states(zookeeper("partition_changes", stage)) == live["topics"]
    configs: dict[str, dict[str, str]] = {topic: {} for topic in live["topics"]}
    for row in zookeeper("configs", stage):
        if row["entityType"] == "topic" and row["endOffset"] is None:
            configs[row["entity"]][row["key"]] = row["value"]
    assert configs == live["configs"]


def test_the_metadata_log_goes_on_where_zookeeper_stops() -> None:
    last = stages()["kraft"]
    assert partition_states(kraft("partition_changes")) == last["topics"]
    assert {row["topic"] for row in zookeeper("topics")} == set(last["topics"]) - {"later"}
    ids = {row["topic"]: row["topicId"] for row in kraft("topics")}
    assert {row["topic"]: row["topicId"] for row in zookeeper("topics")} == {
        topic: topic_id for topic, topic_id in ids.items() if topic != "later"
    }
    settings = {
        (row["entity"], row["key"]): row["value"]
        for row in kraft("configs")
        if row["entityType"] == "topic" and row["endOffset"] is None
    }
    assert settings == {
        (topic, key): value
        for topic, entries in last["configs"].items()
        for key, value in entries.items()
    }


def test_a_kraft_controller_took_the_place_of_the_last_broker() -> None:
    held = [row for row in zookeeper("controllers") if row["event"] == "elected"]
    assert {row["controllerId"] for row in held[:-1]} <= set(BROKERS)
    assert held[-1]["controllerId"] == CONTROLLER_ID
    assert stages()["zookeeper"]["controller"]["brokerid"] in BROKERS
    assert stages()["both"]["controller"]["brokerid"] == CONTROLLER_ID
    assert {row["controllerId"] for row in kraft("controllers")} == {CONTROLLER_ID}


def test_the_log_tells_how_far_the_migration_was() -> None:
    messages = read_view("messages", SAMPLE / "controller").to_pylist()
    states = [
        json.loads(row["value"])["zkMigrationState"]
        for row in messages
        if row["messageType"] in ("ZkMigrationState", "ZkMigrationStateRecord")
    ]
    assert states == [2, 1, 3]  # before it, within, after it: as Kafka numbers them
    assert all(row["error"] is None for row in messages)


def test_brokers_keep_the_identity_they_had() -> None:
    for broker in BROKERS:
        path = SAMPLE / f"broker-{broker}" / "meta.properties"
        meta = parse_meta_properties(path.read_bytes(), str(path))
        # Kafka 3.9 writes a directory id into the file, and leaves its version.
        assert (meta.version, meta.node_id, meta.directory_id is not None) == (0, broker, True)
    registered = [row for row in kraft("brokers") if row["event"] == "registered"]
    assert {row["brokerId"] for row in registered} == set(BROKERS)
    assert {row["brokerId"] for row in registered if row["isReturn"]} == set(BROKERS)


@pytest.mark.parametrize("broker", BROKERS)
def test_the_brokers_logs_are_sound(
    broker: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_dir = SAMPLE / f"broker-{broker}"
    arguments = ["verify", "--log-dir", str(log_dir), "--run-dir", str(tmp_path), "--json"]
    main(arguments)
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [row["text"] for row in found if row["severity"] != "info"] == []
