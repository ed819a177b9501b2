"""The cluster's own tables (`columns.cluster_schemas`), of the metadata logs below some paths."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from os import PathLike

import pyarrow as pa

from kafkalog.cluster.find import metadata_directories
from kafkalog.cluster.history import ClusterHistory, Until
from kafkalog.columns.cluster_rows import build_cluster_table
from kafkalog.columns.cluster_schemas import CLUSTER_TABLES
from kafkalog.errors import CorruptRecordError
from kafkalog.log.inventory import LogInventory
from kafkalog.log.log_dir import open_log_dir

_logger = logging.getLogger(__name__)
# Of one cluster; the rest is counted.
_MOST_SHOWN = 8


def read_histories(
    paths: Sequence[str | PathLike[str]], until: Until | None = None
) -> list[ClusterHistory]:
    """A history of each cluster that has a metadata log below `paths`: the longest of its members'.

    InvalidConfigError for paths that do not exist; what is wrong inside is in the histories.
    """
    return histories_of(open_log_dir(*paths), until)


def histories_of(inventory: LogInventory, until: Until | None = None) -> list[ClusterHistory]:
    """The same of log dirs that are opened already."""
    found = metadata_directories(inventory.partitions)
    return [ClusterHistory(directory, until) for directory in found]


def history_tables(
    histories: Sequence[ClusterHistory], *, in_force: bool = False, mode: str = "FAILFAST"
) -> dict[str, pa.Table]:
    """All tables, each with the rows of every history. in_force: of tables with `endOffset` only
    the rows that hold where the histories stop.

    CorruptRecordError for the first problem of a history; with `mode` PERMISSIVE all are warnings.
    """
    for history in histories:
        if history.problems and mode.upper() != "PERMISSIVE":
            raise CorruptRecordError(f"{history.problems[0]} (mode PERMISSIVE goes on)")
        for problem in history.problems[:_MOST_SHOWN]:
            _logger.warning("left out: %s", problem)
        if len(history.problems) > _MOST_SHOWN:
            left = len(history.problems) - _MOST_SHOWN
            _logger.warning("left out: %d more of %s", left, history.directory)
    tables = {}
    for name, columns in CLUSTER_TABLES.items():
        rows = [row for history in histories for row in history.rows[name]]
        if in_force:
            rows = [row for row in rows if row.get("endOffset") is None]
        tables[name] = build_cluster_table(rows, columns)
    return tables
