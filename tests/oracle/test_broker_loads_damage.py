"""A real broker on a log dir with damage that only the cluster's metadata tells: what the table of
findings says about identities.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from data.copy_samples import copy_sample
from tests.checking.damages import (
    ORDERS,
    TRANSACTIONS,
    no_partition_metadata,
    other_directory_id,
    other_topic_id,
)
from tests.checking.running import failures
from tests.oracle.rounds import work_directory
from tests.support.broker import Broker, running_broker

pytestmark = [pytest.mark.oracle, pytest.mark.broker, pytest.mark.slow]


def answers(broker: Broker, topic: str) -> bool:
    """Whether partition 0 has, or gets, a leader that says where its log begins and ends."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "checks"})
    deadline = time.monotonic() + 300
    try:
        while time.monotonic() < deadline:
            # A broker that has just started may not lead yet, and says so with an error.
            with contextlib.suppress(KafkaException):
                consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=5)
                return True
            time.sleep(0.2)
    finally:
        consumer.close()
    return False


def test_directories_without_the_clusters_topic_id_become_strays() -> None:
    with work_directory() as work:
        log_dir = copy_sample("broker", work / "broker" / "data")
        no_partition_metadata(log_dir)
        other_topic_id(log_dir)
        expected = {"partition-metadata-missing", "topic-id-foreign"}
        assert failures(log_dir) == expected
        with running_broker(work / "broker") as broker:
            assert answers(broker, "orders")
        for name in (ORDERS, TRANSACTIONS):
            (stray,) = log_dir.glob(f"{name}.*-stray")
            assert list(stray.glob("*.log"))
            assert _bytes_of(log_dir / name) == 0


@pytest.mark.thorough
@pytest.mark.parametrize("log_dirs", [1, 2])
def test_a_log_dir_of_another_id_is_taken_over_and_served_from_the_next_start_on(
    log_dirs: int,
) -> None:
    """Whether it is served before that, a race in the broker decides: its new id is reported to the
    controller while that lets it in, and only what is known by then gets a leader.
    """
    with work_directory() as work:
        log_dir = copy_sample("broker", work / "broker" / "data")
        other_directory_id(log_dir)
        assert failures(log_dir) == {"directory-id-foreign"}
        every = [log_dir, work / "broker" / "second"][:log_dirs]
        settings = {"log.dirs": ",".join(map(str, every))}
        with running_broker(work / "broker", settings):
            _until_known(log_dir)
        assert failures(log_dir) == set()
        with running_broker(work / "broker", settings) as broker:
            assert answers(broker, "orders")


def _until_known(log_dir: Path) -> None:
    deadline = time.monotonic() + 300
    while "directory-id-foreign" in failures(log_dir):
        assert time.monotonic() < deadline, "the broker did not report its log dir"
        time.sleep(0.5)


def _bytes_of(partition: Path) -> int:
    return sum(path.stat().st_size for path in partition.glob("*.log"))
