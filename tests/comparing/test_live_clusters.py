"""Three live brokers: what an unclean election will cost is what the returning broker cuts, and
what a short absence leaves behind is found.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from kafkalog.cli.main import main
from tests.comparing.comparing import compare
from tests.support.broker_cluster import BrokerCluster

pytestmark = [pytest.mark.oracle, pytest.mark.soak]

BEFORE, LOST, AFTER = 20, 15, 5
COMPACTED = {
    "cleanup_policy": "compact",
    "segment_ms": "300",
    "min_cleanable_dirty_ratio": "0.001",
    "delete_retention_ms": "200",
    "max_compaction_lag_ms": "1000",
}
ROUNDS = 80


OURS = [
    f"--config={name}={value}"
    for name, value in {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0",
        "min.compaction.lag.ms": "0",
        "delete.retention.ms": "0",
    }.items()
]


def produce(cluster: BrokerCluster, topic: str, values: list[str], acks: str = "all") -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": acks})
    for value in values:
        producer.produce(topic, key=value, value=value)
    assert producer.flush(120) == 0


Row = tuple[int, bytes | None, bytes | None]


def consumed(
    cluster: BrokerCluster, topic: str, isolation_level: str = "read_committed"
) -> list[Row]:
    """(offset, key, value) of all records; of committed ones up to the last stable offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "none",
            "isolation.level": isolation_level,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    deadline = time.monotonic() + 120
    found: list[Row] = []
    while time.monotonic() < deadline:
        message = consumer.poll(1)
        error = None if message is None else message.error()
        if error is not None and error.code() == KafkaError._PARTITION_EOF:
            consumer.close()
            return found
        if message is not None and error is None:
            found.append((message.offset() or 0, message.key(), message.value()))
    raise TimeoutError(f"no end of {topic} after {found}")


def cuts_of(log_file: Path, seen: int) -> list[str]:
    """The offsets to which a broker said that it cuts its log, behind what was seen of its words. A
    broker that has just started may still call itself in sync."""
    deadline = time.monotonic() + 120
    pattern = r"Truncating partition lost-0 with TruncationState\(offset=(\d+)"
    while time.monotonic() < deadline:
        if cuts := re.findall(pattern, log_file.read_bytes()[seen:].decode()):
            return cuts
        time.sleep(0.5)
    raise TimeoutError("the broker cut nothing")


def latest(cluster: BrokerCluster, topic: str) -> set[bytes | None]:
    """The values that are there for good: each key's last one."""
    last = {key: value for _, key, value in consumed(cluster, topic)}
    return set(last.values())


def test_what_an_unclean_election_costs_is_what_the_broker_cuts(tmp_path: Path) -> None:
    with BrokerCluster(tmp_path) as cluster:
        cluster.create("lost", [1, 2], unclean_leader_election_enable="true")
        produce(cluster, "lost", [f"both-{n}" for n in range(BEFORE)])
        cluster.brokers[2].stop()
        cluster.await_state(["lost"], lambda state: state.isrs == [1])
        produce(cluster, "lost", [f"lost-{n}" for n in range(LOST)], acks="1")
        cluster.brokers[1].kill()
        cluster.start(2)
        cluster.await_state(["lost"], lambda state: state.leader == 2)
        produce(cluster, "lost", [f"after-{n}" for n in range(AFTER)], acks="1")
        cluster.stop(2, 3)

        run = compare(cluster.log_dir(1), cluster.log_dir(2), topics=("lost",))
        (found,) = run.differences
        assert (found.kind, found.offset, found.last_offset) == (
            "diverged-epoch", BEFORE, BEFORE + LOST - 1
        )  # fmt: skip
        assert (found.wrong, found.right, found.records) == (("node 1",), ("node 2",), LOST)

        seen = cluster.brokers[1].log_file.stat().st_size
        # Node 1 last: alone it would be elected, as uncleanly as node 2 was.
        cluster.start(2, 3)
        cluster.await_state(["lost"], lambda state: state.leader == 2)
        cluster.start(1)
        cluster.await_state(["lost"], lambda state: set(state.isrs) == {1, 2})
        cuts = cuts_of(cluster.brokers[1].log_file, seen)
        assert min(map(int, cuts)) == found.offset
        values = [value for _, _, value in consumed(cluster, "lost")]
        assert values == [
            *(b"both-%d" % n for n in range(BEFORE)), *(b"after-%d" % n for n in range(AFTER))
        ]  # fmt: skip
        cluster.stop(1, 2, 3)
        assert compare(cluster.log_dir(1), cluster.log_dir(2), topics=("lost",)).differences == []


ABSENT = ("deleted", "aborted", "stuck")


