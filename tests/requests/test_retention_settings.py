"""Retention goes by the cluster's own settings where its metadata log is on the disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafkalog.cli.main import main
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.metadata_builder import MetadataBuilder, broker_config, config, topic

SAMPLES = Path(__file__).resolve().parents[2] / "data" / "samples" / "broker"


def plan_of(
    topic: str, *words: str, capsys: pytest.CaptureFixture[str]
) -> tuple[int, dict[str, Any]]:
    arguments = ["retain", "--log-dir", str(SAMPLES), "--topic", topic, "--json"]
    code = main([*arguments, "--now", "2030-01-01", "--force", "clock-differs", *words])
    partition: dict[str, Any] = json.loads(capsys.readouterr().out)["partitions"][0]
    return code, partition


def test_a_compacted_topic_loses_nothing_by_time(capsys: pytest.CaptureFixture[str]) -> None:
    code, partition = plan_of("compacted", "--config=retention.ms=1000", capsys=capsys)
    assert code == 0
    assert partition["deletedBaseOffsets"] == []
    assert partition["configSources"]["cleanup.policy"]["source"] == "topic"


def test_another_policy_than_the_clusters_is_refused_unless_forced(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--config=retention.ms=1000", "--config=cleanup.policy=delete"]
    code, partition = plan_of("compacted", *words, capsys=capsys)
    assert code == 1
    assert partition["status"] == "refused"
    assert "cleanup.policy is compact (from topic)" in partition["reason"]
    assert partition["deletedBaseOffsets"] == []
    code, partition = plan_of("compacted", *words, "--force=config-differs", capsys=capsys)
    assert code == 0
    assert partition["deletedBaseOffsets"]


def delete(log_dir: Path, *words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, Any]:
    arguments = ["retain", "--log-dir", str(log_dir), "--topic", "orders", "--apply", "--json"]
    code = main([*arguments, "--now", str(START_MS + 10_000), *words])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("said", "source"),
    [
        (config("orders", "retention.ms", "1000"), "topic"),
        (broker_config("", "log.retention.ms", "1000"), "all brokers log.retention.ms"),
    ],
)
def test_the_clusters_own_word_is_enough_to_delete(
    log_dir: Path, said: bytes, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log = LogBuilder(log_dir, "orders-0")
    for _ in range(3):
        log.segment().batch(("a", "1"), timestamp=START_MS)
    path = log.write()
    MetadataBuilder(log_dir).batch(topic("orders"), said).write()
    # Shorter than the cluster keeps them: refused; as long: nothing said anew.
    code, document = delete(log_dir, "--config=retention.ms=999", capsys=capsys)
    (partition,) = document["partitions"]
    assert (code, partition["status"]) == (3, "refused")
    assert f"retention.ms is 1000 (from {source}), not 999 (from option)" in partition["reason"]
    assert len(list(path.glob("*.log"))) == 3
    code, document = delete(log_dir, capsys=capsys)
    (partition,) = document["partitions"]
    assert (code, partition["deletedBaseOffsets"]) == (0, [0, 1, 2])
    assert partition["configSources"]["retention.ms"] == {"value": "1000", "source": source}
    assert any("settings from the cluster metadata" in note for note in document["notes"])
    assert [file.name for file in path.glob("*.log")] == [f"{3:020d}.log"]


def test_a_topic_nobody_limits_loses_nothing_by_kafkas_default(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = LogBuilder(log_dir, "orders-0").segment().batch(("a", "1"), timestamp=1).write()
    MetadataBuilder(log_dir).batch(topic("orders")).write()
    code, document = delete(log_dir, capsys=capsys)
    assert code == 3
    assert "no setting says how long to keep" in document["partitions"][0]["reason"]
    assert len(list(path.glob("*.log"))) == 1
