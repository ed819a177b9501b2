"""ZooKeeper's tree in memory, and what a transaction does to it.

Nodes by path; the root's is "", as in snapshots. Stored values are kept as they are stored: what a
client is shown is derived (`shown_cversion`). Replay over a fuzzy snapshot meets changes that are
in it already: creating what exists, changing or deleting what is gone changes nothing.

`digest` is the sum of the nodes' own digests, kept up to date as a server keeps it (3.6 and newer):
equal to the one in a log's entry, it proves the tree equal to the server's at that place.

Source: ZooKeeper DataTree (processTxn, createNode, deleteNode, killSession), DigestCalculator.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from kafkalog.format.checksum import crc32
from kafkalog.format.jute import OPEN_ACL, Acl
from kafkalog.format.zookeeper_log import (
    CREATES,
    DELETES,
    NO_PARENT_CVERSION,
    WRITES,
    Operation,
    Transaction,
    TxnType,
)
from kafkalog.format.zookeeper_snapshot import OPEN_ACL_KEY, NodeStat, ZooKeeperSnapshot
from kafkalog.zookeeper.changes import ChangeKind, NodeChange

CONTAINER_OWNER = -(1 << 63)
_TTL_OWNER_BITS = 0xFF0000
_UNSIGNED = (1 << 64) - 1
_OWN_NODES = ("", "/zookeeper", "/zookeeper/quota")
_SYSTEM = "/zookeeper/"
_DIGESTED = struct.Struct(">qqqqqiiiq")


@dataclass(slots=True)
class Node:
    """A node as it is stored; changed in place."""

    data: bytes | None
    acl: tuple[Acl, ...]
    czxid: int
    mzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    cversion: int
    aversion: int
    owner: int
    pzxid: int
    digest: int = 0

    @classmethod
    def of(cls, data: bytes | None, acl: tuple[Acl, ...], stat: NodeStat) -> Node:
        return cls(
            data,
            acl,
            stat.czxid,
            stat.mzxid,
            stat.ctime_ms,
            stat.mtime_ms,
            stat.version,
            stat.cversion,
            stat.aversion,
            stat.owner,
            stat.pzxid,
        )

    @property
    def session_id(self) -> int | None:
        """The session that owns an ephemeral node, None of any other."""
        return self.owner if is_session(self.owner) else None


def is_session(owner: int) -> bool:
    """Whether an owner is a session: not of a container, nor a time to live (3.5.4 and newer)."""
    is_ttl = (owner & _UNSIGNED) >> 40 == _TTL_OWNER_BITS
    return owner != 0 and owner != CONTAINER_OWNER and not is_ttl


def parent_of(path: str) -> str:
    return path.rpartition("/")[0]


@dataclass(slots=True)
class DataTree:
    """The tree; `sessions` are id → timeout in ms."""

    nodes: dict[str, Node] = field(default_factory=dict)
    sessions: dict[int, int] = field(default_factory=dict)
    digest: int = 0
    _owned: dict[int, set[str]] = field(default_factory=dict)
    # Servers before 3.4 count a parent's changes in another way, and write no count into the log.
    _is_before_3_4: bool = False

    @classmethod
    def empty(cls) -> DataTree:
        """The tree a server begins with."""
        tree = cls()
        for path in _OWN_NODES:
            tree._put(path, Node.of(b"", OPEN_ACL, NodeStat()))
        # Who is in the ensemble is anyone's to read and no one's to write (3.5 and newer).
        config = Node.of(b"", (Acl(1, "world", "anyone"),), NodeStat(aversion=-1))
        tree._put("/zookeeper/config", config)
        return tree

    @classmethod
    def of(cls, snapshot: ZooKeeperSnapshot) -> DataTree:
        tree = cls(sessions=dict(snapshot.sessions))
        acls = {**snapshot.acls, OPEN_ACL_KEY: OPEN_ACL}
        for node in snapshot.nodes:
            tree._put(node.path, Node.of(node.data, acls.get(node.acl_key, ()), node.stat))
        return tree

    def apply(self, transaction: Transaction) -> list[NodeChange]:
        """Do what a transaction says; what changed, in its order."""
        if transaction.has_failed:
            return []
        changes: list[NodeChange] = []
        for operation in transaction.operations:
            changes += self._apply(operation, transaction)
        return changes

    def _apply(self, operation: Operation, txn: Transaction) -> Iterator[NodeChange]:
        path = "" if operation.path == "/" else operation.path
        if operation.type in CREATES:
            yield from self._create(path, operation, txn)
        elif operation.type in DELETES:
            yield from self._delete(path, txn)
        elif operation.type in WRITES:
            yield from self._set_data(path, operation, txn)
        elif operation.type == TxnType.SET_ACL:
            yield from self._set_acl(path, operation, txn)
        elif operation.type == TxnType.CREATE_SESSION:
            self.sessions[txn.session_id] = operation.timeout_ms
        elif operation.type == TxnType.CLOSE_SESSION:
            yield from self._close_session(operation, txn)

    def _create(self, path: str, operation: Operation, txn: Transaction) -> Iterator[NodeChange]:
        parent = self.nodes.get(parent_of(path)) if path else None
        if parent is None:
            return
        self._is_before_3_4 |= operation.parent_cversion == NO_PARENT_CVERSION
        existing = self.nodes.get(path)
        if existing is None:
            stat = NodeStat(
                txn.zxid, txn.zxid, txn.time_ms, txn.time_ms, owner=_owner(operation, txn),
                pzxid=txn.zxid,
            )  # fmt: skip
            self._put(path, Node.of(operation.data, operation.acl, stat))
        elif txn.digest is not None:
            existing.acl = operation.acl
        if existing is None or (operation.type == TxnType.CREATE and not self._is_before_3_4):
            cversion = operation.parent_cversion
            if cversion == NO_PARENT_CVERSION:
                cversion = parent.cversion + 1
            if cversion > parent.cversion:
                parent.cversion, parent.pzxid = cversion, txn.zxid
                self._redigest(parent_of(path), parent)
        if existing is None:
            yield self._change(ChangeKind.CREATED, path, txn)

    def _delete(self, path: str, txn: Transaction) -> Iterator[NodeChange]:
        node = self.nodes.get(path) if path else None
        parent = self.nodes.get(parent_of(path)) if path else None
        change = None
        if node is not None:
            change = self._change(ChangeKind.DELETED, path, txn)
            self._remove(path, node)
        # When it was logged the node was there: its parent moves even if a fuzzy snapshot lacks it
        # already (a server before 3.5.5 forgets that when it starts).
        if parent is not None:
            parent.cversion += int(self._is_before_3_4 and node is not None)
            parent.pzxid = max(parent.pzxid, txn.zxid)
            self._redigest(parent_of(path), parent)
        if change is not None:
            yield change

    def _set_data(self, path: str, operation: Operation, txn: Transaction) -> Iterator[NodeChange]:
        node = self.nodes.get(path)
        if node is not None:
            node.data, node.version = operation.data, operation.version
            node.mzxid, node.mtime_ms = txn.zxid, txn.time_ms
            self._redigest(path, node)
            yield self._change(ChangeKind.SET, path, txn)

    def _set_acl(self, path: str, operation: Operation, txn: Transaction) -> Iterator[NodeChange]:
        node = self.nodes.get(path)
        if node is not None:
            node.acl, node.aversion = operation.acl, operation.version
            self._redigest(path, node)
            yield self._change(ChangeKind.ACL, path, txn)

    def _close_session(self, operation: Operation, txn: Transaction) -> Iterator[NodeChange]:
        self.sessions.pop(txn.session_id, None)
        own = sorted(self._owned.get(txn.session_id, ()))
        for path in dict.fromkeys([*(operation.paths or ()), *own]):
            yield from self._delete(path, txn)

    def _change(self, kind: ChangeKind, path: str, txn: Transaction) -> NodeChange:
        node = self.nodes[path]
        return NodeChange(
            kind, path, node.data, txn.zxid, txn.time_ms, node.version, node.session_id, txn
        )

    def _put(self, path: str, node: Node) -> None:
        self.nodes[path] = node
        if is_session(node.owner):
            self._owned.setdefault(node.owner, set()).add(path)
        self._redigest(path, node)

    def _remove(self, path: str, node: Node) -> None:
        del self.nodes[path]
        self.digest = (self.digest - node.digest) & _UNSIGNED
        owned = self._owned.get(node.owner)
        if owned is not None:
            owned.discard(path)
            if not owned:
                del self._owned[node.owner]

    def _redigest(self, path: str, node: Node) -> None:
        if path.startswith(_SYSTEM):
            return
        stat = _DIGESTED.pack(
            node.czxid, node.mzxid, node.pzxid, node.ctime_ms, node.mtime_ms,
            node.version, node.cversion, node.aversion, node.owner,
        )  # fmt: skip
        digest = crc32(path.encode("utf-8", "replace") + (node.data or b"") + stat)
        self.digest = (self.digest + digest - node.digest) & _UNSIGNED
        node.digest = digest


def _owner(operation: Operation, txn: Transaction) -> int:
    if operation.is_ephemeral:
        return txn.session_id
    if operation.type == TxnType.CREATE_CONTAINER:
        return CONTAINER_OWNER
    if operation.type == TxnType.CREATE_TTL:
        owner = (_TTL_OWNER_BITS << 40) | (operation.ttl_ms & ((1 << 40) - 1))
        return owner - (1 << 64)
    return 0
