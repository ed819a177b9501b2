"""What happens in sample `migration`: a cluster of Kafka 3.9 leaves ZooKeeper for KRaft (KIP-866).

    ZooKeeper alone → a KRaft controller copies it → brokers restart in migration mode → brokers
    restart without ZooKeeper, both are written → the controller restarts without it: finished

Each step waits until the live cluster shows its effect. `events.json` has the tree as a client saw
it after each step, and what the admin API said at the end of it.
"""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from data.maker.zookeeper_jars import ensure_zookeeper_era
from data.maker.zookeeper_processes import (
    EraBroker,
    Recorder,
    ZooKeeperServer,
    run_java,
    wait_for,
)
from data.maker.zookeeper_story import done, produce, write_events

CONTROLLER_ID = 3000
TOPICS = {
    "before": "2 partitions, created while ZooKeeper held everything",
    "during": "created by the KRaft controller, which wrote ZooKeeper as well",
    "later": "created when the migration was finished: ZooKeeper knows nothing of it",
}


class Migration:
    """The processes of the sample, and what was seen of them."""

    def __init__(self, directory: Path) -> None:
        self.era = ensure_zookeeper_era()
        self.zookeeper = ZooKeeperServer(self.era, directory / "zookeeper").start()
        self.connect = f"127.0.0.1:{self.zookeeper.port}"
        self.recorder = Recorder(self.era, directory, self.connect)
        self.controller = EraBroker(self.era, directory / "controller", CONTROLLER_ID, None)
        self.quorum = {
            "controller.quorum.voters": f"{CONTROLLER_ID}@127.0.0.1:{self.controller.port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        }
        self.of_zookeeper = {
            "zookeeper.connect": self.connect,
            "zookeeper.metadata.migration.enable": "true",
        }
        self.controller.settings |= {
            **self.quorum, **self.of_zookeeper,
            "node.id": CONTROLLER_ID, "process.roles": "controller",
            "listeners": f"CONTROLLER://127.0.0.1:{self.controller.port}",
        }  # fmt: skip
        self.brokers = [
            EraBroker(self.era, directory / f"broker-{n}", n, self.connect) for n in (1, 2)
        ]
        servers = ",".join(broker.bootstrap_servers for broker in self.brokers)
        self.servers = servers
        self.admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        self.stages: list[dict[str, Any]] = []

    def kill_all(self) -> None:
        for process in (*self.brokers, self.controller, self.zookeeper):
            process.kill()
        self.recorder.kill()

    def value(self, path: str) -> Any:
        found = self.recorder.values().get(path)
        return None if found is None or not found["data"] else json.loads(found["data"])

    def create(self, topic: str, partitions: int) -> None:
        """With a setting of its own, and a few records."""
        config = {"retention.ms": str(86_400_000 + len(topic))}
        done(self.admin.create_topics([NewTopic(topic, partitions, 2, config=config)]))
        wait_for(lambda: topic in self.admin.list_topics(timeout=60).topics, topic)
        produce(self.servers, topic, partitions, 20, topic)

    def stage(self, name: str) -> None:
        """Remember how it stands: the tree, and what the admin API says of topics and settings."""
        topics = self.admin.list_topics(timeout=60).topics
        partitions = {
            topic: {
                str(p.id): {"leader": p.leader, "replicas": list(p.replicas), "isr": sorted(p.isrs)}
                for p in facts.partitions.values()
            }
            for topic, facts in topics.items()
        }
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        configs = {
            resource.name: {k: e.value for k, e in future.result(60).items() if e.source == 1}
            for resource, future in self.admin.describe_configs(resources).items()
        }
        tree = self.recorder.tree()
        self.stages.append(
            {
                "stage": name, "zxid": tree["zxid"], "timeMs": time.time_ns() // 1_000_000,
                "topics": partitions, "configs": configs,
                "controller": self.value("/controller"), "migration": self.value("/migration"),
            }
        )  # fmt: skip

    def restart_brokers(self) -> None:
        """One after the other, each back in the in-sync replicas before the next one goes."""
        for broker in self.brokers:
            broker.stop()
            broker.start()
            wait_for(self._is_in_sync, f"{broker.name} in sync again", broker.check)

    def _is_in_sync(self) -> bool:
        topics = self.admin.list_topics(timeout=60).topics.values()
        return all(len(p.isrs) == 2 for topic in topics for p in topic.partitions.values())


def with_zookeeper(story: Migration) -> None:
    for broker in story.brokers:
        broker.start()
    story.create("before", 2)
    story.stage("zookeeper")


def copy(story: Migration) -> None:
    """The controller waits for brokers in migration mode, then copies and takes /controller."""
    identity = json.loads(story.recorder.tree()["nodes"]["/cluster/id"]["data"])["id"]
    controller = story.controller
    lines = "".join(f"{name}={value}\n" for name, value in controller.settings.items())
    (controller.directory / "format.properties").write_text(lines)
    run_java(
        story.era,
        [
            "kafka.tools.StorageTool", "format", "--cluster-id", identity,
            "--config", str(controller.directory / "format.properties"),
        ],
    )  # fmt: skip
    controller.start()
    for broker in story.brokers:
        broker.settings |= {
            **story.quorum, **story.of_zookeeper, "inter.broker.protocol.version": "3.9",
        }  # fmt: skip
    story.restart_brokers()
    wait_for(lambda: (story.value("/migration") or {}).get("kraft_metadata_offset", -1) > 0,
             "the copy", controller.check)  # fmt: skip
    wait_for(lambda: (story.value("/controller") or {}).get("brokerid") == CONTROLLER_ID,
             "the controller in ZooKeeper", controller.check)  # fmt: skip
    story.stage("migrating")


def write_both(story: Migration) -> None:
    """Brokers know ZooKeeper no more; the controller writes both."""
    for broker in story.brokers:
        for name in (*story.of_zookeeper, "inter.broker.protocol.version", "broker.id",
                     "zookeeper.session.timeout.ms"):  # fmt: skip
            broker.settings.pop(name, None)
        broker.settings |= {"node.id": broker.broker_id, "process.roles": "broker"}
    story.restart_brokers()
    story.create("during", 1)
    wait_for(lambda: "/brokers/topics/during" in story.recorder.values(), "during in ZooKeeper")
    wait_for(lambda: "/config/topics/during" in story.recorder.values(), "its settings there")
    story.stage("both")


def finish(story: Migration) -> None:
    """The controller leaves ZooKeeper: there is no way back."""
    for name in story.of_zookeeper:
        story.controller.settings.pop(name)
    story.controller.stop()
    story.controller.start()
    story.create("later", 1)
    story.stage("kraft")


def make(directory: Path, target: Path) -> None:
    """Runs the story below `directory`; keeps what is left as `target`."""
    story = Migration(directory)
    try:
        for step in (with_zookeeper, copy, write_both, finish):
            step(story)
        for process in (*story.brokers, story.controller):
            process.stop()
    finally:
        story.kill_all()
    kept = [(broker.name, broker.log_dir) for broker in story.brokers]
    kept += [("controller", story.controller.log_dir), ("ensemble", story.zookeeper.data_dir)]
    for name, log_dir in kept:
        shutil.copytree(log_dir, target / name, ignore=shutil.ignore_patterns(".lock"))
    write_events(target / "events.json", {}, {"stages": story.stages})


__all__ = ["TOPICS", "make"]
