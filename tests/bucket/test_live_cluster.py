"""Live tiered brokers: `__remote_log_metadata` made anew serves a broker as its own did, each harm
done to a store is named with its cause and nothing else, and what is read of a cluster whose
leaders changed during uploads is what a consumer gets.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ElectionType, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalog import open_log_dir, read_records
from kafkalog.bucket.rebuild import rebuild_metadata
from kafkalog.bucket.request import BucketRequest
from kafkalog.bucket.run import BucketRun
from kafkalog.format.checkpoints import (
    pack_offset_checkpoint,
    parse_offset_checkpoint,
)
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.reading.remote_copies import read_metadata_partitions
from kafkalog.remote.paths import RemoteStorage
from tests.bucket.tiered_cluster import STARTED, look_in_turn
from tests.remote.test_aiven import flip
from tests.support.broker import Broker, BrokerFactory
from tests.support.broker import broker_factory as broker_factory  # a fixture
from tests.support.broker_cluster import BrokerCluster

pytestmark = [pytest.mark.oracle, pytest.mark.soak]

METADATA = "__remote_log_metadata"
PATIENCE_S = 240.0
TIERED = {
    "remote.storage.enable": "true",
    "internal.segment.bytes": "16384",
    "local.retention.bytes": "1",
    "index.interval.bytes": "1024",
}
Row = tuple[int, bytes | None, bytes | None]


def settings(store: Path, replication: int = 1) -> dict[str, str]:
    manager = "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
    topic = "rlmm.config.remote.log.metadata.topic"
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": manager,
        "rsm.config.dir": str(store),
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        f"{topic}.replication.factor": str(replication),
        f"{topic}.num.partitions": "2",
        "remote.log.manager.task.interval.ms": "500",
        "log.segment.delete.delay.ms": "1000",
        "log.retention.check.interval.ms": "500",
    }


def await_that(is_so: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def create(servers: str, *topics: str, **changes: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    config = {**TIERED, **changes}
    made = admin.create_topics([NewTopic(name, 1, 1, config=config) for name in topics])
    for done in made.values():
        done.result(120)


def produce(servers: str, topic: str, count: int, size: int = 90) -> None:
    own = {"bootstrap.servers": servers, "batch.size": 2048, "linger.ms": 5, "log_level": 0}
    producer = Producer(own)
    for number in range(count):
        producer.produce(topic, key=f"k{number}", value=f"{topic} {number} " + "v" * size)
    assert producer.flush(120) == 0


def transactions(servers: str, topic: str, count: int) -> None:
    """Of thirty records, each third one aborted."""
    own = {"bootstrap.servers": servers, "batch.size": 2048, "transactional.id": f"t-{topic}"}
    producer = Producer(own)
    producer.init_transactions(120)
    for round_ in range(count):
        producer.begin_transaction()
        for number in range(30):
            producer.produce(topic, key=f"k{number}", value=f"{topic} {round_} " + "v" * 90)
        producer.flush(120)
        if round_ % 3 == 1:
            producer.abort_transaction(120)
        else:
            producer.commit_transaction(120)


def consumed(servers: str, topic: str, isolation_level: str) -> list[Row]:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "none",
            "isolation.level": isolation_level,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    rows: list[Row] = []
    deadline = time.monotonic() + PATIENCE_S
    while True:
        assert time.monotonic() < deadline, f"{len(rows)} rows of {topic}"
        message = consumer.poll(5.0)
        if message is None:
            continue
        error = message.error()
        if error is not None and error.code() == KafkaError._PARTITION_EOF:
            break
        if error is None:
            rows.append((message.offset(), message.key(), message.value()))
    consumer.close()
    return rows


def read(log_dir: Path | list[str], store: Path, topic: str, isolation_level: str) -> list[Row]:
    table = read_records(
        log_dir,
        topics=[topic],
        columns=["offset", "key", "value"],
        remote_dirs=str(store),
        read_committed=isolation_level == "read_committed",
    ).read_all()
    return [(row["offset"], row["key"], row["value"]) for row in table.to_pylist()]


def local_bases(log_dir: Path, topic: str) -> list[int]:
    return sorted(int(path.stem) for path in (log_dir / f"{topic}-0").glob("*.log"))


def await_upload(log_dir: Path, topic: str) -> None:
    """Until the active segment alone is on the disk, behind others."""

    def is_so() -> bool:
        bases = local_bases(log_dir, topic)
        return len(bases) == 1 and bases[0] > 0

    await_that(is_so, f"{topic}: {local_bases(log_dir, topic)}")


def stored(store: Path, topic: str, suffix: str) -> list[Path]:
    """By the directory of the partition, or of the topic: its name begins with the topic's."""
    found = store.rglob(f"*.{suffix}")
    return sorted(p for p in found if any(part.startswith(f"{topic}-") for part in p.parts))


