"""A live cluster whose metadata quorum is lost: nodes of two log dirs each, static or dynamic
quorum; written to by every kind of producer, read by a group, stopped, its metadata logs deleted.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import shutil
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from kafkalog.log.metadata_names import METADATA_DIR
from tests.support.broker import Broker, BrokerFailedError

PATIENCE_S = 120.0
GROUP, TRANSACTIONAL_ID = "readers", "transfers"
PLAIN, COMPACTED, TRANSACTIONS, TIERED = "plain", "compacted", "transactions", "tiered"
TOPICS = {PLAIN: 3, COMPACTED: 1, TRANSACTIONS: 2}
CONFIGS = {
    COMPACTED: {"cleanup.policy": "compact"},
    TIERED: {
        "remote.storage.enable": "true", "local.retention.bytes": "1",
        "internal.segment.bytes": "4096", "index.interval.bytes": "512",
    },
}  # fmt: skip
COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"
_WRONG = re.compile(
    r"Truncating to offset|truncation of conflicting|marked stray|UNCLEAN partition change"
)

Place = tuple[str, int]


class LostQuorum:
    """`nodes` by id."""

    def __init__(
        self, directory: Path, count: int, topics: Mapping[str, int], *, is_dynamic: bool
    ) -> None:
        self.is_dynamic = is_dynamic
        self.topics = topics
        replicas = str(count)
        settings = {
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": "1",
            "auto.leader.rebalance.enable": "false",
        }
        self.nodes = {
            node: Broker(
                directory / f"node-{node}",
                {
                    **settings,
                    "node.id": str(node),
                    "log.dirs": ",".join(
                        str(directory / f"node-{node}" / name) for name in ("data", "data-2")
                    ),
                },
            )
            for node in range(1, count + 1)
        }
        ports = {node: broker.controller_port for node, broker in self.nodes.items()}
        self.controllers = ",".join(f"{node}@127.0.0.1:{port}" for node, port in ports.items())
        self.voters = ids = ",".join(f"{each}:{_uuid()}" for each in self.controllers.split(","))
        for broker in self.nodes.values():
            if is_dynamic:
                del broker.settings["controller.quorum.voters"]
                broker.settings["controller.quorum.bootstrap.servers"] = ",".join(
                    f"127.0.0.1:{port}" for port in ports.values()
                )
                broker._format_options = ("--initial-controllers", ids)
            else:
                broker.settings["controller.quorum.voters"] = self.controllers

    @property
    def log_dirs(self) -> list[str]:
        """Those of all nodes."""
        return [d for broker in self.nodes.values() for d in broker.settings["log.dirs"].split(",")]

    @property
    def into(self) -> list[str]:
        """Them, as a restore is told where to go."""
        return [word for path in self.log_dirs for word in ("--into", path)]

    def log_dirs_of(self, node: int) -> list[str]:
        """Those of one."""
        return self.nodes[node].settings["log.dirs"].split(",")

    @property
    def servers(self) -> str:
        """Where clients begin."""
        return ",".join(broker.bootstrap_servers for broker in self.nodes.values())

    def start(self, *nodes: int) -> None:
        """At once, all of them by default."""
        self._at_once(nodes, lambda broker: broker.start())

    def stop(self) -> None:
        """All at once: who is left without a majority waits, and is killed."""

        def stop(broker: Broker) -> None:
            with suppress(BrokerFailedError):
                broker.stop(timeout_s=60.0)

        self._at_once((), stop)

    def kill(self) -> None:
        """As a power cut does."""
        for broker in self.nodes.values():
            broker.kill()

    def lose_metadata(self) -> None:
        """Every metadata log is gone."""
        for log_dir in self.log_dirs:
            shutil.rmtree(Path(log_dir, METADATA_DIR), ignore_errors=True)

    def _at_once(self, nodes: Sequence[int], act: Callable[[Broker], object]) -> None:
        chosen = [self.nodes[node] for node in nodes or self.nodes]
        with ThreadPoolExecutor(len(chosen)) as pool:
            list(pool.map(act, chosen))

    # -- clients -------------------------------------------------------------------------------

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.servers})

    def create_topics(self) -> None:
        """TOPICS, with all nodes as replicas. Once every node knows of all: a client drops what it
        has asked of a broker that another one does not know yet.
        """
        for node in self.nodes.values():
            own = AdminClient({"bootstrap.servers": node.bootstrap_servers})
            deadline = time.monotonic() + PATIENCE_S
            while len(own.list_topics(timeout=60).brokers) < len(self.nodes):
                assert time.monotonic() < deadline, f"{node.bootstrap_servers} knows not all nodes"
                time.sleep(0.2)
        admin = self.admin()
        new = [
            NewTopic(name, count, len(self.nodes), config=CONFIGS.get(name, {}))
            for name, count in self.topics.items()
        ]
        for future in admin.create_topics(new).values():
            future.result(PATIENCE_S)

    def write_all(self, tag: str) -> list[tuple[str, int, int, bytes]]:
        """Acknowledged records (topic, partition, offset, value) of one idempotent and one
        transactional producer; of an aborted transaction none.
        """
        written = self.write(PLAIN, tag, 60) + self.write(COMPACTED, tag, 20)
        producer = Producer(
            {"bootstrap.servers": self.servers, "transactional.id": TRANSACTIONAL_ID}
        )
        producer.init_transactions(PATIENCE_S)
        for number, commits in enumerate((True, False, True)):
            producer.begin_transaction()
            own = self._send(producer, TRANSACTIONS, f"{tag}-{number}", 20)
            if commits:
                producer.commit_transaction(PATIENCE_S)
                written += own
            else:
                producer.abort_transaction(PATIENCE_S)
        return written

    def write(self, topic: str, tag: str, count: int) -> list[tuple[str, int, int, bytes]]:
        """Acknowledged records of a new idempotent producer."""
        producer = Producer({"bootstrap.servers": self.servers, "enable.idempotence": True})
        return self._send(producer, topic, tag, count)

    def _send(
        self, producer: Producer, topic: str, tag: str, count: int
    ) -> list[tuple[str, int, int, bytes]]:
        done: list[tuple[str, int, int, bytes]] = []

        def note(error: KafkaError | None, message: object) -> None:
            assert error is None, error
            done.append((message.topic(), message.partition(), message.offset(), message.value()))  # type: ignore[attr-defined]

        for number in range(count):
            value = f"{tag}-{number}".encode()
            producer.produce(
                topic,
                value,
                f"k{number % 7}".encode(),
                partition=number % self.topics[topic],
                callback=note,
            )
            producer.flush(PATIENCE_S)
        assert len(done) == count
        return done

    def digests(self, ends: dict[Place, int] | None = None) -> dict[str, str]:
        """SHA-256 of what a consumer gets, by isolation level; up to `ends` where given."""
        found = {}
        for level in (COMMITTED, UNCOMMITTED):
            records = self.read(level)
            kept = [r for r in records if ends is None or r[2] < ends[r[0], r[1]]]
            found[level] = hashlib.sha256(repr(kept).encode()).hexdigest()
        return found

    def read(
        self, level: str, first: int = 0
    ) -> list[tuple[str, int, int, bytes | None, bytes | None, int]]:
        """All records from an offset on: topic, partition, offset, key, value, time."""
        places = [(topic, n) for topic, count in self.topics.items() for n in range(count)]
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers, "group.id": "none", "isolation.level": level,
                "enable.auto.commit": False, "enable.partition.eof": True,
                "auto.offset.reset": "error",
            }
        )  # fmt: skip
        found, unread = [], set(places)
        deadline = time.monotonic() + PATIENCE_S
        try:
            consumer.assign([TopicPartition(*place, first) for place in places])
            while unread and time.monotonic() < deadline:
                for message in consumer.consume(500, 1.0):
                    error = message.error()
                    place = message.topic() or "", message.partition() or 0
                    if error is None:
                        found.append((*place, message.offset() or 0, message.key(),
                                      message.value(), message.timestamp()[1]))  # fmt: skip
                    elif error.code() == KafkaError._PARTITION_EOF:
                        unread.discard(place)
                    else:
                        # For a second after its start a broker says so of remote segments whose
                        # metadata it has not read yet.
                        assert error.retriable() or error.code() == KafkaError.UNKNOWN, error
        finally:
            consumer.close()
        assert not unread, f"not read to the end: {unread}"
        return sorted(found)

    def ends(self) -> dict[Place, int]:
        """The end of each partition."""
        return {place: self._watermarks(place)[1] for place in self._places()}

    def _places(self) -> Iterator[Place]:
        yield from ((topic, n) for topic, count in self.topics.items() for n in range(count))

    def _watermarks(self, place: Place) -> tuple[int, int]:
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "none"})
        try:
            low, high = consumer.get_watermark_offsets(TopicPartition(*place), PATIENCE_S)
        finally:
            consumer.close()
        return low, high

    def committed(self) -> dict[Place, int]:
        """What the group has committed."""
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": GROUP})
        try:
            asked = [TopicPartition(*place) for place in self._places()]
            answer = consumer.committed(asked, PATIENCE_S)
        finally:
            consumer.close()
        return {(each.topic, each.partition): each.offset for each in answer}

    def commit(self, offset: int) -> None:
        """The group commits this offset of each partition."""
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": GROUP})
        try:
            offsets = [TopicPartition(*place, offset) for place in self._places()]
            consumer.commit(offsets=offsets, asynchronous=False)
        finally:
            consumer.close()

    def await_in_sync(self, without: Sequence[int] = ()) -> dict[Place, tuple[int, list[int]]]:
        """Leader and in-sync replicas of every partition once all are in sync and led."""
        wanted = set(self.nodes) - set(without)
        deadline = time.monotonic() + PATIENCE_S
        admin = self.admin()
        while True:
            topics = admin.list_topics(timeout=60).topics
            states = {
                (name, number): (each.leader, sorted(each.isrs))
                for name, topic in topics.items()
                for number, each in topic.partitions.items()
            }
            if states and all(led in wanted and set(isr) >= wanted for led, isr in states.values()):
                return states
            if time.monotonic() > deadline:
                raise TimeoutError(f"not in sync: {states}")
            time.sleep(0.5)

    def config(self, topic: str) -> dict[str, str]:
        """The settings of a topic that are its own."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        admin = self.admin()  # kept: without it the answer is that it is gone
        entries = admin.describe_configs([resource])[resource].result(60)
        own = {name: each.value for name, each in entries.items() if each.source == 1}
        return {name: str(value) for name, value in own.items()}

    def configure(self, topic: str, name: str, value: str) -> None:
        """Set one setting of a topic."""
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        admin = self.admin()  # kept: without it the answer is that it is gone
        for future in admin.incremental_alter_configs([resource]).values():
            future.result(60)

    # -- disks ---------------------------------------------------------------------------------

    def strays(self) -> list[str]:
        """Directories that a start has renamed."""
        return [str(path) for d in self.log_dirs for path in Path(d).glob("*-stray")]

    def complaints(self) -> list[str]:
        """Lines of the brokers' logs since `forget_logs`: truncated, stray, uncleanly elected. Of
        its metadata log a follower cuts off what a controller wrote that was not elected for long.
        """
        return [
            line
            for broker in self.nodes.values()
            for line in broker.log_file.read_text(errors="replace").splitlines()
            if _WRONG.search(line) and f"partition={METADATA_DIR}," not in line
        ]

    def forget_logs(self) -> None:
        """What brokers have said until now does not count."""
        for broker in self.nodes.values():
            broker.log_file.rename(broker.log_file.with_suffix(".before"))


def _uuid() -> str:
    while True:
        text = urlsafe_b64encode(secrets.token_bytes(16)).decode()[:22]
        if not text.startswith("-"):
            return text


@contextmanager
def lost_quorum(
    directory: Path, count: int, *, is_dynamic: bool, topics: Mapping[str, int] = TOPICS
) -> Iterator[LostQuorum]:
    """Not started yet; killed at the end."""
    cluster = LostQuorum(directory, count, topics, is_dynamic=is_dynamic)
    try:
        yield cluster
    finally:
        cluster.kill()


def described(states: dict[Place, tuple[int, list[int]]]) -> str:
    """For a failed assertion."""
    return json.dumps({f"{topic}-{n}": state for (topic, n), state in states.items()})
