"""Consuming topics to their ends, as a client does: each has one partition."""

from __future__ import annotations

import time
from collections.abc import Sequence

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition
from confluent_kafka import Message as ClientMessage

from tests.support.broker import Broker

COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"
READ_TIMEOUT_S = 600.0

# offset, key, value
Message = tuple[int, bytes | None, bytes | None]


def consume(
    broker: Broker, topic: str, isolation: str, offset: int = OFFSET_BEGINNING
) -> list[Message]:
    """From `offset` to the end of partition 0, or with read_committed to the last stable offset."""
    found = consume_topics(broker, [topic], isolation, offset)[topic]
    return [(message.offset() or 0, message.key(), message.value()) for message in found]


def consume_topics(
    broker: Broker, topics: Sequence[str], isolation: str, offset: int = OFFSET_BEGINNING
) -> dict[str, list[ClientMessage]]:
    """The same of several topics by one consumer, with all that a client knows of a message."""
    messages: dict[str, list[ClientMessage]] = {topic: [] for topic in topics}
    unread, deadline = set(topics), time.monotonic() + READ_TIMEOUT_S
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
        consumer.assign([TopicPartition(topic, 0, offset) for topic in topics])
        while unread and time.monotonic() < deadline:
            for message in consumer.consume(500, 1.0):
                error = message.error()
                if error is None:
                    messages[message.topic() or ""].append(message)
                    continue
                assert error.code() == KafkaError._PARTITION_EOF, error
                unread.discard(message.topic() or "")
    finally:
        consumer.close()
    if unread:
        raise TimeoutError(f"{sorted(unread)}: not read to the end in {READ_TIMEOUT_S} s")
    return messages
