"""Random outages of a live replica, over and over on three brokers: what Kafka's own cleaner leaves
behind is found, and our compaction that knows the replica leaves nothing.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kafkalog.cli.main import main
from tests.comparing.comparing import compare
from tests.comparing.test_live_clusters import COMPACTED, OURS, consumed
from tests.support.broker_cluster import BrokerCluster

pytestmark = [pytest.mark.oracle, pytest.mark.soak]

ROUNDS, AT_ONCE = 4, 5
KEYS = [f"k{n}" for n in range(4)]
# How long Kafka's cleaner gets: it rolls, cleans, and a horizon later takes tombstones away.
FILLS, PAUSE_S = 60, 0.5
BY_US = {"cleanup_policy": "compact", "segment_ms": "300", "min_compaction_lag_ms": str(10**12)}


class Traffic:
    """Random records of one topic: the same for the same seed."""

    def __init__(self, cluster: BrokerCluster, topic: str, seed: int) -> None:
        self.topic, self._random = topic, random.Random(seed)
        self._servers = {"bootstrap.servers": cluster.bootstrap_servers}
        self._plain = Producer(self._servers)
        self._number = 0
        self._is_open = False
        self.connect()

    def connect(self) -> None:
        """A producer of the same transactional id."""
        own = {"transactional.id": self.topic, "transaction.timeout.ms": "800000"}
        self._transactional = Producer({**self._servers, **own})
        self._transactional.init_transactions(240)

    def some(self, count: int) -> None:
        """Values, tombstones, and transactions of either end."""
        for _ in range(count):
            kind = self._random.random()
            if kind < 0.7:
                is_value = kind < 0.4
                self.plain(self._random.choice(KEYS), is_value=is_value)
            else:
                self.begin()
                self.end()

    def plain(self, key: str, *, is_value: bool = True) -> None:
        self._number += 1
        value = f"v{self._number}" if is_value else None
        self._plain.produce(self.topic, key=key, value=value)
        assert self._plain.flush(240) == 0

    def begin(self) -> None:
        self._number += 1
        self._transactional.begin_transaction()
        key = self._random.choice(KEYS)
        self._transactional.produce(self.topic, key=key, value=f"t{self._number}")
        assert self._transactional.flush(240) == 0
        self._is_open = True

    def end(self, *, commits: bool | None = None) -> None:
        """By chance where it is not said."""
        if commits is None:
            commits = self._random.random() < 0.5
        if self._is_open and commits:
            self._transactional.commit_transaction(240)
        elif self._is_open:
            self._transactional.abort_transaction(240)
        self._is_open = False

    def leave_some_open(self) -> None:
        if self._random.random() < 0.7:
            self.begin()


def compact(cluster: BrokerCluster, topics: list[str]) -> None:
    """Node 1 by us, who know node 2, as often as there is something that time lets go."""
    for days in (1, 2, 3):
        (cluster.log_dir(1) / "cleaner-offset-checkpoint").unlink(missing_ok=True)
        now = str(int(time.time() * 1000) + days * 86_400_000)
        words = ["compact", str(cluster.log_dir(1)), *OURS, "--now", now, "--apply"]
        words += ["--replicas", str(cluster.log_dir(2))]
        words += ["--force", "clock-differs", "--force", "config-differs"]
        for topic in topics:
            words += ["--topic", topic]
        assert main(words) == 0, words


def play(cluster: BrokerCluster, number: int) -> tuple[list[str], list[str]]:
    """A round: topics that Kafka cleans and topics that we do, with the same records; all stopped
    at its end. Node 2 is away meanwhile, comes back, and gets what is left of them."""
    by_kafka = [f"kafka-{number}-{n}" for n in range(AT_ONCE)]
    by_us = [f"ours-{number}-{n}" for n in range(AT_ONCE)]
    topics = [*by_kafka, *by_us]
    for names, settings in ((by_kafka, COMPACTED), (by_us, BY_US)):
        for topic in names:
            cluster.create(topic, [1, 2], **settings)
    traffic = [
        Traffic(cluster, topic, number * AT_ONCE + n)
        for names in (by_kafka, by_us)
        for n, topic in enumerate(names)
    ]
    for each in traffic:
        each.some(12)
        each.leave_some_open()
    cluster.brokers[2].stop()
    cluster.await_state(topics, lambda state: state.isrs == [1])
    for each in traffic:
        each.end()
        each.some(12)
    for fill in range(FILLS):
        for each in traffic:
            each.plain(f"fill{fill % 3}")
        time.sleep(PAUSE_S)
    cluster.stop(1, 3)
    compact(cluster, by_us)
    cluster.start(1, 2, 3)
    cluster.await_state(topics, lambda state: set(state.isrs) == {1, 2})
    for each in traffic:
        each.connect()
        each.begin()
        each.end(commits=True)
    cluster.brokers[1].stop()
    cluster.await_state(topics, lambda state: state.leader == 2)
    for topic in by_us:
        assert consumed(cluster, topic)[-1][2] is not None, topic
    cluster.stop(2, 3)
    return by_kafka, by_us


def test_random_outages_leave_nothing_behind_where_we_compact(tmp_path: Path) -> None:
    kinds: Counter[str] = Counter()
    different: set[str] = set()
    with BrokerCluster(tmp_path) as cluster:
        for number in range(ROUNDS):
            by_kafka, by_us = play(cluster, number)
            dirs = [cluster.log_dir(node) for node in (1, 2)]
            for each in compare(*dirs, topics=tuple(by_kafka)).differences:
                kinds[each.kind] += 1
                different.add(str(each.topic_partition))
            run = compare(*dirs, topics=tuple(by_us))
            assert [each.status for each in run.partitions] == ["compared"] * AT_ONCE
            assert run.differences == []
            sys.stderr.write(
                f"{(number + 1) * AT_ONCE} outages: {len(different)} left a difference where Kafka "
                f"cleaned, {dict(kinds)}; none where we did\n"
            )
            if number + 1 < ROUNDS:
                cluster.start(1, 2, 3)
    assert different, "Kafka's cleaner left nothing: the outages were too short"
