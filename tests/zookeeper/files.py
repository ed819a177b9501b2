"""Files of a ZooKeeper taken apart: the entries of a log, and a log put together of bytes."""

from __future__ import annotations

from pathlib import Path

from kafkalog.zookeeper.data_dir import open_zookeeper_dir
from kafkalog.zookeeper.history import ZooKeeperHistory
from kafkalog.zookeeper.txn_log_file import TxnLogFile


def entry_ends(log: Path) -> list[int]:
    """Where the log's header and each of its entries end."""
    file = TxnLogFile(log)
    starts = [txn.position for txn in file]
    return [*starts, file.end]


def write_log(directory: Path, zxid: int, data: bytes) -> Path:
    directory.mkdir(exist_ok=True)
    path = directory / f"log.{zxid:x}"
    path.write_bytes(data)
    return path


def replayed(directory: Path) -> ZooKeeperHistory:
    history = ZooKeeperHistory(open_zookeeper_dir([str(directory)]))
    history.at_end()
    return history
