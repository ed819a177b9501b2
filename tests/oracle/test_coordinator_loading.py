"""A real broker loads coordinators' topics with records as they should not be, one a partition: its
log says what it made of each. What `messages.coordinator_loading` says of it is compared.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch
from tests.oracle.rounds import work_directory
from tests.support.broker import CLIENT_WAIT_S, Broker
from tests.support.coordinator_variants import NOW_MS, VARIANTS, Loads, Variant

pytestmark = [pytest.mark.oracle, pytest.mark.broker, pytest.mark.slow]

_SETTINGS = {
    "__consumer_offsets": "offsets.topic.num.partitions",
    "__transaction_state": "transaction.state.log.num.partitions",
    "__share_group_state": "share.coordinator.state.topic.num.partitions",
}


def tables() -> dict[str, list[Variant]]:
    """Topic → the variants, by partition."""
    found: dict[str, list[Variant]] = {topic: [] for topic in _SETTINGS}
    for variant in VARIANTS.values():
        found[variant.topic].append(variant)
    return found


def verdict(log: str, partition: str) -> Loads | None:
    """What the broker's log says of a partition; None while it has not finished."""
    lines = [line for line in log.splitlines() if f"{partition} " in line + " "]
    if any("Failed to load" in line or "Error loading" in line for line in lines):
        return Loads.NO
    if not any("Finished loading" in line for line in lines):
        return None
    ignored = any("Ignoring it" in line for line in log.splitlines() if f"{partition}." in line)
    return Loads.PASSED_OVER if ignored else Loads.YES


@pytest.mark.thorough
def test_coordinators_load_what_the_table_says() -> None:
    by_topic = tables()
    counts = {_SETTINGS[topic]: str(len(found)) for topic, found in by_topic.items()}
    with work_directory() as work:
        broker = Broker(work / "broker", {**counts, "log.cleaner.enable": "false"}).start()
        try:
            admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
            new = [
                NewTopic(topic, len(found), 1, config={"cleanup.policy": "compact"})
                for topic, found in by_topic.items()
            ]
            for future in admin.create_topics(new).values():
                future.result(CLIENT_WAIT_S)
            del admin
            broker.await_logs(
                *(f"{t}-{n}" for t, found in by_topic.items() for n in range(len(found)))
            )
        finally:
            broker.stop()
        for topic, found in by_topic.items():
            for partition, variant in enumerate(found):
                path = broker.log_dir / f"{topic}-{partition}" / f"{0:020d}.log"
                record = Record(0, NOW_MS, variant.key, variant.value)
                path.write_bytes(pack_batch([record], partition_leader_epoch=0))
        (broker.log_dir / ".kafka_cleanshutdown").unlink()
        before = broker.log_file.stat().st_size
        broker.start()
        try:
            said = _verdicts(broker.log_file, before, by_topic)
        finally:
            broker.stop()
    names = iter(VARIANTS)
    expected = {next(names): v.loads for v in VARIANTS.values()}
    assert said == expected


def _verdicts(
    log_file: Path, before: int, by_topic: dict[str, list[Variant]]
) -> dict[str, Loads | None]:
    names = {id(variant): name for name, variant in VARIANTS.items()}
    deadline = time.monotonic() + 300
    while True:
        log = log_file.read_bytes()[before:].decode(errors="replace")
        said = {
            names[id(variant)]: verdict(log, f"{topic}-{partition}")
            for topic, found in by_topic.items()
            for partition, variant in enumerate(found)
        }
        if None not in said.values() or time.monotonic() > deadline:
            return said
        time.sleep(0.5)
