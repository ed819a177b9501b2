"""The topics of sample `broker`: what each is for, and how it is written."""

from __future__ import annotations

import time
from collections.abc import Callable

import kafka
from confluent_kafka import Producer, TopicPartition

from data.maker.client import Cluster, flush
from data.maker.records import orders, updates, varied

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
NEVER_MS = str(2**63 - 1)

# What each topic is for: the table of data/README.md.
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


# In this order: the broker aborts an open transaction after a minute, so that one comes last.
STEPS = (
    write_orders,
    write_codecs,
    write_producers_and_times,
    write_compacted,
    write_deletions,
    write_groups,
    write_transactions,
)