def be_absent(cluster: BrokerCluster) -> None:
    """Node 2 is away while node 1 deletes a key and aborts transactions, and long enough that their
    tombstone and markers go; it comes back, and all stop.
    """
    for topic in ABSENT:
        cluster.create(topic, [1, 2], **COMPACTED)
    produce(cluster, "deleted", ["erased", "kept"])
    transactions = {}
    for topic in ("aborted", "stuck"):
        transactions[topic] = Producer(
            {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": topic}
        )
        transactions[topic].init_transactions(120)
        transactions[topic].begin_transaction()
        transactions[topic].produce(topic, key="a", value="aborted-value")
        assert transactions[topic].flush(120) == 0
    cluster.brokers[2].stop()
    cluster.await_state(ABSENT, lambda state: state.isrs == [1])
    tombstones = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    tombstones.produce("deleted", key="erased", value=None)
    assert tombstones.flush(120) == 0
    for transaction in transactions.values():
        transaction.abort_transaction(120)
    # Node 1 rolls, cleans, and a horizon later takes tombstone and markers away.
    for number in range(ROUNDS):
        for topic in ABSENT:
            tombstones.produce(topic, key=f"fill{number % 3}", value=str(number))
        assert tombstones.flush(120) == 0
        time.sleep(0.5)
    cluster.start(2)
    cluster.await_state(ABSENT, lambda state: set(state.isrs) == {1, 2})
    again = transactions["aborted"]
    again.begin_transaction()
    again.produce("aborted", key="b", value="committed-value")
    again.commit_transaction(120)
    cluster.stop(1, 2, 3)


def test_what_an_absence_leaves_behind_is_found(tmp_path: Path) -> None:
    topics = ABSENT
    with BrokerCluster(tmp_path) as cluster:
        be_absent(cluster)
        run = compare(cluster.log_dir(1), cluster.log_dir(2), topics=topics)
        assert [
            (str(each.topic_partition), each.kind, each.offset, each.wrong, each.right)
            for each in run.differences
        ] == [
            ("aborted-0", "aborted-served-as-committed", 0, ("node 2",), ("node 1",)),
            ("deleted-0", "resurrected-key", 0, ("node 2",), ("node 1",)),
            ("stuck-0", "open-transaction-forgotten", 0, ("node 2",), ("node 1",)),
        ]

        cluster.start(2, 3)
        cluster.await_state(topics, lambda state: state.leader == 2)
        assert consumed(cluster, "deleted")[0] == (0, b"erased", b"erased")
        assert b"erased" in latest(cluster, "deleted")
        assert b"aborted-value" in latest(cluster, "aborted")
        assert consumed(cluster, "stuck") == []


@pytest.mark.parametrize("told", [True, False])
def test_a_compaction_that_knows_the_replica_leaves_nothing_behind(
    tmp_path: Path, told: bool
) -> None:
    """Node 2 is away while keys are deleted and a transaction aborts; all stop, node 1 is compacted
    by us, and node 2 comes back and leads."""
    topics = ("deleted", "aborted")
    with BrokerCluster(tmp_path) as cluster:
        for topic in topics:
            # The brokers' own cleaner keeps away.
            cluster.create(
                topic, [1, 2], cleanup_policy="compact", segment_ms="300",
                min_compaction_lag_ms=str(10**12),
            )  # fmt: skip
        produce(cluster, "deleted", ["erased", "kept"])
        settings = {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "tx"}
        transaction = Producer(settings)
        transaction.init_transactions(120)
        transaction.begin_transaction()
        transaction.produce("aborted", key="a", value="aborted-value")
        assert transaction.flush(120) == 0
        cluster.brokers[2].stop()
        cluster.await_state(topics, lambda state: state.isrs == [1])
        others = Producer({"bootstrap.servers": cluster.bootstrap_servers})
        others.produce("deleted", key="erased", value=None)
        transaction.abort_transaction(120)
        for number in range(4):
            time.sleep(1)
            for topic in topics:
                others.produce(topic, key="fill", value=str(number))
            assert others.flush(120) == 0
        cluster.stop(1, 3)

        # A tombstone, or a marker without records, that is met first only gets its delete horizon.
        known = ["--replicas", str(cluster.log_dir(2))] if told else []
        for days in (1, 2, 3):
            # All of it again, whatever was clean.
            (cluster.log_dir(1) / "cleaner-offset-checkpoint").unlink(missing_ok=True)
            now = str(int(time.time() * 1000) + days * 86_400_000)
            for topic in topics:
                words = ["compact", str(cluster.log_dir(1)), "--topic", topic, *OURS, *known]
                words += ["--now", now, "--force", "clock-differs", "--force"]
                words += ["config-differs", "--apply"]
                assert main(words) == 0, words

        cluster.start(1, 2, 3)
        cluster.await_state(topics, lambda state: set(state.isrs) == {1, 2})
        transaction = Producer(settings)
        transaction.init_transactions(120)
        transaction.begin_transaction()
        transaction.produce("aborted", key="b", value="committed-value")
        transaction.commit_transaction(120)
        cluster.brokers[1].stop()
        cluster.await_state(topics, lambda state: state.leader == 2)
        deleted, aborted = (latest(cluster, topic) for topic in topics)
        assert (b"erased" in deleted, b"kept" in deleted) == (not told, True)
        assert (b"aborted-value" in aborted, b"committed-value" in aborted) == (not told, True)
        cluster.stop(2, 3)
        found = {
            each.kind for each in compare(*map(cluster.log_dir, (1, 2)), topics=topics).differences
        }
        assert found == (set() if told else {"resurrected-key", "aborted-served-as-committed"})
