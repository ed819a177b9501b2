"""The few client calls that the samples need, against one broker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from confluent_kafka import Consumer, Producer, ShareConsumer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from data.maker.records import Record
from tests.support.broker import Broker


class Cluster:
    """The few client calls that the samples need, against one broker."""

    def __init__(self, broker: Broker) -> None:
        # log_level: clients outlive their broker here, and say so otherwise
        self.servers: dict[str, str | int | float | bool] = {
            "bootstrap.servers": broker.bootstrap_servers,
            "log_level": 0,
        }
        self.admin = AdminClient(self.servers)

    def create(self, topic: str, partitions: int = 1, **config: object) -> None:
        settings = {name.replace("_", "."): str(value) for name, value in config.items()}
        for done in self.admin.create_topics(
            [NewTopic(topic, partitions, 1, config=settings)]
        ).values():
            done.result(30)

    def alter(self, topic: str, **config: object) -> None:
        entries = [
            ConfigEntry(
                name.replace("_", "."), str(value), incremental_operation=AlterConfigOpType.SET
            )
            for name, value in config.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        for done in self.admin.incremental_alter_configs([resource]).values():
            done.result(30)

    def producer(self, **config: object) -> Producer:
        settings = {name.replace("_", "."): value for name, value in config.items()}
        return Producer({**self.servers, "linger.ms": 20, "batch.size": 2048, **settings})

    def produce(
        self,
        topic: str,
        records: Iterator[Record],
        *,
        partition: int = 0,
        timestamp: Callable[[int], int] | None = None,
        **config: object,
    ) -> None:
        producer = self.producer(**config)
        for i, (key, value, headers) in enumerate(records):
            producer.produce(
                topic,
                key=key,
                value=value,
                headers=headers,
                partition=partition,
                timestamp=0 if timestamp is None else timestamp(i),  # 0: now
            )
        flush(producer)

    def allow_share(self, group: str) -> None:
        """A share group begins with the earliest record."""
        entry = ConfigEntry(
            "share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET
        )
        resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
        for done in self.admin.incremental_alter_configs([resource]).values():
            done.result(30)

    def share(self, group: str, topics: list[str], count: int) -> None:
        """At least `count` records as a share group, from the earliest on, each acknowledged."""
        self.allow_share(group)
        consumer = ShareConsumer({**self.servers, "group.id": group})
        consumer.subscribe(topics)
        deadline, seen = time.monotonic() + 60, 0
        while seen < count and time.monotonic() < deadline:
            found = consumer.poll(0.5)
            seen += len(found or ())
        consumer.close()
        if seen < count:
            raise SystemExit(f"share group {group} read {seen} of {count} records")

    def consume(self, group: str, topics: list[str], count: int, **config: object) -> None:
        """Read `count` records, with a commit every tenth."""
        consumer = self.consumer(group, **config)
        consumer.subscribe(topics)
        deadline, seen = time.monotonic() + 30, 0
        while seen < count and time.monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is not None and not message.error():
                seen += 1
                if seen % 10 == 0:
                    consumer.commit(message=message, asynchronous=False)
        consumer.close()
        if seen < count:
            raise SystemExit(f"group {group} read {seen} of {count} records")

    def consumer(self, group: str, **config: object) -> Consumer:
        settings = {name.replace("_", "."): value for name, value in config.items()}
        start = {"auto.offset.reset": "earliest", "enable.auto.commit": False}
        return Consumer({**self.servers, "group.id": group, **start, **settings})


def flush(producer: Producer) -> None:
    if producer.flush(30) != 0:
        raise SystemExit("the broker did not take all records in time")
