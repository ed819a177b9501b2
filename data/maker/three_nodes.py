"""The sample `cluster`: three KRaft nodes, what happened to them, and what their admin API said.

Nodes are broker and controller in one, the quorum is a dynamic one. After each step the cluster is
observed at rest, as of one end offset of its metadata log; `events.json` has the observations in
order. Racks: nodes 1 and 2 in `a`, node 3 in `b`. Node 1 has two log dirs.
"""

from __future__ import annotations

import base64
import json
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from kafka import TopicPartition
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourceType,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from data.maker.admin import BROKER, GROUP, TOPIC, Admin, Observation, Until
from data.maker.client import flush
from tests.support.broker import Broker, free_ports

NODES = (1, 2, 3)
RACKS = {1: "a", 2: "a", 3: "b"}
PREFERRED, UNCLEAN = 0, 1
SETTINGS = {
    "controller.quorum.voters": "",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    # no NoOpRecords: the log's end stays where it is while nothing happens
    "metadata.max.idle.interval.ms": "0",
    "metadata.log.max.record.bytes.between.snapshots": "9000",
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "1000",
    "auto.leader.rebalance.enable": "false",
    "replica.lag.time.max.ms": "5000",
    "log.index.size.max.bytes": "4096",
    "unclean.leader.election.interval.ms": "1000",
}


