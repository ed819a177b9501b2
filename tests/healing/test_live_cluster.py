"""Three live brokers: a replica that Kafka's cleaner left wrong is healed, undone, healed again,
and then either one leads and serves the same.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from kafkalog.cli.main import main
from tests.comparing.comparing import compare
from tests.comparing.test_live_clusters import ABSENT, be_absent, consumed
from tests.support.broker_cluster import BrokerCluster

pytestmark = [pytest.mark.oracle, pytest.mark.soak]


def files(log_dir: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(log_dir)): (path.read_bytes(), path.stat().st_mtime_ns)
        for topic in ABSENT
        for path in sorted(log_dir.glob(f"{topic}-0/*"))
    }


def served(cluster: BrokerCluster) -> dict[str, str]:
    """SHA-256 of the latest value of each key, by topic and isolation level: the brokers clean at
    times of their own, so what is superseded may be there or not."""
    found = {}
    for topic in ABSENT:
        for level in ("read_committed", "read_uncommitted"):
            latest = {
                key: (offset, value) for offset, key, value in consumed(cluster, topic, level)
            }
            text = repr(sorted(latest.items(), key=repr)).encode()
            found[f"{topic} {level}"] = hashlib.sha256(text).hexdigest()
    return found


def test_a_healed_replica_serves_what_the_right_one_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with BrokerCluster(tmp_path) as cluster:
        be_absent(cluster)
        dirs = [cluster.log_dir(node) for node in (1, 2)]
        assert len(compare(*dirs, topics=ABSENT).differences) == len(ABSENT)
        before = [files(log_dir) for log_dir in dirs]
        words = ["compare", *map(str, dirs), "--heal", "--apply", "--json"]
        for topic in ABSENT:
            words += ["--topic", topic]
        capsys.readouterr()
        assert main(words) == 0
        run = json.loads(capsys.readouterr().out)["heal"]["runId"]
        assert files(dirs[0]) == before[0]
        assert files(dirs[1]) != before[1]
        assert main(["undo", run]) == 0
        assert files(dirs[1]) == before[1]
        assert main(words) == 0
        assert compare(*dirs, topics=ABSENT).differences == []

        seen = {node: cluster.brokers[node].log_file.stat().st_size for node in (1, 2)}
        cluster.start(1, 2, 3)
        by_leader = []
        for away, leader in ((2, 1), (1, 2)):
            cluster.await_state(ABSENT, lambda state: set(state.isrs) == {1, 2})
            cluster.brokers[away].stop()
            cluster.await_state(ABSENT, lambda state, node=leader: state.leader == node)
            by_leader.append(served(cluster))
            cluster.start(away)
        assert by_leader[0] == by_leader[1]
        for node, start in seen.items():
            text = cluster.brokers[node].log_file.read_bytes()[start:].decode()
            said = [line for line in text.splitlines() if any(f"{t}-0" in line for t in ABSENT)]
            bad = ("ERROR", "orrupt", "Truncating to", "ecovering unflushed", "inconsistent")
            assert [line for line in said if any(word in line for word in bad)] == []
        cluster.stop(1, 2, 3)
        assert compare(*dirs, topics=ABSENT).differences == []
