"""A real broker on what we compacted: it starts, and consumers read exactly what should be left."""

from __future__ import annotations

import contextlib
import random
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalog.format.record_batch import CRC_POSITION
from tests.oracle.dump_notices import bad_lines
from tests.oracle.kafka import Kafka
from tests.oracle.rounds import CompactCall, compact_with_kafkalog, play, work_directory
from tests.oracle.scripts import CODECS, seed_scenario
from tests.support.broker import CLIENT_WAIT_S, Broker, complaints, running_broker

pytestmark = [pytest.mark.oracle, pytest.mark.broker, pytest.mark.slow]

TOPICS = tuple(f"compacted-{codec}" for codec in CODECS)
# 1.0 is never exceeded: the broker's own cleaner leaves these topics alone
CONFIG = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "4096",
    "index.interval.bytes": "512",
    "min.cleanable.dirty.ratio": "1.0",
}
READ_TIMEOUT_S = 600.0

# offset, key, value, headers, timestamp in ms
Message = tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int]


@dataclass(frozen=True)
class Produced:
    """A log dir as a broker left it, and every message it held."""

    directory: Path
    messages: dict[str, list[Message]]

    @property
    def log_dir(self) -> Path:
        return self.directory / "data"


@pytest.fixture(scope="module")
def produced() -> Iterator[Produced]:
    with work_directory() as work:
        with running_broker(work / "broker") as broker:
            _create_topics(broker)
            for codec, topic in zip(CODECS, TOPICS, strict=True):
                _produce(broker, topic, codec)
            messages = {topic: _read(broker, topic) for topic in TOPICS}
        yield Produced(work / "broker", messages)


def test_a_consumer_reads_exactly_what_compaction_leaves(produced: Produced) -> None:
    with work_directory() as work:
        ours = work / "broker"
        shutil.copytree(produced.directory, ours)
        expected = {topic: _after_compaction(produced, topic) for topic in TOPICS}
        for topic in TOPICS:
            _compact(ours / "data", topic)
        with running_broker(ours) as broker:
            for topic in TOPICS:
                assert _read(broker, topic) == expected[topic]
                assert len(expected[topic]) < len(produced.messages[topic]) / 2
                _seek_everywhere(broker, topic, expected[topic], len(produced.messages[topic]))
            _appending_goes_on(broker, TOPICS[0], produced.messages[TOPICS[0]])
        log = broker.log_file.read_text()[
            produced.directory.joinpath("broker.log").stat().st_size :
        ]
        assert "Kafka Server started" in log
        assert complaints(log, TOPICS) == []


def test_dump_log_segments_accepts_every_file(kafka: Kafka, produced: Produced) -> None:
    with work_directory() as work:
        shutil.copytree(produced.log_dir, work / "data")
        for topic in TOPICS:
            _compact(work / "data", topic)
            assert not list(bad_lines(kafka, work / "data" / f"{topic}-0"))


@pytest.mark.parametrize(
    "seed", [2, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in (5, 10, 13))]
)
def test_dump_log_segments_accepts_random_rounds(kafka: Kafka, seed: int) -> None:
    def accepted(partition_dir: Path) -> None:
        assert not list(bad_lines(kafka, partition_dir))

    with work_directory() as work:
        scenario = seed_scenario(seed)
        outcome = play(scenario, kafka, work / "x", compact_with_kafkalog, after_round=accepted)
    assert not outcome.complaints, outcome


def test_dump_log_segments_refuses_a_damaged_file(kafka: Kafka, produced: Produced) -> None:
    with work_directory() as work:
        damaged = work / f"{TOPICS[0]}-0"
        shutil.copytree(produced.log_dir / f"{TOPICS[0]}-0", damaged)
        assert not list(bad_lines(kafka, damaged))
        log = min(damaged.glob("*.log"))
        data = bytearray(log.read_bytes())
        data[CRC_POSITION] ^= 1
        log.write_bytes(data)
        assert list(bad_lines(kafka, damaged))


# -- producing and reading -----------------------------------------------------------------------


def _create_topics(broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    for future in admin.create_topics([NewTopic(t, 1, 1, config=CONFIG) for t in TOPICS]).values():
        future.result(CLIENT_WAIT_S)


def _produce(broker: Broker, topic: str, codec: str) -> None:
    """Repeating keys, tombstones, empty values, headers; half of it by an idempotent producer."""
    rnd = random.Random(topic)
    for idempotent in (False, True):
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "linger.ms": 5,
                "batch.size": 900,
                "compression.type": codec,
                "enable.idempotence": idempotent,
            }
        )
        for number in range(500):
            value = f"value {number} ".encode() + rnd.randbytes(rnd.randrange(60))
            producer.produce(
                topic,
                partition=0,
                key=f"key-{rnd.randrange(40)}".encode(),
                value=rnd.choice((value, value, value, None, b"")),
                headers=[("n", str(number).encode()), ("none", None)] if number % 9 == 0 else None,
            )
        assert producer.flush(CLIENT_WAIT_S) == 0


