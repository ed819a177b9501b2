"""Tables of the Kafka clusters in a dead ZooKeeper, as Arrow: `brokers`, `controllers`,
`partition_changes`, `topics`, `configs`, `client_quotas`, `acls`, `scram` in the columns of
`columns.cluster_schemas`, and what the old consumers committed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from os import PathLike

import pyarrow as pa

from kafkalog.columns.cluster_rows import build_cluster_table
from kafkalog.columns.cluster_schemas import CLUSTER_TABLES, OLD_CONSUMER_OFFSETS
from kafkalog.columns.column import Column
from kafkalog.errors import CorruptRecordError, InvalidConfigError
from kafkalog.log.names import names_in, paths_in
from kafkalog.reading.request import ReadMode, read_mode
from kafkalog.zookeeper.cluster_changes import ClusterTables, Problems, TableBuilder, build_tables
from kafkalog.zookeeper.consumers import ConsumerOffsets
from kafkalog.zookeeper.data_dir import open_zookeeper_dir
from kafkalog.zookeeper.entities import Acls, ClientQuotas, Configs, Scram
from kafkalog.zookeeper.history import Until, ZooKeeperHistory
from kafkalog.zookeeper.members import Brokers, Controllers
from kafkalog.zookeeper.partitions import PartitionChanges, Topics

_logger = logging.getLogger(__name__)

Directories = str | PathLike[str] | Iterable[str | PathLike[str]]

OLD_OFFSETS = "old_consumer_offsets"

_BUILDERS: dict[str, Callable[[Problems], TableBuilder]] = {
    "brokers": Brokers,
    "controllers": Controllers,
    "partition_changes": PartitionChanges,
    "topics": Topics,
    "configs": Configs,
    "client_quotas": ClientQuotas,
    "acls": Acls,
    "scram": Scram,
    OLD_OFFSETS: ConsumerOffsets,
}
ZOOKEEPER_TABLES: dict[str, tuple[Column, ...]] = {
    name: CLUSTER_TABLES.get(name, OLD_CONSUMER_OFFSETS) for name in _BUILDERS
}


def read_zookeeper(
    tables: str | Sequence[str],
    directory: Directories,
    *,
    zk_root: str | None = None,
    until_zxid: int | None = None,
    until_ms: int | None = None,
    mode: str = ReadMode.FAILFAST,
) -> dict[str, pa.Table]:
    """Some tables of what one ZooKeeper server left, in one pass over its files.

    directory: its dataDir, and its dataLogDir if that is another one. zk_root: the cluster below
    this chroot only (default: every cluster that is there, in the order of their roots).
    until_zxid, until_ms: what came later is left out. mode: FAILFAST raises what is wrong with the
    files, the others log it and go on with what is sound; a torn tail is never an error.

    InvalidConfigError for unknown tables and roots and for directories without a server's files,
    CorruptRecordError for damage, OffsetOutOfRangeError for a zxid before the oldest state.
    """
    tables = names_in(tables)
    unknown = [table for table in tables if table not in _BUILDERS]
    if unknown:
        raise InvalidConfigError(
            f"no table {', '.join(unknown)} in ZooKeeper; there are {', '.join(_BUILDERS)}"
        )
    history = ZooKeeperHistory(open_zookeeper_dir(paths_in(directory)), Until(until_zxid, until_ms))
    found = build_tables(history, {table: _BUILDERS[table] for table in tables}, zk_root)
    _report(found, read_mode(mode))
    return {
        table: build_cluster_table(found.rows[table], ZOOKEEPER_TABLES[table]) for table in tables
    }


def _report(found: ClusterTables, mode: ReadMode) -> None:
    if found.problems and mode == ReadMode.FAILFAST:
        more = len(found.problems) - 1
        rest = f" (and {more} more; mode PERMISSIVE goes on)" if more else ""
        raise CorruptRecordError(found.problems[0] + rest)
    for problem in found.problems:
        _logger.warning("%s", problem)
