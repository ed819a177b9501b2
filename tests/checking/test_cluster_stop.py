"""A cluster that was stopped in order says so once; what was amiss before is told as ever."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from data.copy_samples import SAMPLES
from kafkalog.checking.cluster_run import ClusterRequest, cluster_run
from kafkalog.checking.cluster_stop import find_stop


def kinds(*log_dirs: Path) -> list[str]:
    return [f.kind for f in cluster_run(ClusterRequest(tuple(map(str, log_dirs)))).findings]


@pytest.mark.parametrize("sample", ["broker", "share", "groups/data", "migration/controller"])
def test_a_stopped_sample_has_this_one_finding(sample: str) -> None:
    (found,) = cluster_run(ClusterRequest((str(SAMPLES / sample),))).findings
    assert (found.kind, found.severity.is_failure) == ("cluster-stopped", False)
    assert "stopped in order: 1" in found.text


def test_no_more_replicas_are_asked_for_than_there_are() -> None:
    """`__remote_log_metadata` asks for two in sync and has one: its broker took records."""
    assert kinds(SAMPLES / "tiered/data") == ["cluster-stopped"]


def test_one_broker_that_is_up_is_no_stop() -> None:
    found = kinds(SAMPLES / "cluster/2/data")
    assert "cluster-stopped" not in found
    assert {"broker-fenced", "under-replicated", "leader-imbalance"} <= set(found)


def broker(node: int, offset: int, *, fenced: bool, shutdown: bool) -> dict[str, Any]:
    return {
        "brokerId": node, "offset": offset, "timestampMs": offset * 1000, "isFenced": fenced,
        "inControlledShutdown": shutdown,
    }  # fmt: skip


def test_a_broker_that_was_killed_is_named_beside_those_that_stopped() -> None:
    history = [
        broker(1, 10, fenced=False, shutdown=False),
        broker(2, 11, fenced=False, shutdown=True),
        broker(2, 12, fenced=True, shutdown=True),
        broker(2, 13, fenced=False, shutdown=False),
        broker(1, 20, fenced=True, shutdown=False),
        broker(2, 30, fenced=False, shutdown=True),
        broker(2, 31, fenced=True, shutdown=True),
    ]
    stop = find_stop({1: history[4], 2: history[6]}, history)
    assert stop is not None
    assert (stop.nodes, stop.others) == ((2,), (1,))
    assert (stop.from_offset, stop.end_offset, stop.end_ms) == (30, 31, 31_000)
    assert find_stop({1: history[4], 2: history[5]}, history[:6]) is None
    assert find_stop({1: history[4]}, history[:5]) is None


def test_an_unreadable_meta_properties_is_that(tmp_path: Path) -> None:
    """And no replica is said to be missing for it, or to be somebody else's."""
    shutil.copytree(SAMPLES / "broker", tmp_path / "logs")
    (tmp_path / "logs/meta.properties").write_bytes(b"version=9\n")
    found = cluster_run(ClusterRequest((str(tmp_path / "logs"),))).findings
    assert [(f.kind, Path(f.path).name) for f in found if f.severity.is_failure] == [
        ("unreadable", "meta.properties")
    ]
