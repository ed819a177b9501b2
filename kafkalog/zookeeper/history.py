"""Snapshots and logs of one server put together: the changes from the oldest one that is on the
disk, and the tree at any zxid or time.

Replay begins with the empty tree if the logs go back to the first transaction, else with the oldest
whole snapshot, whose nodes count as changes of the zxids and times they carry. Where the logs have
a gap it goes on from the next whole snapshot, and what differs there counts as changed by then.
Each digest in the logs is compared (3.6 and newer), beyond the zxid up to which the snapshot is
fuzzy: the first one that differs is a problem, for the trees are not the server's from there on.

The newest tree alone is cheaper: the newest whole snapshot and the logs behind it, as a server
starts.

Source: ZooKeeper FileTxnSnapLog.restore, FileTxnIterator, DataTree.compareDigest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kafkalog.errors import KafkaLogError, OffsetOutOfRangeError
from kafkalog.format.zookeeper_log import Transaction
from kafkalog.format.zookeeper_snapshot import ZooKeeperSnapshot
from kafkalog.zookeeper.changes import NodeChange
from kafkalog.zookeeper.data_dir import ZooKeeperDir, ZooKeeperFile
from kafkalog.zookeeper.snapshot_file import read_snapshot
from kafkalog.zookeeper.tree import DataTree
from kafkalog.zookeeper.tree_difference import differences
from kafkalog.zookeeper.txn_log_file import TxnLogFile

_COUNTER = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class Until:
    """Where to stop: behind the transaction `zxid`, or before the first one after `time_ms`."""

    zxid: int | None = None
    time_ms: int | None = None

    def is_past(self, transaction: Transaction) -> bool:
        return (self.zxid is not None and transaction.zxid > self.zxid) or (
            self.time_ms is not None and transaction.time_ms > self.time_ms
        )

    def is_before(self, zxid: int, snapshot: ZooKeeperSnapshot) -> bool:
        """Whether it is before the state a snapshot of `zxid` begins with."""
        latest_ms = max((node.stat.mtime_ms for node in snapshot.nodes), default=0)
        return (self.zxid is not None and zxid > self.zxid) or (
            self.time_ms is not None and latest_ms > self.time_ms
        )


class ZooKeeperHistory:
    """One server's files, replayed. After iteration `tree`, `zxid` and `problems` are final.

    first_zxid: what is known from there on; zxid: of the last transaction that counts. torn: what
    is cut off at the end of logs, which is no damage. digests: how many were equal.
    """

    def __init__(self, directory: ZooKeeperDir, until: Until | None = None) -> None:
        self.directory = directory
        self.tree = DataTree.empty()
        self.first_zxid = 0
        self.zxid = 0
        self.digests = 0
        self.problems: list[str] = []
        self.torn: list[str] = []
        self._until = until or Until()
        self._fuzzy_zxid = 0
        self._differs = False

    def changes(self) -> Iterator[NodeChange]:
        """Every change, in order. OffsetOutOfRangeError if it would have to stop before it begins.

        Problems do not end it: they are collected, and what is sound goes on.
        """
        logs = self.directory.logs
        snapshots = list(self.directory.snapshots)
        if not (logs and _is_first(logs[0].zxid)):
            yield from self._jump_to_first(snapshots)
        for number, log in enumerate(logs):
            following = logs[number + 1].zxid if number + 1 < len(logs) else None
            file = TxnLogFile(log.path)
            for txn in file:
                if following is not None and txn.zxid >= following:
                    continue  # a server that began the next file has never had it
                if txn.zxid <= self.zxid:
                    continue
                if not _follows(self.zxid, txn.zxid):
                    yield from self._jump(snapshots, txn.zxid)
                    if txn.zxid <= self.zxid:
                        continue
                if self._until.is_past(txn):
                    self._note(file, following is not None)
                    return
                yield from self._apply(txn, log)
            self._note(file, following is not None)
        newest = [file for file in snapshots if file.zxid > self.zxid]
        if newest and self._until == Until():
            yield from self._jump(snapshots, None)

    def newest(self) -> DataTree:
        """The tree at the end, as a server would have it after a start."""
        snapshots = list(self.directory.snapshots)
        logs = self.directory.logs
        for file in reversed(snapshots):
            snapshot = self._read(file)
            if snapshot is not None:
                self._begin(file, snapshot)
                break
        else:
            if not (logs and _is_first(logs[0].zxid)):
                self._complain("no whole snapshot, and the logs do not go back to the beginning")
        first = max((n for n, log in enumerate(logs) if log.zxid <= self.zxid + 1), default=0)
        rest = ZooKeeperDir(self.directory.paths, (), logs[first:])
        for _ in self._continued(rest):
            pass
        return self.tree

    def at_end(self) -> DataTree:
        """The tree where `until` stops, from the beginning of what is there."""
        for _ in self.changes():
            pass
        return self.tree

    def _continued(self, rest: ZooKeeperDir) -> Iterator[NodeChange]:
        """The logs alone, from where the tree is."""
        for number, log in enumerate(rest.logs):
            following = rest.logs[number + 1].zxid if number + 1 < len(rest.logs) else None
            file = TxnLogFile(log.path)
            for txn in file:
                is_dropped = following is not None and txn.zxid >= following
                if txn.zxid <= self.zxid or is_dropped:
                    continue
                if not _follows(self.zxid, txn.zxid):
                    self._complain(f"{log.path}: zxid {txn.zxid:#x} follows {self.zxid:#x}")
                yield from self._apply(txn, log)
            self._note(file, following is not None)

    def _apply(self, txn: Transaction, log: ZooKeeperFile) -> Iterator[NodeChange]:
        changes = self.tree.apply(txn)
        self.zxid = txn.zxid
        if txn.digest is not None and txn.zxid > self._fuzzy_zxid and not self._differs:
            self._differs = txn.digest != self.tree.digest
            self.digests += int(not self._differs)
            if self._differs:
                self._complain(
                    f"{log.path} @ {txn.position}: the tree's digest after zxid {txn.zxid:#x} is "
                    f"{self.tree.digest:x}, not the server's {txn.digest:x}: something is missing"
                )
        for change in changes:
            yield replace(change, file=str(log.path))

    def _jump_to_first(self, snapshots: list[ZooKeeperFile]) -> Iterator[NodeChange]:
        # What a new server writes, an empty tree: where the logs that follow it are gone, the state
        # begins with the next one.
        initial = [file for file in snapshots if file.zxid == 0]
        for file in (*snapshots[len(initial) :], *initial):
            snapshot = self._read(file)
            if snapshot is not None:
                if self._until.is_before(file.zxid, snapshot):
                    raise OffsetOutOfRangeError(
                        f"asked for what was before the oldest state, of zxid {file.zxid:#x}",
                        path=str(file.path),
                    )
                self.tree = DataTree()
                yield from self._changed_to(file, snapshot)
                self.first_zxid = file.zxid
                return
        self._complain("no whole snapshot, and the logs do not go back to the beginning")

    def _jump(self, snapshots: list[ZooKeeperFile], zxid: int | None) -> Iterator[NodeChange]:
        """Go on with a later snapshot: the log's next zxid does not follow, or (None) it ends."""
        later = [file for file in snapshots if file.zxid > self.zxid]
        if self._until.zxid is not None:
            later = [file for file in later if file.zxid <= self._until.zxid]
        # Of those that lead up to the next transaction the first, else the last one there is.
        enough = [f for f in later if zxid is None or f.zxid >= zxid or _follows(f.zxid, zxid)]
        for file in (*enough, *reversed(later)) if zxid is not None else reversed(later):
            snapshot = self._read(file)
            if snapshot is not None:
                before = self.zxid
                yield from self._changed_to(file, snapshot)
                if zxid is None or not _is_epoch_start(before, file.zxid):
                    self._complain(
                        f"no log has the transactions behind zxid {before:#x} up to "
                        f"{file.zxid:#x}: what {file.path.name} has is taken instead"
                    )
                break
        if zxid is not None and not _follows(self.zxid, zxid) and zxid > self.zxid:
            self._complain(f"zxid {zxid:#x} follows {self.zxid:#x}: what is between is missing")

    def _changed_to(self, file: ZooKeeperFile, snapshot: ZooKeeperSnapshot) -> Iterator[NodeChange]:
        before = self.tree
        self._begin(file, snapshot)
        yield from differences(before, self.tree, file.zxid, str(file.path))

    def _begin(self, file: ZooKeeperFile, snapshot: ZooKeeperSnapshot) -> None:
        self.tree = DataTree.of(snapshot)
        self.zxid = file.zxid
        # Of a change beyond the digest's zxid the snapshot can have a part, too.
        self._fuzzy_zxid = max(file.zxid, snapshot.fuzzy_zxid or 0)
        self._differs = False

    def _read(self, file: ZooKeeperFile) -> ZooKeeperSnapshot | None:
        try:
            return read_snapshot(file)
        except KafkaLogError as error:
            self._complain(str(error))
            return None

    def _note(self, file: TxnLogFile, has_following: bool) -> None:
        self.problems += file.problems
        if file.torn is not None:
            # A server makes no next file beside one that has not even a header.
            (self.problems if has_following and file.end == 0 else self.torn).append(file.torn)

    def _complain(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)


def _is_first(zxid: int) -> bool:
    """Of a server's first transaction: counter 1 of epoch 0, or of an ensemble's first epoch."""
    return zxid & _COUNTER == 1 and zxid >> 32 <= 1


def _follows(before: int, zxid: int) -> bool:
    """Whether a zxid may be the next one: of an epoch each, of a later epoch the first."""
    if before >> 32 == zxid >> 32:
        return zxid == before + 1
    return zxid > before and zxid & _COUNTER <= 1


def _is_epoch_start(before: int, zxid: int) -> bool:
    """A snapshot named after a new epoch, before any transaction of it: nothing is missing."""
    return zxid & _COUNTER == 0 and zxid >> 32 > before >> 32
