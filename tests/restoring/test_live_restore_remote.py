"""Topics restored from remote storage, as a live broker serves them: consumers of both isolation
levels get what they got from the tiered cluster, or what Aiven's samples hold, and producers go on.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalog import read_records
from kafkalog.cli.main import main
from tests.bucket.test_live_cluster import Row, consumed, produce, transactions
from tests.remote.test_aiven import BROKER, STORE
from tests.remote.test_aiven import TOPICS as SAMPLES
from tests.restoring.live_cluster import COMMITTED, UNCOMMITTED, lost_quorum
from tests.restoring.test_live_attach_bucket import LEVELS, TOPICS, digest, lost_cluster, wrong
from tests.restoring.test_restore_remote import WITH_KEYS
from tests.support.broker import Broker, BrokerFactory
from tests.support.broker import broker_factory as broker_factory  # a fixture

pytestmark = [pytest.mark.oracle, pytest.mark.broker, pytest.mark.soak]


def restore(place: Path, target: Broker, runs: Path, *words: str) -> None:
    args = ["restore", str(place), "--into", str(target.log_dir), "--run-dir", str(runs)]
    assert main([*args, "--topic", "*", "--end-transactions", "abort", "--apply", *words]) == 0


def check_served(servers: str, topic: str, rows: Iterable[Row], level: str) -> int:
    """What is served is the beginning of these rows; how many that are."""
    found = consumed(servers, topic, level)
    assert digest(found) == digest(list(rows)[: len(found)]), (topic, level)
    return len(found)


@pytest.mark.parametrize("is_fresh", [True, False])
def test_a_bucket_of_a_live_cluster_is_served(
    broker_factory: BrokerFactory, tmp_path: Path, is_fresh: bool
) -> None:
    _, store, before = lost_cluster(broker_factory, tmp_path)
    target = Broker(tmp_path / "target")
    try:
        if is_fresh:
            target.format()
        else:
            target.start()
            admin = AdminClient({"bootstrap.servers": target.bootstrap_servers})
            new = [NewTopic(topic, 1, 1, config={"retention.ms": "-1"}) for topic in TOPICS]
            for made in admin.create_topics(new).values():
                made.result(60)
            target.stop()
        restore(store, target, tmp_path / "runs", "--remote-layout", "kafka")
        target.start()
        servers = target.bootstrap_servers
        counts = {
            (topic, level): check_served(servers, topic, before[topic, level], level)
            for topic in TOPICS
            for level in LEVELS
        }
        assert min(counts.values()) > 500
        produce(servers, "plain", 500)
        transactions(servers, "txn", 20)
        assert len(consumed(servers, "plain", UNCOMMITTED)) == counts["plain", UNCOMMITTED] + 500
        assert len(consumed(servers, "txn", UNCOMMITTED)) == counts["txn", UNCOMMITTED] + 600
        assert len(consumed(servers, "txn", COMMITTED)) > counts["txn", COMMITTED] + 300
        assert wrong([target.log_file]) == []
    finally:
        target.kill()


def check_samples(servers: str) -> None:
    for topic in SAMPLES:
        for level in LEVELS:
            read = read_records(
                BROKER, topics=[topic], columns=["offset", "key", "value"],
                read_committed=level == COMMITTED,
            )  # fmt: skip
            rows = [
                (row["offset"], row["key"], row["value"]) for row in read.read_all().to_pylist()
            ]
            assert check_served(servers, topic, rows, level) > 500


def test_samples_of_the_plugin_are_served(tmp_path: Path) -> None:
    target = Broker(tmp_path / "target")
    target.format()
    restore(STORE, target, tmp_path / "runs", "--remote-layout", "aiven", *WITH_KEYS)
    try:
        target.start()
        check_samples(target.bootstrap_servers)
        assert wrong([target.log_file]) == []
    finally:
        target.kill()


@pytest.mark.parametrize("layout", ["kafka", "aiven"])
def test_three_nodes_serve_what_a_bucket_has(
    broker_factory: BrokerFactory, tmp_path: Path, layout: str
) -> None:
    store, before = STORE, {}
    if layout == "kafka":
        _, store, before = lost_cluster(broker_factory, tmp_path)
    with lost_quorum(tmp_path / "target", 3, is_dynamic=True) as target:
        for node in target.nodes.values():
            node.format()
        words = ["--remote-layout", layout, *(WITH_KEYS if layout == "aiven" else [])]
        words += ["--run-dir", str(tmp_path / "runs"), "--topic", "*"]
        words += ["--end-transactions", "abort", "--apply"]
        assert main(["restore", str(store), *target.into, *words]) == 0
        target.start()
        assert all(isr == [1, 2, 3] for _, isr in target.await_in_sync().values())
        for (topic, level), rows in before.items():
            assert check_served(target.servers, topic, rows, level) > 500
        if layout == "aiven":
            check_samples(target.servers)
        produce(target.servers, "plain" if before else next(iter(SAMPLES)), 200)
        assert target.strays() == []
        assert target.complaints() == []
