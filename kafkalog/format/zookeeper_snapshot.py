"""ZooKeeper's snapshot `snapshot.<zxid in hex>[.gz|.snappy]`: sessions, ACLs and every node.

 5A 4B 53 4E "ZKSN" | version i32 = 2 | dbid i64 = -1
 count i32 | { session id i64 | timeout i32 (ms) }
 count i32 | { key i64 | vector of ACLs }                                 -1 is open, never listed
 { path | data | ACL key i64 | stat }  parents first, the root is ""      jute strings and buffers
   stat: czxid, mzxid, ctime, mtime i64 | version, cversion, aversion i32 | owner, pzxid i64
 "/" | seal
 zxid i64 | digest version i32 | digest i64 | seal                           3.6+, unless turned off
 last zxid i64 | seal                                                        3.9+, unless turned off

A seal is the Adler-32 (i64) of everything before it, then "/". Compression is outermost. The tree
is fuzzy: changes went on while it was written, and some of those above the zxid in the name are in
it; the zxid beside the digest tells how far they can go.

Source: ZooKeeper FileSnap, DataTree, SerializeUtils, SnapStream.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from kafkalog.errors import (
    CorruptRecordError,
    CorruptSnapshotError,
    UnsupportedMessageVersionError,
)
from kafkalog.format.checksum import adler32
from kafkalog.format.compression import decompress
from kafkalog.format.constants import CompressionType
from kafkalog.format.jute import Acl, JuteReader
from kafkalog.format.limits import MAX_ZOOKEEPER_SNAPSHOT_BYTES
from kafkalog.format.zookeeper_log import DIGEST_VERSION

SNAPSHOT_MAGIC = b"ZKSN"
SNAPSHOT_VERSION = 2
OPEN_ACL_KEY = -1

_FILE_HEADER = struct.Struct(">4siq")
_SESSION = struct.Struct(">qi")
_ACL_KEY = struct.Struct(">q")
# ACL key, then the stat
_NODE = struct.Struct(">qqqqqiiiqq")
_SEAL_BYTES = 13
_DIGEST = struct.Struct(">qiq")
_LAST_ZXID_BYTES = 8 + _SEAL_BYTES
_DIGEST_BYTES = _DIGEST.size + _SEAL_BYTES
_UNSIGNED = (1 << 64) - 1

_CODECS = {"gz": CompressionType.GZIP, "snappy": CompressionType.SNAPPY}
_STREAM_STARTS = {
    CompressionType.GZIP: b"\x1f\x8b",
    CompressionType.SNAPPY: b"\x82SNAPPY\x00",
}


@dataclass(frozen=True, slots=True)
class NodeStat:
    """What ZooKeeper keeps about a node: zxids and times (ms) of its creation and last change,
    versions of data, children and ACL, the owner of an ephemeral one, the children's last zxid.
    """

    czxid: int = 0
    mzxid: int = 0
    ctime_ms: int = 0
    mtime_ms: int = 0
    version: int = 0
    cversion: int = 0
    aversion: int = 0
    owner: int = 0
    pzxid: int = 0


@dataclass(frozen=True, slots=True)
class SnapshotNode:
    """A node as the snapshot has it; an ACL key that is not listed is legal in a fuzzy one."""

    path: str
    data: bytes | None
    acl_key: int
    stat: NodeStat


@dataclass(frozen=True, slots=True)
class ZooKeeperSnapshot:
    """A whole snapshot, its seals right.

    sessions: id → timeout in ms. digest: the tree's at `digest_zxid`, both None if there is none.
    last_zxid: the last one that can be in it, None before 3.9.
    """

    sessions: dict[int, int] = field(default_factory=dict)
    acls: dict[int, tuple[Acl, ...]] = field(default_factory=dict)
    nodes: tuple[SnapshotNode, ...] = ()
    digest_zxid: int | None = None
    digest: int | None = None
    last_zxid: int | None = None

    @property
    def fuzzy_zxid(self) -> int | None:
        """Up to which changes may be in it, by its own word."""
        known = [zxid for zxid in (self.digest_zxid, self.last_zxid) if zxid is not None]
        return max(known, default=None)


def parse_snapshot(data: bytes, suffix: str = "", path: str | None = None) -> ZooKeeperSnapshot:
    """The snapshot in a file's bytes; `suffix` is "gz", "snappy" or empty, as its name ends.

    CorruptSnapshotError for anything but a whole one, UnsupportedMessageVersionError for another
    version, RecordTooLargeError for one that grows above its limit.
    """
    reader = JuteReader(_plain(data, suffix, path), path=path, error=CorruptSnapshotError)
    if not reader.data.startswith(SNAPSHOT_MAGIC):
        raise reader.fail("does not begin with ZKSN", 0)
    _, version, _ = reader.unpack(_FILE_HEADER, "a header")
    if version != SNAPSHOT_VERSION:
        raise UnsupportedMessageVersionError(
            f"version {version} of the snapshot, not 2", path=path, position=4
        )
    sessions = {}
    for _ in range(reader.count("sessions", 12)):
        session_id, timeout_ms = reader.unpack(_SESSION, "a session")
        sessions[session_id] = timeout_ms
    acls = {}
    for _ in range(reader.count("ACL entries", 12)):
        (key,) = reader.unpack(_ACL_KEY, "an ACL's key")
        acls[key] = reader.acl()
    nodes = tuple(_nodes(reader))
    _check_seal(reader)
    digest_zxid, digest, last_zxid = _tail(reader)
    return ZooKeeperSnapshot(sessions, acls, nodes, digest_zxid, digest, last_zxid)


def _plain(data: bytes, suffix: str, path: str | None) -> bytes:
    codec = _CODECS.get(suffix)
    if codec is None:
        return data
    if not data.startswith(_STREAM_STARTS[codec]):
        raise CorruptSnapshotError(f"no {suffix} stream", path=path, position=0)
    try:
        return bytes(decompress(codec, data, max_bytes=MAX_ZOOKEEPER_SNAPSHOT_BYTES, path=path))
    except CorruptRecordError as error:
        raise CorruptSnapshotError(error.reason, path=path, position=0) from None


def _nodes(reader: JuteReader) -> Iterator[SnapshotNode]:
    position = reader.position
    path = reader.text("a path")
    # The nodes end with a path of "/", which is no node: the root's own path is empty.
    while path != "/":
        if path and (not path.startswith("/") or path.endswith("/")):
            raise reader.fail(f"path {path[:60]!r}", position)
        data = reader.buffer("data")
        acl_key, *stat = reader.unpack(_NODE, "a node's stat")
        yield SnapshotNode(path, data, acl_key, NodeStat(*stat))
        position = reader.position
        path = reader.text("a path")


def _check_seal(reader: JuteReader) -> None:
    position = reader.position
    # Over all bytes in front of it, and a "/" behind it: written last, so that a snapshot which was
    # cut has none.
    checksum = adler32(memoryview(reader.data)[:position])
    stored = reader.i64("a checksum")
    if stored != checksum:
        raise reader.fail(f"checksum {stored}, the bytes have {checksum}", position)
    if reader.text("a seal") != "/":
        raise reader.fail("no / behind the checksum", position + 8)


def _tail(reader: JuteReader) -> tuple[int | None, int | None, int | None]:
    """(zxid and value of the digest, last zxid): the bytes left show which there are."""
    left = reader.left
    if left not in (0, _LAST_ZXID_BYTES, _DIGEST_BYTES, _LAST_ZXID_BYTES + _DIGEST_BYTES):
        raise reader.fail(f"{left} bytes behind the nodes")
    digest_zxid = digest = last_zxid = None
    # Each of the two has a seal of its own, and neither has a tag: their sizes tell them apart.
    if left >= _DIGEST_BYTES:
        zxid, version, value = reader.unpack(_DIGEST, "a digest")
        _check_seal(reader)
        if version == DIGEST_VERSION and (zxid or value):
            digest_zxid, digest = zxid, value & _UNSIGNED
    if reader.left:
        last_zxid = reader.i64("the last zxid")
        _check_seal(reader)
    return digest_zxid, digest, last_zxid
