"""What a consumer of a real broker is given and what the data source gives, record by record: of
every partition of the samples, and of random logs that Kafka's own classes wrote and cleaned.

The broker takes the partitions over as topics of its own, each with the segments of one of them.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message
from confluent_kafka.admin import AdminClient, NewTopic

from data.copy_samples import SAMPLES
from kafkalog.format import checkpoints
from kafkalog.spark.source import KafkaLogSource
from tests.oracle.consuming import COMMITTED, UNCOMMITTED, consume_topics
from tests.oracle.kafka import Kafka
from tests.oracle.rebuilding import random_case
from tests.oracle.rounds import work_directory
from tests.support.broker import CLIENT_WAIT_S, Broker, running_broker

pytestmark = [pytest.mark.oracle, pytest.mark.broker, pytest.mark.slow, pytest.mark.thorough]

SEEDS = range(8)
# nothing is compacted or deleted, and no transaction ended, while the logs are consumed
SETTINGS = {
    "log.cleaner.enable": "false",
    "log.retention.ms": "-1",
    "log.retention.check.interval.ms": "3600000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "3600000",
}
COLUMNS = "offset,key,value,headers,timestamp,timestampType,timestampMs"
LEVELS = (UNCOMMITTED, COMMITTED)
# the years 0001 to 9999, which Spark's timestamps hold
FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999
CLIENT_TYPES = {1: 0, 2: 1}  # librdkafka's numbers of create and of log append time

# offset, key, value, headers, timestamp type, timestamp in ms
Row = tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int, int]


@dataclass(frozen=True)
class Served:
    """The broker's directories by topic, and what consumers of both isolation levels were given."""

    partitions: dict[str, Path]
    consumed: dict[str, dict[str, list[Message]]]


@pytest.fixture(scope="module")
def served(kafka: Kafka) -> Iterator[Served]:
    with work_directory() as work:
        partitions = {f"sample-{n}": path for n, path in enumerate(sample_partitions())}
        for seed in SEEDS:
            case = random_case(seed, kafka, work / f"random-{seed}", keyless=seed % 5 == 0)
            partitions[f"random-{seed}"] = case.log_dir / case.partition
        with running_broker(work / "broker", SETTINGS) as broker:
            _create_topics(broker, list(partitions))
            broker.await_logs(*(f"{topic}-0" for topic in partitions))
        for topic, partition in partitions.items():
            _take_over(partition, broker.log_dir / f"{topic}-0")
        _take_over_log_starts(partitions, broker.log_dir)
        with running_broker(work / "broker", SETTINGS) as broker:
            consumed = {level: consume_topics(broker, list(partitions), level) for level in LEVELS}
        # with the high watermarks of this broker
        yield Served({topic: broker.log_dir / f"{topic}-0" for topic in partitions}, consumed)


def sample_partitions() -> list[Path]:
    """All directories of the samples that hold a log of a topic that was not deleted; remote
    segments have an id in their names.
    """
    found = {path.parent for path in SAMPLES.rglob("*.log") if path.stem.isdigit()}
    return sorted(path for path in found if not path.name.endswith("-delete"))


def _create_topics(broker: Broker, topics: list[str]) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    created = admin.create_topics([NewTopic(topic, 1, 1) for topic in topics])
    for future in created.values():
        future.result(CLIENT_WAIT_S)


def _take_over(partition: Path, target: Path) -> None:
    """The segments and epochs of `partition` in place of the new topic's own."""
    for path in target.iterdir():
        if path.name != "partition.metadata":  # it has the topic's id
            path.unlink()
    for path in partition.iterdir():
        if path.name != "partition.metadata" and path.suffix != ".deleted":
            shutil.copy2(path, target)


def _take_over_log_starts(partitions: dict[str, Path], log_dir: Path) -> None:
    starts: dict[tuple[str, int], int] = {}
    for topic, partition in partitions.items():
        path = partition.parent / checkpoints.LOG_START_OFFSET_FILE
        known = checkpoints.parse_offset_checkpoint(path.read_bytes()) if path.exists() else {}
        name, _, number = partition.name.rpartition("-")
        if (name, int(number)) in known:
            starts[topic, 0] = known[name, int(number)]
    assert starts
    (log_dir / checkpoints.LOG_START_OFFSET_FILE).write_bytes(
        checkpoints.pack_offset_checkpoint(starts)
    )


def consumers_rows(messages: list[Message]) -> list[Row]:
    return [
        (
            message.offset() or 0,
            message.key(),
            message.value(),
            tuple(message.headers() or ()),
            *_time(*message.timestamp()),
        )
        for message in messages
    ]


def _time(kind: int, time_ms: int) -> tuple[int, int]:
    """Type and time in ms; magic 0 has none, for which librdkafka says 0."""
    return (CLIENT_TYPES[kind], time_ms) if kind in CLIENT_TYPES else (-1, -1)


def source_rows(partition: Path, level: str) -> list[dict[str, Any]]:
    """The rows Spark is handed, in the order of the tasks. Of tiered partitions a broker without
    remote storage has the local segments only.
    """
    options = {"path": str(partition), "columns": COLUMNS, "isolationLevel": level}
    source = KafkaLogSource({**options, "failOnDataLoss": "false"})
    reader = source.reader(source.schema())
    return [
        row
        for task in reader.partitions()
        for batch in reader.read(task)
        for row in batch.to_pylist()
    ]


def rows_of(rows: list[dict[str, Any]]) -> list[Row]:
    return [
        (
            row["offset"],
            row["key"],
            row["value"],
            tuple((header["key"], header["value"]) for header in row["headers"] or ()),
            row["timestampType"],
            row["timestampMs"],
        )
        for row in rows
    ]


@pytest.mark.parametrize("level", LEVELS)
def test_records_of_samples_and_random_logs_equal_a_consumers(served: Served, level: str) -> None:
    seen: Counter[str] = Counter()
    for topic, partition in served.partitions.items():
        rows = source_rows(partition, level)
        ours, theirs = rows_of(rows), consumers_rows(served.consumed[level][topic])
        assert ours == theirs, topic
        for row in rows:
            _timestamp_is_the_number(row)
        for _, key, value, headers, kind, time_ms in ours:
            seen.update(
                records=1,
                null_keys=key is None,
                empty_keys=key == b"",
                tombstones=value is None,
                empty_values=value == b"",
                headers=len(headers),
                null_headers=sum(value is None for _, value in headers),
                append_times=kind == 1,
                without_time=time_ms == -1,
                odd_times=time_ms > LAST_MS,
            )
    assert min(seen.values()) > 10, seen


def _timestamp_is_the_number(row: dict[str, Any]) -> None:
    time, time_ms = row["timestamp"], row["timestampMs"]
    if time_ms == -1 or not FIRST_MS <= time_ms <= LAST_MS:
        assert time is None
    else:
        assert round(time.timestamp() * 1000) == time_ms


def test_the_levels_differ_where_transactions_were_aborted(served: Served) -> None:
    fewer = [
        topic
        for topic in served.partitions
        if len(served.consumed[COMMITTED][topic]) < len(served.consumed[UNCOMMITTED][topic])
    ]
    assert len({topic.partition("-")[0] for topic in fewer}) == 2  # among both kinds
