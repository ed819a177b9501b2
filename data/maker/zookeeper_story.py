"""What happens in sample `zookeeper`: two clusters of Kafka 3.9 in one ZooKeeper, one of them below
a chroot, and everything that their ZooKeeper tells afterwards.

Each step waits until the live ensemble shows its effect. What was seen meanwhile is written as
`events.json`: every event of a watch on the whole tree with the value that was read, the tree as a
client saw it at some times, what the brokers' own admin API said at the end, and how each broker
ended.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient

from data.maker.client import flush
from data.maker.records import updates, varied
from data.maker.zookeeper_jars import ensure_zookeeper_era
from data.maker.zookeeper_processes import (
    EraBroker,
    Recorder,
    ZooKeeperServer,
    run_java,
    wait_for,
)

SECOND_ROOT = "/second"
ROOT_CLUSTER = ""

TOPICS = {
    "plain": "3 partitions and later 4, two replicas: kills, returns, leaders, in-sync replicas",
    "compacted": "2 partitions, two replicas, cleaned by Kafka 3.9's own cleaner",
    "unclean": "two replicas, an unclean election",
    "moved": "reassigned from broker 1 to broker 2",
}


class Story:
    """The processes of the sample, and what was seen of them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.era = ensure_zookeeper_era()
        self.zookeeper = ZooKeeperServer(self.era, directory / "zookeeper").start()
        connect = f"127.0.0.1:{self.zookeeper.port}"
        self.recorder = Recorder(self.era, directory, connect)
        own = {
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:ANONYMOUS",
            "allow.everyone.if.no.acl.found": "true",
        }
        self.brokers = {
            n: EraBroker(self.era, directory / f"broker-{n}", n, connect, {**own, "broker.rack": r})
            for n, r in ((1, "east"), (2, "west"))
        }
        self.second = EraBroker(self.era, directory / "second", 1, connect + SECOND_ROOT)
        # log_level: clients outlive their brokers here, and say so otherwise
        self.admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        self.ends: list[dict[str, Any]] = []
        self.trees: list[dict[str, Any]] = []

    def kill_all(self) -> None:
        for broker in (*self.brokers.values(), self.second):
            broker.kill()
        self.recorder.kill()
        self.zookeeper.kill()

    # -- what a client sees ----------------------------------------------------------------------

    def value(self, path: str) -> Any:
        found = self.recorder.values().get(path)
        return None if found is None or not found["data"] else json.loads(found["data"])

    def await_value(self, path: str, holds: Callable[[Any], bool], what: str) -> None:
        def shown() -> bool:
            value = self.value(path)
            return value is not None and holds(value)

        wait_for(shown, what)

    def await_gone(self, path: str) -> None:
        wait_for(lambda: path not in self.recorder.values(), f"{path} to go")

    def await_isr(self, topic: str, partition: int, isr: set[int]) -> None:
        path = f"/brokers/topics/{topic}/partitions/{partition}/state"
        self.await_value(path, lambda v: set(v["isr"]) == isr, f"{topic}-{partition}'s {isr}")

    def keep_tree(self, when: str) -> None:
        tree = self.recorder.tree()
        self.trees.append({"when": when, "zxid": tree["zxid"], "nodes": tree["nodes"]})

    def end(self, broker: EraBroker, root: str, how: str) -> None:
        """Stop or kill a broker, and wait until its registration is gone."""
        self.ends.append({"root": root, "brokerId": broker.broker_id, "how": how})
        broker.stop() if how == "closed" else broker.kill()
        self.await_gone(f"{root}/brokers/ids/{broker.broker_id}")

    # -- what the brokers are told ---------------------------------------------------------------

    @property
    def servers(self) -> str:
        return ",".join(broker.bootstrap_servers for broker in self.brokers.values())

    def create(self, topic: str, partitions: int, replicas: int, **config: object) -> None:
        settings = {name.replace("_", "."): str(value) for name, value in config.items()}
        new = NewTopic(topic, partitions, replicas, config=settings)
        done(self.admin.create_topics([new]))

    def alter(self, type_: ResourceType, name: str, **config: object) -> None:
        """None as a value takes a setting away."""
        entries = [
            ConfigEntry(
                key.replace("_", "."),
                None if value is None else str(value),
                incremental_operation=(
                    AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
                ),
            )
            for key, value in config.items()
        ]
        done(
            self.admin.incremental_alter_configs(
                [ConfigResource(type_, name, incremental_configs=entries)]
            )
        )

    def tell(self, entity: str) -> None:
        """Kafka's own tool: for entities that the client does not know."""
        command = ["kafka.admin.ConfigCommand", "--bootstrap-server", self.servers, "--alter"]
        run_java(self.era, [*command, *entity.split()])

    def produce(self, topic: str, partitions: int, count: int, seed: str, **config: Any) -> None:
        produce(self.servers, topic, partitions, count, seed, **config)