class ThreeNodes:
    """The nodes, an admin client, and the events so far."""

    def __init__(self, directory: Path) -> None:
        ports = free_ports(6)
        self.brokers_ports = dict(zip(NODES, ports[:3], strict=True))
        controller_ports = dict(zip(NODES, ports[3:], strict=True))
        voters = ",".join(
            f"{node}@127.0.0.1:{port}:{_random_uuid()}" for node, port in controller_ports.items()
        )
        bootstrap = ",".join(f"127.0.0.1:{port}" for port in controller_ports.values())
        self.nodes: dict[int, Broker] = {}
        for node in NODES:
            folder = directory / str(node)
            log_dirs = [folder / "data", *([folder / "data-2"] if node == 1 else [])]
            client, controller = self.brokers_ports[node], controller_ports[node]
            self.nodes[node] = Broker(
                folder,
                {
                    **SETTINGS,
                    "node.id": str(node),
                    "broker.rack": RACKS[node],
                    "controller.quorum.bootstrap.servers": bootstrap,
                    "listeners": (
                        f"PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}"
                    ),
                    "advertised.listeners": f"PLAINTEXT://127.0.0.1:{client}",
                    "log.dirs": ",".join(map(str, log_dirs)),
                },
                ("--initial-controllers", voters),
            )
            self.nodes[node].port, self.nodes[node].controller_port = client, controller
        self.admin = Admin([f"127.0.0.1:{port}" for port in self.brokers_ports.values()])
        self.events: list[Observation] = []
        self.tell: Callable[[str], None] = lambda _: None

    def start(self, *nodes: int) -> None:
        """Start some nodes at once: none is ready before a quorum is."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda node: self.nodes[node].start(), nodes))
        self.admin.alive |= set(nodes)
        self.admin.reconnect()

    def kill(self, node: int) -> None:
        self.nodes[node].kill()
        self.admin.alive.discard(node)
        self.admin.reconnect()

    def stop(self, *nodes: int) -> None:
        """Some or all at once: the last of them would find no quorum to say good-bye to."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda node: self.nodes[node].stop(), nodes or NODES))
        self.admin.alive -= set(nodes or NODES)
        self.admin.reconnect()

    def observe(self, step: str, until: Until = lambda _: True) -> Observation:
        """Write down how the cluster is, once `until` holds."""
        seen = self.admin.observe(until)
        self.tell(step)
        event = {"step": step, "atMs": time.time_ns() // 1_000_000, **seen}
        self.events.append(event)
        return event

    def produce(self, topic: str, partition: int, count: int, tag: str) -> None:
        servers = ",".join(f"127.0.0.1:{self.brokers_ports[n]}" for n in self.admin.alive)
        producer = Producer({"bootstrap.servers": servers, "log_level": 0})
        for number in range(count):
            producer.produce(topic, f"{tag}-{number}".encode(), partition=partition, key=b"k")
        flush(producer)


@contextmanager
def three_nodes(directory: Path) -> Iterator[ThreeNodes]:
    """Started, and killed where the body fails; the body stops them."""
    cluster = ThreeNodes(directory)
    try:
        cluster.start(*NODES)
        yield cluster
    finally:
        for broker in cluster.nodes.values():
            broker.kill()


# -- what happens --------------------------------------------------------------------------------


def play(cluster: ThreeNodes, tell: Callable[[str], None]) -> None:
    """All steps. `first` leads the quorum when it begins; it and the two others take turns."""
    cluster.tell = tell
    start = cluster.observe("nodes started", lambda seen: _fenced(seen) == set())
    first = start["controllerId"]
    second, third = (node for node in NODES if node != first)
    create_topics(cluster, first, second, third)
    change_settings(cluster)
    change_rights(cluster)
    lose_a_broker(cluster, third)
    fail_over(cluster, first)
    reassign(cluster, first, third)
    elect_uncleanly(cluster)
    delete_topics(cluster, second)
    leave_it_uneven(cluster, third)


def create_topics(cluster: ThreeNodes, first: int, second: int, third: int) -> None:
    topics: dict[str, dict[str, Any]] = {
        "orders": {
            "assignments": {
                0: [first, second, third], 1: [second, third, first], 2: [third, first, second],
            },
            "configs": {"min.insync.replicas": "2"},
        },
        "paired": {"assignments": {0: [1, 2]}},
        "moved": {"assignments": {0: [first, second]}},
        "fragile": {
            "assignments": {0: [second, third]},
            "configs": {"unclean.leader.election.enable": "true"},
        },
        "removed": {"assignments": {0: [second, first], 1: [third, second]}},
    }  # fmt: skip
    cluster.admin.client.create_topics(topics, wait_for_metadata=True)
    cluster.admin.resources |= {(TOPIC, name) for name in topics}
    for name, topic in topics.items():
        for partition in topic["assignments"]:
            cluster.produce(name, partition, 20, "first")
    cluster.observe("topics created")


def change_settings(cluster: ThreeNodes) -> None:
    admin = cluster.admin
    admin.set_configs(TOPIC, "orders", retention_ms="86400000", cleanup_policy="delete")
    admin.set_configs(TOPIC, "moved", retention_ms="1000000", segment_bytes="1048576")
    admin.set_configs(BROKER, "", log_cleaner_threads="2")
    admin.set_configs(BROKER, "1", max_connections="500")
    admin.set_configs(GROUP, "readers", consumer_session_timeout_ms="50000")
    cluster.observe("settings set")
    admin.set_configs(TOPIC, "orders", retention_ms="172800000")
    admin.set_configs(TOPIC, "moved", segment_bytes=None)
    admin.set_configs(
        BROKER,
        "1",
        max_connections=None,
        listener_name_plaintext_ssl_keystore_password="a secret",
    )
    cluster.observe("settings changed")
    quotas = {"producer_byte_rate": 1048576.0, "consumer_byte_rate": 2097152.0}
    admin.set_quota({"user": "alice"}, **quotas)
    admin.set_quota({"user": "alice", "client-id": None}, request_percentage=50.5)
    admin.set_quota({"client-id": None}, producer_byte_rate=512.0)
    admin.set_quota({"ip": "127.0.0.9"}, connection_creation_rate=7.0)
    cluster.observe("quotas set")
    admin.set_quota({"user": "alice"}, producer_byte_rate=4096.0, consumer_byte_rate=None)
    cluster.observe("quotas changed")


def change_rights(cluster: ThreeNodes) -> None:
    client = cluster.admin.client
    literal, prefixed = ACLResourcePatternType.LITERAL, ACLResourcePatternType.PREFIXED
    orders = ResourcePattern(ResourceType.TOPIC, "orders", literal)
    allow, deny = ACLPermissionType.ALLOW, ACLPermissionType.DENY
    read = ACL("User:alice", "*", ACLOperation.READ, allow, orders)
    write = ACL("User:bob", "127.0.0.1", ACLOperation.WRITE, allow, orders)
    team = ResourcePattern(ResourceType.GROUP, "team-", prefixed)
    never = ACL("User:mallory", "*", ACLOperation.ALL, deny, team)
    everything = ResourcePattern(ResourceType.CLUSTER, "kafka-cluster", literal)
    describe = ACL("User:alice", "*", ACLOperation.DESCRIBE, allow, everything)
    client.create_acls([read, write, never, describe])
    cluster.observe("ACLs created")
    gone = ACLFilter("User:bob", None, ACLOperation.ANY, ACLPermissionType.ANY, orders)
    client.delete_acls([gone])
    cluster.observe("ACL deleted")
    sha_256, sha_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
    for user, mechanism in (("alice", sha_256), ("alice", sha_512), ("bob", sha_256)):
        credential = UserScramCredentialUpsertion(user, mechanism, "a password", iterations=4096)
        client.alter_user_scram_credentials([credential])
    cluster.observe("SCRAM credentials set")
    deletion = UserScramCredentialDeletion("alice", sha_512)
    client.alter_user_scram_credentials([deletion])
    cluster.observe("SCRAM credential deleted")


def lose_a_broker(cluster: ThreeNodes, node: int) -> None:
    cluster.kill(node)
    cluster.observe("broker killed", lambda seen: _fenced(seen) == {node})
    cluster.produce("orders", 0, 20, "while one is away")
    cluster.start(node)
    cluster.observe("broker returned", _is_whole)
    cluster.admin.client.elect_leaders(PREFERRED, raise_errors=False)
    cluster.observe("preferred leaders elected", _is_whole)


def fail_over(cluster: ThreeNodes, controller: int) -> None:
    cluster.kill(controller)
    cluster.observe(
        "controller killed",
        lambda seen: _fenced(seen) == {controller},
    )
    cluster.start(controller)
    cluster.observe("controller returned", _is_whole)


def reassign(cluster: ThreeNodes, first: int, third: int) -> None:
    wanted = [third, first]
    cluster.admin.client.alter_partition_reassignments({TopicPartition("moved", 0): wanted})
    cluster.observe(
        "partition reassigned",
        lambda seen: (
            seen["topics"]["moved"]["partitions"]["0"]["replicas"] == wanted and _is_whole(seen)
        ),
    )


def elect_uncleanly(cluster: ThreeNodes) -> None:
    """Of two replicas one falls behind and the other dies; who fell behind must lead."""
    seen = cluster.events[-1]["topics"]["fragile"]["partitions"]["0"]
    leader = seen["leader"]
    (other,) = set(seen["replicas"]) - {leader}
    cluster.kill(other)
    cluster.observe("follower killed", lambda seen: _fenced(seen) == {other})
    cluster.produce("fragile", 0, 20, "lost by the unclean election")
    cluster.kill(leader)  # and the quorum with it, until the other is back
    cluster.start(other)
    cluster.observe("leader killed, follower returned", lambda seen: _fenced(seen) == {leader})
    elected = cluster.events[-1]["topics"]["fragile"]["partitions"]["0"]["leader"] == other
    if not elected:
        cluster.admin.client.elect_leaders(UNCLEAN, {"fragile": [0]}, raise_errors=False)
    cluster.observe(
        "unclean election",
        lambda seen: seen["topics"]["fragile"]["partitions"]["0"]["leader"] == other,
    )
    cluster.produce("fragile", 0, 10, "after the unclean election")
    cluster.start(leader)
    cluster.observe("former leader returned", _is_whole)


def delete_topics(cluster: ThreeNodes, node: int) -> None:
    cluster.admin.client.delete_topics(["removed", "moved"])
    cluster.admin.resources.discard((TOPIC, "moved"))
    cluster.observe("topics deleted", lambda seen: "removed" not in seen["topics"])
    cluster.admin.client.create_topics({"removed": {"assignments": {0: [node]}}})
    cluster.produce("removed", 0, 5, "anew")
    cluster.observe("topic created anew", lambda seen: "removed" in seen["topics"])


def leave_it_uneven(cluster: ThreeNodes, node: int) -> None:
    """A broker stops in order and stays away until the end."""
    cluster.stop(node)
    cluster.observe("broker away at the end", lambda seen: _fenced(seen) == {node})


def write_events(events: list[Observation], file: Path) -> None:
    """The observations, a line each; what is as it was before is left out."""
    lines: list[str] = []
    before: Observation = {}
    for event in events:
        lines.append(json.dumps({k: v for k, v in event.items() if before.get(k) != v}))
        before = event
    file.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def read_events(file: Path) -> list[Observation]:
    """The observations, whole again."""
    whole: Observation = {}
    events = []
    for event in json.loads(file.read_text(encoding="utf-8")):
        whole = {**whole, **event}
        events.append(whole)
    return events


def _fenced(seen: Observation) -> set[int]:
    found = {int(node) for node, broker in seen["brokers"].items() if broker["isFenced"]}
    return found | (set(NODES) - {int(node) for node in seen["brokers"]})


def _is_whole(seen: Observation) -> bool:
    """Nobody is fenced, and every replica is in sync."""
    return _fenced(seen) == set() and all(
        sorted(partition["replicas"]) == partition["isr"]
        for topic in seen["topics"].values()
        for partition in topic["partitions"].values()
    )


def _random_uuid() -> str:
    """As Kafka writes them; one that begins with a dash reads as an option."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text
