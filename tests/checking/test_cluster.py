"""Checks of a cluster: findings of a real one are what its admin API says at every step, and damage
to its directories is found.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from data.copy_samples import SAMPLES
from data.maker.three_nodes import RACKS, read_events
from kafkalog.checking.cluster_isr import episodes
from kafkalog.checking.cluster_kinds import CLUSTER_KINDS
from kafkalog.checking.cluster_placement import check_placement
from kafkalog.checking.cluster_run import ClusterRequest, ClusterRun, cluster_run
from kafkalog.checking.finding_kinds import KINDS
from kafkalog.cli.main import main
from kafkalog.errors import InvalidConfigError

CLUSTER = SAMPLES / "cluster"
DIRS = [CLUSTER / name for name in ("1/data", "1/data-2", "2/data", "3/data")]
EVENTS = read_events(CLUSTER / "events.json")
STEPS = [event["step"] for event in EVENTS]
by_event = pytest.mark.parametrize("event", EVENTS, ids=STEPS)


def run(*log_dirs: Path, **options: Any) -> ClusterRun:
    return cluster_run(ClusterRequest(tuple(map(str, log_dirs or DIRS)), **options))


def partitions(done: ClusterRun, kind: str) -> set[tuple[str | None, int | None]]:
    return {(f.topic, f.partition) for f in done.findings if f.kind == kind}


def seen_partitions(event: dict[str, Any]) -> list[tuple[str, int, dict[str, Any]]]:
    return [
        (name, int(number), state)
        for name, topic in event["topics"].items()
        for number, state in topic["partitions"].items()
    ]


def needed(event: dict[str, Any], topic: str) -> int:
    of_all = (event["configs"].get("4/") or {}).get("min.insync.replicas", "1")
    own = event["configs"].get(f"2/{topic}") or {}
    return int(own.get("min.insync.replicas", of_all))


@by_event
def test_findings_at_each_step_are_what_the_admin_api_saw(event: dict[str, Any]) -> None:
    done = run(at_ms=event["atMs"])
    (cluster,) = done.clusters
    assert cluster.view.history.end_offset == event["endOffset"]
    seen = seen_partitions(event)
    assert partitions(done, "no-leader") == {(t, p) for t, p, s in seen if s["leader"] < 0}
    under = {(t, p) for t, p, s in seen if len(s["isr"]) < needed(event, t)}
    assert partitions(done, "under-min-isr") == under
    short = {(t, p) for t, p, s in seen if len(s["isr"]) < len(s["replicas"])} - under
    assert partitions(done, "under-replicated") == short
    off_rack = {
        (t, p)
        for t, p, s in seen
        if len({RACKS[node] for node in s["replicas"]}) < min(2, len(s["replicas"]))
    }
    # Racks are compared once brokers of two of them have registered.
    assert partitions(done, "replicas-off-rack") == off_rack
    fenced = sum(broker["isFenced"] for broker in event["brokers"].values())
    assert sum(f.kind == "broker-fenced" for f in done.findings) == fenced
    preferred: dict[int, list[bool]] = {}
    for _, _, state in seen:
        preferred.setdefault(state["replicas"][0], []).append(
            state["leader"] == state["replicas"][0]
        )
    uneven = {node for node, leads in preferred.items() if leads.count(False) * 10 > len(leads)}
    told = {int(f.text.split()[1]) for f in done.findings if f.kind == "leader-imbalance"}
    assert told == uneven
    known = {kind.id for kind in (*KINDS, *CLUSTER_KINDS)}
    assert {finding.kind for finding in done.findings} <= known


def test_times_under_min_isr_are_those_between_the_steps() -> None:
    (cluster,) = run().clusters
    found = episodes(cluster.view)
    for event in EVENTS:
        end = event["endOffset"]
        then = {
            (e.topic, e.partition)
            for e in found
            if e.from_offset < end and (e.until_offset is None or e.until_offset >= end)
        }
        seen = seen_partitions(event)
        assert then == {(t, p) for t, p, s in seen if len(s["isr"]) < needed(event, t)}
    ended = [e for e in found if e.until_ms is not None]
    assert ended
    assert all(e.from_ms is not None and e.until_ms >= e.from_ms for e in ended if e.until_ms)
    assert all(e.smallest_isr < e.min_isr for e in found)


def test_ids_of_both_tables_are_different() -> None:
    ids = [kind.id for kind in (*KINDS, *CLUSTER_KINDS)]
    assert len(ids) == len(set(ids))


@pytest.fixture
def nodes(tmp_path: Path) -> dict[str, Path]:
    """A copy of the log dirs, by node and name."""
    copies = {}
    for log_dir in DIRS:
        name = "/".join(log_dir.parts[-2:])
        copies[name] = tmp_path / name
        shutil.copytree(log_dir, copies[name])
    return copies


def directory_findings(nodes: dict[str, Path]) -> dict[str, set[tuple[str | None, int | None]]]:
    at_rest = {f.kind for f in run(*DIRS).findings}
    done = run(*nodes.values())
    kinds = {f.kind for f in done.findings} - at_rest
    return {kind: partitions(done, kind) for kind in kinds}


def test_directories_of_the_sample_are_as_the_metadata_has_them(nodes: dict[str, Path]) -> None:
    assert directory_findings(nodes) == {}
    assert not {f.kind for f in run().findings} & {"partition-missing", "leader-epoch-unknown"}


def of_node_1(nodes: dict[str, Path], name: str) -> tuple[Path, Path]:
    """A partition directory of node 1, and its other log dir."""
    both = [nodes["1/data"], nodes["1/data-2"]]
    if (both[1] / name).is_dir():
        both.reverse()
    return both[0] / name, both[1]


def test_missing_stray_and_double_directories_are_found(nodes: dict[str, Path]) -> None:
    orders = nodes["3/data"] / "orders-1"
    own, other = of_node_1(nodes, "orders-0")
    shutil.copytree(own, other / "orders-0")
    shutil.copytree(orders, nodes["3/data"] / "unheard-0")
    shutil.copytree(of_node_1(nodes, "paired-0")[0], nodes["3/data"] / "paired-0")
    (nodes["2/data"] / "fragile-0" / "partition.metadata").write_text(
        "version: 0\ntopic_id: 4L6g3nShT-eMCtK--X86sw\n"
    )
    shutil.rmtree(orders)
    assert directory_findings(nodes) == {
        "directory-id-foreign": {("orders", 0)},
        "topic-id-foreign": {("fragile", 0)},
        "not-assigned": {("unheard", 0), ("paired", 0)},
        # What lies under a foreign id is not the partition.
        "partition-missing": {("orders", 1), ("fragile", 0)},
    }


def test_leader_epochs_beyond_the_metadata_are_found(nodes: dict[str, Path]) -> None:
    file = nodes["2/data"] / "orders-2" / "leader-epoch-checkpoint"
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], str(int(lines[1]) + 1), *lines[2:], "99 40"]) + "\n")
    assert directory_findings(nodes) == {"leader-epoch-unknown": {("orders", 2)}}


def test_skew_of_bytes_is_found_over_brokers_and_log_dirs() -> None:
    (cluster,) = run().clusters
    heavy_dir = next(p.log_dir for p in cluster.view.partitions if "/1/data" in p.path)
    heavy = tuple(
        replace(
            partition,
            segments=tuple(replace(s, size_in_bytes=1 << 28) for s in partition.segments),
        )
        if partition.log_dir == heavy_dir
        else partition
        for partition in cluster.view.partitions
    )
    found = list(check_placement(replace(cluster.view, partitions=heavy)))
    kinds = {f.kind: f.path for f in found if f.kind in ("bytes-skew", "log-dir-skew")}
    assert set(kinds) == {"bytes-skew", "log-dir-skew"}
    assert kinds["log-dir-skew"] == heavy_dir
    assert not {f.kind for f in check_placement(cluster.view)} & set(kinds)


def arguments(*more: str) -> list[str]:
    return ["cluster", *(w for log_dir in DIRS for w in ("--log-dir", str(log_dir))), *more]


def test_drift_against_a_declared_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "topics.toml"
    file.write_text(
        '[orders]\nmin.insync.replicas = 2\nretention.ms = 86400000\ncleanup.policy = ["delete"]\n'
        '[paired]\nretention.ms = 604800000\n[removed]\n[fragile]\n[gone]\nretention.ms = 1\n'
    )  # fmt: skip
    at = str(EVENTS[STEPS.index("topic created anew")]["atMs"])
    assert main(arguments("--config-file", str(file), "--now", at, "--json")) == 1
    document = json.loads(capsys.readouterr().out)
    drift = {(f["topic"], f["text"].split(":")[0]) for f in document["findings"]
             if f["id"] == "config-drift"}  # fmt: skip
    assert drift == {("orders", "retention.ms"), ("fragile", "unclean.leader.election.enable")}
    assert {f["topic"] for f in document["findings"] if f["id"] == "topic-absent"} == {"gone"}
    assert set(document["kinds"]) == {f["id"] for f in document["findings"]}
    (cluster,) = document["clusters"]
    assert [broker["brokerId"] for broker in cluster["brokers"]] == [1, 2, 3]
    assert cluster["underMinIsr"]


def test_a_sound_cluster_has_exit_code_0(capsys: pytest.CaptureFixture[str]) -> None:
    at = str(
        next(event["atMs"] for event in EVENTS if event["step"] == "preferred leaders elected")
    )
    assert main(arguments("--now", at, "--topic", "orders")) == 0
    told = capsys.readouterr()
    assert "nothing found" in told.err
    assert main(arguments("--now", at)) == 1
    assert "replicas-off-rack" in capsys.readouterr().out


def test_a_topic_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments("--topic", "order")) == 2
    said = "neither in the metadata nor in the log dirs: order; did you mean orders?"
    assert said in capsys.readouterr().err


def test_without_a_metadata_log_there_is_nothing_to_check(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    with pytest.raises(InvalidConfigError, match="no metadata log"):
        run(tmp_path)


def test_the_job_prints_one_document() -> None:
    script = Path(__file__).parents[2] / "jobs" / "audit_cluster.py"
    done = subprocess.run(
        [sys.executable, str(script), *arguments("--json")[1:]],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(script.parents[1])},
    )
    assert done.returncode == 1, done.stderr
    ours = [[f.kind, f.topic, f.partition, f.text] for f in run().findings]
    found = json.loads(done.stdout)["findings"]
    assert [[f["id"], f["topic"], f["partition"], f["text"]] for f in found] == ours
