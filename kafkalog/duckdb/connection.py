"""A DuckDB connection that has tables of ours and reaches nothing else: no file, no network, no
extension, and no setting can be changed any more.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from kafkalog.duckdb.dataset import Failures, TableDataset
from kafkalog.duckdb.tables import SqlTable
from kafkalog.errors import InvalidConfigError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# In front of the name that the rows are registered under; the view over them has the name itself,
# and the columns in the order that people see.
_REGISTERED = "_kafkalog_"

# Of the machine's or the container's: a broker beside it wants its page cache.
MEMORY_LIMIT = "25%"
# Spark's order of nulls.
_NULL_ORDER = "nulls_first_on_asc_last_on_desc"


def usable_cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


def open_connection(
    tables: Iterable[SqlTable],
    failures: Failures,
    *,
    macros: Sequence[str] = (),
    memory_limit: str | int = MEMORY_LIMIT,
    threads: int | None = None,
) -> DuckDBPyConnection:
    """A connection of its own, in memory, with a view for each table and these macros. What reading
    the tables raises is noted in `failures`.

    memory_limit: of DuckDB's own, in bytes or as `512MB`; what does not fit goes to a directory of
    its own below the system's for temporary files, which is gone when the connection is closed. The
    order of nulls is Spark's, times are shown in UTC.
    """
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {
        "temp_directory": str(Path(tempfile.gettempdir()) / f"kafkalog-sql-{uuid4().hex[:12]}"),
        "default_null_order": _NULL_ORDER,
        "threads": threads or usable_cores(),
        # What is in Python's variables is not for a query to find.
        "python_enable_replacements": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    connection = duckdb.connect(config=config)
    _limit_memory(connection, memory_limit)
    connection.execute("SET TimeZone = 'UTC'")
    for macro in macros:
        connection.execute(macro)
    for table in tables:
        register_table(connection, table, failures)
    # In an interactive Python DuckDB draws a bar of its own, on stdout, where data is.
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _limit_memory(connection: DuckDBPyConnection, memory_limit: str | int) -> None:
    import duckdb

    limit = f"{memory_limit}B" if isinstance(memory_limit, int) else memory_limit
    wrong = f"memory_limit takes 512MB or the like, not {memory_limit!r}"
    # Whatever is negative, and `none`, is no limit at all for DuckDB.
    if not limit.strip()[:1].isdigit():
        raise InvalidConfigError(wrong)
    try:
        connection.execute("SET memory_limit = ?", [limit])
    except duckdb.Error as error:
        raise InvalidConfigError(wrong) from error


def register_table(
    connection: DuckDBPyConnection, table: SqlTable, failures: Failures, *, lengths: bool = False
) -> None:
    """A view of this name, with the columns of its schema, and with those of their lengths if asked
    for; nothing is read."""
    relation = f'"{_REGISTERED}{table.name}"'
    connection.register(_REGISTERED + table.name, TableDataset(table.rows, failures))
    names = dict.fromkeys([*table.schema.names, *(table.lengths.values() if lengths else ())])
    columns = ", ".join(f'"{name}"' for name in names)
    rows = relation if table.query is None else f"({table.query(relation)})"
    connection.execute(f'CREATE VIEW "{table.name}" AS SELECT {columns} FROM {rows}')
