"""A live cluster restored up to a time, or from one on: consumers get nothing else, groups go on at
the cut, and a transaction that is open there stops nobody.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Producer

from kafkalog.cli.main import main
from kafkalog.clock import now_ms
from tests.restoring.live_cluster import (
    COMMITTED,
    PATIENCE_S,
    PLAIN,
    TRANSACTIONS,
    UNCOMMITTED,
    LostQuorum,
    lost_quorum,
)
from tests.restoring.test_live_fresh import group_reads

pytestmark = [pytest.mark.oracle, pytest.mark.broker, pytest.mark.soak]

OPEN = b"of a transaction that nobody ends"


def left_open(cluster: LostQuorum) -> Producer:
    """Who keeps a transaction open as long as the cluster runs."""
    producer = Producer(
        {
            "bootstrap.servers": cluster.servers, "transactional.id": "nobody",
            "transaction.timeout.ms": "600000",
        }
    )  # fmt: skip
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    for number in range(5):
        producer.produce(TRANSACTIONS, OPEN, b"%d" % number, partition=0)
    assert producer.flush(PATIENCE_S) == 0
    return producer


@pytest.mark.parametrize("ends", ["abort", "cut"])
def test_consumers_get_nothing_later_and_groups_go_on_at_the_cut(
    ends: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with lost_quorum(tmp_path / "source", 1, is_dynamic=False) as source:
        source.start()
        source.create_topics()
        source.write_all("before")
        first = group_reads(source.servers, "early", "classic", 20)
        producer = left_open(source)
        until = now_ms()
        time.sleep(0.1)  # no timestamp is that of the cut
        source.write_all("after")
        group_reads(source.servers, "late", "consumer", 120)
        wanted = {
            level: [row for row in source.read(level) if row[5] <= until]
            for level in (COMMITTED, UNCOMMITTED)
        }
        source.kill()
        del producer

    assert sum(row[4] == OPEN for row in wanted[UNCOMMITTED]) == 5
    if ends == "cut":
        wanted[UNCOMMITTED] = [row for row in wanted[UNCOMMITTED] if row[4] != OPEN]
    with lost_quorum(tmp_path / "target", 1, is_dynamic=False) as target:
        target.nodes[1].format()
        words = ["restore", *source.log_dirs, *target.into, "--topic", "*", "--groups", "*"]
        words += ["--until", str(until)]
        assert main([*words, "--apply"]) == 1  # its topic is refused, and named
        refused = "".join(capfd.readouterr())
        assert "transactions are open at the cut" in refused
        assert "nobody" in refused
        assert main(["undo", re.findall(r"kafkalog undo (\w+)", refused)[-1]]) == 0
        capfd.readouterr()
        assert main([*words, "--end-transactions", ends, "--apply"]) == 0
        assert "3 clamped to what is restored" in "".join(capfd.readouterr())

        target.start()
        target.await_in_sync()
        for level, rows in wanted.items():
            assert target.read(level) == rows, level
        before = sorted(row[1:3] for row in wanted[COMMITTED] if row[0] == PLAIN)
        assert (
            sorted(first + group_reads(target.servers, "early", "classic", len(before) - 20))
            == before
        )
        new = [(place, offset) for _, place, offset, _ in target.write(PLAIN, "new", 30)]
        assert sorted(group_reads(target.servers, "late", "consumer", 30)) == sorted(new)
        assert target.write_all("more")
        assert target.strays() == []
        assert target.complaints() == []


def test_consumers_get_what_came_since_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with lost_quorum(tmp_path / "source", 1, is_dynamic=False) as source:
        source.start()
        source.create_topics()
        source.write_all("before")
        time.sleep(0.1)  # no timestamp is that of the beginning
        since = now_ms()
        time.sleep(0.1)
        source.write_all("after")
        wanted = {
            level: [row for row in source.read(level) if row[5] >= since]
            for level in (COMMITTED, UNCOMMITTED)
        }
        source.kill()

    assert wanted[COMMITTED]
    with lost_quorum(tmp_path / "target", 1, is_dynamic=False) as target:
        target.nodes[1].format()
        words = ["restore", *source.log_dirs, *target.into, "--topic", "*", "--since", str(since)]
        assert main([*words, "--apply"]) == 0
        target.start()
        target.await_in_sync()
        for level, rows in wanted.items():
            assert target.read(level, OFFSET_BEGINNING) == rows, level
        assert target.write_all("more")
        assert target.strays() == []
        assert target.complaints() == []
