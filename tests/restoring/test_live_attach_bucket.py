"""A tiered cluster loses all its disks; a fresh one is attached to its bucket and goes on: readers
of both isolation levels get the same from offset 0, producers write and their segments are
uploaded behind the old ones, retention deletes remote segments.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from kafkalog.cli.main import main
from kafkalog.clock import now_ms
from kafkalog.remote.paths import KeyFiles, RemoteStorage
from kafkalog.restoring.attach import is_whole
from kafkalog.restoring.bucket_attach import BucketAttachRun, bucket_attach_run
from kafkalog.restoring.bucket_request import BucketAttachRequest
from tests.bucket.test_live_cluster import (
    TIERED,
    Row,
    await_that,
    await_upload,
    consumed,
    create,
    produce,
    settings,
    stored,
    transactions,
)
from tests.restoring.live_cluster import COMMITTED, UNCOMMITTED
from tests.restoring.test_live_fresh import group_reads
from tests.support.broker import Broker, BrokerFactory
from tests.support.broker import broker_factory as broker_factory  # a fixture
from tests.support.broker_cluster import NODES, BrokerCluster

pytestmark = [pytest.mark.oracle, pytest.mark.broker, pytest.mark.soak]

TOPICS = ("plain", "txn")
LEVELS = (COMMITTED, UNCOMMITTED)
Rows = Mapping[tuple[str, str], list[Row]]
WRONG = ("Truncating to offset", "truncation of conflicting", "marked stray", "UNCLEAN partition")


def lost_cluster(
    broker_factory: BrokerFactory,
    path: Path,
    *,
    begins_a_segment: bool = False,
    plugin: Callable[[Path], dict[str, str]] = settings,
) -> tuple[Path, Path, Rows]:
    """Its log dir and its bucket once it is stopped, and what consumers got. begins_a_segment:
    whether the transaction at the end does. plugin: settings of a broker with this bucket.
    """
    store = path / "store"
    store.mkdir()
    broker = broker_factory(path / "source", plugin(store))
    create(broker.bootstrap_servers, *TOPICS)
    for _ in range(2):  # two leader epochs
        produce(broker.bootstrap_servers, "plain", 1000)
        transactions(broker.bootstrap_servers, "txn", 20)
        for topic in TOPICS:
            await_upload(broker.log_dir, topic)
        broker.stop()
        broker.start()
    if begins_a_segment:  # as each batch from here on
        configure(broker.bootstrap_servers, "txn", "segment.ms", "1")
    one_transaction(broker.bootstrap_servers, "txn", 200 if begins_a_segment else 500)
    await_upload(broker.log_dir, "txn")
    found = {(t, v): consumed(broker.bootstrap_servers, t, v) for t in TOPICS for v in LEVELS}
    broker.stop()
    return broker.log_dir, store, found


def one_transaction(servers: str, topic: str, count: int) -> None:
    """Over several segments: its marker is in the last one, which is not copied."""
    own = {"bootstrap.servers": servers, "batch.size": 2048, "transactional.id": f"t-{topic}"}
    producer = Producer(own)
    producer.init_transactions(120)
    producer.begin_transaction()
    for number in range(count):
        producer.produce(topic, key=f"k{number}", value=f"{topic} long {number} " + "v" * 90)
    producer.flush(120)
    producer.commit_transaction(120)


def kept_metadata(log_dir: Path, old: Path) -> Path:
    """A copy of what tells of a bucket, and of topics."""
    for name in ("__remote_log_metadata-0", "__remote_log_metadata-1", "__cluster_metadata-0"):
        shutil.copytree(log_dir / name, old / name)
    for path in (*log_dir.glob("*checkpoint"), log_dir / "meta.properties"):
        shutil.copy(path, old)
    return old


def attach(
    bucket: Path,
    into: Iterable[Path],
    runs: Path,
    old: Path | None,
    ends: str = "abort",
    keys: KeyFiles = (),
) -> BucketAttachRun:
    request = BucketAttachRequest(
        RemoteStorage((str(bucket),), keys=keys),
        tuple(map(str, into)),
        now_ms(),
        metadata_from=() if old is None else (str(old),),
        metadata_partitions=2,
        end_transactions=ends,
        run_dir=str(runs),
    )
    done = bucket_attach_run(request, lambda _: None)
    assert is_whole(done.run)
    return done


def expected(before: Rows, done: BucketAttachRun) -> dict[tuple[str, str], str]:
    """SHA-256 of what was copied; what transactions that were open at the end had written is
    aborted, or left out with its segments. The only producer of transactions has one at a time.
    """
    assert [log.topic for log in done.logs if log.open or log.left_out] == ["txn"]
    found = {}
    for log in done.logs:
        first_open = min((each.first_offset for each in log.open), default=log.end_offset)
        for level in LEVELS:
            end = first_open if level == COMMITTED else log.end_offset
            rows = [row for row in before[log.topic, level] if row[0] < end]
            assert len(rows) > 500
            found[log.topic, level] = digest(rows)
    return found


def digest(rows: list[Row]) -> str:
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def check_goes_on(
    servers: str, leader: Path, store: Path, done: BucketAttachRun, before: Rows
) -> None:
    wanted = expected(before, done)
    assert {key: digest(consumed(servers, *key)) for key in wanted} == wanted
    counts = {topic: len(consumed(servers, topic, UNCOMMITTED)) for topic in TOPICS}
    committed = len(consumed(servers, "txn", COMMITTED))
    objects = {topic: set(stored(store, topic, "log")) for topic in TOPICS}
    small_segments(servers)
    produce(servers, "plain", 1000)
    transactions(servers, "txn", 20)
    for topic, more in (("plain", 1000), ("txn", 600)):
        await_more(store, topic, objects[topic])
        await_upload(leader, topic)
        assert len(consumed(servers, topic, UNCOMMITTED)) == counts[topic] + more
    # Thirteen of twenty transactions: nothing holds the last stable offset.
    assert len(consumed(servers, "txn", COMMITTED)) == committed + 13 * 30
    configure(servers, "plain", "retention.bytes", "40000")
    await_that(lambda: not objects["plain"] & set(stored(store, "plain", "log")), "not deleted")
    assert objects["txn"] <= set(stored(store, "txn", "log"))
    end = next(log.end_offset for log in done.logs if log.topic == "plain")
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "none"})
    low, _ = consumer.get_watermark_offsets(TopicPartition("plain", 0), 60)
    consumer.close()
    assert low >= end


def await_more(store: Path, topic: str, before: set[Path]) -> None:
    await_that(lambda: set(stored(store, topic, "log")) > before, f"nothing of {topic} uploaded")


def small_segments(servers: str) -> None:
    """Settings that a bucket does not tell."""
    for topic in TOPICS:
        for name in ("internal.segment.bytes", "local.retention.bytes"):
            configure(servers, topic, name, TIERED[name])


def configure(servers: str, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": servers})  # kept: see live_cluster
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(60)


def wrong(logs: Iterable[Path]) -> list[str]:
    lines = (line for log in logs for line in log.read_text(errors="replace").splitlines())
    return [line for line in lines if any(text in line for text in WRONG)]


@pytest.mark.parametrize(
    ("source", "ends"), [("manifests", "abort"), ("records", "abort"), ("manifests", "cut")]
)
def test_one_node_goes_on_over_the_bucket(
    broker_factory: BrokerFactory, tmp_path: Path, source: str, ends: str
) -> None:
    log_dir, store, before = lost_cluster(broker_factory, tmp_path, begins_a_segment=ends == "cut")
    old = kept_metadata(log_dir, tmp_path / "old") if source == "records" else None
    shutil.rmtree(log_dir)
    # One of each kind of quorum.
    options = ("--standalone",) if source == "records" else ()
    target = Broker(tmp_path / "target", settings(store), options)
    if options:
        del target.settings["controller.quorum.voters"]
        target.settings["controller.quorum.bootstrap.servers"] = (
            f"127.0.0.1:{target.controller_port}"
        )
    target.format()
    try:
        done = attach(store, [target.log_dir], tmp_path / "runs", old, ends)
        target.start()
        check_goes_on(target.bootstrap_servers, target.log_dir, store, done, before)
        assert wrong([target.log_file]) == []
    finally:
        target.kill()


@pytest.mark.parametrize("partitions", [None, 7])
def test_groups_go_on_without_a_record_twice_or_left_out(
    broker_factory: BrokerFactory, tmp_path: Path, partitions: int | None
) -> None:
    store = tmp_path / "store"
    store.mkdir()
    source = broker_factory(tmp_path / "source", settings(store))
    create(source.bootstrap_servers, "plain")
    produce(source.bootstrap_servers, "plain", 400)
    protocols = {"reads-classic": "classic", "reads-consumer": "consumer", "at-end": "classic"}
    counts = {"reads-classic": 21, "reads-consumer": 22}
    produce(source.bootstrap_servers, "plain", 400)
    await_upload(source.log_dir, "plain")
    counts["at-end"] = 800  # behind what was copied
    first = {
        group: group_reads(source.bootstrap_servers, group, protocols[group], count)
        for group, count in counts.items()
    }
    source.stop()
    old = kept_metadata(source.log_dir, tmp_path / "old")
    for path in source.log_dir.glob("__consumer_offsets-*"):
        shutil.copytree(path, old / path.name)
    shutil.rmtree(source.log_dir)
    target = Broker(tmp_path / "target", settings(store))
    target.format()
    try:
        words = [str(store), "--into", str(target.log_dir), "--metadata-from", str(old)]
        words += ["--topic", "plain", "--groups", "*", "--run-dir", str(tmp_path / "runs")]
        words += ["--offsets-partitions", str(partitions)] if partitions else []
        assert main(["attach", *words, "--apply"]) == 0
        target.start()
        servers = target.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers})
        topics = admin.list_topics(timeout=60).topics
        assert len(topics["__consumer_offsets"].partitions) == (partitions or 3)
        copied = len(consumed(servers, "plain", COMMITTED))
        assert 100 < copied < 800
        produce(servers, "plain", 100)
        wanted = [(0, offset) for offset in range(copied + 100)]
        for group, protocol in protocols.items():
            read = first[group][:copied]  # of the others nothing was copied
            rest = group_reads(servers, group, protocol, len(wanted) - len(read))
            assert read + rest == wanted, group
        assert wrong([target.log_file]) == []
    finally:
        target.kill()


def test_three_nodes_go_on_over_the_bucket(broker_factory: BrokerFactory, tmp_path: Path) -> None:
    log_dir, store, before = lost_cluster(broker_factory, tmp_path)
    shutil.rmtree(log_dir)
    cluster = BrokerCluster(tmp_path / "targets")
    for broker in cluster.brokers.values():
        broker.settings.update(settings(store, replication=3))
        broker.format()
    log_dirs = [cluster.log_dir(node) for node in NODES]
    done = attach(store, log_dirs, tmp_path / "runs", None)
    with cluster:
        cluster.await_state(TOPICS, lambda state: set(state.isrs) == set(NODES))
        leaders = {each.topic: each.leader for each in done.run.plan.partitions}
        assert leaders["plain"] != leaders["txn"]
        wanted = expected(before, done)
        servers = cluster.bootstrap_servers
        assert {key: digest(consumed(servers, *key)) for key in wanted} == wanted
        counts = {topic: len(consumed(servers, topic, UNCOMMITTED)) for topic in TOPICS}
        objects = {topic: set(stored(store, topic, "log")) for topic in TOPICS}
        small_segments(servers)
        produce(servers, "plain", 1000)
        transactions(servers, "txn", 20)
        for topic, more in (("plain", 1000), ("txn", 600)):
            await_more(store, topic, objects[topic])
            await_upload(cluster.log_dir(leaders[topic]), topic)
            assert len(consumed(servers, topic, UNCOMMITTED)) == counts[topic] + more
        cluster.await_state(TOPICS, lambda state: set(state.isrs) == set(NODES))
        assert wrong(broker.log_file for broker in cluster.brokers.values()) == []
