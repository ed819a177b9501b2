"""The replayed tree is the one a client saw of the living server: data, every stat field, ACLs; and
the digest after each transaction is the server's.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kafkalog.errors import OffsetOutOfRangeError
from kafkalog.zookeeper.data_dir import open_zookeeper_dir
from kafkalog.zookeeper.history import Until, ZooKeeperHistory
from kafkalog.zookeeper.tree import DataTree, is_session, parent_of
from tests.zookeeper.live import ENSEMBLE, SAMPLE, live

TREES: list[tuple[str, Path, dict[str, Any]]] = [
    *((tree["when"], ENSEMBLE, tree) for tree in live()["trees"]),
    *(
        (name, SAMPLE / name, json.loads((SAMPLE / f"{name}.json").read_text())["trees"][0])
        for name in ("gz", "snappy")
    ),
]


def shown(tree: DataTree) -> dict[str, Any]:
    """The tree as a client is shown it."""
    counts = Counter(parent_of(path) for path in tree.nodes if path)
    return {
        path or "/": {
            "data": None if node.data is None else node.data.decode(),
            "stat": {
                "czxid": node.czxid,
                "mzxid": node.mzxid,
                "ctimeMs": node.ctime_ms,
                "mtimeMs": node.mtime_ms,
                "version": node.version,
                "cversion": 2 * node.cversion - counts[path],
                "aversion": node.aversion,
                "owner": node.owner if is_session(node.owner) else 0,
                "pzxid": node.pzxid,
                "children": counts[path],
            },
            "acl": [f"{acl.perms} {acl.scheme} {acl.id}" for acl in node.acl],
        }
        for path, node in tree.nodes.items()
    }


@pytest.mark.parametrize(("name", "directory", "expected"), TREES, ids=[t[0] for t in TREES])
def test_the_tree_at_a_zxid_is_the_one_a_client_saw(
    name: str, directory: Path, expected: dict[str, Any]
) -> None:
    history = ZooKeeperHistory(open_zookeeper_dir([str(directory)]), Until(zxid=expected["zxid"]))
    found = shown(history.at_end())
    # What makes a client see other ACLs than are stored is not asked for: it reads as anyone.
    assert found == expected["nodes"]
    assert not history.problems
    assert history.zxid == expected["zxid"]


@pytest.mark.parametrize("name", ["ensemble", "gz", "snappy"])
def test_from_every_snapshot_the_end_is_the_same_and_every_digest_agrees(
    name: str, tmp_path: Path
) -> None:
    directory = open_zookeeper_dir([str(SAMPLE / name)])
    whole = ZooKeeperHistory(directory)
    expected = whole.at_end()
    assert whole.digests > 10
    newest = ZooKeeperHistory(directory)
    assert newest.newest() == expected
    assert 0 < newest.digests < whole.digests
    assert [whole.problems, whole.torn, newest.problems, newest.torn] == [[], [], [], []]


def test_a_tree_at_a_time_has_what_was_made_by_then() -> None:
    tree = live()["trees"][0]
    latest_ms = max(node["stat"]["mtimeMs"] for node in tree["nodes"].values())
    directory = open_zookeeper_dir([str(ENSEMBLE)])
    found = ZooKeeperHistory(directory, Until(time_ms=latest_ms)).at_end()
    times = {t for n in found.nodes.values() for t in (n.ctime_ms, n.mtime_ms)}
    assert max(times) == latest_ms
    assert set(tree["nodes"]) <= {path or "/" for path in found.nodes}


def test_before_the_oldest_state_there_is_none(tmp_path: Path) -> None:
    snapshot = open_zookeeper_dir([str(ENSEMBLE)]).snapshots[-1].path
    (tmp_path / snapshot.name).write_bytes(snapshot.read_bytes())
    directory = open_zookeeper_dir([str(tmp_path)])
    for until in (Until(zxid=5), Until(time_ms=1_000)):
        with pytest.raises(OffsetOutOfRangeError, match="before the oldest state"):
            ZooKeeperHistory(directory, until).at_end()
