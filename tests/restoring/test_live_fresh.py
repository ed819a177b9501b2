"""Topics restored into clusters that were never started: brokers load them, replicas are in sync,
consumers get the same in both isolation levels, nothing is elected by hand, stray or truncated, and
new producers lose nothing.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalog.cli.main import main
from tests.restoring.live_cluster import COMMITTED, COMPACTED, PLAIN, described, lost_quorum
from tests.restoring.test_live_restore import new_producers

pytestmark = [pytest.mark.oracle, pytest.mark.broker, pytest.mark.soak]


@pytest.mark.parametrize(
    ("count", "quorum", "stops", "words"),
    [
        (1, "static", "in order", ()),
        (1, "dynamic", "killed", ()),
        (3, "static", "in order", ("--replication-factor", "3")),
        (3, "static", "killed", ("--replication-factor", "3", "--empty-followers")),
    ],
)
def test_a_new_cluster_begins_with_restored_topics(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    count: int,
    quorum: str,
    stops: str,
    words: tuple[str, ...],
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with lost_quorum(tmp_path / "source", 1, is_dynamic=False) as source:
        source.start()
        source.create_topics()
        for turn in range(3):
            source.write_all(f"turn-{turn}")
            source.stop()
            source.start()
            source.await_in_sync()
        source.configure(PLAIN, "retention.ms", "987654321987")
        digests, ends = source.digests(), source.ends()
        source.stop() if stops == "in order" else source.kill()

    with lost_quorum(tmp_path / "target", count, is_dynamic=quorum == "dynamic") as target:
        for node in target.nodes.values():
            node.format()
        into = [word for path in target.log_dirs for word in ("--into", path)]
        assert main(["restore", *source.log_dirs, *into, "--topic", "*", *words, "--apply"]) == 0
        target.start()
        states = target.await_in_sync()
        assert {place[0] for place in states} == set(target.topics)
        assert all(isr == sorted(target.nodes) for _, isr in states.values()), described(states)
        assert target.strays() == []
        assert target.digests() == digests
        assert target.config(PLAIN) == {"retention.ms": "987654321987"}
        assert target.config(COMPACTED) == {"cleanup.policy": "compact"}
        for topic in (PLAIN, COMPACTED):
            sent = new_producers(target.servers, topic)
            assert len(sent) == 400, topic
            found = [each[4] for each in target.read(COMMITTED) if each[0] == topic]
            assert sorted(v for v in found if v and v.startswith(b"new ")) == sorted(sent), topic
        assert target.digests(ends) == digests
        assert target.complaints() == []
