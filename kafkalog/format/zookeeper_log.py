"""ZooKeeper's transaction log `log.<zxid in hex>`: every change, in the order of their zxids.

 5A 4B 4C 47 "ZKLG" | version i32 = 2 | dbid i64                             16 bytes, then each
 checksum i64 | n i32 | n bytes | 42 "B"                                     Adler-32 of the n bytes

The n bytes are a header, the record of its type, and since 3.6 the digest of the tree after it:

 session id i64 | cxid i32 | zxid i64 | time i64 (ms) | type i32
 …                                                                           jute, see `_operation`
 version i32 = 2 | tree digest i64

A log ends where it ends, or with checksum and length zero: it grows by 64 MiB of zeros at a time.
cxid 0 is the server's own doing. What failed is logged, too, and changes nothing: type -1, or a
multi whose parts are all of type -1.

Source: ZooKeeper FileTxnLog, SerializeUtils, zookeeper.jute.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from kafkalog.errors import CorruptRecordError, UnsupportedMessageVersionError
from kafkalog.format.jute import Acl, JuteReader

LOG_MAGIC = b"ZKLG"
LOG_VERSION = 2
FILE_HEADER = struct.Struct(">4siq")
ENTRY_HEADER = struct.Struct(">qi")
ENTRY_END = 0x42
TXN_HEADER = struct.Struct(">qiqqi")
_DIGEST = struct.Struct(">iq")
DIGEST_VERSION = 2
NO_PARENT_CVERSION = -1

_UNSIGNED = (1 << 64) - 1


class TxnType(IntEnum):
    """What a transaction, or a part of a multi, does."""

    ERROR = -1
    CREATE = 1
    DELETE = 2
    SET_DATA = 5
    SET_ACL = 7
    CHECK = 13
    MULTI = 14
    CREATE2 = 15
    RECONFIG = 16
    CREATE_CONTAINER = 19
    DELETE_CONTAINER = 20
    CREATE_TTL = 21
    CREATE_SESSION = -10
    CLOSE_SESSION = -11


CREATES = (TxnType.CREATE, TxnType.CREATE2, TxnType.CREATE_CONTAINER, TxnType.CREATE_TTL)
DELETES = (TxnType.DELETE, TxnType.DELETE_CONTAINER)
WRITES = (TxnType.SET_DATA, TxnType.RECONFIG)


@dataclass(frozen=True, slots=True)
class Operation:
    """One change. Only the fields of its type are set: `version` is the new one of the data or of
    the ACL, `paths` are the ephemeral nodes a closing session leaves (None before 3.6).
    """

    type: TxnType
    path: str = ""
    data: bytes | None = None
    acl: tuple[Acl, ...] = ()
    is_ephemeral: bool = False
    parent_cversion: int = NO_PARENT_CVERSION
    version: int = 0
    ttl_ms: int = 0
    timeout_ms: int = 0
    paths: tuple[str, ...] | None = None
    error: int = 0


@dataclass(frozen=True, slots=True)
class Transaction:
    """One record of the log. `operations` are the parts of a multi, else the one; `digest` is the
    tree's after it, None where the server kept none.
    """

    session_id: int
    cxid: int
    zxid: int
    time_ms: int
    type: TxnType
    operations: tuple[Operation, ...]
    digest: int | None
    position: int
    checksum: int

    @property
    def has_failed(self) -> bool:
        """Nothing of it applies."""
        return any(operation.type == TxnType.ERROR for operation in self.operations)


def parse_log_header(data: bytes, path: str | None = None) -> None:
    """Check the first 16 bytes of a log. CorruptRecordError, UnsupportedMessageVersionError."""
    if len(data) < FILE_HEADER.size:
        raise CorruptRecordError(
            f"{len(data)} bytes, a header has {FILE_HEADER.size}", path=path, position=0
        )
    magic, version, _ = FILE_HEADER.unpack_from(data)
    if magic != LOG_MAGIC:
        raise CorruptRecordError(f"begins with {magic.hex()}, not ZKLG", path=path, position=0)
    if version != LOG_VERSION:
        raise UnsupportedMessageVersionError(
            f"version {version} of the transaction log, not 2", path=path, position=4
        )


def parse_transaction(
    body: bytes, *, path: str | None = None, position: int = 0, checksum: int = 0
) -> Transaction:
    """The transaction in the n bytes of an entry, which begins at `position` of its file.

    CorruptRecordError for bytes that are no transaction, unknown types among them.
    """
    # Positions in errors are those in the file: the body begins behind checksum and length.
    reader = JuteReader(body, path=path, start=position + ENTRY_HEADER.size)
    session_id, cxid, zxid, time_ms, number = reader.unpack(TXN_HEADER, "a transaction header")
    type_ = _type(reader, number)
    if type_ == TxnType.MULTI:
        operations = _parts(reader)
    elif type_ == TxnType.CLOSE_SESSION:
        operations = (_closing(reader),)
    else:
        operations = (_operation(reader, type_),)
    digest = _digest(reader)
    return Transaction(
        session_id, cxid, zxid, time_ms, type_, operations, digest, position, checksum
    )


def _type(reader: JuteReader, number: int) -> TxnType:
    try:
        return TxnType(number)
    except ValueError:
        raise reader.fail(f"type {number} is none of a transaction") from None


def _parts(reader: JuteReader) -> tuple[Operation, ...]:
    operations = []
    for _ in range(reader.count("parts", 8)):
        type_ = _type(reader, reader.i32("a part's type"))
        position = reader.position
        data = reader.buffer("a part")
        if data is None or type_ in (TxnType.MULTI, TxnType.CREATE_SESSION, TxnType.CLOSE_SESSION):
            raise reader.fail(f"no part of a multi: {type_.name}", position)
        # A part is a buffer with a record of its own.
        part = JuteReader(data)
        try:
            operations.append(_operation(part, type_))
        except CorruptRecordError as error:
            raise reader.fail(error.reason, position) from None
    return tuple(operations)


def _operation(reader: JuteReader, type_: TxnType) -> Operation:
    if type_ == TxnType.ERROR:
        return Operation(type_, error=reader.i32("an error code"))
    if type_ == TxnType.CREATE_SESSION:
        return Operation(type_, timeout_ms=reader.i32("a timeout"))
    path = _path(reader)
    if type_ in DELETES:
        return Operation(type_, path)
    if type_ in CREATES:
        return _creating(reader, type_, path)
    if type_ in WRITES:
        data = reader.buffer("data")
        return Operation(type_, path, data=data, version=reader.i32("a version"))
    if type_ == TxnType.SET_ACL:
        acl = reader.acl()
        return Operation(type_, path, acl=acl, version=reader.i32("a version"))
    return Operation(TxnType.CHECK, path, version=reader.i32("a version"))


def _creating(reader: JuteReader, type_: TxnType, path: str) -> Operation:
    data, acl = reader.buffer("data"), reader.acl()
    # Containers and nodes with a ttl are never ephemeral, so their records have no flag.
    has_flag = type_ in (TxnType.CREATE, TxnType.CREATE2)
    is_ephemeral = has_flag and reader.boolean("ephemeral")
    # Servers before 3.4 end here.
    is_old = has_flag and reader.left in (0, _DIGEST.size)
    parent_cversion = NO_PARENT_CVERSION if is_old else reader.i32("parent's cversion")
    ttl_ms = reader.i64("a ttl") if type_ == TxnType.CREATE_TTL else 0
    return Operation(
        type_,
        path,
        data=data,
        acl=acl,
        is_ephemeral=is_ephemeral,
        parent_cversion=parent_cversion,
        ttl_ms=ttl_ms,
    )


def _closing(reader: JuteReader) -> Operation:
    """Paths are there or not, and so is a digest: told apart by what is left. Two paths are longer
    than a digest, so a first int of 2 in as many bytes is its version.
    """
    is_digest = reader.left == _DIGEST.size and reader.data[reader.position + 3] == DIGEST_VERSION
    if reader.left == 0 or is_digest:
        return Operation(TxnType.CLOSE_SESSION)
    paths = tuple(_path(reader) for _ in range(reader.count("paths", 4)))
    return Operation(TxnType.CLOSE_SESSION, paths=paths)


def _path(reader: JuteReader) -> str:
    position = reader.position
    path = reader.text("a path")
    if not path.startswith("/"):
        raise reader.fail(f"path {path[:60]!r} does not begin with /", position)
    return path


def _digest(reader: JuteReader) -> int | None:
    if reader.left == 0:
        return None
    if reader.left != _DIGEST.size:
        raise reader.fail(f"{reader.left} bytes behind the record, a digest has {_DIGEST.size}")
    version, digest = reader.unpack(_DIGEST, "a digest")
    return digest & _UNSIGNED if version == DIGEST_VERSION else None
