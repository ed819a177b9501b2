"""A topic that was compacted while it was restored: the broker's cleaner takes it for clean, and
goes on where it was left.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalog.cli.main import main
from tests.bucket.test_live_cluster import await_that
from tests.restoring.live_cluster import PATIENCE_S
from tests.restoring.test_live_attach_bucket import configure
from tests.restoring.test_restore_compacted import NOW_MS, updated
from tests.support.broker import Broker

pytestmark = [pytest.mark.oracle, pytest.mark.broker, pytest.mark.soak]

CONTROL = "control"
COMPACTED = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}


@pytest.mark.parametrize("words", [(), ("--compact",)])
def test_a_cleaner_goes_on_where_the_restore_left_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    source, broker = updated(tmp_path / "source"), Broker(tmp_path / "target")
    broker.settings["log.cleaner.min.cleanable.ratio"] = "0.01"
    broker.format()
    into = ["--into", str(broker.log_dir), "--topic", "orders", *words, "--now", str(NOW_MS)]
    assert main(["restore", str(source), *into, "--apply"]) == 0
    checkpoint = broker.log_dir / "cleaner-offset-checkpoint"
    try:
        broker.start()
        configure(broker.bootstrap_servers, "orders", "cleanup.policy", "compact")
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        new = NewTopic(CONTROL, 1, 1, config=COMPACTED)
        admin.create_topics([new])[CONTROL].result(PATIENCE_S)
        cleaned = _cleaned(broker)
        for _ in range(3):  # a cleaner that is here again has looked at all others
            before = cleaned(CONTROL)
            await_that(lambda least=before: _goes_on(broker, cleaned, least), "it was not cleaned")
        assert cleaned("orders") == (0 if words else 1)
        assert "orders 0 12" in checkpoint.read_text()
    finally:
        broker.kill()


def _goes_on(broker: Broker, cleaned: Callable[[str], int], least: int) -> bool:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(20):
        producer.produce(CONTROL, f"{number}", f"k{number % 3}")
    producer.flush(PATIENCE_S)
    return cleaned(CONTROL) > least


def _cleaned(broker: Broker) -> Callable[[str], int]:
    """How often a topic was, by the broker's log."""

    def count(topic: str) -> int:
        text = broker.log_file.read_text(errors="replace")
        return len(re.findall(rf"Beginning cleaning of log {topic}-0", text))

    return count