def produce(
    servers: str, topic: str, partitions: int, count: int, seed: str, **config: Any
) -> None:
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "log_level": 0,
            "linger.ms": 20,
            "batch.size": 2048,
            **config,
        }
    )
    for partition in range(partitions):
        made = updates("key", count, 60, f"{seed}-{partition}")
        for key, value, headers in made if topic == "compacted" else varied(count, seed):
            producer.produce(topic, key=key, value=value, headers=headers, partition=partition)
    flush(producer)


def done(futures: dict[Any, Any]) -> None:
    for future in futures.values():
        future.result(60)


# -- the steps -----------------------------------------------------------------------------------


def begin(story: Story) -> None:
    for broker in story.brokers.values():
        broker.start()
    story.second.start()


def write(story: Story) -> None:
    story.create("plain", 3, 2, retention_ms=86_400_000)
    story.create(
        "compacted", 2, 2, cleanup_policy="compact", segment_bytes=8192, index_interval_bytes=512,
        min_cleanable_dirty_ratio=0.01, delete_retention_ms=86_400_000,
    )  # fmt: skip
    story.create("unclean", 1, 2, unclean_leader_election_enable="true")
    done(story.admin.create_topics([NewTopic("moved", 1, replica_assignment=[[1]])]))
    story.create("gone", 1, 2)
    story.produce("plain", 3, 40, "plain")
    story.produce("unclean", 1, 20, "unclean")
    story.produce("moved", 1, 20, "moved", **{"compression.type": "gzip"})
    for turn in range(6):
        codec = ("none", "lz4", "zstd")[turn % 3]
        story.produce("compacted", 2, 120, f"c{turn}", **{"compression.type": codec})
    second = AdminClient({"bootstrap.servers": story.second.bootstrap_servers, "log_level": 0})
    done(second.create_topics([NewTopic("plain", 1, 1, config={"retention.ms": "1000000"})]))
    produce(story.second.bootstrap_servers, "plain", 1, 10, "second")


def settings(story: Story) -> None:
    story.alter(ResourceType.TOPIC, "plain", retention_ms=3_600_000, max_message_bytes=500_000)
    story.alter(ResourceType.TOPIC, "plain", max_message_bytes=None)
    story.tell("--entity-type brokers --entity-default --add-config log.retention.ms=50000000")
    story.tell("--entity-type users --entity-name al --entity-type clients --entity-default "
               "--add-config producer_byte_rate=1000")  # fmt: skip
    story.alter(ResourceType.BROKER, "1", log_retention_ms=60_000_000)
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    change = UserScramCredentialUpsertion("bob", credential, b"not a secret")
    done(story.admin.alter_user_scram_credentials([change]))
    done(story.admin.create_partitions([NewPartitions("plain", 4)]))
    acls = [
        AclBinding(
            ResourceType.TOPIC, name, pattern, "User:alice", "*", operation, permission
        )
        for name, pattern, operation, permission in (
            ("plain", ResourcePatternType.LITERAL, AclOperation.READ, AclPermissionType.ALLOW),
            ("plain", ResourcePatternType.LITERAL, AclOperation.WRITE, AclPermissionType.DENY),
            ("pre", ResourcePatternType.PREFIXED, AclOperation.READ, AclPermissionType.ALLOW),
        )
    ]  # fmt: skip
    done(story.admin.create_acls(acls))
    wait_for(lambda: "/kafka-acl/Topic/plain" in story.recorder.values(), "the ACLs")
    one = acls[1]
    done(
        story.admin.delete_acls(
            [
                AclBindingFilter(
                    one.restype, one.name, one.resource_pattern_type, one.principal, one.host,
                    one.operation, one.permission_type,
                )
            ]
        )
    )  # fmt: skip


def delete_topic(story: Story) -> None:
    done(story.admin.delete_topics(["gone"]))
    story.await_gone("/brokers/topics/gone")