def look(log_dirs: list[Path], store: Path, *, is_deep: bool = True) -> BucketRun:
    """With no least age: what was begun before the newest record is judged."""
    request = BucketRequest(
        tuple(map(str, log_dirs)),
        time.time_ns() // 1_000_000,
        RemoteStorage((str(store),)),
        min_age_ms=0,
        is_deep=is_deep,
        run_dir=str(store.parent / "runs"),
    )
    return look_in_turn(request)


@dataclass
class Tiered:
    broker: Broker
    store: Path

    @property
    def servers(self) -> str:
        return self.broker.bootstrap_servers


@pytest.fixture
def tiered(broker_factory: BrokerFactory, tmp_path: Path) -> Tiered:
    store = tmp_path / "store"
    store.mkdir()
    return Tiered(broker_factory(tmp_path / "broker", settings(store)), store)


def test_a_broker_goes_on_with_a_topic_that_was_made_anew(tiered: Tiered) -> None:
    log_dir, topics = tiered.broker.log_dir, ("plain", "txn")
    create(tiered.servers, *topics)
    produce(tiered.servers, "plain", 2000)
    transactions(tiered.servers, "txn", 40)
    for topic in topics:
        await_upload(log_dir, topic)
    levels = ("read_uncommitted", "read_committed")
    expected = {(t, level): consumed(tiered.servers, t, level) for t in topics for level in levels}
    assert len(expected["plain", levels[0]]) == 2000
    tiered.broker.stop()
    assert look([log_dir], tiered.store).findings == ()

    output = tiered.store.parent / "rebuilt"
    request = BucketRequest((str(log_dir),), 0, RemoteStorage((str(tiered.store),)))
    made = rebuild_metadata(request, output)
    assert made.left_out == ()
    assert len(made.copies) == sum(len(stored(tiered.store, t, "log")) for t in topics)
    marks: dict[str, dict[tuple[str, int], int]] = {}
    for name in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint"):
        for place in (log_dir, output):
            own = parse_offset_checkpoint((place / name).read_bytes(), name)
            marks.setdefault(name, {}).update(own)
        (log_dir / name).write_bytes(pack_offset_checkpoint(marks[name]))
    for number in (0, 1):
        directory = log_dir / f"{METADATA}-{number}"
        for path in directory.iterdir():
            if path.name != "partition.metadata":
                path.unlink()
        shutil.copytree(output / directory.name, directory, dirs_exist_ok=True)

    tiered.broker.start()
    for (topic, level), rows in expected.items():
        assert consumed(tiered.servers, topic, level) == rows, (topic, level)
    # It goes on: what comes now is uploaded behind what was there.
    before = len(stored(tiered.store, "plain", "log"))
    produce(tiered.servers, "plain", 1000)
    await_upload(log_dir, "plain")
    assert len(stored(tiered.store, "plain", "log")) > before
    assert len(consumed(tiered.servers, "plain", levels[0])) == 3000
    tiered.broker.stop()
    assert look([log_dir], tiered.store).findings == ()


def begun(log_dir: Path, topic: str) -> set[str]:
    """Segments whose copy was begun and is neither finished nor deleted."""
    partitions = read_metadata_partitions(open_log_dir(str(log_dir)), MAX_BATCH_BYTES)
    return {
        segment_id
        for own in partitions.values()
        for segment_id, copy in own.copies.items()
        if copy.topic == topic and copy.state is STARTED
    }


def kill_during_an_upload(tiered: Tiered, topic: str) -> None:
    """As soon as the store has a first object of a new segment, of some megabytes; again if it was
    done by then."""
    for _ in range(12):
        known = set(stored(tiered.store, topic, "log"))
        produce(tiered.servers, topic, 5000, size=1000)
        deadline = time.monotonic() + PATIENCE_S
        while not set(stored(tiered.store, topic, "log")) - known:
            assert time.monotonic() < deadline
        tiered.broker.kill()
        half = begun(tiered.broker.log_dir, topic)
        tiered.broker.start()
        if half:
            return
    pytest.fail("no upload was cut off")


