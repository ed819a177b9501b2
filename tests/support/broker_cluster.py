"""Three real brokers on this machine, each a controller as well, over one directory each."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from confluent_kafka.admin import AdminClient, NewTopic, PartitionMetadata

from tests.support.broker import Broker, BrokerFailedError

NODES = (1, 2, 3)
SETTINGS = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    # What a leader forgets of a producer, its markers go: soon.
    "producer.id.expiration.ms": "1000",
    "producer.id.expiration.check.interval.ms": "500",
}
PATIENCE_S = 180.0
LAST_ONE_S = 30.0


class BrokerCluster:
    """`brokers` by node id, all of them started; killed at the end."""

    def __init__(self, directory: Path) -> None:
        self.brokers = {
            node: Broker(directory / f"node-{node}", {**SETTINGS, "node.id": str(node)})
            for node in NODES
        }
        voters = ",".join(
            f"{node}@127.0.0.1:{broker.controller_port}" for node, broker in self.brokers.items()
        )
        for broker in self.brokers.values():
            broker.settings["controller.quorum.voters"] = voters

    def __enter__(self) -> BrokerCluster:
        self.start(*NODES)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for broker in self.brokers.values():
            broker.kill()

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(broker.bootstrap_servers for broker in self.brokers.values())

    def log_dir(self, node: int) -> Path:
        return self.brokers[node].log_dir

    def start(self, *nodes: int) -> None:
        """At once: a single one waits for a majority."""
        self._at_once(nodes, lambda broker: broker.start())

    def stop(self, *nodes: int) -> None:
        """In order, one after the other, so that the last one is in sync. The last two at once: who
        is left without a majority waits for a controller that does not come, and is killed."""

        def stop(broker: Broker) -> None:
            with contextlib.suppress(BrokerFailedError):
                broker.stop(timeout_s=LAST_ONE_S)

        for node in nodes[:-2]:
            self.brokers[node].stop()
        self._at_once(nodes[-2:], stop)

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap_servers})

    def create(self, topic: str, replicas: list[int], **settings: str) -> None:
        """One partition, led by the first of the replicas; settings with `_` in place of `.`."""
        config = {name.replace("_", "."): value for name, value in settings.items()}
        new = NewTopic(topic, 1, replica_assignment=[replicas], config=config)
        admin = self.admin()  # kept: without it the answer is that it is gone
        admin.create_topics([new])[topic].result(60)
        self.await_state([topic], lambda state: set(state.isrs) == set(replicas))

    def await_state(
        self, topics: Iterable[str], is_reached: Callable[[PartitionMetadata], bool]
    ) -> None:
        """Until the partition of each topic is so, as the brokers say."""
        deadline = time.monotonic() + PATIENCE_S
        waiting = set(topics)
        admin = self.admin()
        while waiting:
            known = admin.list_topics(timeout=30).topics
            states = {topic: known[topic].partitions.get(0) for topic in waiting if topic in known}
            waiting -= {topic for topic, state in states.items() if state and is_reached(state)}
            if time.monotonic() > deadline:
                raise TimeoutError(f"not as awaited: {waiting}: {states}")
            time.sleep(0.2)

    def _at_once(self, nodes: Iterable[int], act: Callable[[Broker], object]) -> None:
        with ThreadPoolExecutor(len(NODES)) as pool:
            list(pool.map(lambda node: act(self.brokers[node]), nodes))