def reassign(story: Story) -> None:
    admin = KafkaAdminClient(bootstrap_servers=story.servers.split(","))
    admin.alter_partition_reassignments({TopicPartition("moved", 0): [2]})
    admin.close()
    story.await_isr("moved", 0, {2})
    story.await_value(
        "/brokers/topics/moved",
        lambda v: v["partitions"] == {"0": [2]} and not v["adding_replicas"],
        "the end of the reassignment",
    )


def kill_and_return(story: Story) -> None:
    """Broker 2 is killed: it expires, leaders move and the in-sync replicas shrink; it returns."""
    story.keep_tree("before broker 2 is killed")
    story.end(story.brokers[2], ROOT_CLUSTER, "expired")
    for partition in range(3):
        story.await_isr("plain", partition, {1})
    story.produce("plain", 3, 20, "alone")
    story.brokers[2].start()
    for partition in range(3):
        story.await_isr("plain", partition, {1, 2})
    story.await_isr("unclean", 0, {1, 2})


def move_controller(story: Story) -> None:
    """The controller is stopped in order; the other one takes over, and it returns."""
    controller = story.value("/controller")["brokerid"]
    other = 3 - controller
    story.end(story.brokers[controller], ROOT_CLUSTER, "closed")
    story.await_value("/controller", lambda v: v["brokerid"] == other, "another controller")
    story.brokers[controller].start()
    story.await_isr("unclean", 0, {1, 2})
    story.await_isr("plain", 0, {1, 2})


def elect_unclean(story: Story) -> None:
    """The last in-sync replica goes while the other one, which missed records, comes back."""
    leader = story.value("/brokers/topics/unclean/partitions/0/state")["leader"]
    other = 3 - leader
    story.end(story.brokers[other], ROOT_CLUSTER, "expired")
    story.await_isr("unclean", 0, {leader})
    story.produce("unclean", 1, 10, "lost")
    story.end(story.brokers[leader], ROOT_CLUSTER, "expired")
    story.brokers[other].start()
    story.await_isr("unclean", 0, {other})
    story.brokers[leader].start()
    story.await_isr("unclean", 0, {1, 2})
    story.await_isr("plain", 0, {1, 2})


def old_consumers(story: Story) -> None:
    """What consumers of Kafka 0.8 wrote, by hand: no program here writes it any more."""
    subscription = {"version": 1, "subscription": {"plain": 1}, "pattern": "static"}
    consumer = "old_host-1795819124356-0a1b2c3d"
    for line in (
        "create /consumers/old",
        "create /consumers/old/ids",
        f"ephemeral /consumers/old/ids/{consumer} {json.dumps(subscription)}",
        "create /consumers/old/owners",
        "create /consumers/old/owners/plain",
        f"ephemeral /consumers/old/owners/plain/0 {consumer}-0",
        "create /consumers/old/offsets",
        "create /consumers/old/offsets/plain",
        "create /consumers/old/offsets/plain/0 5",
        "create /consumers/old/offsets/plain/1 7",
        "set /consumers/old/offsets/plain/0 15",
        "set /consumers/old/offsets/plain/0 25",
        "fail /consumers/old/offsets",
    ):
        story.recorder.ask(line)


def finish(story: Story) -> None:
    """The cluster dies: one broker stops in order, then everything else is killed at once."""
    for broker in story.brokers.values():
        await_cleaner(broker.log_dir / "cleaner-offset-checkpoint")
    story.keep_tree("before the end")


def await_cleaner(checkpoint: Path) -> None:
    def has_passed() -> bool:
        return checkpoint.exists() and checkpoint.read_text().count("compacted ") == 2

    wait_for(has_passed, "Kafka's cleaner")


STEPS: tuple[Callable[[Story], None], ...] = (
    begin, write, settings, delete_topic, reassign, kill_and_return, move_controller,
    elect_unclean, old_consumers, finish,
)  # fmt: skip


def described(story: Story) -> dict[str, Any]:
    """What the root cluster's own admin API says."""
    admin = story.admin
    topics = {}
    for name, topic in admin.list_topics(timeout=60).topics.items():
        topics[name] = {
            str(p.id): {"leader": p.leader, "replicas": list(p.replicas), "isr": sorted(p.isrs)}
            for p in topic.partitions.values()
        }
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in topics]
    configs = {
        resource.name: {
            key: entry.value
            for key, entry in future.result(60).items()
            if entry.source == 1  # dynamic, of the topic
        }
        for resource, future in admin.describe_configs(resources).items()
    }
    anything: Any = None
    everything = AclBindingFilter(
        ResourceType.ANY, anything, ResourcePatternType.ANY, anything, anything, AclOperation.ANY,
        AclPermissionType.ANY,
    )  # fmt: skip
    acls = [
        [
            acl.restype.name, acl.name, acl.resource_pattern_type.name, acl.principal, acl.host,
            acl.operation.name, acl.permission_type.name,
        ]
        for acl in admin.describe_acls(everything).result(60)
    ]  # fmt: skip
    return {"topics": topics, "configs": configs, "acls": sorted(acls)}


