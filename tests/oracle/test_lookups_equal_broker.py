"""A broker's answers and ours about the same logs: offsets by time and epoch, fetches, what a
consumer reads in either isolation level."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalog import fetch, list_offsets, offset_for_leader_epoch, open_log_dir, read_records
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.reading.lookups import MAX_TIMESTAMP, READ_COMMITTED, READ_UNCOMMITTED
from tests.oracle.consuming import consume
from tests.oracle.rounds import work_directory
from tests.support.broker import CLIENT_WAIT_S, Broker, running_broker
from tests.support.kafka_protocol import COMMITTED, UNCOMMITTED, Connection
from tests.support.log_builder import START_MS

pytestmark = [pytest.mark.oracle, pytest.mark.broker, pytest.mark.slow]

CONFIG = {
    "internal.segment.bytes": "3000",
    "index.interval.bytes": "300",
    "retention.ms": "-1",
}
TOPICS: dict[str, dict[str, str]] = {
    "plain": CONFIG,
    "appended": {**CONFIG, "message.timestamp.type": "LogAppendTime"},
    "transactional": CONFIG,
}
LEVELS = {READ_UNCOMMITTED: UNCOMMITTED, READ_COMMITTED: COMMITTED}


@dataclass(frozen=True)
class Running:
    """A broker whose log dir is read while it runs, and the partitions as they are then."""

    broker: Broker
    partitions: dict[str, PartitionInventory]
    open_producer: Producer


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    """Two generations of a broker, so that there is more than one leader epoch; the second one has
    loaded the checkpoints that we read."""
    with work_directory() as work:
        with running_broker(work / "broker") as broker:
            _create_topics(broker)
            _produce(broker, 1)
        with running_broker(work / "broker") as broker:
            still_open = _produce(broker, 2)
        with running_broker(work / "broker") as broker:
            _await_leaders(broker)
            found = open_log_dir(*(broker.log_dir / f"{topic}-0" for topic in TOPICS))
            partitions = {p.topic_partition.topic: p for p in found}
            yield Running(broker, partitions, still_open)


@pytest.fixture(scope="module")
def connection(running: Running) -> Iterator[Connection]:
    opened = Connection(running.broker.port)
    yield opened
    opened.close()


def _await_leaders(broker: Broker) -> None:
    """A broker that says it has started may not lead yet; when it does it notes its epoch."""
    connection, until = Connection(broker.port), monotonic() + CLIENT_WAIT_S
    for topic in TOPICS:
        while connection.list_offsets(topic, -1)[0] != 0:
            assert monotonic() < until, f"no leader of {topic}"
            sleep(0.1)
    connection.close()


def _create_topics(broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    topics = [NewTopic(topic, 1, 1, config=config) for topic, config in TOPICS.items()]
    for future in admin.create_topics(topics).values():
        future.result(CLIENT_WAIT_S)


def _producer(broker: Broker, **settings: object) -> Producer:
    return Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "linger.ms": 5,
            "batch.size": 500,
            "log_level": 0,
            **settings,
        }
    )


def _produce(broker: Broker, generation: int) -> Producer:
    """Timestamps out of order, compressed and not; transactions, the last one left open."""
    rnd = random.Random(generation)
    for topic, codec in itertools.product(("plain", "appended"), ("none", "lz4")):
        producer = _producer(broker, **{"compression.type": codec})
        for number in range(120):
            time = START_MS + generation * 400 + number * 2 + rnd.randrange(-60, 60)
            producer.produce(topic, rnd.randbytes(60), f"k{number}", partition=0, timestamp=time)
            if number % 7 == 0:
                assert producer.flush(CLIENT_WAIT_S) == 0
        assert producer.flush(CLIENT_WAIT_S) == 0
    # The one that stays open must not be aborted meanwhile.
    timeout = {"transaction.timeout.ms": 900_000}
    writers = [
        _producer(broker, **{"transactional.id": f"writer-{n}", **timeout}) for n in range(3)
    ]
    for writer in writers:
        writer.init_transactions(CLIENT_WAIT_S)
    for round_number in range(12):
        last = generation == 2 and round_number == 11
        for writer in writers:
            writer.begin_transaction()
        for writer in writers * 2:
            for _ in range(rnd.randint(1, 4)):
                writer.produce("transactional", rnd.randbytes(40), "k", partition=0)
            assert writer.flush(CLIENT_WAIT_S) == 0
        for number, writer in enumerate(writers):
            if last and number == 0:
                continue
            if rnd.random() < 0.5:
                writer.commit_transaction(CLIENT_WAIT_S)
            else:
                writer.abort_transaction(CLIENT_WAIT_S)
    # Markers are written after the client was answered; this one is answered when they are. Else
    # the broker would write them when it starts again, after the log was read here.
    for ended in ("writer-1", "writer-2"):
        _producer(broker, **{"transactional.id": ended, **timeout}).init_transactions(CLIENT_WAIT_S)
    return writers[0]


def interesting_offsets(partition: PartitionInventory) -> list[int]:
    bases = [segment.base_offset for segment in partition.segments]
    near = {base + step for base in bases for step in (-1, 0, 1)}
    rnd = random.Random(3)
    near |= {rnd.randrange(partition.log_end_offset) for _ in range(15)}
    return sorted(
        o for o in {*near, partition.log_end_offset} if 0 <= o <= partition.log_end_offset
    )


@pytest.mark.parametrize(
    "topic", ["plain", *(pytest.param(t, marks=pytest.mark.thorough) for t in [*TOPICS][1:])]
)
def test_offset_of_each_time(running: Running, connection: Connection, topic: str) -> None:
    partition = running.partitions[topic]
    assert len(partition.segments) > 4
    times = set(range(START_MS + 330, START_MS + 1120, 9)) | {0, START_MS + 10**9, -1, -2}
    table = read_records(partition.path, columns=["timestampMs"]).read_all()
    stamps = sorted(set(table["timestampMs"].to_pylist()))
    times |= set(stamps[:: max(len(stamps) // 25, 1)]) | {stamps[-1], stamps[-1] + 1}
    found = 0
    for time in sorted(times):
        ours = list_offsets(partition, time)
        error, timestamp, offset = connection.list_offsets(topic, time)
        assert error == 0
        if time == -2:
            timestamp = -1
        expected = None if offset == -1 else (timestamp, offset)
        assert (None if ours is None else (ours.timestamp, ours.offset)) == expected, time
        found += expected is not None
    assert found > 20


@pytest.mark.parametrize("topic", TOPICS)
def test_record_of_the_largest_timestamp(running: Running, topic: str) -> None:
    from confluent_kafka import TopicPartition as ClientPartition
    from confluent_kafka.admin import OffsetSpec

    admin = AdminClient({"bootstrap.servers": running.broker.bootstrap_servers, "log_level": 0})
    for level in LEVELS:
        asked = {ClientPartition(topic, 0): OffsetSpec.max_timestamp()}
        (future,) = admin.list_offsets(asked).values()
        answer = future.result(CLIENT_WAIT_S)
        ours = list_offsets(running.partitions[topic], MAX_TIMESTAMP, isolation_level=level)
        if level == READ_UNCOMMITTED:
            assert ours is not None
            assert (ours.timestamp, ours.offset) == (answer.timestamp, answer.offset)


def test_end_of_each_leader_epoch(running: Running, connection: Connection) -> None:
    several = 0
    for topic, partition in running.partitions.items():
        for epoch in range(-1, 6):
            answer = connection.offset_for_leader_epoch(topic, epoch)
            assert (0, *offset_for_leader_epoch(partition, epoch)) == answer
        several += offset_for_leader_epoch(partition, 0)[1] < partition.log_end_offset
    assert several == 3


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("topic", TOPICS)
def test_fetch_returns_the_same_batches(
    running: Running, connection: Connection, topic: str, level: str
) -> None:
    partition = running.partitions[topic]
    sizes = set()
    for offset in interesting_offsets(partition):
        for max_bytes in (0, 100, 700, 1500, 1 << 20):
            ours = fetch(partition, offset, max_bytes, isolation_level=level)
            answer = connection.fetch(topic, offset, max_bytes, LEVELS[level])
            assert answer.error == 0
            assert ours.records == whole_batches(answer.records), (offset, max_bytes)
            assert ours.high_watermark == answer.high_watermark
            assert ours.last_stable_offset == answer.last_stable_offset
            if level == READ_COMMITTED and ours.records:
                assert relevant(ours.aborted_transactions, ours.next_offset) == relevant(
                    answer.aborted, ours.next_offset
                )
            sizes.add(len(ours.records))
    assert len(sizes) > 15
    end = partition.log_end_offset
    assert connection.fetch(topic, end + 1, 100, LEVELS[level]).error == 1  # out of range
    assert fetch(partition, end, 100).records == b""


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("topic", TOPICS)
def test_records_equal_a_consumers(running: Running, topic: str, level: str) -> None:
    path = running.partitions[topic].path
    columns = ["offset", "key", "value"]
    is_committed = level == READ_COMMITTED
    table = read_records(path, columns=columns, read_committed=is_committed).read_all()
    ours = [tuple(row.values()) for row in table.to_pylist()]
    assert ours == consume(running.broker, topic, level)
    assert len(ours) > 50


def test_state_of_each_records_transaction(running: Running) -> None:
    partition = running.partitions["transactional"]
    columns = ["offset", "transactionState"]
    rows = read_records(partition.path, columns=columns).read_all().to_pylist()
    committed = {
        offset for offset, _, _ in consume(running.broker, "transactional", READ_COMMITTED)
    }
    stable = list_offsets(partition, -1, isolation_level=READ_COMMITTED)
    assert stable is not None
    below = {r["offset"] for r in rows if r["offset"] < stable.offset}
    states = {r["offset"]: r["transactionState"] for r in rows}
    assert {o for o in below if states[o] == "committed"} == committed
    assert {states[o] for o in below} == {"committed", "aborted"}
    assert set(states.values()) == {"committed", "aborted", "open"}


def test_times_as_options_read_what_the_broker_would_begin_with(
    running: Running, connection: Connection
) -> None:
    partition = running.partitions["plain"]
    first, last = START_MS + 450, START_MS + 900
    _, _, start = connection.list_offsets("plain", first)
    _, _, end = connection.list_offsets("plain", last)
    timed = read_records(
        partition.path, columns=["offset"], starting_timestamp=first, ending_timestamp=last
    ).read_all()
    name = TopicPartition("plain", 0)
    by_offset = read_records(
        partition.path,
        columns=["offset"],
        starting_offsets={name: start},
        ending_offsets={name: end},
    ).read_all()
    assert timed == by_offset
    assert timed.num_rows > 30


def whole_batches(records: bytes) -> bytes:
    """A broker cuts the last batch where the bytes asked for end."""
    end = 0
    while end + 12 <= len(records):
        size = 12 + int.from_bytes(records[end + 8 : end + 12], "big")
        if end + size > len(records):
            break
        end += size
    return records[:end]


def relevant(aborted: tuple[tuple[int, int], ...], end: int) -> list[tuple[int, int]]:
    """A broker that cut a batch names transactions that begin in what was cut, too."""
    return sorted(known for known in aborted if known[1] < end)


def test_partition_is_named_by_one_directory(running: Running) -> None:
    from kafkalog.errors import InvalidConfigError, OffsetOutOfRangeError

    log_dir = Path(running.partitions["plain"].log_dir)
    assert fetch(log_dir / "plain-0", 0).records == fetch(running.partitions["plain"], 0).records
    with pytest.raises(InvalidConfigError, match="a partition's directory is needed"):
        fetch(log_dir, 0)
    with pytest.raises(OffsetOutOfRangeError, match="the log has offsets 0 to"):
        fetch(log_dir / "plain-0", 10**6)
