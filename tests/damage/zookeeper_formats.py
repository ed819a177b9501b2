"""ZooKeeper's files and the values of Kafka's nodes, for the table of formats: sound samples, how
they are read to the end of what is made of them, and how their checksums are made right.
"""

from __future__ import annotations

import functools
import gzip
import logging
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from data.copy_samples import SAMPLES
from kafkalog.errors import KafkaLogError
from kafkalog.format.checksum import adler32
from kafkalog.format.zookeeper_log import TxnType
from kafkalog.format.zookeeper_snapshot import parse_snapshot
from kafkalog.reading.zookeeper_tables import read_zookeeper
from kafkalog.zookeeper import znodes
from kafkalog.zookeeper.data_dir import open_zookeeper_dir
from kafkalog.zookeeper.history import ZooKeeperHistory
from kafkalog.zookeeper.settings import read_zookeeper_settings
from kafkalog.zookeeper.txn_log_file import TxnLogFile

_SAMPLE = SAMPLES / "zookeeper"
_LOG = _SAMPLE / "ensemble" / "version-2" / "log.1"
# A few are enough, since every mutation is replayed; values are a format of their own.
_KINDS = (
    "/brokers", "/brokers/ids", "/brokers/ids/1", "/controller", "/brokers/topics",
    "/brokers/topics/plain", "/brokers/topics/plain/partitions",
    "/brokers/topics/plain/partitions/0", "/brokers/topics/plain/partitions/0/state",
)  # fmt: skip
_TABLES = ("brokers", "controllers", "partition_changes", "topics")
_KEPT: list[tempfile.TemporaryDirectory[str]] = []

Row = tuple[str, tuple[bytes, ...], Callable[[bytes], None], Callable[[bytes], bytes]]


def table() -> Iterator[Row]:
    """(name, samples, read, with checksums made right)."""
    yield "ZooKeeper log", (_some_entries(),), read_log, with_log_checksums
    for suffix in ("", "gz", "snappy"):
        name = f"ZooKeeper snapshot {suffix or 'plain'}"
        read = functools.partial(read_snapshot_file, suffix)
        yield name, (_snapshot(suffix),), read, bytes if suffix else with_seals
    yield "values of Kafka's nodes", _values(), read_values, bytes


def read_log(data: bytes) -> None:
    """Its changes, the tables of the clusters in it, and their settings."""
    directory = _fresh()
    (directory / "log.1").write_bytes(data)
    with _nothing_logged():
        with suppress(KafkaLogError):
            read_zookeeper(_TABLES, directory, mode="PERMISSIVE")
        read_zookeeper_settings([str(directory)])


@contextmanager
def _nothing_logged() -> Iterator[None]:
    """What is damaged is meant to be; other tests look at what is logged."""
    logger = logging.getLogger("kafkalog")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def read_snapshot_file(suffix: str, data: bytes) -> None:
    directory = _fresh()
    (directory / f"snapshot.7{suffix and '.'}{suffix}").write_bytes(data)
    ZooKeeperHistory(open_zookeeper_dir([str(directory)])).at_end()  # tells, never raises
    parse_snapshot(data, suffix)


def read_values(data: bytes) -> None:
    for parse in (
        znodes.parse_broker, znodes.parse_topic, znodes.parse_partition_state,
        znodes.parse_controller, znodes.parse_number, znodes.parse_config,
        znodes.parse_cluster_id, znodes.parse_acls,
    ):  # fmt: skip
        with suppress(KafkaLogError):
            parse(data, "/node")


def with_log_checksums(data: bytes) -> bytes:
    """Every entry, as far as lengths lead to one, with the checksum its bytes ask for."""
    patched, position = bytearray(data), 16
    while position + 12 <= len(patched):
        (length,) = struct.unpack_from(">i", patched, position + 8)
        end = position + 12 + length
        if length <= 0 or end > len(patched):
            break
        checksum = adler32(bytes(patched[position + 12 : end]))
        struct.pack_into(">q", patched, position, checksum)
        position = end + 1
    return bytes(patched)


def with_seals(data: bytes) -> bytes:
    """The seals where a sound snapshot of this size has them, made right from the first on."""
    patched = bytearray(data)
    for behind in (54 + 13, 21 + 13, 13):
        at = len(patched) - behind
        if at > 0:
            struct.pack_into(">q", patched, at, adler32(bytes(patched[:at])))
    return bytes(patched)


def _some_entries() -> bytes:
    """A log of few entries: the first one, one for each kind of node, the end of a session."""
    data, file = _LOG.read_bytes(), TxnLogFile(_LOG)
    transactions = list(file)
    ends = [*(txn.position for txn in transactions[1:]), file.end]
    chosen: dict[str, bytes] = {}
    for txn, end in zip(transactions, ends, strict=True):
        for operation in txn.operations:
            name = operation.path if operation.path in _KINDS else txn.type.name
            if name in _KINDS or txn.type in (TxnType.CREATE_SESSION, TxnType.CLOSE_SESSION):
                chosen.setdefault(name, data[txn.position : end])
    return data[:16] + b"".join(dict.fromkeys(chosen.values())) + bytes(40)


def _snapshot(suffix: str) -> bytes:
    """A small one; a plain one is what the compressed one holds."""
    path = next((_SAMPLE / (suffix or "gz") / "version-2").glob("snapshot.[1-9]*"))
    if suffix:
        return path.read_bytes()
    return gzip.decompress(path.read_bytes())


def _values() -> tuple[bytes, ...]:
    """One value of each kind of node in the sample."""
    tree = ZooKeeperHistory(open_zookeeper_dir([str(_SAMPLE / "ensemble")])).newest()
    kinds: dict[str, bytes] = {}
    for path, node in tree.nodes.items():
        if node.data:
            parts = path.split("/")
            kinds.setdefault(f"{parts[1:3]} {parts[-1] == 'state'}", node.data)
    return tuple(kinds.values())


def _fresh() -> Path:
    """An empty directory in memory, removed when the process ends."""
    if not _KEPT:
        memory = Path("/dev/shm")
        _KEPT.append(tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None))
    directory = Path(_KEPT[0].name) / "data"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    return directory
