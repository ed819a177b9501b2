"""The Kafka clusters in a ZooKeeper: each below a root of its own (a chroot), "" without one.

A root is where `brokers/ids` is: the first node a broker makes. Of a path the longest root counts,
since a cluster at "" may have others below it.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkalog.errors import InvalidConfigError
from kafkalog.zookeeper.tree import DataTree

_MARK = "/brokers/ids"


class ClusterRoots:
    """The roots that were seen so far, or the one that was asked for (`--zk-root`)."""

    def __init__(self, zk_root: str | None = None) -> None:
        self._wanted = None if zk_root is None else normal_root(zk_root)
        self._found: list[str] = []

    @property
    def found(self) -> tuple[str, ...]:
        """Sorted; the wanted one alone, if it is there."""
        wanted = self._wanted
        return tuple(sorted(root for root in self._found if wanted is None or root == wanted))

    def see(self, path: str) -> None:
        """A node that was made."""
        if path.endswith(_MARK):
            root = path.removesuffix(_MARK)
            if root not in self._found:
                self._found.append(root)
                self._found.sort(key=len, reverse=True)

    def split(self, path: str) -> tuple[str, str] | None:
        """(root, path below it) of a node of a cluster; None of any other, or an unwanted one."""
        for root in self._found:
            if path.startswith(root) and path[len(root) : len(root) + 1] == "/":
                return (root, path[len(root) :]) if self._wanted in (None, root) else None
        return None

    def require(self) -> None:
        """InvalidConfigError if the wanted root is not there, or none is."""
        if not self.found:
            there = ", ".join(repr(root or "/") for root in sorted(self._found)) or "none"
            what = "no Kafka cluster" if self._wanted is None else f"no cluster at {self._wanted!r}"
            raise InvalidConfigError(f"{what} in this ZooKeeper; found: {there}")


def normal_root(text: str) -> str:
    """`/kafka/` or `kafka` → `/kafka`; `/` → ``."""
    stripped = text.strip("/")
    return f"/{stripped}" if stripped else ""


def find_roots(tree: DataTree, zk_root: str | None = None) -> tuple[str, ...]:
    """Roots of the clusters in a tree. InvalidConfigError if there is none."""
    return roots_of(tree.nodes, zk_root).found


def roots_of(paths: Iterable[str], zk_root: str | None = None) -> ClusterRoots:
    roots = ClusterRoots(zk_root)
    for path in paths:
        roots.see(path)
    roots.require()
    return roots
