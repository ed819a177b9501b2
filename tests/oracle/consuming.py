"""Consuming a topic's only partition to its end, as a client does."""

from __future__ import annotations

import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from tests.support.broker import Broker

COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"
READ_TIMEOUT_S = 30.0

# offset, key, value
Message = tuple[int, bytes | None, bytes | None]


def consume(
    broker: Broker, topic: str, isolation: str, offset: int = OFFSET_BEGINNING
) -> list[Message]:
    """From `offset` to the end of partition 0, or with read_committed to the last stable offset."""
    messages, deadline = list[Message](), time.monotonic() + READ_TIMEOUT_S
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "none",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
            "log_level": 0,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, offset)])
        while time.monotonic() < deadline:
            message = consumer.poll(1.0)
            if message is None:
                continue
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                return messages
            messages.append((message.offset() or 0, message.key(), message.value()))
    finally:
        consumer.close()
    raise TimeoutError(f"{topic}: the end was not reached in {READ_TIMEOUT_S} s")
