"""A real broker on a transactional log that we compacted: both isolation levels read what is left.

Values begin with what became of their transaction: commit, abort or open.
"""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.oracle.consuming import COMMITTED, UNCOMMITTED, consume
from tests.oracle.dump_notices import bad_lines
from tests.oracle.kafka import Kafka
from tests.oracle.rounds import CompactCall, compact_with_kafkalog, work_directory
from tests.support.broker import CLIENT_WAIT_S, Broker, running_broker

pytestmark = [pytest.mark.oracle, pytest.mark.broker, pytest.mark.slow, pytest.mark.thorough]

TOPIC = "transactional"
CONFIG = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "2048",
    "index.interval.bytes": "512",
    "min.cleanable.dirty.ratio": "1.0",  # never exceeded: the broker's own cleaner leaves it alone
}
Message = tuple[int, bytes, bytes]  # offset, key, value


@dataclass(frozen=True)
class Produced:
    """A log dir as a broker left it, what either consumer read, and where a transaction is open."""

    directory: Path
    committed: list[Message]
    uncommitted: list[Message]

    @property
    def open_since(self) -> int:
        return min(offset for offset, _, value in self.uncommitted if value.startswith(b"open"))

    @property
    def end_offset(self) -> int:
        """Where compaction has to end: at the segment that holds the open transaction's start."""
        logs = (self.directory / "data" / f"{TOPIC}-0").glob("*.log")
        return max(int(log.stem) for log in logs if int(log.stem) <= self.open_since)


@pytest.fixture(scope="module")
def produced() -> Iterator[Produced]:
    with work_directory() as work:
        with running_broker(work / "broker") as broker:
            _create_topic(broker)
            still_open = _produce(broker)
            committed, uncommitted = _read(broker, COMMITTED), _read(broker, UNCOMMITTED)
        del still_open  # its transaction is not ended by that
        yield Produced(work / "broker", committed, uncommitted)


def test_both_isolation_levels_read_what_compaction_leaves(
    produced: Produced, kafka: Kafka
) -> None:
    end = produced.end_offset
    committed = _left(produced.committed, end)
    uncommitted = _left(produced.uncommitted, end)
    assert 0 < len(committed) < len(produced.committed) / 2
    assert any(value.startswith(b"abort") for offset, _, value in uncommitted if offset >= end)
    with work_directory() as work:
        shutil.copytree(produced.directory, work / "broker")
        _compact(work / "broker" / "data", end)
        assert not list(bad_lines(kafka, work / "broker" / "data" / f"{TOPIC}-0"))
        with running_broker(work / "broker") as broker:
            assert _read(broker, COMMITTED) == committed
            assert _read(broker, UNCOMMITTED) == uncommitted
            for offset in (end // 3, end // 2, end + 1):
                assert _read(broker, COMMITTED, offset) == [m for m in committed if m[0] >= offset]
            _fence_and_go_on(broker)
            after = _read(broker, COMMITTED)
    wanted = [message for message in uncommitted if message[2].startswith(b"commit")]
    assert after[:-1] == wanted
    assert after[-1][1:] == (b"new", b"commit, after all")


def _create_topic(broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    (future,) = admin.create_topics([NewTopic(TOPIC, 1, 1, config=CONFIG)]).values()
    future.result(CLIENT_WAIT_S)


def _producer(broker: Broker, transactional_id: str) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 900_000,
            "linger.ms": 5,
            "batch.size": 600,
            "log_level": 0,
        }
    )
    producer.init_transactions(CLIENT_WAIT_S)
    return producer


def _produce(broker: Broker) -> Producer:
    """Two producers' transactions interleaved, one that stays open, and more after it."""
    rnd = random.Random(11)
    writers = [_producer(broker, name) for name in ("one", "other")]
    opener = _producer(broker, "open")
    for number in range(24):
        if number == 16:
            opener.begin_transaction()
            _write(opener, "open", rnd)
        outcomes = [rnd.choice(("commit", "commit", "abort")) for _ in writers]
        for writer in writers:
            writer.begin_transaction()
        for _ in range(2):
            for writer, outcome in zip(writers, outcomes, strict=True):
                _write(writer, outcome, rnd)
        for writer, outcome in zip(writers, outcomes, strict=True):
            if outcome == "commit":
                writer.commit_transaction(CLIENT_WAIT_S)
            else:
                writer.abort_transaction(CLIENT_WAIT_S)
    _await_markers(broker, "one", "other")
    return opener


def _await_markers(broker: Broker, *transactional_ids: str) -> None:
    """Markers are written after the client was answered; a producer of the same id gets its own
    answer when they are.
    """
    for transactional_id in transactional_ids:
        _producer(broker, transactional_id)


def _write(producer: Producer, outcome: str, rnd: random.Random) -> None:
    for _ in range(rnd.randint(1, 6)):
        key = f"key-{rnd.randrange(12)}"
        value = f"{outcome} {rnd.randrange(10**6)}"
        producer.produce(TOPIC, partition=0, key=key, value=value)
    assert producer.flush(CLIENT_WAIT_S) == 0  # aborted data reaches the log as well


def _fence_and_go_on(broker: Broker) -> None:
    """The open transaction is aborted when its producer comes back, and writing goes on."""
    producer = _producer(broker, "open")
    producer.begin_transaction()
    producer.produce(TOPIC, partition=0, key=b"new", value=b"commit, after all")
    producer.commit_transaction(CLIENT_WAIT_S)
    _await_markers(broker, "open")


def _left(messages: list[Message], end: int) -> list[Message]:
    """Below the end, the newest of each key of what was committed; all from there on."""
    committed = [m for m in messages if m[0] < end and m[2].startswith(b"commit")]
    newest = {key: offset for offset, key, _ in committed}
    return [m for m in messages if m[0] >= end or newest.get(m[1]) == m[0]]


def _compact(log_dir: Path, end: int) -> None:
    facts = compact_with_kafkalog(
        CompactCall(
            log_dir=log_dir,
            topic=TOPIC,
            partition=0,
            now_ms=time.time_ns() // 1_000_000,
            config={**CONFIG, "min.cleanable.dirty.ratio": "0.0"},
            high_watermark=None,
            producer_expiry_ms=86_400_000,
            keyless=False,
        )
    )
    assert facts["endOffset"] == end


def _read(broker: Broker, isolation: str, offset: int = OFFSET_BEGINNING) -> list[Message]:
    return [
        (at, key or b"", value or b"")
        for at, key, value in consume(broker, TOPIC, isolation, offset)
    ]
