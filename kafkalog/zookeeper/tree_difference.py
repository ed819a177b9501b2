"""What changed between two trees, as far as the later one's stats tell: when a node was made and
when its data was set last. What happened in between, and to nodes that are gone, is not known.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkalog.zookeeper.changes import ChangeKind, NodeChange
from kafkalog.zookeeper.tree import DataTree, Node


def differences(before: DataTree, after: DataTree, zxid: int, file: str) -> list[NodeChange]:
    """Changes from one tree to a later one in the order of their zxids; deletions, which left no
    zxid of their own, come first, with `zxid` of the later tree and no time.

    A node that was changed since it was made gives two changes, the first without data.
    """
    gone = [
        NodeChange(
            ChangeKind.DELETED, path, node.data, zxid, None, node.version, node.session_id,
            file=file,
        )
        for path, node in before.nodes.items()
        if path not in after.nodes or after.nodes[path].czxid != node.czxid
    ]  # fmt: skip
    found = [
        change
        for path, node in after.nodes.items()
        for change in _of_node(path, before.nodes.get(path), node, file)
    ]
    # A sort that keeps the order of equals: children come behind their parents.
    return [*reversed(gone), *sorted(found, key=lambda change: change.zxid)]


def _of_node(path: str, old: Node | None, node: Node, file: str) -> Iterator[NodeChange]:
    is_new = old is None or old.czxid != node.czxid
    is_set = node.mzxid != node.czxid
    if is_new:
        data = None if is_set else node.data
        version = 0 if is_set else node.version
        yield NodeChange(
            ChangeKind.CREATED, path, data, node.czxid, node.ctime_ms, version, node.session_id,
            file=file,
        )  # fmt: skip
    if is_set and (is_new or (old is not None and old.mzxid != node.mzxid)):
        yield NodeChange(
            ChangeKind.SET, path, node.data, node.mzxid, node.mtime_ms, node.version,
            node.session_id, file=file,
        )  # fmt: skip
