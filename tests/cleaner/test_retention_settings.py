"""Retention goes by the cluster's own settings where its metadata log is on the disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafkalog.cli.main import main

SAMPLES = Path(__file__).resolve().parents[2] / "data" / "samples" / "broker"


def plan_of(
    topic: str, *words: str, capsys: pytest.CaptureFixture[str]
) -> tuple[int, dict[str, Any]]:
    arguments = ["retain", "--log-dir", str(SAMPLES), "--topic", topic, "--json"]
    code = main([*arguments, "--now", "2030-01-01", *words])
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