def watched(story: Story) -> Iterator[dict[str, Any]]:
    """Each event with the value it led to, if that is the one that was read."""
    values = {
        (line["path"], line["stat"]["mzxid"]): line
        for line in story.recorder.lines
        if line["what"] == "value"
    }
    for line in story.recorder.lines:
        if line["what"] == "event":
            event = {key: line[key] for key in ("type", "path", "zxid")}
            value = values.get((line["path"], line["zxid"]))
            if value is not None and line["type"] != "NodeDeleted":
                stat = value["stat"]
                names = ("czxid", "ctimeMs", "mtimeMs", "version", "owner")
                event |= {"data": value["data"], **{name: stat[name] for name in names}}
            yield event


def make(directory: Path, target: Path) -> None:
    """Runs the story below `directory`; keeps what is left as `target`."""
    for compression in ("gz", "snappy"):
        make_compressed(directory / compression, target / compression, compression)
    story = Story(directory)
    try:
        for step in STEPS:
            print(f"  {step.__name__.replace('_', ' ')}", file=sys.stderr, flush=True)
            step(story)
        admin = described(story)
        story.end(story.brokers[1], ROOT_CLUSTER, "closed")
        story.second.stop()
        story.ends.append({"root": SECOND_ROOT, "brokerId": 1, "how": "closed"})
        story.await_gone(f"{SECOND_ROOT}/brokers/ids/1")
        story.keep_tree("the end")
        lines = list(watched(story))
    finally:
        story.kill_all()
    for name, log_dir in (
        ("broker-1", story.brokers[1].log_dir),
        ("broker-2", story.brokers[2].log_dir),
        ("second", story.second.log_dir),
        ("ensemble", story.zookeeper.data_dir),
    ):
        shutil.copytree(log_dir, target / name, ignore=shutil.ignore_patterns(".lock"))
    ids = {
        root: json.loads(story.trees[-1]["nodes"][f"{root}/cluster/id"]["data"])["id"]
        for root in (ROOT_CLUSTER, SECOND_ROOT)
    }
    write_events(target / "events.json", {"clusters": ids, "ends": story.ends, "admin": admin},
                 {"watched": lines, "trees": story.trees})  # fmt: skip


def make_compressed(directory: Path, target: Path, compression: str) -> None:
    """A few nodes of each kind, a start that writes a compressed snapshot, then a few changes."""
    era = ensure_zookeeper_era()
    server = ZooKeeperServer(era, directory, compression).start()
    recorder = Recorder(era, directory, f"127.0.0.1:{server.port}")
    try:
        for line in ("create /a one", "create /a/b", "container /c", "ttl /t old", "delete /a/b"):
            recorder.ask(line)
        recorder.stop()
        server.kill()
        server.start()
        recorder = Recorder(era, directory, f"127.0.0.1:{server.port}")
        for line in ("set /a two", "create /\u00e9 \U0001f600", "ephemeral /e x", "fail /a/b"):
            recorder.ask(line)
        tree = recorder.tree()
    finally:
        recorder.kill()
        server.kill()
    shutil.copytree(server.data_dir, target)
    write_events(target.with_suffix(".json"), {}, {"trees": [tree]})


def write_events(path: Path, facts: dict[str, Any], lists: dict[str, list[dict[str, Any]]]) -> None:
    """JSON with a line for each entry of the lists, so that a difference can be read."""
    parts = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in facts.items()]
    for key, entries in lists.items():
        lines = ",\n".join(json.dumps(entry) for entry in entries)
        parts.append(f"{json.dumps(key)}: [\n{lines}\n]")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")


__all__ = ["TOPICS", "make"]

if __name__ == "__main__":
    began = time.monotonic()
    shutil.rmtree(sys.argv[2], ignore_errors=True)
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(sys.argv[1])
    make(Path(sys.argv[1]), Path(sys.argv[2]))
    print(f"{time.monotonic() - began:.0f} s", re.sub("/.*/", "", sys.argv[2]), file=sys.stderr)
