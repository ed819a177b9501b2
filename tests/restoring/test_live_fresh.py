"""Topics restored into clusters that were never started: brokers load them, replicas are in sync,
consumers get the same in both isolation levels, nothing is elected by hand, stray or truncated, and
new producers lose nothing.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from data.copy_samples import copy_sample
from kafkalog.cli.main import main
from tests.restoring.live_cluster import (
    COMMITTED,
    COMPACTED,
    PATIENCE_S,
    PLAIN,
    UNCOMMITTED,
    described,
    lost_quorum,
)
from tests.restoring.target import served
from tests.restoring.test_live_restore import new_producers

pytestmark = [pytest.mark.oracle, pytest.mark.broker, pytest.mark.soak]


@pytest.mark.parametrize(
    ("count", "quorum", "stops", "words"),
    [
        (1, "static", "in order", ()),
        (1, "dynamic", "killed", ()),
        (3, "static", "in order", ("--replication-factor", "3")),
        (3, "static", "killed", ("--replication-factor", "3", "--empty-followers")),
    ],
)
def test_a_new_cluster_begins_with_restored_topics(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    count: int,
    quorum: str,
    stops: str,
    words: tuple[str, ...],
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with lost_quorum(tmp_path / "source", 1, is_dynamic=False) as source:
        source.start()
        source.create_topics()
        for turn in range(3):
            source.write_all(f"turn-{turn}")
            source.stop()
            source.start()
            source.await_in_sync()
        source.configure(PLAIN, "retention.ms", "987654321987")
        digests, ends = source.digests(), source.ends()
        source.stop() if stops == "in order" else source.kill()

    with lost_quorum(tmp_path / "target", count, is_dynamic=quorum == "dynamic") as target:
        for node in target.nodes.values():
            node.format()
        asked = [*source.log_dirs, *target.into, "--topic", "*", *words]
        assert main(["restore", *asked, "--apply"]) == 0
        target.start()
        states = target.await_in_sync()
        assert {place[0] for place in states} == set(target.topics)
        assert all(isr == sorted(target.nodes) for _, isr in states.values()), described(states)
        assert target.strays() == []
        assert target.digests() == digests
        assert target.config(PLAIN) == {"retention.ms": "987654321987"}
        assert target.config(COMPACTED) == {"cleanup.policy": "compact"}
        for topic in (PLAIN, COMPACTED):
            sent = new_producers(target.servers, topic)
            assert len(sent) == 400, topic
            found = [each[4] for each in target.read(COMMITTED) if each[0] == topic]
            assert sorted(v for v in found if v and v.startswith(b"new ")) == sorted(sent), topic
        assert target.digests(ends) == digests
        assert target.complaints() == []


def test_a_new_cluster_of_an_older_metadata_version_begins_with_restored_topics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with lost_quorum(tmp_path / "source", 1, is_dynamic=False) as source:
        source.start()
        source.create_topics()
        source.write_all("before")
        digests = source.digests()
        source.stop()

    with lost_quorum(tmp_path / "target", 1, is_dynamic=False) as target:
        target.nodes[1]._format_options = ("--release-version", "4.0")
        target.nodes[1].format()
        assert main(["restore", *source.log_dirs, *target.into, "--topic", "*", "--apply"]) == 0
        target.start()
        target.await_in_sync()
        assert target.strays() == []
        assert target.digests() == digests
        assert len(new_producers(target.servers, PLAIN)) == 400
        assert target.complaints() == []


@pytest.mark.parametrize(("partitions", "protocol"), [("3", "classic"), ("7", "consumer")])
def test_groups_go_on_without_a_record_twice_or_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partitions: str, protocol: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    groups = [f"readers-{n}" for n in range(6)]
    with lost_quorum(tmp_path / "source", 1, is_dynamic=False) as source:
        source.start()
        source.create_topics()
        source.write(PLAIN, "first", 60)
        first = {
            group: group_reads(source.servers, group, protocol, 20 + n)
            for n, group in enumerate(groups)
        }
        source.write(PLAIN, "second", 60)
        wanted = sorted(each[1:3] for each in source.read(COMMITTED) if each[0] == PLAIN)
        source.stop()

    with lost_quorum(tmp_path / "target", 1, is_dynamic=False) as target:
        target.nodes[1].format()
        words = ["--topic", PLAIN, "--groups", "*", "--offsets-partitions", partitions, "--apply"]
        assert main(["restore", *source.log_dirs, *target.into, *words]) == 0
        target.start()
        states = target.await_in_sync()
        assert sum(place[0] == "__consumer_offsets" for place in states) == int(partitions)
        for group in groups:
            rest = group_reads(target.servers, group, protocol, len(wanted) - len(first[group]))
            assert sorted(first[group] + rest) == wanted, group
        assert target.strays() == []
        assert target.complaints() == []


def test_offsets_as_a_script_are_taken_by_kafkas_own_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with lost_quorum(tmp_path / "source", 1, is_dynamic=False) as source:
        source.start()
        source.create_topics()
        source.write(PLAIN, "first", 60)
        group_reads(source.servers, "readers", "classic", 20)
        committed = {place: each for place, each in source.committed().items() if each >= 0}
        source.stop()

    with lost_quorum(tmp_path / "target", 1, is_dynamic=False, topics={PLAIN: 3}) as target:
        target.start()
        target.create_topics()
        target.stop()
        words = ["--topic", PLAIN, "--groups", "readers", "--output", str(tmp_path / "groups")]
        assert main(["restore", *source.log_dirs, *target.into, *words, "--apply"]) == 0
        target.start()
        target.await_in_sync()
        arguments = ["org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"]
        arguments += ["--bootstrap-server", target.servers, "--group", "readers", "--execute"]
        arguments += ["--reset-offsets", "--from-file", str(tmp_path / "groups/readers.csv")]
        command = target.nodes[1]._java("error", *arguments)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        found = {place: each for place, each in target.committed().items() if each >= 0}
        assert found == committed, done.stdout


def test_disks_of_kafka_3_9_go_into_a_new_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    source = copy_sample("zookeeper/broker-1", tmp_path / "source")
    topics = {"plain": 4, "compacted": 2, "unclean": 1}
    served_before = {
        (topic, n): served(source / f"{topic}-{n}") for topic, count in topics.items()
        for n in range(count)
    }  # fmt: skip
    with lost_quorum(tmp_path / "target", 1, is_dynamic=False, topics=topics) as target:
        target.nodes[1].format()
        assert main(["restore", str(source), *target.into, "--topic", "*", "--apply"]) == 0
        target.start()
        target.await_in_sync()
        for is_committed, level in enumerate((UNCOMMITTED, COMMITTED)):
            found = [each[:5] for each in target.read(level)]
            wanted = sorted(
                (*place, *row[:3]) for place, its in served_before.items()
                for row in its[is_committed]
            )  # fmt: skip
            assert uncleaned(found) == uncleaned(wanted)
            # The broker's cleaner does not wait.
            assert latest(found) == latest(wanted)
        sent = new_producers(target.servers, "plain")
        values = [each[4] for each in target.read(COMMITTED) if each[0] == "plain"]
        assert sorted(v for v in values if v and v.startswith(b"new ")) == sorted(sent)
        assert target.strays() == []
        assert target.complaints() == []


def uncleaned(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [row for row in rows if row[0] != "compacted"]


def latest(rows: list[tuple[Any, ...]]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Of each key that is not deleted."""
    last = {(row[0], row[1], row[3]): row for row in rows}
    return {key: row for key, row in last.items() if row[4] is not None}


def group_reads(servers: str, group: str, protocol: str, count: int) -> list[tuple[int, int]]:
    """The next records that a group gets, committed: partition and offset of each."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers, "group.id": group, "group.protocol": protocol,
            "auto.offset.reset": "earliest", "enable.auto.commit": False,
        }
    )  # fmt: skip
    found: list[tuple[int, int]] = []
    deadline = time.monotonic() + PATIENCE_S
    try:
        consumer.subscribe([PLAIN])
        while len(found) < count and time.monotonic() < deadline:
            for message in consumer.consume(1, 1.0):
                assert message.error() is None, message.error()
                found.append((message.partition(), message.offset()))
                consumer.commit(message=message, asynchronous=False)
    finally:
        consumer.close()
    assert len(found) == count
    return found