def test_each_harm_is_named_with_its_cause_and_nothing_else(tiered: Tiered) -> None:
    log_dir = tiered.broker.log_dir
    create(tiered.servers, "sound", "harmed", "gone")
    create(tiered.servers, "cut", **{"internal.segment.bytes": str(4 << 20)})
    for topic in ("sound", "harmed", "gone"):
        produce(tiered.servers, topic, 1500)
    for topic in ("sound", "harmed", "gone"):
        await_upload(log_dir, topic)
    kill_during_an_upload(tiered, "cut")
    await_upload(log_dir, "cut")
    # The store is down while a topic is dropped.
    away = tiered.store.with_name("away")
    tiered.store.rename(away)
    tiered.store.write_text("no directory")
    admin = AdminClient({"bootstrap.servers": tiered.servers})
    admin.delete_topics(["gone"])["gone"].result(120)
    await_that(lambda: not (log_dir / "gone-0").exists(), "gone is there")
    # Something of the cluster is newer than the removal, and than all objects.
    produce(tiered.servers, "sound", 10)
    tiered.broker.kill()
    tiered.store.unlink()
    away.rename(tiered.store)
    tiered.broker.start()
    produce(tiered.servers, "sound", 1500)
    await_upload(log_dir, "sound")
    tiered.broker.stop()

    logs = stored(tiered.store, "harmed", "log")
    lost, twice, flipped = logs[0].with_suffix(".index"), logs[1], logs[2]
    lost.unlink()
    for path in twice.parent.glob(f"{twice.stem}.*"):
        shutil.copy2(path, path.with_name(f"{path.stem[:21]}{'B' * 21}A{path.suffix}"))
    stat = flipped.stat()
    flip(flipped, 300)
    run = look([log_dir], tiered.store)
    named = sorted((each.kind, each.topic, each.path) for each in run.findings)
    gone = next(each for each in run.findings if each.kind == "topic-gone")
    cut = [each for each in run.findings if each.topic == "cut"]
    assert stat.st_size == flipped.stat().st_size
    assert [each[:2] for each in named if each[1] == "harmed"] == [
        ("crc-mismatch", "harmed"), ("object-missing", "harmed"), ("orphan", "harmed"),
    ], named  # fmt: skip
    assert gone.topic == "gone"
    assert {each.kind for each in cut} == {"half-upload"}, named
    assert {each.topic for each in run.findings} == {"harmed", "gone", "cut"}, named


@pytest.fixture
def three(tmp_path: Path) -> Iterator[tuple[BrokerCluster, Path]]:
    store = tmp_path / "store"
    store.mkdir()
    cluster = BrokerCluster(tmp_path)
    for broker in cluster.brokers.values():
        broker.settings.update(settings(store, replication=3))
    with cluster:
        yield cluster, store


def test_reads_are_a_consumers_after_leaders_changed_during_uploads(
    three: tuple[BrokerCluster, Path],
) -> None:
    cluster, store = three
    config = {name.replace(".", "_"): value for name, value in TIERED.items()}
    for topic in ("plain", "txn"):
        cluster.create(topic, [1, 2, 3], **config)
    servers = cluster.bootstrap_servers
    for node in (1, 2, 3, 1):
        produce(servers, "plain", 600)
        transactions(servers, "txn", 9)
        # While it uploads: its leader goes, another takes over; then the first leads again.
        cluster.brokers[node].kill()
        produce(servers, "plain", 200)
        transactions(servers, "txn", 3)
        cluster.start(node)
        cluster.await_state(("plain", "txn"), lambda state: set(state.isrs) == {1, 2, 3})
        places = [TopicPartition(topic, 0) for topic in ("plain", "txn")]
        admin = cluster.admin()  # kept: without it the answer is that it is gone
        elected = admin.elect_leaders(ElectionType.PREFERRED, places).result(120)
        for done in elected.values():
            assert done is None or done.code() == KafkaError.ELECTION_NOT_NEEDED
    cluster.await_state(("plain", "txn"), lambda state: state.leader == 1)
    for topic in ("plain", "txn"):
        await_upload(cluster.log_dir(1), topic)
    levels = ("read_uncommitted", "read_committed")
    expected = {(t, v): consumed(servers, t, v) for t in ("plain", "txn") for v in levels}
    cluster.stop(3, 2, 1)
    for (topic, level), rows in expected.items():
        assert len(rows) > 500
        assert read(cluster.log_dir(1), store, topic, level) == rows, (topic, level)
    epochs = {
        line
        for line in (cluster.log_dir(1) / "plain-0/leader-epoch-checkpoint")
        .read_text()
        .split("\n")[2:]
        if line
    }
    assert len(epochs) > 4
    run = look([cluster.log_dir(node) for node in (1, 2, 3)], store, is_deep=False)
    assert {each.kind for each in run.findings} <= {"half-upload", "remote-overlap", "orphan"}
