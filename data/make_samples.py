"""Make `data/samples` anew with a real broker: `python data/make_samples.py`.

Two single-node brokers (KRaft, Kafka's own jars, see tests/oracle/setup.py) are started on the
loopback address one after the other:

* `broker`   topics of every kind the formats know, stopped cleanly;
* `cleaning` two compacted topics, kept twice: as they were *before* Kafka's cleaner came by and
             *after* its single pass. The clock of that pass is read back from the delete horizons
             it wrote, so anybody can ask for the same pass again and compare bytes.

Values, keys and their order come from fixed seeds; times, producer ids and directory ids do not, so
a second run gives other bytes with the same meaning. Everything is described in data/README.md,
whose table this script writes, and listed with sizes, times and digests in samples/MANIFEST.json.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import kafka
import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from kafkalog.format.record_batch import HEADER
from tests.oracle.setup import KAFKA_VERSION
from tests.support.broker import Broker, running_broker

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "data" / "samples"
README = ROOT / "data" / "README.md"
MARKS = ("<!-- table: written by make_samples.py -->", "<!-- end of table -->")
MAX_DISK_BYTES = 8 * 1024 * 1024
NEVER_MS = str(2**63 - 1)
DELETE_RETENTION_MS = 86_400_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

Headers = list[tuple[str, str | bytes | None]]
Record = tuple[bytes | None, bytes | None, Headers | None]

# What each topic of `broker` is for: the table of data/README.md, and the list of what to expect.
TOPICS = {
    "orders": "3 partitions, zstd, JSON values, headers: the topic of the demo",
    **{
        f"codec-{codec}": f"{codec} by librdkafka: null and empty keys and values, tombstones, "
        "headers (twice the same key, null value, UTF-8 key); the last 50 records idempotent"
        for codec in CODECS
    },
    "codec-snappy-xerial": "snappy by kafka-python, framed as Java's snappy stream",
    "codec-mixed": "batches of all codecs one after another in one partition",
    "idempotent": "two idempotent producers taking turns, and a plain one",
    "append-time": "LogAppendTime, uncompressed then lz4; the clients gave times in 2001",
    "odd-timestamps": "decreasing, 1 ms after the epoch, the year 2100, microseconds "
    "(year 50000 and later), and jumps of more than 2^31 ms within one batch",
    "transactions": "three transactional producers between plain ones: commits, aborts, offsets "
    "sent in a transaction, one transaction left open at the end",
    "deleted-records": "DeleteRecords up to offset 155, in the middle of a segment",
    "compacted": "cleaned by the broker round after round while it was written, codec by round; "
    "replaced inputs still there as `.deleted`",
    "removed": "a deleted topic waiting for its delay: a `-delete` directory",
    "__consumer_offsets": "commits of a classic and a consumer-protocol group and a transaction; "
    "one group deleted",
    "__transaction_state": "the transactional ids of `transactions`",
    "__cluster_metadata": "the KRaft log of the node with its snapshot",
}
CLEANING_TOPICS = {
    "accounts": "2 partitions, uncompressed, updates and tombstones, one idempotent producer",
    "sessions": "1 partition, codec by batch, updates, tombstones, headers",
}


# -- writing -------------------------------------------------------------------------------------


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


def varied(count: int, seed: str) -> Iterator[Record]:
    """Records with every kind of nothing: null and empty keys, values, header keys and values."""
    rng = random.Random(seed)
    for i in range(count):
        key = None if i % 17 == 0 else b"" if i % 19 == 0 else b"key-%04d" % rng.randrange(50)
        value: bytes | None = b"value %d " % i + b"abcdefgh" * rng.randrange(12)
        if i % 13 == 0 and key is not None:
            value = None
        elif i % 23 == 0:
            value = b""
        headers: Headers | None = None
        if i % 5 == 0:
            headers = [
                ("h1", b"v%d" % i),
                ("h-null", None),
                ("h1", b"dup"),
                ("hé", b"\xc3\xbc"),
                ("", b""),
            ]
        yield key, value, headers


def orders(count: int, seed: str) -> Iterator[Record]:
    rng = random.Random(seed)
    for i in range(count):
        customer = rng.randrange(60)
        order = {
            "order": f"{seed}-{i:05d}",
            "customer": f"customer-{customer:03d}",
            "amount": round(rng.uniform(3, 400), 2),
            "status": rng.choice(["new", "paid", "sent", "returned"]),
        }
        headers: Headers = [("source", rng.choice([b"web", b"app", b"shop"]))]
        yield b"customer-%03d" % customer, json.dumps(order).encode(), headers


def updates(prefix: str, count: int, keys: int, seed: str) -> Iterator[Record]:
    """A table of `keys` rows, changed `count` times; one change in twelve removes the row."""
    rng = random.Random(seed)
    for i in range(count):
        row = rng.randrange(keys)
        state = {"id": row, "revision": i, "balance": round(rng.uniform(-50, 5000), 2)}
        value = None if rng.random() < 1 / 12 else json.dumps(state).encode()
        headers: Headers | None = [("revision", b"%d" % i)] if i % 40 == 0 else None
        yield f"{prefix}-{row:04d}".encode(), value, headers


# -- the topics of `broker` ----------------------------------------------------------------------


def write_orders(cluster: Cluster) -> None:
    cluster.create("orders", 3, internal_segment_bytes=12_288, index_interval_bytes=1024)
    for partition in range(3):
        records = orders(900, f"o{partition}")
        cluster.produce("orders", records, partition=partition, compression_type="zstd")


def write_codecs(cluster: Cluster) -> None:
    for codec in CODECS:
        topic = f"codec-{codec}"
        cluster.create(
            topic,
            internal_segment_bytes=16_384 if codec == "none" else 6144,
            index_interval_bytes=512,
        )
        cluster.produce(topic, varied(400, topic), compression_type=codec)
        cluster.produce(
            topic,
            varied(50, f"{topic}-idempotent"),
            compression_type=codec,
            enable_idempotence=True,
        )
    cluster.create("codec-snappy-xerial", internal_segment_bytes=6144)
    cluster.create("codec-mixed", internal_segment_bytes=6144)
    for codec in (*CODECS, "none", "lz4"):
        cluster.produce("codec-mixed", varied(40, f"mixed-{codec}"), compression_type=codec)
    for topic in ("codec-snappy-xerial", "codec-mixed"):
        producer = kafka.KafkaProducer(
            bootstrap_servers=cluster.servers["bootstrap.servers"],
            compression_type="snappy",
            linger_ms=20,
            batch_size=2048,
        )
        for key, value, headers in varied(
            300 if topic.endswith("xerial") else 40, f"xerial-{topic}"
        ):
            known = [(name, text or b"") for name, text in headers or []]
            producer.send(topic, key=key, value=value, headers=known, partition=0)
        producer.flush()
        producer.close()


def write_producers_and_times(cluster: Cluster) -> None:
    cluster.create("idempotent", internal_segment_bytes=8192, index_interval_bytes=512)
    two = [cluster.producer(enable_idempotence=True, compression_type="none") for _ in range(2)]
    for turn in range(8):
        for producer in two:
            for key, value, headers in varied(25, f"idempotent-{turn}"):
                producer.produce("idempotent", key=key, value=value, headers=headers, partition=0)
            flush(producer)
        cluster.produce("idempotent", varied(5, f"plain-{turn}"), compression_type="none")

    cluster.create(
        "append-time", message_timestamp_type="LogAppendTime", internal_segment_bytes=8192
    )
    clocks: list[tuple[str, Callable[[int], int]]] = [
        ("none", lambda i: 1_000_000_000_000 + i),
        ("lz4", lambda i: 1_000_000_000_000 - i),
    ]
    for codec, clock in clocks:
        cluster.produce(
            "append-time",
            varied(200, f"append-{codec}"),
            compression_type=codec,
            timestamp=clock,
        )
        time.sleep(0.3)

    cluster.create(
        "odd-timestamps",
        message_timestamp_before_max_ms=NEVER_MS,
        message_timestamp_after_max_ms=NEVER_MS,
        retention_ms=-1,
        internal_segment_bytes=8192,
    )
    kinds: list[Callable[[int], int]] = [
        lambda i: 1_500_000_000_000 - i * 1000,
        lambda i: 1,
        lambda i: 4_102_444_800_000 + i,
        lambda i: 1_700_000_000_000_000 + i,
        lambda i: 1_600_000_000_000 + (i % 3) * 3_000_000_000,
    ]
    for n, kind in enumerate(kinds):
        cluster.produce(
            "odd-timestamps", varied(60, f"odd-{n}"), timestamp=kind, compression_type="lz4"
        )


def write_transactions(cluster: Cluster) -> None:
    cluster.create("transactions", internal_segment_bytes=8192, index_interval_bytes=512)
    names = ("billing", "shipping", "left-open")
    producers = [cluster.producer(transactional_id=name, linger_ms=5) for name in names]
    for producer in producers:
        producer.init_transactions(30)
    for turn in range(7):
        for name, producer in zip(names[:2], producers[:2], strict=True):
            producer.begin_transaction()
            for i in range(24):
                key = f"{name}-{i % 7}".encode()
                producer.produce("transactions", key=key, value=b"%d %d" % (turn, i), partition=0)
                if i % 6 == 0:
                    flush(producer)
            # librdkafka drops what is still queued when a transaction is aborted
            flush(producer)
        cluster.produce("transactions", varied(6, f"plain-{turn}"))
        for n, producer in enumerate(producers[:2]):
            if (turn + n) % 3 == 1:
                producer.abort_transaction(30)
            else:
                producer.commit_transaction(30)
    send_offsets(cluster, producers[0])
    producers[2].begin_transaction()
    for i in range(20):
        producers[2].produce("transactions", key=b"open-%d" % i, value=b"open", partition=0)
    flush(producers[2])
    cluster.produce("transactions", varied(20, "after the open one"))


def send_offsets(cluster: Cluster, producer: Producer) -> None:
    consumer = cluster.consumer("group-in-a-transaction")
    consumer.subscribe(["codec-zstd"])
    deadline = time.monotonic() + 30
    while consumer.poll(0.5) is None and time.monotonic() < deadline:
        pass
    producer.begin_transaction()
    producer.produce("transactions", key=b"exactly-once", value=b"1", partition=0)
    flush(producer)
    place = TopicPartition("codec-zstd", 0, 20)
    producer.send_offsets_to_transaction([place], consumer.consumer_group_metadata())
    producer.commit_transaction(30)
    consumer.close()


def write_compacted(cluster: Cluster) -> None:
    """A topic that the cleaner visits within a tenth of a second of each roll."""
    cluster.create(
        "compacted",
        cleanup_policy="compact",
        min_cleanable_dirty_ratio=0.01,
        segment_ms=200,
        internal_segment_bytes=8192,
        index_interval_bytes=512,
    )
    for turn in range(8):
        codec = ("none", "lz4", "zstd", "gzip")[turn % 4]
        records = updates("row", 120, 80, f"compacted-{turn}")
        cluster.produce("compacted", records, compression_type=codec, batch_size=600)
        time.sleep(0.5)


def write_deletions(cluster: Cluster) -> None:
    cluster.create("deleted-records", internal_segment_bytes=4096)
    cluster.produce(
        "deleted-records", varied(400, "deleted"), compression_type="none", batch_size=500
    )
    for done in cluster.admin.delete_records([TopicPartition("deleted-records", 0, 155)]).values():
        done.result(30)
    # its indexes stay as long as they were preallocated, since nobody closes a removed log
    cluster.create("removed", segment_index_bytes=4096)
    cluster.produce("removed", varied(30, "removed"))
    for done in cluster.admin.delete_topics(["removed"]).values():
        done.result(30)


def write_groups(cluster: Cluster) -> None:
    # Created by the first commit; small segments from then on.
    cluster.consume("classic", ["codec-none"], 10, session_timeout_ms=6000)
    cluster.alter("__consumer_offsets", internal_segment_bytes=4096)
    cluster.consume("classic", ["orders", "codec-none"], 600, session_timeout_ms=6000)
    cluster.consume("classic", ["codec-gzip"], 300, session_timeout_ms=6000)
    cluster.consume("modern", ["orders", "codec-lz4"], 900, group_protocol="consumer")
    cluster.consume("forgotten", ["codec-lz4"], 20, session_timeout_ms=6000)
    for done in cluster.admin.delete_consumer_groups(["forgotten"]).values():
        done.result(30)


def make_broker_sample(scratch: Path) -> None:
    with running_broker(scratch / "broker") as broker:
        cluster = Cluster(broker)
        for step in (
            write_orders,
            write_codecs,
            write_producers_and_times,
            write_compacted,
            write_deletions,
            write_groups,
            write_transactions,  # last: the broker aborts an open transaction after a minute
        ):
            say(step.__name__.replace("_", " "))
            step(cluster)
    keep(broker.log_dir, "broker")


# -- the pair of `cleaning` ----------------------------------------------------------------------


def make_cleaning_sample(scratch: Path) -> dict[str, Any]:
    """Stop before the cleaner may come, keep the directory, let it come once, keep it again."""
    settings = {
        "cleanup_policy": "compact",
        "min_cleanable_dirty_ratio": 0.01,
        "delete_retention_ms": DELETE_RETENTION_MS,
        "internal_segment_bytes": 16_384,
        "index_interval_bytes": 1024,
    }
    with running_broker(scratch / "cleaning") as broker:
        cluster = Cluster(broker)
        for topic, partitions in (("accounts", 2), ("sessions", 1)):
            cluster.create(topic, partitions, min_compaction_lag_ms=NEVER_MS, **settings)
        for partition in range(2):
            for turn in range(3):
                records = updates("account", 500, 150, f"accounts-{partition}-{turn}")
                idempotent = turn == 1
                cluster.produce(
                    "accounts",
                    records,
                    partition=partition,
                    compression_type="none",
                    enable_idempotence=idempotent,
                )
        for turn in range(8):
            records = updates("session", 250, 120, f"sessions-{turn}")
            cluster.produce("sessions", records, compression_type=CODECS[turn % len(CODECS)])
    keep(broker.log_dir, "cleaning/before")

    say("letting Kafka's cleaner pass once")
    broker.start()
    # Wider segments than they were written with, so that the pass puts several into one.
    settings["internal_segment_bytes"] = 40_960
    for topic in CLEANING_TOPICS:
        Cluster(broker).alter(topic, internal_segment_bytes=40_960, min_compaction_lag_ms=0)
    wait_for_cleaner(broker.log_dir / "cleaner-offset-checkpoint", partitions=3)
    broker.stop()
    keep(broker.log_dir, "cleaning/after")
    config = {name.replace("_", "."): str(value) for name, value in settings.items()}
    clocks = cleaning_clocks(SAMPLES / "cleaning" / "after")
    return {"nowMs": clocks, "config": config, "topics": list(CLEANING_TOPICS)}


def wait_for_cleaner(checkpoint: Path, partitions: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if checkpoint.exists() and len(checkpoint.read_text().splitlines()) == 2 + partitions:
            time.sleep(1.0)  # the swap is done before the checkpoint; a second pass would show here
            return
        time.sleep(0.1)
    raise SystemExit("Kafka's cleaner did not come by in time")


def cleaning_clocks(log_dir: Path) -> dict[str, int]:
    """When the pass was at each partition: what the delete horizons say, less the retention."""
    clocks: dict[str, int] = {}
    for partition in sorted(
        p for p in log_dir.iterdir() if p.name.startswith(tuple(CLEANING_TOPICS))
    ):
        horizons = {h for log in partition.glob("*.log") for h in delete_horizons(log.read_bytes())}
        if len(horizons) != 1:
            raise SystemExit(f"{partition.name}: {len(horizons)} delete horizons, so not one pass")
        clocks[partition.name] = horizons.pop() - DELETE_RETENTION_MS
    return clocks


def delete_horizons(data: bytes) -> Iterator[int]:
    """Base timestamps of the batches that carry the delete-horizon bit (attributes, bit 6)."""
    position = 0
    while position + HEADER.itemsize <= len(data):
        header = np.frombuffer(data, HEADER, count=1, offset=position)[0]
        if int(header["attributes"]) & 0x40:
            yield int(header["base_timestamp"])
        position += 12 + int(header["batch_length"])


# -- keeping -------------------------------------------------------------------------------------


def keep(log_dir: Path, name: str) -> None:
    """Copy a cleanly stopped log dir. Its lock file is made by whoever opens it."""
    target = SAMPLES / name
    shutil.copytree(log_dir, target, ignore=shutil.ignore_patterns(".lock"))
    say(f"kept {name}: {disk_bytes(target) / 1024:.0f} KiB on disk")


def disk_bytes(folder: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


def describe(cleaning: dict[str, Any]) -> dict[str, Any]:
    files = {
        path.relative_to(SAMPLES).as_posix(): {
            "bytes": path.stat().st_size,
            "mtimeMs": path.stat().st_mtime_ns // 1_000_000,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
        for path in sorted(SAMPLES.rglob("*"))
        if path.is_file()
    }
    return {
        "command": "python data/make_samples.py",
        "broker": f"Apache Kafka {KAFKA_VERSION} (KRaft, one node)",
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "cleaning": cleaning,
        "files": files,
    }


def digest(files: dict[str, dict[str, Any]], prefix: str) -> str:
    """One digest for a topic, over its files' lines as `sha256sum` prints them."""
    lines = (
        f"{entry['sha256']}  {name}\n" for name, entry in files.items() if name.startswith(prefix)
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def write_table(manifest: dict[str, Any]) -> None:
    rows = [
        f"Made by `{manifest['command']}` with {manifest['broker']} on {manifest['date']}.",
        "",
        "| topic | what it holds | partitions | segments | KiB | sha256 |",
        "|---|---|---|---|---|---|",
    ]
    groups = [
        ("broker", TOPICS),
        ("cleaning/before", CLEANING_TOPICS),
        ("cleaning/after", CLEANING_TOPICS),
    ]
    for sample, topics in groups:
        for topic, text in topics.items():
            prefix = f"{sample}/{topic}"
            folders = sorted(
                p
                for p in (SAMPLES / sample).iterdir()
                if p.name.startswith((f"{topic}-", f"{topic}."))
                and p.name[len(topic) + 1 :][:1].isdigit()
            )
            logs = [log for folder in folders for log in folder.glob("*.log")]
            size = sum(f.stat().st_size for folder in folders for f in folder.iterdir())
            rows.append(
                f"| `{prefix}` | {text} | {len(folders)} | {len(logs)} | {size / 1024:.0f} "
                f"| `{digest(manifest['files'], prefix + '-')[:16]}…` |"
            )
    text = README.read_text(encoding="utf-8")
    start, end = text.index(MARKS[0]) + len(MARKS[0]), text.index(MARKS[1])
    README.write_text(text[:start] + "\n" + "\n".join(rows) + "\n" + text[end:], encoding="utf-8")


def say(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def main() -> int:
    shutil.rmtree(SAMPLES, ignore_errors=True)
    SAMPLES.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="kafkalog-samples-") as scratch:
        make_broker_sample(Path(scratch))
        cleaning = make_cleaning_sample(Path(scratch))
    manifest = describe(cleaning)
    (SAMPLES / "MANIFEST.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    write_table(manifest)
    total = disk_bytes(SAMPLES)
    say(f"{len(manifest['files'])} files, {total / 1024 / 1024:.1f} MiB on disk")
    return 0 if total <= MAX_DISK_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
