"""Live clusters lose every metadata log, are attached in place, and go on: nothing is stray, all
replicas are in sync, consumers get the same, groups and producers of every kind go on, no broker
truncates. Nodes start one after the other in an order against that of their ids, so that the first
ones have no leader's copy of some partitions.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalog.clock import now_ms
from kafkalog.restoring.attach import AttachRequest, attach_run, is_whole
from tests.restoring.live_cluster import COMMITTED, described, lost_quorum

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
        assert cluster.truncations() == []