def _read(broker: Broker, topic: str, offset: int = OFFSET_BEGINNING) -> list[Message]:
    """From `offset` to the end of partition 0."""
    messages, deadline = list[Message](), time.monotonic() + READ_TIMEOUT_S
    with _consumer(broker) as consumer:
        consumer.assign([TopicPartition(topic, 0, offset)])
        while time.monotonic() < deadline:
            message = consumer.poll(1.0)
            if message is None:
                continue
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                return messages
            headers = tuple(message.headers() or ())
            messages.append(
                (message.offset(), message.key(), message.value(), headers, message.timestamp()[1])
            )
    raise TimeoutError(f"{topic}: the end was not reached in {READ_TIMEOUT_S} s")


@contextlib.contextmanager
def _consumer(broker: Broker) -> Iterator[Any]:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "none",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
            "log_level": 0,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


# -- what should be left -------------------------------------------------------------------------


def _compact(log_dir: Path, topic: str) -> None:
    facts = compact_with_kafkalog(
        CompactCall(
            log_dir=log_dir,
            topic=topic,
            partition=0,
            # when the broker last wrote: its clock and ours need not be the same
            now_ms=max(log.stat().st_mtime_ns for log in log_dir.rglob("*.log")) // 1_000_000,
            config={**CONFIG, "min.cleanable.dirty.ratio": "0.0"},
            high_watermark=None,
            producer_expiry_ms=86_400_000,
            keyless=False,
        )
    )
    assert facts["endOffset"] == _active_base(log_dir, topic)


def _after_compaction(produced: Produced, topic: str) -> list[Message]:
    """The newest message of each key below the active segment, and all of the active segment.

    Tombstones are not old enough to go.
    """
    end = _active_base(produced.log_dir, topic)
    messages = produced.messages[topic]
    newest = {key: offset for offset, key, *_ in messages if offset < end}
    return [m for m in messages if m[0] >= end or newest[m[1]] == m[0]]


def _active_base(log_dir: Path, topic: str) -> int:
    return max(int(path.stem) for path in (log_dir / f"{topic}-0").glob("*.log"))


def _seek_everywhere(broker: Broker, topic: str, left: list[Message], end: int) -> None:
    """Starting in the middle of segments finds the next message that is left; so does a time."""
    for offset in (end // 5, end // 2, end - 2):
        assert _read(broker, topic, offset) == [m for m in left if m[0] >= offset]
    times = sorted({message[4] for message in left})
    with _consumer(broker) as consumer:
        for wanted in (0, times[len(times) // 2], times[-1]):
            (found,) = consumer.offsets_for_times([TopicPartition(topic, 0, wanted)], timeout=120)
            assert found.offset == _offset_by_time(broker.log_dir / f"{topic}-0", left, wanted)


def _offset_by_time(partition_dir: Path, left: list[Message], wanted: int) -> int:
    """Kafka's answer: it looks into one segment only, the first that claims to be new enough.

    An empty segment claims its file's time, so a lookup can end in one, finding nothing (-1).
    """
    logs = sorted(partition_dir.glob("*.log"))
    ends = [int(log.stem) for log in logs[1:]] + [left[-1][0] + 1]
    for log, end in zip(logs, ends, strict=True):
        times = log.with_suffix(".timeindex").read_bytes()
        claims = log.stat().st_mtime_ns // 1_000_000
        if log is logs[-1]:
            claims = wanted  # its index is still being written
        elif len(times) >= 12:
            claims = int.from_bytes(times[-12:-4])
        if claims >= wanted:
            inside = [m for m in left if int(log.stem) <= m[0] < end and m[4] >= wanted]
            return inside[0][0] if inside else -1
    return -1


def _appending_goes_on(broker: Broker, topic: str, before: list[Message]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    producer.produce(topic, partition=0, key=b"new", value=b"new")
    assert producer.flush(CLIENT_WAIT_S) == 0
    offset, key, value, *_ = _read(broker, topic)[-1]
    assert (offset, key, value) == (before[-1][0] + 1, b"new", b"new")
