"""A real broker on restored topics: consumers of both isolation levels get what they got from the
source, new producers lose nothing, and the broker has nothing to say about the logs.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalog.cli.main import main
from tests.oracle.consuming import COMMITTED, UNCOMMITTED, consume_topics
from tests.restoring.target import served
from tests.restoring.test_restore import busy, open_at_the_end
from tests.support.broker import CLIENT_WAIT_S, Broker, complaints, running_broker

pytestmark = [pytest.mark.oracle, pytest.mark.broker, pytest.mark.soak]

TOPICS = {
    "codecs": {"segment.bytes": str(1 << 20)},
    "cleaned": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
    "txn": {"segment.bytes": str(1 << 20)},
}
NOT_CLEANED = {"min.cleanable.dirty.ratio": "1.0"}
BUILT = ("orders", "aborted", "cut")
Digests = dict[tuple[str, str], tuple[int, str]]


def create(broker: Broker, topics: dict[str, dict[str, str]]) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    new = [NewTopic(name, 1, 1, config={"retention.ms": "-1", **c}) for name, c in topics.items()]
    for created in admin.create_topics(new).values():
        created.result(CLIENT_WAIT_S)
    broker.await_logs(*(f"{topic}-0" for topic in topics))


def produce(broker: Broker, round_number: int) -> None:
    """Records of several codecs, keys again and again, transactions of both ends."""
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "compression.codec": codec,
             "enable.idempotence": True}
        )  # fmt: skip
        for n in range(300):
            value, headers = b"%d-%d" % (round_number, n) * 40, [("h", b"%d" % n), ("e", b"")]
            producer.produce("codecs", key=b"k%d" % n, value=value, headers=headers)
            producer.produce("cleaned", key=b"k%d" % (n % 7), value=None if n % 5 == 0 else value)
        assert producer.flush(CLIENT_WAIT_S) == 0
    for n, ends in enumerate(("commit", "abort", "commit", "abort")):
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": f"t{n}"}
        )
        producer.init_transactions(CLIENT_WAIT_S)
        producer.begin_transaction()
        for m in range(50):
            producer.produce("txn", key=b"%d" % m, value=b"%d of %d" % (m, round_number))
        if ends == "commit":
            producer.commit_transaction(CLIENT_WAIT_S)
        else:
            producer.flush(CLIENT_WAIT_S)
            producer.abort_transaction(CLIENT_WAIT_S)


def digests(broker: Broker, topics: Iterable[str]) -> Digests:
    """How many messages, and a SHA-256 of all that a client knows of each."""
    found = {}
    for level in (COMMITTED, UNCOMMITTED):
        for topic, messages in consume_topics(broker, list(topics), level).items():
            told = [(m.offset(), m.key(), m.value(), m.timestamp(), m.headers()) for m in messages]
            found[topic, level] = len(told), hashlib.sha256(repr(told).encode()).hexdigest()
    return found


def new_producers(servers: str, topic: str) -> list[bytes]:
    """Twenty new producers, every other one in transactions; the values that were acknowledged."""
    sent: list[bytes] = []
    for n in range(20):
        settings = {"bootstrap.servers": servers, "enable.idempotence": True}
        if n % 2:
            settings["transactional.id"] = f"t{n}"
        producer = Producer(settings)
        if n % 2:
            producer.init_transactions(CLIENT_WAIT_S)
            producer.begin_transaction()
        for m in range(20):
            value = b"new %d %d" % (n, m)
            producer.produce(
                topic, key=b"new", value=value,
                on_delivery=lambda error, message: sent.append(message.value())
                if error is None else None,
            )  # fmt: skip
            producer.flush(CLIENT_WAIT_S)
        if n % 2:
            producer.commit_transaction(CLIENT_WAIT_S)
    return sent


def restore(source: Path, target: Path, topic: str, *words: str) -> None:
    args = ["restore", str(source), "--into", str(target), "--topic", topic, *words, "--apply"]
    assert main(args) == 0, (source, topic)


@pytest.mark.parametrize("way", ["stopped", "killed"])
def test_a_broker_goes_on_with_restored_topics(way: str, tmp_path: Path) -> None:
    source = Broker(tmp_path / "source")
    before: Digests = {}
    for round_number in range(4):
        source.start()
        if round_number == 0:
            create(source, TOPICS)
        produce(source, round_number)
        if round_number == 3:
            before = digests(source, TOPICS)
        source.kill() if way == "killed" and round_number == 3 else source.stop()
    built = {topic: tmp_path / topic for topic in BUILT}
    busy(built["orders"]).write()
    open_at_the_end(built["aborted"])
    open_at_the_end(built["cut"])

    with running_broker(tmp_path / "target") as target:
        create(target, {**TOPICS, **{topic: {} for topic in BUILT}})
        produce(target, 0)  # its own ids are given out
        admin = AdminClient({"bootstrap.servers": target.bootstrap_servers})
        for gone in admin.delete_topics(list(TOPICS)).values():
            gone.result(CLIENT_WAIT_S)
        # 1.0 is never exceeded: what was restored is not cleaned before it is read.
        create(target, {**TOPICS, "cleaned": {**TOPICS["cleaned"], **NOT_CLEANED}})
    log_dir = target.log_dir
    for topic in TOPICS:
        restore(source.log_dir, log_dir, topic)
    restore(built["orders"], log_dir, "orders")
    restore(built["aborted"], log_dir, "orders=aborted", "--end-transactions", "abort")
    restore(built["cut"], log_dir, "orders=cut", "--end-transactions", "cut")
    skip = target.log_file.stat().st_size
    with running_broker(tmp_path / "target") as target:
        after = digests(target, TOPICS)
        assert {key: after[key] for key in before if key[0] != "cleaned"} == {
            key: its for key, its in before.items() if key[0] != "cleaned"
        }
        for topic, offsets in (("aborted", [0, 1, 4]), ("cut", [0])):
            committed = consume_topics(target, [topic], COMMITTED)[topic]
            assert [message.offset() for message in committed] == offsets
        for path in (built["orders"] / "orders-0", source.log_dir / "cleaned-0"):
            topic = path.name.removesuffix("-0")
            for level, rows in zip((UNCOMMITTED, COMMITTED), served(path), strict=True):
                messages = consume_topics(target, [topic], level)[topic]
                assert [(m.offset(), m.key(), m.value()) for m in messages] == [
                    row[:3] for row in rows
                ]
        for topic in ("codecs", "txn", "orders", "aborted"):
            sent = new_producers(target.bootstrap_servers, topic)
            assert len(sent) == 400, topic
            values = [m.value() for m in consume_topics(target, [topic], COMMITTED)[topic]]
            new = [value for value in values if value and value.startswith(b"new ")]
            assert sorted(new) == sorted(sent), topic
        sys.stdout.write(f"\n{way}: {before}\n")
    said = target.log_file.read_bytes()[skip:].decode()
    assert complaints(said, [*TOPICS, *BUILT]) == []
    assert "caused truncation" not in said
