"""A real broker loads groups that change their type, one a partition: whether it does is in its
log, and of which type they are it tells itself. `messages.group_types` is compared.
"""

from __future__ import annotations

import time

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch
from tests.oracle.rounds import work_directory
from tests.oracle.test_coordinator_loading import Loads, verdict
from tests.support.broker import CLIENT_WAIT_S, Broker
from tests.support.coordinator_variants import NOW_MS
from tests.support.group_type_changes import CHANGES
from tests.support.kafka_protocol import Connection

pytestmark = [pytest.mark.oracle, pytest.mark.broker, pytest.mark.slow, pytest.mark.thorough]

TOPIC = "__consumer_offsets"


def test_groups_that_change_their_type_are_loaded_as_the_table_says() -> None:
    settings = {"offsets.topic.num.partitions": str(len(CHANGES)), "log.cleaner.enable": "false"}
    with work_directory() as work:
        broker = Broker(work / "broker", settings).start()
        try:
            admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
            new = NewTopic(TOPIC, len(CHANGES), 1, config={"cleanup.policy": "compact"})
            for future in admin.create_topics([new]).values():
                future.result(CLIENT_WAIT_S)
            del admin
            broker.await_logs(*(f"{TOPIC}-{partition}" for partition in range(len(CHANGES))))
        finally:
            broker.stop()
        for partition, (name, change) in enumerate(CHANGES.items()):
            records = [Record(o, NOW_MS, *pair) for o, pair in enumerate(change.pairs(name))]
            path = broker.log_dir / f"{TOPIC}-{partition}" / f"{0:020d}.log"
            path.write_bytes(pack_batch(records, partition_leader_epoch=0))
        (broker.log_dir / ".kafka_cleanshutdown").unlink()
        before = broker.log_file.stat().st_size
        broker.start()
        try:
            deadline = time.monotonic() + 300
            loads: dict[str, Loads | None] = {}
            while not loads or (None in loads.values() and time.monotonic() < deadline):
                time.sleep(0.5)
                log = broker.log_file.read_bytes()[before:].decode(errors="replace")
                loads = {name: verdict(log, f"{TOPIC}-{p}") for p, name in enumerate(CHANGES)}
            connection = Connection(int(broker.bootstrap_servers.rpartition(":")[2]))
            kinds = connection.group_types()
            connection.close()
        finally:
            broker.stop()
    assert loads == {
        name: Loads.YES if change.fails_at is None else Loads.NO for name, change in CHANGES.items()
    }
    expected = {
        name: "classic" if change.kind == "simple" else change.kind
        for name, change in CHANGES.items()
        if change.fails_at is None and change.kind is not None
    }
    assert kinds == expected
