"""The sample `tiered`: a topic whose older segments are in Kafka's LocalTieredStorage, and what
consumers of the live broker read of it.

`data` is the broker's log dir, `remote` the store. `consumed.json` has for each isolation level all
records from offset 0 on: offset, timestamp, key, value. The topic has plain records and
transactions, committed and aborted; all but the active segment were copied and deleted locally.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import TopicPartition

from data.maker.client import Cluster, flush
from data.maker.records import Record
from tests.support.broker import running_broker

TOPIC = "tiered"
TOPICS = {TOPIC: "all but the active segment are in `remote`; transactions, some aborted"}
LEVELS = ("read_uncommitted", "read_committed")
SETTINGS = {
    "remote.log.storage.system.enable": "true",
    "remote.log.storage.manager.class.name": (
        "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
    ),
    "remote.log.metadata.manager.listener.name": "PLAINTEXT",
    "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
    "remote.log.manager.task.interval.ms": "500",
    "log.segment.delete.delay.ms": "1000",
}
TURNS, RECORDS = 8, 25
DEADLINE_S = 120


def make(scratch: Path, target: Path) -> None:
    """Play it with a broker below `scratch`; the sample is what is kept in `target`."""
    store = scratch / "store"
    store.mkdir(parents=True)
    with running_broker(scratch / "broker", {**SETTINGS, "rsm.config.dir": str(store)}) as broker:
        cluster = Cluster(broker)
        cluster.create(
            TOPIC,
            remote_storage_enable="true",
            local_retention_bytes=1,
            internal_segment_bytes=4096,
            index_interval_bytes=512,
        )
        for turn in range(TURNS):
            cluster.produce(TOPIC, _records(f"plain-{turn}"))
            _transaction(cluster, turn)
        await_copies(broker.log_dir / f"{TOPIC}-0", store)
        consumed = {level: _consume(cluster, level) for level in LEVELS}
    shutil.copytree(broker.log_dir, target / "data", ignore=shutil.ignore_patterns(".lock"))
    shutil.copytree(store, target / "remote")
    (target / "consumed.json").write_text(json.dumps(consumed, separators=(",", ":")) + "\n")


def _records(tag: str) -> Iterator[Record]:
    return ((b"%d" % i, f"{tag}-{i}".encode() + b"." * 20, []) for i in range(RECORDS))


def _transaction(cluster: Cluster, turn: int) -> None:
    """Aborted in every third turn; flushed before, else the client drops what is to be aborted."""
    producer = cluster.producer(transactional_id="teller")
    producer.init_transactions(60)
    producer.begin_transaction()
    for key, value, _ in _records(f"transaction-{turn}"):
        producer.produce(TOPIC, key=key, value=value, partition=0)
    flush(producer)
    (producer.abort_transaction if turn % 3 == 1 else producer.commit_transaction)(60)


def await_copies(partition: Path, store: Path) -> None:
    """Until one segment is left on the broker's disk, and no file waits for its deletion."""
    deadline = time.monotonic() + DEADLINE_S
    logs: list[str] = []
    while time.monotonic() < deadline:
        logs = [path.name for path in partition.iterdir() if ".log" in path.name]
        if len(logs) == 1 and len(list(store.rglob("*.log"))) >= 4:
            return
        time.sleep(0.5)
    raise SystemExit(f"not everything was copied and deleted in time: {logs}")


def _consume(cluster: Cluster, level: str) -> list[list[Any]]:
    consumer = cluster.consumer("looking", isolation_level=level)
    place = TopicPartition(TOPIC, 0, 0)
    consumer.assign([place])
    end = consumer.get_watermark_offsets(place, timeout=30)[1]
    found: list[list[Any]] = []
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            key, value = message.key() or b"", message.value() or b""
            place_and_time = [message.offset(), message.timestamp()[1]]
            found.append([*place_and_time, key.decode(), value.decode()])
        elif message is None and consumer.position([place])[0].offset >= end - 1:
            break  # the last one is a transaction's marker
    consumer.close()
    return found
