"""Live clusters lose every metadata log, are attached in place, and go on: nothing is stray, all
replicas are in sync, consumers get the same, groups and producers of every kind go on, no broker
truncates, no leader is elected uncleanly. Nodes start one after the other in an order against that
of their ids, so that the first ones have no leader's copy of some partitions.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from data.maker.tiered_story import SETTINGS, await_copies
from kafkalog.clock import now_ms
from kafkalog.log.metadata_names import BOOTSTRAP_FILE, METADATA_DIR
from kafkalog.restoring.attach import AttachRequest, attach_run, is_whole
from tests.restoring.era_cluster import (
    as_migrated,
    era_quorum,
    voters_of,
    with_places_for_metadata,
)
from tests.restoring.live_cluster import (
    COMMITTED,
    COMPACTED,
    PLAIN,
    TIERED,
    described,
    lost_quorum,
)

pytestmark = [pytest.mark.oracle, pytest.mark.broker, pytest.mark.soak]

FIRST = {1: (1,), 3: (3, 2)}


@pytest.mark.parametrize("stops", ["in order", "killed"])
@pytest.mark.parametrize("quorum", ["static", "dynamic"])
@pytest.mark.parametrize("count", [1, 3])
def test_a_cluster_without_metadata_goes_on(
    tmp_path: Path, count: int, quorum: str, stops: str
) -> None:
    with lost_quorum(tmp_path, count, is_dynamic=quorum == "dynamic") as cluster:
        cluster.start()
        cluster.create_topics()
        cluster.await_in_sync()
        written = cluster.write_all("before")
        cluster.commit(7)
        if count > 1:  # other leaders, other epochs
            cluster.nodes[1].stop()
            cluster.nodes[1].start()
            cluster.await_in_sync()
            written += cluster.write_all("again")
        ends, digests, committed = cluster.ends(), cluster.digests(), cluster.committed()
        if stops == "in order":
            cluster.stop()
        cluster.kill()
        cluster.lose_metadata()
        cluster.forget_logs()

        voters = (cluster.voters,) if cluster.is_dynamic else ()
        request = AttachRequest(
            tuple(cluster.log_dirs), now_ms(), controllers=voters, run_dir=str(tmp_path / "runs")
        )
        assert is_whole(attach_run(request, lambda _: None))
        cluster.start(*FIRST[count])
        for node in cluster.nodes.keys() - set(FIRST[count]):
            cluster.start(node)

        states = cluster.await_in_sync()
        assert cluster.strays() == [], described(states)
        assert cluster.digests() == digests
        assert cluster.committed() == committed
        written += cluster.write_all("after")
        cluster.commit(9)
        found = {record[:3]: record[4] for record in cluster.read(COMMITTED)}
        assert len(written) == len({record[:3] for record in written})
        assert {record[:3]: record[3] for record in written}.items() <= found.items()
        assert cluster.digests(ends) == digests
        assert cluster.complaints() == []


@pytest.mark.parametrize(
    ("count", "quorum"),
    [(1, "static"), (1, "migrated"), (3, "static"), (1, "dynamic"), (3, "dynamic")],
)
def test_a_cluster_of_kafka_3_9_without_metadata_goes_on(
    tmp_path: Path, count: int, quorum: str
) -> None:
    is_migrated = quorum == "migrated"
    with era_quorum(tmp_path, count, is_dynamic=quorum == "dynamic") as cluster:
        cluster.start()
        cluster.create_topics()
        cluster.await_in_sync()
        written = cluster.write_all("before")
        cluster.commit(7)
        ends, digests, committed = cluster.ends(), cluster.digests(), cluster.committed()
        cluster.stop()
        cluster.kill()
        assert voters_of(cluster) == (sorted(cluster.nodes) if cluster.is_dynamic else [])
        cluster.lose_metadata()
        cluster.forget_logs()
        if is_migrated:
            for log_dir in cluster.log_dirs:
                as_migrated(log_dir)
        with_places_for_metadata(cluster)

        voters = (cluster.voters,) if cluster.is_dynamic else ()
        request = AttachRequest(
            tuple(cluster.log_dirs), now_ms(), controllers=voters, run_dir=str(tmp_path / "runs")
        )
        run = attach_run(request, lambda _: None)
        assert is_whole(run)
        assert any("came from ZooKeeper" in each for each in run.plan.warnings) == is_migrated
        cluster.start()

        states = cluster.await_in_sync()
        assert cluster.strays() == [], described(states)
        assert cluster.digests() == digests
        assert cluster.committed() == committed
        written += cluster.write_all("after")
        cluster.commit(9)
        found = {record[:3]: record[4] for record in cluster.read(COMMITTED)}
        assert {record[:3]: record[3] for record in written}.items() <= found.items()
        assert cluster.digests(ends) == digests
        assert cluster.complaints() == []
        cluster.stop()
        assert voters_of(cluster) == (sorted(cluster.nodes) if cluster.is_dynamic else [])


def test_a_lost_node_comes_back_empty_and_settings_are_those_of_the_metadata_that_is_left(
    tmp_path: Path,
) -> None:
    with lost_quorum(tmp_path, 3, is_dynamic=False) as cluster:
        cluster.start()
        cluster.create_topics()
        cluster.await_in_sync()
        cluster.configure(PLAIN, "retention.ms", "987654321")
        written = cluster.write_all("before")
        cluster.commit(7)
        digests, committed = cluster.digests(), cluster.committed()
        cluster.stop()
        cluster.kill()
        cluster.forget_logs()
        lost = cluster.nodes[3]
        for log_dir in cluster.log_dirs_of(3):
            shutil.rmtree(log_dir)
        for log_dir in cluster.log_dirs_of(1):
            shutil.rmtree(Path(log_dir, METADATA_DIR), ignore_errors=True)

        log_dirs = (*cluster.log_dirs_of(1), *cluster.log_dirs_of(2))
        request = AttachRequest(log_dirs, now_ms(), run_dir=str(tmp_path / "runs"))
        run = attach_run(replace(request, force=frozenset({"metadata-left"})), lambda _: None)
        assert is_whole(run)
        assert "node 3 of the cluster: none of its log dirs is given" in run.plan.warnings
        lost.format()
        for log_dir in cluster.log_dirs_of(3):
            shutil.copy(Path(log_dirs[0], BOOTSTRAP_FILE), log_dir)
        cluster.start()

        cluster.await_in_sync()  # node 3 too
        assert cluster.digests() == digests
        assert cluster.committed() == committed
        assert cluster.config(PLAIN) == {"retention.ms": "987654321"}
        assert cluster.config(COMPACTED) == {"cleanup.policy": "compact"}
        written += cluster.write_all("after")
        found = {record[:3]: record[4] for record in cluster.read(COMMITTED)}
        assert {record[:3]: record[3] for record in written}.items() <= found.items()
        assert cluster.complaints() == []


def test_a_tiered_topic_is_read_from_its_first_offset(tmp_path: Path) -> None:
    with lost_quorum(tmp_path, 1, is_dynamic=False, topics={TIERED: 1}) as cluster:
        store = tmp_path / "store"
        store.mkdir()
        cluster.nodes[1].settings.update({**SETTINGS, "rsm.config.dir": str(store)})
        cluster.start()
        cluster.create_topics()
        for turn in range(6):
            cluster.write(TIERED, f"turn-{turn}", 60)
        (log,) = (path for d in cluster.log_dirs for path in Path(d).glob(f"{TIERED}-0"))
        await_copies(log, store)
        digests, ends = cluster.digests(), cluster.ends()
        copies = {str(path) for path in store.rglob("*.log")}
        cluster.stop()
        cluster.kill()
        cluster.lose_metadata()
        cluster.forget_logs()

        request = AttachRequest(tuple(cluster.log_dirs), now_ms(), run_dir=str(tmp_path / "runs"))
        assert is_whole(attach_run(request, lambda _: None))
        cluster.start()
        cluster.await_in_sync()
        assert cluster.digests() == digests
        cluster.write(TIERED, "after", 60)
        assert cluster.digests(ends) == digests
        assert cluster.config(TIERED)["remote.storage.enable"] == "true"
        assert copies <= {str(path) for path in store.rglob("*.log")}
        assert cluster.complaints() == []
